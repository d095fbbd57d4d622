// One operation's row: what it says, how it is written, and the record that each writing has.

import { randomBytes } from 'node:crypto'

import { Fault } from '../fault.ts'
import { type Draft, emptyDraft, type More } from '../ledger/entry.ts'
import type { Awaits } from '../ports.ts'
import type { Book } from './book.ts'
import type { CloseWork } from './wire.ts'

/** One row. `draft` is the intent's record as JSON while the send is open or the operation waits. */
export type Operation = {
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
  readonly state: 'open' | 'input' | 'parked' | 'task' | 'done' | 'unknown' | 'unsent'
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

/** True for an operation that waits for its client or its server. */
export const isWaiting = ({ state }: Operation): boolean =>
  state === 'input' || state === 'parked' || state === 'task'

/** The operation's row, or null. */
export function rowOf(book: Book, operation: string): Operation | null {
  const row = book.sql('SELECT * FROM operations WHERE operation = ?').get(operation)
  return row === undefined ? null : asOperation(row)
}

/** A row of the table as it stands. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- STRICT tables give these types
export const asOperation = (row: object): Operation => row as Operation

/** The intent's record of a row that is not over. */
export function draftOf({ draft }: Operation): Draft {
  if (draft === null)
    throw new Fault('internal', 'an operation that is not over has lost its intent')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `claim` wrote it from a draft
  return JSON.parse(draft) as Draft
}

/** What the row still tells of a call that is over. */
export const overDraft = ({ client, tool, key, args_digest: args }: Operation): Draft => ({
  ...emptyDraft('outcome', 0),
  request_id: key ?? 'missing',
  name: tool,
  decision: 'allow',
  client,
  args_digest: args,
})

/** Which round the send of this row is. */
export function roundOf(row: Operation): number {
  const round = row.draft === null ? undefined : draftOf(row).more['round']
  return typeof round === 'number' ? round : 1
}

/** The row after the outcome; the members its record carries. A row without a key has served its turn. */
export function settle(book: Book, row: Operation, work: CloseWork): More {
  if (work.awaits !== null) return wait(book, row, work, work.awaits)
  // The answers did not reach the server: they are still waited for, in the round before.
  const back = row.state === 'open' && work.outcome === 'unsent' && roundOf(row) > 1
  if (back) return stepBack(book, row, work)
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

/** The row of an operation that waits. Only what is parked needs its process to live. */
function wait(book: Book, row: Operation, work: CloseWork, awaits: Awaits): More {
  const changed = write(book, {
    ...row,
    state: awaits,
    lease: awaits === 'parked' ? row.lease : '',
    touched_us: work.nowUs,
    outcome: work.outcome,
    answer: awaits === 'task' ? work.stored : null,
    answer_digest: awaits === 'task' ? work.draft.result_digest : null,
    answer_bytes: awaits === 'task' ? work.draft.result_bytes : null,
  })
  return { ...changed, awaits }
}

function stepBack(book: Book, row: Operation, work: CloseWork): More {
  const draft = draftOf(row)
  const before = { ...draft, more: { ...draft.more, round: roundOf(row) - 1 } }
  const changed = write(book, {
    ...row,
    state: 'input',
    lease: '',
    draft: JSON.stringify(before),
    touched_us: work.nowUs,
  })
  return { ...changed, awaits: 'input' }
}

/** Writes the row; the members that its record carries. The digest of the row is in the log: without a new
 *  salt a short stored answer could be guessed from it. */
export function write(book: Book, row: Operation): More {
  return { ...book.put('operations', { ...row, salt: randomBytes(SALT_BYTES).toString('hex') }) }
}

const SALT_BYTES = 16

/** Outcomes after which a key is done. */
export const DONE: ReadonlySet<string> = new Set(['answered', 'committed', 'failed', 'observed'])

type Named = { readonly operation: string; readonly attempt: string; readonly segment: string }

/** The record of one round of an operation; the attempt is named where it is not the first. */
export function record(book: Book, draft: Draft, named: Named, more: More): void {
  const { operation, attempt, segment } = named
  const which = attempt === operation ? { operation } : { operation, attempt }
  book.append(draft, { ...which, segment, ...more })
}
