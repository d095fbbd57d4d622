// The idempotency key of a call: where it is, and what may be one.

import type { Code } from '../decision.ts'
import type { Json } from '../json.ts'
import type { KeyContract } from './set.ts'
import { valueAt } from './value.ts'
import type { View } from './view.ts'

/** What a call brings as its key. `honoured`: the contract says that the server deduplicates by it. */
export type Key =
  | { readonly kind: 'key'; readonly key: string; readonly honoured: boolean }
  | { readonly kind: 'none' }
  | { readonly kind: 'failed'; readonly code: Code; readonly field: string | null }

/** 1 to 200 printable ASCII characters. Source: design.md 3. */
const KEY = /^[\x20-\x7e]{1,200}$/

/** The key of a call: what stands in the arguments where the contract says, else what the client sent beside
 *  them. Null `view`: the arguments are not looked at. */
export function keyText(contract: KeyContract | null, view: View | null, sent: string | null): Key {
  const found = contract === null || view === null ? null : inArguments(contract, view)
  if (found !== null) return found
  // A key that only stands beside the arguments is never seen by the server, so it cannot honour it.
  if (sent !== null) return checked(sent, null, false)
  if (contract === null) return { kind: 'none' }
  return { kind: 'failed', code: 'key_missing', field: contract.at?.pointer ?? null }
}

function inArguments({ at, honoured }: KeyContract, view: View): Key | null {
  if (at === null) return null
  const value = valueAt(view.value, at.pointer)
  const inexact = view.touched
  view.touched = null
  if (inexact !== null) return { kind: 'failed', code: 'number_not_exact', field: inexact }
  if (value === undefined || value === null) return null
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value
  return checked(text, at.pointer, honoured)
}

const checked = (text: Json, field: string | null, honoured: boolean): Key =>
  typeof text === 'string' && KEY.test(text)
    ? { kind: 'key', key: text, honoured }
    : { kind: 'failed', code: 'key_invalid', field }
