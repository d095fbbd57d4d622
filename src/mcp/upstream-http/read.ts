// What a text of a server over HTTP holds: the answer that is waited for, and what it says beside it.

import {
  isObject,
  type Json,
  type JsonLimits,
  type JsonObject,
  type JsonProblem,
  object,
  parseJson,
} from '../../json.ts'
import type { Floodgate } from '../upstream/flood.ts'
import { answerOf, type Heard, idOf } from '../upstream/heard.ts'
import type { HeaderSet } from './headers.ts'
import type { Site } from './site.ts'
import { answerByItems, OF_ONE_PLACE } from '../upstream/items.ts'

/** What all messages to one server share. `own`: the configured headers. `counts` are of messages that were
 *  dropped. */
export type Ground = {
  readonly site: Site
  readonly own: HeaderSet
  readonly limits: JsonLimits
  readonly flood: Floodgate
  readonly counts: Record<'junk' | 'stray' | 'asked' | 'flood', number>
  /** An array is several messages: 2025-03-26 and before. */
  batches: boolean
}

/** What is heard of the server beside answers. */
export type Ears = {
  readonly asked: (id: Json, method: string, params: JsonObject) => void
  readonly notice: (method: string, params: JsonObject) => void
}

/** One reader's wish: the id it waits for, null for a stream of nobody's. */
export type Reading = {
  readonly id: number | null
  readonly byItems: boolean
  /** The text is all there is: what cannot be read in it was the answer. */
  readonly alone: boolean
  readonly ears: Ears
}

/** Reads one text of a server: what is no answer goes to the ears; the answer that was waited for comes
 *  back, also one that is not admissible; null for none. */
export function read(ground: Ground, bytes: Buffer, reading: Reading): Heard | null {
  const parsed = parseJson(bytes, ground.limits)
  if (parsed.kind === 'refused')
    return readRefused(ground, bytes, { ...reading, problem: parsed.problem })
  const { value, text, result } = parsed
  if (ground.batches && isList(value)) {
    let found: Heard | null = null
    for (const one of value) found ??= take(ground, one, { text: null, bytes: 0, reading })
    return found
  }
  return take(ground, value, {
    text: result === null ? null : text.slice(...result),
    bytes: bytes.length,
    reading,
  })
}

/** A text that was not admitted. Where a list was asked for, its good items are. */
function readRefused(
  ground: Ground,
  bytes: Buffer,
  { id, byItems, alone, problem }: Reading & { readonly problem: JsonProblem },
): Heard | null {
  const named = idOf({ head: bytes, tail: bytes })
  if (id === null || (named !== id && !(alone && named === null))) {
    ground.counts.junk++
    return null
  }
  if (byItems && OF_ONE_PLACE.has(problem)) {
    const value = answerByItems(bytes.toString('utf8'), ground.limits)
    if (value !== null && value['id'] === id) return answerOf(value, null)
  }
  return { kind: 'refused', why: `its answer is not admissible JSON (${problem})` }
}

function take(
  ground: Ground,
  value: Json,
  {
    text,
    bytes,
    reading,
  }: { readonly text: string | null; readonly bytes: number; readonly reading: Reading },
): Heard | null {
  const { counts, flood } = ground
  if (!isObject(value) || value['jsonrpc'] !== '2.0') {
    counts.junk++
    return null
  }
  const { id, method, params } = value
  if (typeof method === 'string') {
    flood.count(bytes)
    const given = isObject(params) ? params : object({})
    if (id === undefined) reading.ears.notice(method, given)
    else {
      counts.asked++
      reading.ears.asked(id, method, given)
    }
    return null
  }
  const heard = answerOf(value, text)
  if (heard === null) counts.junk++
  else if (reading.id !== null && id === reading.id) return heard
  else counts.stray++
  return null
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)
