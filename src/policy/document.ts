// A YAML or JSON text as a strict value whose every part knows its position.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Alias, Node } from 'yaml'

import type { Json } from '../json.ts'
import { type ConfigFault, pointer, type Position, type Source } from './position.ts'
import { bare } from './value.ts'

/** Ceilings of one configuration text. Aliases count every time they are used. */
export const TEXT_LIMITS: {
  readonly characters: number
  readonly depth: number
  readonly nodes: number
  readonly aliases: number
} = { characters: 1024 * 1024, depth: 32, nodes: 50_000, aliases: 100 }

/** A text that was read. `value` holds only JSON values, objects without a prototype. `at` gives the place
 *  of a value by its JSON Pointer (its nearest parent's when it has none); `inside` the place of a
 *  character inside a string value, or the string's own when the string is written with escapes, folded or
 *  over several lines. */
export type Read = {
  readonly file: string
  readonly value: Json
  readonly at: (path: string) => Position
  readonly key: (path: string) => Position
  readonly inside: (path: string, offset: number) => Position
}

/** The document of a text, or every fault of its syntax. Duplicate keys, several documents, tags, keys
 *  that are not strings, and numbers that a double does not hold exactly are faults. */
export function read(source: Source): Read | readonly ConfigFault[] {
  const counter = new LineCounter()
  const place = (offset: number): Position => {
    const { line, col } = counter.linePos(offset)
    return { line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  if (source.text.length > TEXT_LIMITS.characters) {
    return [
      fault(
        source,
        { line: 1, column: 1 },
        '',
        `the text is longer than ${TEXT_LIMITS.characters} characters`,
      ),
    ]
  }
  const document = parseDocument(source.text, {
    version: '1.2',
    schema: 'core',
    strict: true,
    uniqueKeys: true,
    stringKeys: true,
    lineCounter: counter,
    prettyErrors: false,
  })
  const problems = [...document.errors, ...document.warnings]
  if (problems.length > 0) {
    return problems.map((one) => fault(source, place(one.pos[0]), '', sentence(one.message)))
  }
  return convert(document, source, place)
}

const fault = (source: Source, at: Position, path: string, message: string): ConfigFault => ({
  file: source.file,
  ...at,
  path,
  level: 'error',
  message,
})

const sentence = (message: string): string => {
  const [first = message] = message.split('\n')
  return first.charAt(0).toLowerCase() + first.slice(1)
}

type Spot = { readonly key: number; readonly value: number; readonly node: Node | null }

type Walk = {
  readonly document: Document.Parsed
  readonly spots: Map<string, Spot>
  readonly faults: { readonly offset: number; readonly path: string; readonly message: string }[]
  nodes: number
  aliases: number
}

function convert(
  document: Document.Parsed,
  source: Source,
  place: (offset: number) => Position,
): Read | readonly ConfigFault[] {
  const walk: Walk = { document, spots: new Map(), faults: [], nodes: 0, aliases: 0 }
  const value = valueOf(walk, document.contents, { path: '', key: 0, depth: 0 })
  if (walk.faults.length > 0) {
    // One too many of something is told once, not for each that follows.
    const seen = new Set<string>()
    const once = walk.faults.filter(({ message }) => !seen.has(message) && seen.add(message))
    return once.map((one) => fault(source, place(one.offset), one.path, one.message))
  }
  const spot = (path: string): Spot => nearest(walk.spots, path)
  return {
    file: source.file,
    value,
    at: (path: string) => place(spot(path).value),
    key: (path: string) => place(spot(path).key),
    inside: (path: string, offset: number) =>
      place(spot(path).value + innerOffset(spot(path).node, offset)),
  }
}

function nearest(spots: ReadonlyMap<string, Spot>, path: string): Spot {
  for (let at = path; ; at = at.slice(0, at.lastIndexOf('/'))) {
    const spot = spots.get(at)
    if (spot !== undefined) return spot
    if (at === '' || !at.includes('/')) return { key: 0, value: 0, node: null }
  }
}

// Only where source and value run in step can a column inside the value be told.
function innerOffset(node: Node | null, offset: number): number {
  if (!isScalar(node) || typeof node.value !== 'string' || typeof node.source !== 'string') return 0
  if (node.type === 'PLAIN') return node.source === node.value ? offset : 0
  if (node.type !== 'QUOTE_DOUBLE' && node.type !== 'QUOTE_SINGLE') return 0
  const [start, end] = node.range ?? [0, 0]
  return end - start === node.value.length + 2 ? offset + 1 : 0
}

type Step = { readonly path: string; readonly key: number; readonly depth: number }

function valueOf(walk: Walk, node: Node | null, step: Step): Json {
  const offset = node?.range?.[0] ?? step.key
  const problem = excess(walk, node, step)
  if (problem !== null) {
    walk.faults.push({ offset, path: step.path, message: problem })
    return null
  }
  if (!walk.spots.has(step.path)) {
    walk.spots.set(step.path, { key: step.key, value: offset, node })
  }
  if (isAlias(node)) return aliasOf(walk, node, step)
  if (isMap(node)) return mapOf(walk, node.items, step)
  if (isSeq(node)) return seqOf(walk, node.items, { ...step, key: offset })
  const scalar = scalarOf(node)
  if (typeof scalar !== 'object' || scalar === null) return scalar
  walk.faults.push({ offset, path: step.path, message: scalar.problem })
  return null
}

function aliasOf(walk: Walk, node: Alias, step: Step): Json {
  const target = node.resolve(walk.document)
  if (target !== undefined) return valueOf(walk, target, { ...step, depth: step.depth + 1 })
  const message = `there is no anchor \`${node.source}\` before this`
  walk.faults.push({ offset: node.range?.[0] ?? step.key, path: step.path, message })
  return null
}

/** Counts a node in; the sentence when it is one too many. */
function excess(walk: Walk, node: Node | null, { depth }: Step): string | null {
  if (++walk.nodes > TEXT_LIMITS.nodes)
    return `more than ${TEXT_LIMITS.nodes} values, aliases counted`
  if (isAlias(node) && ++walk.aliases > TEXT_LIMITS.aliases) {
    return `more than ${TEXT_LIMITS.aliases} aliases`
  }
  return depth > TEXT_LIMITS.depth ? `nested deeper than ${TEXT_LIMITS.depth}` : null
}

function seqOf(walk: Walk, nodes: readonly unknown[], { path, key, depth }: Step): Json {
  return nodes.map((item, at) =>
    valueOf(walk, asNode(item), { path: pointer(path, at), key, depth: depth + 1 }),
  )
}

function mapOf(
  walk: Walk,
  items: readonly { readonly key: unknown; readonly value: unknown }[],
  step: Step,
): Json {
  const made = bare()
  for (const pair of items) {
    const key = isScalar(pair.key) ? String(pair.key.value) : ''
    const keyAt = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : 0
    const path = pointer(step.path, key)
    if (key === '__proto__') {
      walk.faults.push({ offset: keyAt, path, message: 'the key __proto__ is refused' })
      continue
    }
    made[key] = valueOf(walk, asNode(pair.value), { path, key: keyAt, depth: step.depth + 1 })
  }
  return made
}

const asNode = (value: unknown): Node | null =>
  isMap(value) || isSeq(value) || isScalar(value) || isAlias(value) ? value : null

function scalarOf(
  node: Node | null,
): null | boolean | number | string | { readonly problem: string } {
  const value: unknown = isScalar(node) ? node.value : null
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value !== 'number') return { problem: 'a value of this kind is not used here' }
  if (!Number.isFinite(value)) return { problem: 'a number must be finite' }
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
    return { problem: 'an integer beyond 2^53-1 is not exact; write it as a string' }
  }
  return value
}
