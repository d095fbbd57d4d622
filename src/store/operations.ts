// The table of operations: who holds a key, what became of its send, and the records of both.

import { randomBytes } from 'node:crypto'

import type { Code } from '../decision.ts'
import { Fault } from '../fault.ts'
import type { Draft, More } from '../ledger/entry.ts'
import type { Book } from './book.ts'
import type { CloseWork, OpenDone, OpenWork } from './wire.ts'

/** How long a finished key is replayed, and then refused; microseconds. */
export type Retention = { readonly keptUs: number; readonly refusedUs: number }

/** What a claim needs beside itself: our lease, how to tell that another's owner is dead, and retention. */
export type Desk = {
  readonly nonce: string
  readonly endIfDead: (nonce: string) => boolean
  readonly retention: Retention
}

/** One row. `draft` is the intent's record as JSON while the send is open. */
type Operation = {
  readonly operation: string
  /** Set by `write`. */
  readonly salt: string
  readonly attempt: string
  readonly client: string
  readonly upstream: string
  readonly tool: string
  readonly key: string | null
  readonly does: string
  readonly args_digest: string
  readonly segment: string
  readonly pin: string | null
  readonly state: 'open' | 'done' | 'unknown' | 'unsent'
  readonly again: number
  readonly lease: string
  readonly draft: string | null
  readonly touched_us: number
  readonly outcome: string | null
  readonly failed: number
  readonly answer: string | null
  readonly answer_digest: string | null
  readonly answer_bytes: number | null
}

/** Claims the key and writes the intent, or writes the record that says why not. In a transaction. */
export function openOperation(book: Book, desk: Desk, work: OpenWork): OpenDone {
  if (work.pin !== null && pinned(book, work) !== work.pin) {
    return turnedAway(book, work, 'withheld')
  }
  const row = work.key === null ? null : rowOfKey(book, work, desk)
  const found = row === null ? 'free' : stateOf(row, work, desk.retention)
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

/** Every open send of the lease `nonce` becomes unknown, each with its record; gives their number. */
export function endOpen(book: Book, nonce: string, nowUs: number): number {
  const rows = book.sql("SELECT * FROM operations WHERE lease = ? AND state = 'open'").all(nonce)
  for (const found of rows) {
    const row = asOperation(found)
    const draft: Draft = {
      ...intentOf(row),
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

const DONE: ReadonlySet<string> = new Set(['answered', 'committed', 'failed', 'observed'])

/** What the row says about a new send under its key. */
function stateOf(
  row: Operation,
  work: OpenWork,
  { keptUs, refusedUs }: Retention,
): 'free' | 'replayed' | 'busy' | 'conflict' | 'unknown' | 'expired' {
  if (row.state === 'unsent') return 'free'
  const same = row.args_digest === work.argsDigest
  if (row.state === 'open') return same ? 'busy' : 'conflict'
  const ageUs = work.draft.ts - row.touched_us
  if (ageUs > keptUs + refusedUs) return 'free'
  if (ageUs > keptUs) return 'expired'
  if (!same) return 'conflict'
  // Only a server that deduplicates by the key itself may see it a second time.
  if (row.state === 'unknown') return work.honoured ? 'free' : 'unknown'
  return row.failed === 1 && work.honoured ? 'free' : 'replayed'
}

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
    again: mayHaveRun(before, work) ? 1 : 0,
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

const mayHaveRun = (before: Operation | null, work: OpenWork): boolean =>
  before !== null && before.state !== 'unsent' && before.args_digest === work.argsDigest

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

const CODES = {
  busy: 'busy',
  conflict: 'key_conflict',
  unknown: 'outcome_unknown',
  expired: 'key_expired',
  withheld: 'definition_changed',
} as const satisfies Record<string, Code>

function turnedAway(book: Book, work: OpenWork, kind: keyof typeof CODES): OpenDone {
  const draft: Draft = {
    ...work.draft,
    kind: 'call',
    decision: 'deny',
    outcome: 'not_executed',
    code: CODES[kind],
  }
  book.append(draft, { segment: work.segment, attempt: work.attempt })
  return { kind }
}

/** The row after the outcome; the members its record carries. A row without a key has served its turn. */
function settle(book: Book, row: Operation, work: CloseWork): More {
  if (row.key === null) return { ...book.remove('operations', row.operation) }
  const unsent = work.outcome === 'unsent' || work.outcome === 'not_executed'
  // That this send did nothing says nothing of the one before it.
  const free = unsent && row.again === 0
  return write(book, {
    ...row,
    state: DONE.has(work.outcome) ? 'done' : free ? 'unsent' : 'unknown',
    draft: null,
    touched_us: work.nowUs,
    outcome: work.outcome,
    failed: work.outcome === 'failed' ? 1 : 0,
    answer: work.stored,
    answer_digest: work.draft.result_digest,
    answer_bytes: work.draft.result_bytes,
  })
}

// The digest of the row is in the log: without a salt a short stored answer could be guessed from it.
function write(book: Book, row: Operation): More {
  return { ...book.put('operations', { ...row, salt: randomBytes(SALT_BYTES).toString('hex') }) }
}

const SALT_BYTES = 16

function intentOf({ draft }: Operation): Draft {
  if (draft === null) throw new Fault('internal', 'an open operation has lost its intent')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `claim` wrote it from a draft
  return JSON.parse(draft) as Draft
}

type Named = { readonly operation: string; readonly attempt: string; readonly segment: string }

/** The record of one round of an operation; the attempt is named where it is not the first. */
function record(book: Book, draft: Draft, named: Named, more: More): void {
  const { operation, attempt, segment } = named
  const which = attempt === operation ? { operation } : { operation, attempt }
  book.append(draft, { ...which, segment, ...more })
}

function pinned(book: Book, { upstream, tool }: OpenWork): string | null {
  const row = book.sql('SELECT hash FROM pins WHERE tool = ?').get(`${upstream}/${tool}`)
  const hash = row?.['hash']
  return typeof hash === 'string' ? hash : null
}

const BY_KEY =
  'SELECT * FROM operations WHERE client = ? AND upstream = ? AND tool = ? AND key IS ? AND key IS NOT NULL'

/** The row of the key; when its send is open and the owner is dead, as it is after that is recorded. */
function rowOfKey(book: Book, work: OpenWork, desk: Desk): Operation | null {
  const find = (): Operation | null => {
    const row = book.sql(BY_KEY).get(work.client, work.upstream, work.tool, work.key)
    return row === undefined ? null : asOperation(row)
  }
  const row = find()
  if (row?.state !== 'open' || !desk.endIfDead(row.lease)) return row
  return find()
}

function rowOf(book: Book, operation: string): Operation | null {
  const row = book.sql('SELECT * FROM operations WHERE operation = ?').get(operation)
  return row === undefined ? null : asOperation(row)
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- STRICT tables give these types
const asOperation = (row: object): Operation => row as Operation
