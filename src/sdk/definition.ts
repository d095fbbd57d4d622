// Values of this process as admitted JSON, and the items of lists as definitions.

import type { Definition } from '../call.ts'
import { canonical, sha256 } from '../canonical.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  member,
  object,
  parseText,
  UPSTREAM_LIMITS,
} from '../json.ts'
import type { ListKind } from '../ports.ts'

/** A value of this process as a message would carry it: what JSON cannot say is gone, what strict admission
 *  refuses is null. */
export function admit(value: unknown): JsonObject | null {
  const text = JSON.stringify(value) as string | undefined
  if (text === undefined) return null
  const parsed = parseText(text, UPSTREAM_LIMITS)
  return parsed.kind === 'json' && isObject(parsed.value) ? parsed.value : null
}

/** The item under its name, with the hash that a pin is over; none when it has no name. */
export function definitionOf(kind: ListKind, value: JsonObject | null): readonly Definition[] {
  const key = kind === 'resources' ? 'uri' : kind === 'templates' ? 'uriTemplate' : 'name'
  const name = member(value ?? undefined, key)
  if (value === null || typeof name !== 'string') return []
  return [{ name, value, hash: sha256(canonical(object(pick(value)))) }]
}

/** What a pin is over; an icon may change, what the agent reads and sends may not. */
const PINNED = [
  'name',
  'title',
  'description',
  'inputSchema',
  'outputSchema',
  'annotations',
  '_meta',
]

const pick = (value: JsonObject): Record<string, Json | undefined> =>
  Object.fromEntries(PINNED.map((key) => [key, value[key]]))
