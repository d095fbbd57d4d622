// A list of which single items cannot be admitted, read without them.

import {
  isObject,
  type Json,
  type JsonLimits,
  type JsonObject,
  type JsonProblem,
  object,
  parseText,
} from '../../json.ts'

/** Problems that a single item may have; the others are those of a whole text. */
export const OF_ONE_PLACE: ReadonlySet<JsonProblem> = new Set([
  'surrogate',
  'duplicate_key',
  'proto_key',
  'number_range',
  'too_deep',
  'too_many_keys',
])

/** The answer in this text, every item of a list in its result admitted for itself: null stands in the place
 *  of one that was not. Null as a whole when more than single items is wrong with the text. Takes time
 *  and memory linear in the text; the ceilings of the whole hold as they do for any message. */
export function answerByItems(text: string, limits: JsonLimits): JsonObject | null {
  const parts = cut(text, limits.nodes)
  if (parts === null) return null
  const frame = parseText(parts.frame, limits)
  if (frame.kind === 'refused' || !isObject(frame.value)) return null
  const { result } = frame.value
  if (!isObject(result)) return null
  const inside = { ...limits, depth: limits.depth - LIST_DEPTH }
  const members: Record<string, Json | undefined> = { ...result }
  for (const [name, value] of Object.entries(result)) {
    if (isList(value)) members[name] = value.map((at) => admitted(parts.items, at, inside))
  }
  return object({ ...frame.value, result: object(members) })
}

/** Brackets open around an item: those of the message, of its result and of the list. */
const LIST_DEPTH = 3
const MARKS = /["[\]{},]/g

type Parts = {
  /** The text with a number in place of each item: its place in `items`. */
  readonly frame: string
  readonly items: readonly string[]
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

function admitted(items: readonly string[], at: Json, limits: JsonLimits): Json {
  const source = typeof at === 'number' ? items[at] : undefined
  if (source === undefined) return null
  const parsed = parseText(source.trim(), limits)
  return parsed.kind === 'json' ? parsed.value : null
}

/** Finds the items by their borders alone; whether they, and the frame, are JSON is for the reader to say.
 *  Null when there may be more than `nodes` values. */
function cut(text: string, nodes: number): Parts | null {
  const items: string[] = []
  const frame: string[] = []
  let place: Place = { depth: 0, path: '' }
  let from = 0
  let values = 1
  const item = (end: number): void => {
    const source = text.slice(from, end)
    // Nothing between two commas stays nothing, and a syntax error.
    if (source.trim() !== '') frame.push(String(items.push(source) - 1))
    from = end
  }
  for (const { sign, at } of marks(text)) {
    const inside = isInList(place)
    if (inside && (sign === ',' || sign === ']')) item(at)
    place = passed(place, sign)
    // The border of a list, or of two items, stands in the frame; what follows is an item.
    if ((inside && sign === ',') || (sign === '[' && isInList(place))) {
      frame.push(text.slice(from, at + 1))
      from = at + 1
    }
    if (sign !== '}' && sign !== ']' && ++values > nodes) return null
  }
  frame.push(text.slice(from))
  return { frame: frame.join(''), items }
}

/** How many brackets are open, and the first of them. */
type Place = { readonly depth: number; readonly path: string }

const isInList = ({ depth, path }: Place): boolean => depth === LIST_DEPTH && path === '{{['

function passed({ depth, path }: Place, sign: string): Place {
  if (sign === ',') return { depth, path }
  if (sign === '{' || sign === '[') {
    return { depth: depth + 1, path: depth < LIST_DEPTH ? path + sign : path }
  }
  return { depth: depth - 1, path: depth > LIST_DEPTH ? path : path.slice(0, -1) }
}

/** Brackets and commas that stand in no string. */
function* marks(text: string): Generator<{ readonly sign: string; readonly at: number }> {
  let at = 0
  for (;;) {
    MARKS.lastIndex = at
    const mark = MARKS.exec(text)
    if (mark === null) return
    const [sign] = mark
    if (sign !== '"') yield { sign, at: mark.index }
    at = sign === '"' ? endOfString(text, mark.index) : mark.index + 1
  }
}

/** What follows the string that begins at `start`; the end of the text when it does not end. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return end < 0 ? text.length : end + 1
}

/** True after an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text[first - 1] === '\\') first--
  return (at - first) % 2 === 1
}
