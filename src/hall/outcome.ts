// Stage 7: what became of a send, in the ledger before anybody hears of it.

import { type Answer, isFailure } from '../call.ts'
import type { Code } from '../decision.ts'
import { neutral, sourceOf } from '../egress/stored.ts'
import type { Outcome } from '../ledger/entry.ts'
import type { Attempt, Awaits, Closing } from '../ports.ts'
import { since, type Visit } from './page.ts'

/** An attempt after which nothing more is asked. */
export type Ended = Exclude<Attempt, { readonly kind: 'asks' }>

/** Durable when it resolves. An answer that comes after its outcome was recorded as unknown is recorded too. */
export async function record(visit: Visit, attempt: Ended): Promise<void> {
  const { store, broken } = visit.page.doors
  await store.close(visit.ticket, closing(visit, attempt))
  if (attempt.kind !== 'unknown' || attempt.late === null) return
  attempt.late
    .then((answer) => store.close(visit.ticket, closing(visit, { kind: 'answered', answer })))
    .catch(broken)
}

/** The closing of an attempt. */
export function closing(visit: Visit, attempt: Ended): Closing {
  const { page, decision, ticket, line } = visit
  const cancelled = line.signal.aborted ? ('cancelled' as const) : null
  if (attempt.kind !== 'answered') {
    return without(visit, attempt.kind, cancelled ?? attempt.code)
  }
  const { answer } = attempt
  const kept = decision.key === null || ticket.does === 'read' ? null : neutral(answer)
  return {
    outcome: outcomeOf(ticket.does, answer),
    awaits: null,
    code: cancelled,
    answer: page.doors.store.digest(sourceOf(answer)),
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
