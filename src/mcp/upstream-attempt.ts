// One call to one server process: sent once, watched to its deadline, and told for what it was.

import type { Answer, Era } from '../call.ts'
import type { Code } from '../decision.ts'
import { type JsonObject, member, object } from '../json.ts'
import type { Attempt, Send, Ticket } from '../ports.ts'
import { type Hop, outgoing } from './upstream-meta.ts'
import type { Exchange, Heard, Waiter, Wire } from './upstream-wire.ts'

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
  const reads = call.ticket.does === 'read'
  const { signal } = call.send
  // Let go when the call is over: one that is only heard late must not hold its arguments.
  let send: Send | null = call.send
  const { promise, resolve } = Promise.withResolvers<Attempt>()
  const late = Promise.withResolvers<Answer>()
  const startedAt = performance.now()
  const last = startedAt + deadlines.callMaxMs
  let until = startedAt + deadlines.callMs
  let settled = false
  let timer: NodeJS.Timeout | undefined
  let exchange: Exchange | null = null

  const finish = (attempt: Attempt): void => {
    if (settled) return
    settled = true
    clearTimeout(timer)
    signal.removeEventListener('abort', aborted)
    send = null
    resolve(attempt)
  }
  const heard = (said: Heard): void => {
    const attempt = attemptOf(said, line.hop.era)
    if (settled) {
      if (attempt.kind === 'answered') late.resolve(attempt.answer)
    } else finish(attempt)
  }
  const expired = (): void => {
    const left = until - performance.now()
    if (left > 0) {
      timer = setTimeout(expired, left)
      return
    }
    const taken = exchange?.cancel('timeout')
    if (taken === 'unsent') finish(unsent('timeout', 'it did not read the request in time'))
    else {
      exchange?.abandon()
      finish(unknown('timeout', 'it did not answer in time', late.promise))
    }
  }
  const aborted = (): void => {
    if (exchange?.cancel('cancelled') === 'unsent') finish(unsent('cancelled', 'it was cancelled'))
    else if (reads) {
      exchange?.forget()
      finish(unknown('cancelled', 'it was cancelled'))
    }
  }

  exchange = post(line, call.send, {
    heard,
    progress(params) {
      if (send === null) return
      until = Math.min(last, performance.now() + deadlines.callMs)
      tell(send, params)
    },
  })
  if (exchange === null)
    return Promise.resolve(unsent('upstream_down', 'it does not take requests'))
  timer = setTimeout(expired, deadlines.callMs)
  signal.addEventListener('abort', aborted)
  return promise
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
