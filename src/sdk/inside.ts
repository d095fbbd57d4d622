// A server in this same process, as the hall sees servers.

import type { Answer } from '../call.ts'
import type { Effect } from '../decision.ts'
import type { JsonObject } from '../json.ts'
import type { Attempt, Listed, ListKind, Send, Upstreams } from '../ports.ts'
import { admit } from './definition.ts'

/** What a server in this process can do. */
export type Inside = {
  /** All items of a list as the server would send them, before any gate. */
  list(kind: ListKind): Promise<Listed>
  /** Does what was decided. Resolves with a result, or rejects as the SDK's handlers do. */
  run(params: JsonObject): Promise<unknown>
}

/** How long a callback may take before its outcome is unknown: design.md 2, call 5 min. */
export const CALL_MS: number = 5 * 60_000

const NOTHING: Listed = { items: [], complete: true }

/** The one server `name`, whose `run` is the only thing a ticket can reach. */
export function inProcess(name: string, inside: Inside): Upstreams {
  const list = async (upstream: string, kind: ListKind): Promise<Listed> =>
    upstream === name ? inside.list(kind) : NOTHING
  return {
    names: [name],
    list,
    isUp: () => true,
    async definition(upstream, tool) {
      const { items, complete } = await list(upstream, 'tools')
      return items.find((item) => item.name === tool) ?? (complete ? 'absent' : 'down')
    },
    hello: () => Promise.resolve(null),
    attempt: (ticket, send) => attempt(ticket.does, send, inside),
    // A callback cannot be left and taken up again: nothing is ever parked here.
    resume: () =>
      Promise.resolve({
        kind: 'unsent',
        code: 'state_invalid',
        why: 'no call waits under this name',
      }),
    drop: () => {},
    release: () => {},
  }
}

/** Never rejects. A cancelled read settles at once; anything else is waited for up to `CALL_MS`. */
function attempt(does: Effect, send: Send, inside: Inside): Promise<Attempt> {
  const answer = run(send, inside)
  return new Promise((resolve) => {
    const giveUp = (code: 'timeout' | 'cancelled', late: Promise<Answer> | null): void => {
      done({ kind: 'unknown', code, why: 'the callback has not returned', late })
    }
    const onAbort = (): void => {
      if (does === 'read') giveUp('cancelled', null)
    }
    const lateAnswer = answer.then((came) =>
      came.kind === 'answered' ? came.answer : new Promise<Answer>(() => {}),
    )
    const timer = setTimeout(() => giveUp('timeout', lateAnswer), CALL_MS)
    // A process whose stdin has ended is not held by a callback that never returns.
    timer.unref()
    const done = (came: Attempt): void => {
      clearTimeout(timer)
      send.signal.removeEventListener('abort', onAbort)
      resolve(came)
    }
    send.signal.addEventListener('abort', onAbort)
    void (async () => done(await answer))()
  })
}

async function run(send: Send, inside: Inside): Promise<Attempt> {
  let value: JsonObject | null
  try {
    value = admit(await inside.run(send.params))
  } catch (error) {
    return { kind: 'answered', answer: errorAnswer(error) }
  }
  if (value === null) return unknown('answer_refused', 'the result is no JSON object')
  const type = value['resultType']
  if (type !== undefined && type !== 'complete') {
    return unknown('not_bridged', 'the callback asked for input')
  }
  return { kind: 'answered', answer: { kind: 'result', era: 'legacy', value, text: null } }
}

const unknown = (code: 'answer_refused' | 'not_bridged', why: string): Attempt => ({
  kind: 'unknown',
  code,
  why,
  late: null,
})

const INTERNAL_ERROR = -32603

/** As the SDK would put the rejection on the wire. */
function errorAnswer(error: unknown): Answer {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  const data: unknown = error instanceof Error && 'data' in error ? error.data : undefined
  return {
    kind: 'error',
    code: typeof code === 'number' && Number.isSafeInteger(code) ? code : INTERNAL_ERROR,
    message: error instanceof Error ? error.message : 'Internal error',
    data: admit(data),
  }
}
