// One more entry in a configuration text, put where a person would write it; all other bytes stay.

import { isMap, isSeq, parse, parseDocument } from 'yaml'
import type { Node, Pair, YAMLMap, YAMLSeq } from 'yaml'

import { pointer, segmentsOf } from './position.ts'

/** What to add: an entry of the list at `path`, or the member `key` of the object at `path`. What is missing
 *  on the way is made. `value` of a member is written as it stands. */
export type Addition =
  | { readonly kind: 'entry'; readonly path: string; readonly value: string }
  | {
      readonly kind: 'member'
      readonly path: string
      readonly key: string
      readonly value: string
    }

/** A text with one addition. `line` (from 1) is of the text before: the line that reads `shown` now
 *  (`changed`), or the one after which the new line `shown` stands (`added`). */
export type Edit = {
  readonly text: string
  readonly line: number
  readonly how: 'changed' | 'added'
  readonly shown: string
}

/** The edit, or null where the text is written in a way that is left to a person: an alias in the place, a
 *  list that begins on the line of its key, a text that is no YAML. */
export function edited(text: string, addition: Addition): Edit | null {
  const document = parseDocument(text, { version: '1.2', schema: 'core', stringKeys: true })
  if (document.errors.length > 0) return null
  const segments = segmentsOf(addition.path)
  if (segments === null) return null
  const node: unknown = segments.length === 0 ? document.contents : document.getIn(segments, true)
  const json = text.trimStart().startsWith('{')
  if (addition.kind === 'entry') {
    const entry = scalar(addition.value, json)
    if (node === undefined) return inParent(text, segments, `[${entry}]`)
    return isSeq(node) ? intoList(text, node, entry) : null
  }
  const member = `${scalar(addition.key, json)}: ${addition.value}`
  if (node === undefined) return inParent(text, segments, `{ ${member} }`)
  return isMap(node) ? intoMap(text, node, member) : null
}

function inParent(text: string, segments: readonly string[], value: string): Edit | null {
  const key = segments.at(-1)
  if (key === undefined) return null
  let path = ''
  for (const segment of segments.slice(0, -1)) path = pointer(path, segment)
  return edited(text, { kind: 'member', path, key, value })
}

/** A text as a scalar: plain where it can be nothing else, else as JSON writes it, which is YAML too. */
function scalar(value: string, json: boolean): string {
  const plain = !json && /^[A-Za-z0-9_][A-Za-z0-9_./-]*$/.test(value) && parse(value) === value
  return plain ? value : JSON.stringify(value)
}

function intoList(text: string, list: YAMLSeq, entry: string): Edit | null {
  const last = list.items.at(-1)
  if (list.flow === true) return intoFlow(text, { node: list, last: endOf(last) }, entry)
  const start = startOf(list.items[0])
  const prefix = start === null ? null : /^ *- +$/.exec(lineBefore(text, start))
  return prefix === null ? null : newLine(text, endOf(last), `${prefix[0]}${entry}`)
}

function intoMap(text: string, map: YAMLMap, member: string): Edit | null {
  const [first] = map.items
  const end = endOfPair(map.items.at(-1))
  if (map.flow === true) {
    return intoFlow(text, { node: map, last: end }, end === null ? ` ${member} ` : member)
  }
  const start = startOf(first?.key)
  const prefix = start === null ? null : /^ *$/.exec(lineBefore(text, start))
  return prefix === null ? null : newLine(text, end, `${prefix[0]}${member}`)
}

type Flow = { readonly node: Node; readonly last: number | null }

function intoFlow(text: string, { node, last }: Flow, addition: string): Edit | null {
  const at = last ?? (node.range?.[0] ?? -1) + 1
  if (at < 1) return null
  const made = text.slice(0, at) + (last === null ? addition : `, ${addition}`) + text.slice(at)
  const start = text.lastIndexOf('\n', at - 1) + 1
  return { text: made, line: lineOf(text, at), how: 'changed', shown: lineAt(made, start) }
}

function newLine(text: string, end: number | null, line: string): Edit | null {
  if (end === null) return null
  // A block of text ends after its last line feed.
  const last = text[end - 1] === '\n' ? end - 1 : end
  const stop = text.indexOf('\n', last)
  const at = stop < 0 ? text.length : stop
  const made = `${text.slice(0, at)}\n${line}${text.slice(at)}`
  return { text: made, line: lineOf(text, last), how: 'added', shown: line }
}

const lineOf = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
const lineBefore = (text: string, offset: number): string =>
  text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)

function lineAt(text: string, start: number): string {
  const stop = text.indexOf('\n', start)
  return text.slice(start, stop < 0 ? text.length : stop).replace(/\r$/, '')
}

/** Where a node's own characters end: of a block, its last line's. */
function endOf(node: unknown): number | null {
  if (isMap(node) && node.flow !== true) return endOfPair(node.items.at(-1))
  if (isSeq(node) && node.flow !== true) return endOf(node.items.at(-1))
  return rangeOf(node)?.[1] ?? null
}

function endOfPair(pair: Pair | undefined): number | null {
  if (pair === undefined) return null
  return endOf(pair.value) ?? endOf(pair.key)
}

const startOf = (node: unknown): number | null => rangeOf(node)?.[0] ?? null

function rangeOf(node: unknown): readonly [number, number, number] | null {
  if (typeof node !== 'object' || node === null || !('range' in node)) return null
  const { range } = node
  return Array.isArray(range) && range.every((one) => typeof one === 'number')
    ? [Number(range[0]), Number(range[1]), Number(range[2])]
    : null
}
