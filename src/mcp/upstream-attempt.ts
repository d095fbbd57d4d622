// One call to one server process: sent once, watched to its deadline, and told for what it was.

import type { Answer, Era } from '../call.ts'
import type { Code } from '../decision.ts'
import { type JsonObject, member, object } from '../json.ts'
import type { Attempt, Send, Ticket } from '../ports.ts'
import { type Hop, outgoing } from './upstream-meta.ts'
import type { Heard } from './upstream-heard.ts'
import type { Exchange, Waiter, Wire } from './upstream-wire.ts'

/** One process of a server, ready to be called. */
export type Line = { readonly wire: Wire; readonly hop: Hop }

/** How long a call may take: `callMs` from its start and from each progress, `callMaxMs` in all. */
export type Deadlines = { readonly callMs: number; readonly callMaxMs: number }

/** Certain: the server has executed nothing. */
export const unsent = (code: Code, why: string): Attempt => ({ kind: 'unsent', code, why })
const unknown = (code: Code, why: string, late: Promise<Answer> | null = null): Attempt => ({
  kind: 'unknown',
  code,
  why,
  late,
})

/** Sends the call and resolves when it has been answered, when it never can be, or at its deadline; then an
 *  answer that still comes is `late`. A cancelled read ends at once, a cancelled mutation goes on: what it
 *  did has to be known. */
export function attemptOn(
  line: Line,
  call: { readonly ticket: Ticket; readonly send: Send },
  deadlines: Deadlines,
): Promise<Attempt> {
  const { signal } = call.send
  const { promise, resolve } = Promise.withResolvers<Attempt>()
  const late = Promise.withResolvers<Answer>()
  const watch = deadline(deadlines, () => {
    if (flight.exchange?.cancel('timeout') === 'unsent') {
      finish(unsent('timeout', 'it did not read the request in time'))
      return
    }
    flight.exchange?.abandon()
    finish(unknown('timeout', 'it did not answer in time', late.promise))
  })
  const flight: Flight = { send: call.send, exchange: null, reads: call.ticket.does === 'read' }
  const finish = (attempt: Attempt): void => {
    watch.stop()
    signal.removeEventListener('abort', aborted)
    // One that is only heard late must not hold its arguments.
    flight.send = null
    resolve(attempt)
  }
  const aborted = (): void => {
    const made = cancel(flight)
    if (made !== null) finish(made)
  }
  const exchange = post(line, call.send, {
    heard(said) {
      const attempt = attemptOf(said, line.hop.era)
      if (flight.send !== null) finish(attempt)
      else if (attempt.kind === 'answered') late.resolve(attempt.answer)
    },
    progress(params) {
      if (flight.send === null) return
      watch.extend()
      tell(flight.send, params)
    },
  })
  if (exchange === null) finish(unsent('upstream_down', 'it does not take requests'))
  else {
    flight.exchange = exchange
    signal.addEventListener('abort', aborted)
  }
  return promise
}

/** `send` is null once the caller has its attempt. */
type Flight = { send: Send | null; exchange: Exchange | null; readonly reads: boolean }

/** Tells the server to stop; null while its answer is still waited for. */
function cancel({ exchange, reads }: Flight): Attempt | null {
  if (exchange?.cancel('cancelled') === 'unsent') return unsent('cancelled', 'it was cancelled')
  if (!reads) return null
  exchange?.forget()
  return unknown('cancelled', 'it was cancelled')
}

/** Calls `expired` once, `callMs` after now or after the last `extend`, but `callMaxMs` after now at the
 *  latest. */
function deadline(
  { callMs, callMaxMs }: Deadlines,
  expired: () => void,
): { readonly extend: () => void; readonly stop: () => void } {
  const startedAt = performance.now()
  let until = startedAt + callMs
  // Progress only moves a number: re-arming a timer for each would cost more than the progress.
  const look = (): void => {
    const left = until - performance.now()
    if (left > 0) timer = setTimeout(look, left)
    else expired()
  }
  let timer = setTimeout(look, callMs)
  return {
    extend() {
      until = Math.min(startedAt + callMaxMs, performance.now() + callMs)
    },
    stop: () => clearTimeout(timer),
  }
}

/** Apart from the waiting, whose closures would otherwise hold the params until the end. */
const post = ({ wire, hop }: Line, { method, params }: Send, waiter: Waiter): Exchange | null =>
  wire.request(method, (id) => outgoing(params, hop, id), waiter)

/** Progress goes on only to a client that asked for it, under the client's own token. */
function tell(send: Send, params: JsonObject): void {
  const token = member(send.params['_meta'], 'progressToken')
  if (token !== undefined) send.watch.progress(object({ ...params, progressToken: token }))
}

function attemptOf(heard: Heard, era: Era): Attempt {
  switch (heard.kind) {
    case 'error':
      return { kind: 'answered', answer: heard }
    case 'unsent':
      return unsent(heard.code, heard.why)
    case 'refused':
      return unknown('answer_refused', heard.why)
    case 'gone':
      return heard.handed
        ? unknown('upstream_down', 'it ended before it answered')
        : unsent('upstream_down', 'it ended before the request left')
    case 'result':
      return resultOf(heard, era)
  }
}

/** A result that this build passes on. Other kinds (a question back, a task) are not half passed. */
function resultOf(heard: Extract<Heard, { kind: 'result' }>, era: Era): Attempt {
  const { resultType } = heard.value
  if (resultType === 'complete' || (resultType === undefined && era === 'legacy')) {
    return {
      kind: 'answered',
      answer: { kind: 'result', era, value: heard.value, text: heard.text },
    }
  }
  return resultType === undefined
    ? unknown('answer_refused', 'its result does not say that it is complete')
    : unknown('not_bridged', 'it answered with a kind of result that is not passed on')
}
