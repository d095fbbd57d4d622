// The table of operations: who holds a key, what became of its send, and the records of both.

import { STOPPED } from '../decision.ts'
import type { Draft } from '../ledger/entry.ts'
import type { Book } from './book.ts'
import {
  asOperation,
  DONE,
  draftOf,
  isWaiting,
  type Operation,
  overDraft,
  record,
  roundOf,
  rowOf,
  settle,
  write,
} from './operation.ts'
import type { CloseWork, OpenDone, OpenWork, SettleWork } from './wire.ts'

/** How long a finished key is replayed, and then refused; microseconds. */
export type Retention = { readonly keptUs: number; readonly refusedUs: number }

/** What a claim needs beside itself: our lease, how to tell that another's owner is dead, and retention. */
export type Desk = {
  readonly nonce: string
  readonly endIfDead: (nonce: string) => boolean
  readonly retention: Retention
}

/** Claims the key and writes the intent, or writes the record that says why not. In a transaction. */
export function openOperation(book: Book, desk: Desk, work: OpenWork): OpenDone {
  if (isRevoked(book, work)) return turnedAway(book, work, 'revoked')
  if (work.pin !== null && pinned(book, work) !== work.pin) {
    return turnedAway(book, work, 'withheld')
  }
  if (work.continues !== null) return goOn(book, desk, work, work.continues)
  const row = work.key === null ? null : rowOfKey(book, work, desk)
  const found = row === null ? 'free' : stateOf(row, asking(work), desk.retention)
  if (found === 'free') return claim(book, desk, work, row)
  if (found === 'replayed' && row !== null) return replay(book, work, row)
  return turnedAway(book, work, found === 'replayed' ? 'busy' : found)
}

/** Writes what became of a send. An open row is settled; a send that is no longer open gets a `late`
 *  record, which may settle an unknown outcome and nothing else. In a transaction. */
export function closeOperation(book: Book, work: CloseWork): void {
  const row = rowOf(book, work.operation)
  const ours = row !== null && row.attempt === work.attempt ? row : null
  if (ours?.state === 'open') {
    record(book, work.draft, work, settle(book, ours, work))
    return
  }
  const draft: Draft = { ...work.draft, outcome: 'late' }
  const settles = ours?.state === 'unknown' && DONE.has(work.outcome)
  const changed = settles ? settle(book, ours, work) : {}
  record(book, draft, work, { ...changed, late_outcome: work.outcome })
}

/** Every send of the lease `nonce` that is open or parked becomes unknown, each with its record; gives their
 *  number. */
export function endOpen(book: Book, nonce: string, nowUs: number): number {
  const rows = [...book.sql(OPEN_OF).all(nonce), ...book.sql(PARKED_OF).all(nonce)]
  for (const found of rows) {
    const row = asOperation(found)
    const draft: Draft = {
      ...draftOf(row),
      kind: 'outcome',
      ts: nowUs,
      outcome: 'unknown',
      code: 'outcome_unknown',
    }
    const changed = write(book, { ...row, state: 'unknown', outcome: 'unknown', touched_us: nowUs })
    record(book, draft, row, { ...changed, lease: nonce })
  }
  return rows.length
}

// One a state, each with an index of its own.
const OPEN_OF = "SELECT * FROM operations WHERE lease = ? AND state = 'open'"
const PARKED_OF = "SELECT * FROM operations WHERE lease = ? AND state = 'parked'"

/** Gives an operation that waits its final outcome. One that does not wait any more gets a `late` record if
 *  this says something new of it; one without a row has been settled. In a transaction. */
export function settleOperation(book: Book, work: SettleWork): void {
  const row = rowOf(book, work.operation)
  if (row === null) return
  const waits = isWaiting(row)
  if (!waits && row.answer_digest === work.resultDigest) return
  const draft: Draft = {
    ...(row.draft === null ? overDraft(row) : draftOf(row)),
    kind: 'outcome',
    ts: work.nowUs,
    outcome: work.outcome,
    code: work.code,
    result_digest: work.resultDigest,
    result_bytes: work.resultBytes,
    duration_us: work.durationUs,
  }
  if (waits) {
    const end = { ...work, draft, awaits: null, attempt: row.attempt, segment: row.segment }
    record(book, draft, row, settle(book, row, end))
  } else record(book, { ...draft, outcome: 'late' }, row, { late_outcome: work.outcome })
}

/** Ends operations without a key that nobody will take up any more, at most `most` of each kind: input whose
 *  state has been past its time since before `inputUs`, tasks not asked for since `taskUs`. In a transaction. */
export function sweepWaiting(
  book: Book,
  since: { readonly inputUs: number; readonly taskUs: number; readonly nowUs: number },
  most: number,
): void {
  const { inputUs, taskUs, nowUs } = since
  const ends = [
    { sql: NO_INPUT, beforeUs: inputUs, outcome: 'not_executed', code: 'state_invalid' },
    { sql: NO_TASK, beforeUs: taskUs, outcome: 'unknown', code: 'outcome_unknown' },
  ] as const
  for (const { sql, beforeUs, outcome, code } of ends) {
    for (const found of book.sql(sql).all(beforeUs, most)) {
      const row = asOperation(found)
      const draft: Draft = { ...draftOf(row), kind: 'outcome', ts: nowUs, outcome, code }
      record(book, draft, row, { ...book.remove('operations', row.operation) })
    }
  }
}

const NO_INPUT =
  "SELECT * FROM operations WHERE state = 'input' AND key IS NULL AND touched_us < ? LIMIT ?"
const NO_TASK =
  "SELECT * FROM operations WHERE state = 'task' AND key IS NULL AND touched_us < ? LIMIT ?"

const asking = (work: OpenWork): Asking => ({ ...work, nowUs: work.draft.ts })

/** True while a process has the call in its hands. */
const isHeld = ({ state }: Operation): boolean => state === 'open' || state === 'parked'

/** What a new send needs to say of itself to be told of its key. */
export type Asking = Pick<OpenWork, 'argsDigest' | 'honoured'> & { readonly nowUs: number }

/** What the row says about a new send under its key. */
export function stateOf(
  row: Operation,
  work: Asking,
  { keptUs, refusedUs }: Retention,
): 'free' | 'replayed' | 'busy' | 'conflict' | 'unknown' | 'expired' {
  if (row.state === 'unsent') return 'free'
  const same = row.args_digest === work.argsDigest
  if (isHeld(row)) return same ? 'busy' : 'conflict'
  const ageUs = work.nowUs - row.touched_us
  if (ageUs > keptUs + refusedUs) return 'free'
  if (ageUs > keptUs) return 'expired'
  if (!same) return 'conflict'
  // What was asked and never answered has run nothing: the call may begin anew.
  if (row.state === 'input') return 'free'
  // Only a server that deduplicates by the key itself may see it a second time.
  if (row.state === 'unknown') return work.honoured ? 'free' : 'unknown'
  return row.failed === 1 && work.honoured ? 'free' : 'replayed'
}

/** Claims the next round of an operation that waits for its client. What was taken up already, what others
 *  wait for, and what waits in another process is not to be had again. */
function goOn(book: Book, desk: Desk, work: OpenWork, operation: string): OpenDone {
  const row = rowOf(book, operation)
  if (row === null || !isSame(row, work)) return turnedAway(book, work, 'ended')
  if (row.state === 'done' && row.key !== null) {
    const found = stateOf(row, asking(work), desk.retention)
    return found === 'replayed' ? replay(book, work, row) : turnedAway(book, work, 'ended')
  }
  const waits = row.state === 'input' || (row.state === 'parked' && row.lease === desk.nonce)
  const next = roundOf(row) + 1 === work.round
  return waits && next ? claim(book, desk, work, row) : turnedAway(book, work, 'ended')
}

const isSame = (row: Operation, work: OpenWork): boolean =>
  row.client === work.client &&
  row.upstream === work.upstream &&
  row.tool === work.tool &&
  row.key === work.key &&
  row.args_digest === work.argsDigest

function claim(book: Book, desk: Desk, work: OpenWork, before: Operation | null): OpenDone {
  const operation = before?.operation ?? work.attempt
  const row: Operation = {
    operation,
    salt: '',
    attempt: work.attempt,
    client: work.client,
    upstream: work.upstream,
    tool: work.tool,
    key: work.key,
    does: work.does,
    args_digest: work.argsDigest,
    segment: work.segment,
    pin: work.pin,
    state: 'open',
    again: againOf(before, work),
    lease: desk.nonce,
    draft: JSON.stringify(work.draft),
    touched_us: work.draft.ts,
    outcome: null,
    failed: 0,
    answer: null,
    answer_digest: null,
    answer_bytes: null,
  }
  const draft: Draft = { ...work.draft, kind: 'intent', outcome: 'pending' }
  record(book, draft, row, { ...write(book, row), does: work.does })
  return { kind: 'ticket', operation }
}

/** 1 when an earlier send under this key may have run. A round that ended in a question ran nothing. */
function againOf(before: Operation | null, work: OpenWork): number {
  if (before === null || before.args_digest !== work.argsDigest) return 0
  if (isWaiting(before)) return before.again
  return before.state === 'unsent' ? 0 : 1
}

function replay(book: Book, work: OpenWork, row: Operation): OpenDone {
  const digest = row.answer_digest ?? ''
  const bytes = row.answer_bytes ?? 0
  const draft: Draft = {
    ...work.draft,
    kind: 'call',
    outcome: 'replay',
    result_digest: digest,
    result_bytes: bytes,
  }
  record(book, draft, { operation: row.operation, attempt: work.attempt, segment: row.segment }, {})
  return { kind: 'replayed', answer: row.answer, digest, bytes, failed: row.failed === 1 }
}

function turnedAway(book: Book, work: OpenWork, kind: keyof typeof STOPPED): OpenDone {
  const draft: Draft = {
    ...work.draft,
    kind: 'call',
    decision: 'deny',
    outcome: 'not_executed',
    code: STOPPED[kind],
  }
  book.append(draft, { segment: work.segment, attempt: work.attempt })
  return { kind }
}

/** True for a client with a token that is gone, revoked or past its time. */
function isRevoked(book: Book, { draft }: OpenWork): boolean {
  if (draft.identity !== 'token') return false
  const row = book.sql(VALID).get(draft.client, draft.ts)
  return row === undefined
}

const VALID =
  'SELECT 1 FROM clients WHERE name = ? AND revoked_us IS NULL AND (expires_us IS NULL OR expires_us > ?)'

function pinned(book: Book, { upstream, tool }: OpenWork): string | null {
  const row = book.sql('SELECT hash FROM pins WHERE tool = ?').get(`${upstream}/${tool}`)
  const hash = row?.['hash']
  return typeof hash === 'string' ? hash : null
}

/** The row of a key. Parameters: client, upstream, tool, key. */
export const BY_KEY: string =
  'SELECT * FROM operations WHERE client = ? AND upstream = ? AND tool = ? AND key IS ? AND key IS NOT NULL'

/** The row of the key; when its send is open and the owner is dead, as it is after that is recorded. */
function rowOfKey(book: Book, work: OpenWork, desk: Desk): Operation | null {
  const find = (): Operation | null => {
    const row = book.sql(BY_KEY).get(work.client, work.upstream, work.tool, work.key)
    return row === undefined ? null : asOperation(row)
  }
  const row = find()
  if (row === null || !isHeld(row) || !desk.endIfDead(row.lease)) return row
  return find()
}
