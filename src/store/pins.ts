// The remembered shapes of tools: first seen, approved, waiting.

import { emptyDraft } from '../ledger/entry.ts'
import type { Book } from './book.ts'
import type { PinRow, PinWork } from './wire.ts'

/** Who is named in the record: the client whose call or list showed the tool, or the user who approved. */
export type By = { readonly client?: string | null; readonly user?: string }

type Pinned = {
  readonly tool: string
  readonly hash: string | null
  readonly waiting: string | null
  readonly since_us: number
}

/** Remembers these definitions, each change with its record. A tool pinned with the same hash is left
 *  alone; an approved pin is never replaced, the new hash waits beside it. In a transaction. */
export function rememberPins(book: Book, pins: readonly PinWork[], by: By): void {
  for (const pin of pins) {
    const before = pinOf(book, pin.tool)
    const after = next(before, pin)
    if (after === before) continue
    remember(book, pin)
    writePin(book, after, by)
  }
}

/** What became of an approval. `waiting`: the hash that waits, another than the one asked for. */
export type Approved =
  | { readonly kind: 'approved'; readonly hash: string; readonly before: string | null }
  | { readonly kind: 'unknown_tool' | 'nothing_waits' }
  | { readonly kind: 'other_hash'; readonly waiting: string }

/** Approves what waits for `tool`; only `hash` when one is given. In a transaction. */
export function approve(
  book: Book,
  wish: { readonly tool: string; readonly hash: string | null },
  by: By,
): Approved {
  const before = pinOf(book, wish.tool)
  if (before === null) return { kind: 'unknown_tool' }
  const { waiting } = before
  if (waiting === null) return { kind: 'nothing_waits' }
  if (wish.hash !== null && wish.hash !== waiting) return { kind: 'other_hash', waiting }
  writePin(book, { ...before, hash: waiting, waiting: null, since_us: nowUs() }, by)
  return { kind: 'approved', hash: waiting, before: before.hash }
}

/** All pins, by tool. */
export function readPins(book: Book): readonly PinRow[] {
  const rows = book.sql('SELECT tool, hash, waiting FROM pins ORDER BY tool').all()
  return rows.map((row) => [String(row['tool']), text(row['hash']), text(row['waiting'])])
}

function next(before: Pinned | null, { tool, hash, state }: PinWork): Pinned | null {
  if (before !== null && (before.hash === hash || before.waiting === hash)) {
    const firstUse = state === 'approved' && before.hash === null
    return firstUse ? { tool, hash, waiting: null, since_us: nowUs() } : before
  }
  if (state === 'approved' && (before === null || before.hash === null)) {
    return { tool, hash, waiting: null, since_us: nowUs() }
  }
  return { tool, hash: before?.hash ?? null, waiting: hash, since_us: nowUs() }
}

function writePin(book: Book, pin: Pinned | null, by: By): void {
  if (pin === null) return
  const chained = book.put('pins', pin)
  const state = pin.waiting === null ? 'approved' : pin.hash === null ? 'waits' : 'changed'
  const definition = pin.waiting ?? pin.hash ?? ''
  const who = by.user === undefined ? {} : { user: by.user }
  const draft = emptyDraft('pin', nowUs())
  book.append(
    { ...draft, name: pin.tool, client: by.client ?? null },
    { ...chained, state, definition, ...who },
  )
}

/** Keeps the text of a definition under its hash, so that old decisions can be decided again. */
function remember(book: Book, { tool, hash, text: source }: PinWork): void {
  if (book.sql('SELECT 1 FROM definitions WHERE hash = ?').get(hash) !== undefined) return
  const chained = book.put('definitions', { hash, text: source })
  book.append({ ...emptyDraft('pin', nowUs()), name: tool }, { ...chained, state: 'seen' })
}

function pinOf(book: Book, tool: string): Pinned | null {
  const row = book.sql('SELECT * FROM pins WHERE tool = ?').get(tool)
  if (row === undefined) return null
  const { hash, waiting, since_us: since } = row
  return { tool, hash: text(hash), waiting: text(waiting), since_us: Number(since) }
}

const text = (value: unknown): string | null => (typeof value === 'string' ? value : null)
const nowUs = (): number => Date.now() * 1_000
