// JSON Schema as functions: one a schema, made by closures, with a budget for each run. No code is generated.

import { isObject, type Json, type JsonObject } from '../json.ts'
import { subschemas, targetOf } from './bounds.ts'
import { pointer } from './position.ts'
import { type Assertion, assertions, type Misfit, type Run } from './validate-assertions.ts'
import { linear } from './regex.ts'
import { items, members, valueAt } from './value.ts'

/** What of a value the schemas so far have looked at; for `unevaluatedProperties` and `unevaluatedItems`. */
export type Marks = { readonly names: Set<string>; readonly indexes: Set<number> }

/** A compiled schema. `marks` is null where nobody asks what was looked at. */
export type Node = (value: Json, run: Run, marks: Marks | null) => Misfit | null

/** A keyword of an operator's contract beyond JSON Schema. */
export type Extra = (wanted: Json) => (value: Json) => boolean

const misfit = (why: string, field = ''): Misfit => ({ field, why })
const below = (segment: string | number, found: Misfit): Misfit => ({
  field: pointer('', segment) + found.field,
  why: found.why,
})

type Workshop = {
  readonly root: Json
  readonly extras: ReadonlyMap<string, Extra>
  readonly known: Map<string, Node>
}

/** The function of a schema that is inside its bounds. */
export function compileSchema(root: Json, extras: ReadonlyMap<string, Extra>): Node {
  return nodeAt({ root, extras, known: new Map() }, '')
}

function nodeAt(shop: Workshop, path: string): Node {
  const before = shop.known.get(path)
  if (before !== undefined) return before
  // Known before it is made: a recursive reference finds the name, not the thing.
  let made: Node | null = null
  shop.known.set(path, (value, run, marks) => (made === null ? null : made(value, run, marks)))
  made = nodeOf(shop, valueAt(shop.root, path) ?? true)
  shop.known.set(path, made)
  return made
}

const NOTHING: Node = () => misfit('is not allowed')
const ANYTHING: Node = () => null

function nodeOf(shop: Workshop, schema: Json): Node {
  if (!isObject(schema)) return schema === false ? NOTHING : ANYTHING
  const parts = [...own(shop, schema), ...inPlace(shop, schema), ...structure(shop, schema)]
  const last = unevaluated(shop, schema)
  if (parts.length === 0 && last === null) return ANYTHING
  const all: Node = (value, run, marks) => {
    if (--run.steps < 0) return misfit('there is too much to check')
    for (const part of parts) {
      const found = part(value, run, marks)
      if (found !== null) return found
    }
    return null
  }
  return last === null ? all : closing(all, last)
}

/** What one schema looks at is its own affair first, then that of whoever asks it. */
const closing =
  (all: Node, last: Node): Node =>
  (value, run, marks) => {
    const mine = blank()
    const found = all(value, run, mine) ?? last(value, run, mine)
    if (found === null && marks !== null) merge(marks, mine)
    return found
  }

const blank = (): Marks => ({ names: new Set(), indexes: new Set() })

function merge(into: Marks, from: Marks): void {
  for (const name of from.names) into.names.add(name)
  for (const index of from.indexes) into.indexes.add(index)
}

function own(shop: Workshop, schema: JsonObject): readonly Node[] {
  const made: Assertion[] = [...assertions(schema)]
  for (const [keyword, extra] of shop.extras) {
    const wanted = schema[keyword]
    if (wanted === undefined) continue
    const fits = extra(wanted)
    made.push((value) => (fits(value) ? null : misfit(keyword)))
  }
  return made
}

const child = (shop: Workshop, schema: Json | undefined): Node | null =>
  schema === undefined ? null : nodeOf(shop, schema)

const children = (shop: Workshop, schema: JsonObject, keyword: string): readonly Node[] =>
  items(schema[keyword]).map((one) => nodeOf(shop, one))

function inPlace(shop: Workshop, schema: JsonObject): readonly Node[] {
  const made: Node[] = []
  const ref = schema['$ref']
  if (typeof ref === 'string') {
    const target = targetOf(ref)
    made.push((value, run, marks) => nodeAt(shop, target)(value, run, marks))
  }
  made.push(...children(shop, schema, 'allOf'))
  const any = children(shop, schema, 'anyOf')
  if (any.length > 0) made.push(some(any))
  const single = children(shop, schema, 'oneOf')
  if (single.length > 0) made.push(exactlyOne(single))
  const not = child(shop, schema['not'])
  if (not !== null)
    made.push((value, run) => (not(value, run, null) === null ? misfit('not') : null))
  const test = child(shop, schema['if'])
  if (test !== null) {
    made.push(conditional(test, child(shop, schema['then']), child(shop, schema['else'])))
  }
  for (const keyword of ['dependentSchemas', 'dependencies']) {
    for (const one of subschemas(keyword, schema[keyword] ?? EMPTY, '') ?? []) {
      made.push(dependent(one.name ?? '', nodeOf(shop, one.schema)))
    }
  }
  return made
}

const EMPTY: Json = Object.freeze({})

/** Runs a schema with marks of its own, which count only when it fits. */
function tried(node: Node, value: Json, run: Run, marks: Marks | null): Misfit | null {
  if (marks === null) return node(value, run, null)
  const mine = blank()
  const found = node(value, run, mine)
  if (found === null) merge(marks, mine)
  return found
}

const some =
  (nodes: readonly Node[]): Node =>
  (value, run, marks) => {
    let first: Misfit | null = null
    let fits = false
    for (const node of nodes) {
      const found = tried(node, value, run, marks)
      if (found === null) fits = true
      else first ??= found
      // Without marks one that fits is enough; with them all are asked what they looked at.
      if (fits && marks === null) return null
    }
    return fits ? null : first
  }

const exactlyOne =
  (nodes: readonly Node[]): Node =>
  (value, run, marks) => {
    let first: Misfit | null = null
    let count = 0
    for (const node of nodes) {
      const found = tried(node, value, run, marks)
      if (found === null) count++
      else first ??= found
      if (count > 1) return misfit('oneOf')
    }
    return count === 1 ? null : first
  }

const conditional =
  (test: Node, yes: Node | null, no: Node | null): Node =>
  (value, run, marks) => {
    const branch = tried(test, value, run, marks) === null ? yes : no
    return branch === null ? null : branch(value, run, marks)
  }

const dependent =
  (name: string, node: Node): Node =>
  (value, run, marks) =>
    isObject(value) && Object.hasOwn(value, name) ? node(value, run, marks) : null

function structure(shop: Workshop, schema: JsonObject): readonly Node[] {
  const made: Node[] = []
  const names = objectNode(shop, schema)
  if (names !== null) made.push(names)
  const list = arrayNode(shop, schema)
  if (list !== null) made.push(list)
  const propertyNames = child(shop, schema['propertyNames'])
  if (propertyNames !== null) {
    made.push((value, run) => {
      if (!isObject(value)) return null
      return Object.keys(value).every((key) => propertyNames(key, run, null) === null)
        ? null
        : misfit('propertyNames', '/*')
    })
  }
  return made
}

type Pattern = { readonly test: (name: string) => boolean | null; readonly node: Node }

function patterns(shop: Workshop, schema: JsonObject): readonly Pattern[] {
  return members(schema['patternProperties']).map(([source, one]) => {
    const engine = linear(source)
    // Bounds refused what cannot be compiled; a name too long for its pattern is told as null.
    const test = (name: string): boolean | null =>
      'problem' in engine || !engine.fits(name) ? null : engine.test(name)
    return { test, node: nodeOf(shop, one) }
  })
}

function objectNode(shop: Workshop, schema: JsonObject): Node | null {
  const named = new Map(
    members(schema['properties']).map(([name, one]) => [name, nodeOf(shop, one)]),
  )
  const matched = patterns(shop, schema)
  const rest = child(shop, schema['additionalProperties'])
  if (named.size === 0 && matched.length === 0 && rest === null) return null
  const rule = { named, matched, rest }
  return (value, run, marks) => {
    if (!isObject(value)) return null
    for (const key of Object.keys(value)) {
      run.steps--
      // The common case makes nothing: one schema a member, or none.
      const found =
        matched.length === 0
          ? lone(named.get(key) ?? rest, value, key, run)
          : memberMisfit(rule, { value, key }, run)
      if (found !== null) return below(key, found)
      if (marks !== null && isLookedAt(rule, key)) marks.names.add(key)
    }
    return null
  }
}

/** Reads the member only for a schema that says something: a number that nothing reads may be inexact. */
function lone(node: Node | null, value: JsonObject, key: string, run: Run): Misfit | null {
  if (node === null || node === ANYTHING) return null
  return node === NOTHING ? misfit('is not declared') : node(value[key] ?? null, run, null)
}

const isLookedAt = ({ named, matched, rest }: MemberRule, key: string): boolean =>
  rest !== null || named.has(key) || matched.some(({ test }) => test(key) === true)

type MemberRule = {
  readonly named: ReadonlyMap<string, Node>
  readonly matched: readonly Pattern[]
  readonly rest: Node | null
}

function memberMisfit(
  { named, matched, rest }: MemberRule,
  { value, key }: { readonly value: JsonObject; readonly key: string },
  run: Run,
): Misfit | null {
  const nodes: Node[] = []
  const declared = named.get(key)
  if (declared !== undefined) nodes.push(declared)
  for (const { test, node } of matched) {
    const hit = test(key)
    if (hit === null) run.steps = -1
    if (hit === true) nodes.push(node)
  }
  if (nodes.length === 0 && rest !== null) nodes.push(rest)
  for (const node of nodes) {
    const found = lone(node, value, key, run)
    if (found !== null) return found
  }
  return null
}

function arrayNode(shop: Workshop, schema: JsonObject): Node | null {
  // `items` as a list is what `prefixItems` was before 2020-12; `additionalItems` then speaks of the rest.
  const tuple = Array.isArray(schema['items'])
  const first = children(
    shop,
    schema,
    schema['prefixItems'] === undefined ? 'items' : 'prefixItems',
  )
  const rest = child(shop, tuple ? schema['additionalItems'] : schema['items'])
  const contains = containing(shop, schema)
  if (first.length === 0 && rest === null) return contains
  return (value, run, marks) => {
    if (!Array.isArray(value)) return null
    const list = items(value)
    for (let at = 0; at < list.length; at++) {
      const node = first[at] ?? rest
      if (node === null) break
      marks?.indexes.add(at)
      run.steps--
      const found = itemMisfit(node, list, at, run)
      if (found !== null) return below(at, found)
    }
    return contains === null ? null : contains(value, run, marks)
  }
}

function itemMisfit(node: Node, list: readonly Json[], at: number, run: Run): Misfit | null {
  if (node === ANYTHING) return null
  return node === NOTHING ? misfit('is not declared') : node(list[at] ?? null, run, null)
}

function containing(shop: Workshop, schema: JsonObject): Node | null {
  const node = child(shop, schema['contains'])
  if (node === null) return null
  const least = Number(schema['minContains'] ?? 1)
  const most = Number(schema['maxContains'] ?? Infinity)
  return (value, run, marks) => {
    if (!Array.isArray(value)) return null
    let count = 0
    for (const [at, item] of items(value).entries()) {
      if (node(item, run, null) !== null) continue
      marks?.indexes.add(at)
      count++
    }
    return count >= least && count <= most ? null : misfit('contains')
  }
}

function unevaluated(shop: Workshop, schema: JsonObject): Node | null {
  const names = child(shop, schema['unevaluatedProperties'])
  const indexes = child(shop, schema['unevaluatedItems'])
  if (names === null && indexes === null) return null
  return (value, run, marks) => {
    if (marks === null) return null
    if (names !== null && isObject(value)) {
      for (const key of Object.keys(value)) {
        if (marks.names.has(key)) continue
        const found = lone(names, value, key, run)
        if (found !== null) return below(key, found)
        marks.names.add(key)
      }
    }
    return indexes === null ? null : leftOver(indexes, value, run, marks)
  }
}

function leftOver(node: Node, value: Json, run: Run, marks: Marks): Misfit | null {
  for (const at of items(value).keys()) {
    if (marks.indexes.has(at)) continue
    const found = itemMisfit(node, items(value), at, run)
    if (found !== null) return below(at, found)
    marks.indexes.add(at)
  }
  return null
}
