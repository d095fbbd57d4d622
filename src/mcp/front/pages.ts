// Long lists in pages, under cursors that only this ledger can read and only their own client can use.

import { sha256 } from '../../canonical.ts'
import { isObject, type Json, parseText } from '../../json.ts'
import type { ListKind } from '../../ports.ts'
import type { Scene } from './views.ts'

/** Items of one page. */
export const LIST_PAGE = 1_000
/** How long a cursor is good for. */
export const CURSOR_MS: number = 60 * 60 * 1000

/** Where a page begins, and the view (its text) of which it is one. */
export type Page = { readonly from: number; readonly digest: string | null }

/** The beginning of every list. */
export const FIRST_PAGE: Page = { from: 0, digest: null }

/** The page that a cursor names, or null: it is not ours, of another client or list, or too old. */
export function readCursor({ client, doors }: Scene, kind: ListKind, cursor: Json): Page | null {
  if (typeof cursor !== 'string') return null
  const text = doors.store.unseal(PURPOSE, cursor, doors.clock.nowUs())
  const parsed = text === null ? null : parseText(text, LIMITS)
  if (parsed?.kind !== 'json' || !isObject(parsed.value)) return null
  const { name, profile, list, digest, from } = parsed.value
  const isOwn = name === client.name && profile === client.profile && list === kind
  return isOwn && typeof digest === 'string' && typeof from === 'number' ? { from, digest } : null
}

/** True when a view is still the one of which the page was. */
export const isPageOf = ({ digest }: Page, view: string): boolean =>
  digest === null || digest === sha256(view)

/** The cursor of the page that begins at `from`. */
export function nextCursor(
  { client, doors }: Scene,
  kind: ListKind,
  page: { readonly from: number; readonly view: string },
): string {
  const { name, profile } = client
  const { from } = page
  const text = JSON.stringify({ name, profile, list: kind, digest: sha256(page.view), from })
  return doors.store.seal(PURPOSE, text, doors.clock.nowUs() + CURSOR_MS * 1000)
}

const PURPOSE = 'cursor'
const LIMITS = { bytes: 4_096, depth: 2, keys: 8, nodes: 16 }
