// Stage 7: what became of a send, in the ledger before anybody hears of it.

import { type Answer, isFailure } from '../call.ts'
import type { Code } from '../decision.ts'
import { neutral } from '../egress/stored.ts'
import type { Outcome } from '../ledger/entry.ts'
import type { Attempt, Awaits, Closing, Digest } from '../ports.ts'
import { digestOf } from './digest.ts'
import { since, type Visit } from './page.ts'

/** An attempt after which nothing more is asked. */
export type Ended = Exclude<Attempt, { readonly kind: 'asks' }>

/** Durable when it resolves. An answer that comes after its outcome was recorded as unknown is recorded too. */
export async function record(visit: Visit, attempt: Ended): Promise<void> {
  const { store, broken } = visit.page.doors
  const closed = closing(visit, attempt)
  await store.close(visit.ticket, closed instanceof Promise ? await closed : closed)
  if (attempt.kind !== 'unknown' || attempt.late === null) return
  attempt.late
    .then((answer) => closing(visit, { kind: 'answered', answer }))
    .then((late) => store.close(visit.ticket, late))
    .catch(broken)
}

/** The closing of an attempt; a promise only where a long answer is digested. */
export function closing(visit: Visit, attempt: Ended): Closing | Promise<Closing> {
  if (attempt.kind !== 'answered') {
    return without(visit, attempt.kind, cancelled(visit) ?? attempt.code)
  }
  const { answer } = attempt
  const digest = digestOf(visit.page.doors, answer)
  return digest instanceof Promise
    ? digest.then((one) => closingOf(visit, answer, one))
    : closingOf(visit, answer, digest)
}

const cancelled = ({ line }: Visit): 'cancelled' | null =>
  line.signal.aborted ? 'cancelled' : null

function closingOf(visit: Visit, answer: Answer, digest: Digest): Closing {
  const { decision, ticket } = visit
  const kept = decision.key === null || ticket.does === 'read' ? null : neutral(answer)
  return {
    outcome: outcomeOf(ticket.does, answer),
    awaits: null,
    code: cancelled(visit),
    answer: digest,
    store: kept,
    ...times(visit),
  }
}

/** The closing of a send without an answer. */
export const without = (visit: Visit, outcome: Outcome, code: Code | null): Closing => ({
  outcome,
  awaits: null,
  code,
  answer: null,
  store: null,
  ...times(visit),
})

/** The closing of a send that is not over: its client, or its server, has something to do first. */
export const awaiting = (
  visit: Visit,
  awaits: Awaits,
  said: Pick<Closing, 'answer' | 'store'>,
): Closing => ({ outcome: 'awaiting', awaits, code: null, ...said, ...times(visit) })

/** What an answer means for a call that does this. */
export function outcomeOf(does: string, answer: Answer): Outcome {
  if (isFailure(answer)) return 'failed'
  if (does === 'read') return 'observed'
  return does === 'undeclared' ? 'answered' : 'committed'
}

const times = ({ page }: Visit): { readonly durationUs: number; readonly nowUs: number } => ({
  durationUs: since(page),
  nowUs: page.doors.clock.nowUs(),
})
