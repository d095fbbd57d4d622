// The clock of this machine against the time of the ledger: how far it is behind, and who accepted that.

import { member, parseText, REQUEST_LIMITS, type Json } from '../json.ts'
import { emptyDraft } from '../ledger/entry.ts'
import type { Book } from './book.ts'
import { STORE_LIMITS } from './limits.ts'
import { refused, type Place } from './place.ts'

/** Two times in microseconds since 1970: that of the ledger, and what the clock says. */
export type Behind = { readonly ledgerUs: number; readonly nowUs: number }

/** What became of an acceptance. `behind`: null where there was nothing to accept. */
export type ClockAccepted = { readonly behind: Behind | null }

/** How the clock is behind the ledger's time by more than the tolerance, or null. */
export function clockBehind(book: Book): Behind | null {
  const ledgerUs = ledgerTime(book)
  const nowUs = Date.now() * 1_000
  return nowUs < ledgerUs - STORE_LIMITS.clockBackMs * 1_000 ? { ledgerUs, nowUs } : null
}

/** Refuses a start before the ledger's time: a set-back clock lets what had expired live again, and is what
 *  a restored machine has. Source: docs/decisions/0053.
 *  Errors: `Fault('state_refused')` with both times and the ways out. */
export function refuseClock(book: Book, { dir }: Place): void {
  const behind = clockBehind(book)
  if (behind === null) return
  const { ledgerUs, nowUs } = behind
  throw refused(
    `the clock says ${timeText(nowUs)}, but the ledger in ${dir} has records of ${timeText(ledgerUs)}; ` +
      `set the clock right and start again, or, if it is right now, run: eclusa clock accept --state ${shellWord(dir)}`,
  )
}

/** Records that `user` accepts the clock as it stands: it is the ledger's time from now on. Nothing is
 *  written where the clock is not behind. In a transaction. */
export function acceptNow(book: Book, user: string): ClockAccepted {
  const behind = clockBehind(book)
  if (behind !== null) {
    const draft = emptyDraft('recovery', behind.nowUs)
    book.append(draft, { found: FOUND, ledger_ts: behind.ledgerUs, user })
  }
  return { behind }
}

const FOUND = 'clock_behind'

/** `2026-11-30T17:04:59Z`. */
export const timeText = (us: number): string =>
  new Date(us / 1_000).toISOString().replace(/\.\d+Z$/, 'Z')

/** The time of the last record that tells it: of those that a command wrote, only an acceptance does, so that
 *  `pin approve` under a wrong clock accepts nothing. */
function ledgerTime(book: Book): number {
  const { seq: last } = book.end()
  let latest: number | null = null
  for (let seq = last; seq >= 0 && seq > last - STORE_LIMITS.clockRecords; seq--) {
    const line = String(book.sql('SELECT line FROM entries WHERE seq = ?').get(seq)?.['line'])
    const parsed = parseText(line, REQUEST_LIMITS)
    if (parsed.kind !== 'json') continue
    const ts = member(parsed.value, 'ts')
    if (typeof ts !== 'number') continue
    if (tellsTime(parsed.value)) return ts
    latest ??= ts
  }
  return latest ?? 0
}

function tellsTime(entry: Json): boolean {
  if (member(entry, 'kind') === 'recovery') return member(entry, 'found') === FOUND
  return typeof member(entry, 'user') !== 'string'
}

const shellWord = (text: string): string =>
  /^[A-Za-z0-9_./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
