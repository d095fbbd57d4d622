// Static bounds of a JSON Schema, before any of it is compiled: form, size, references, worst-case work.

import { isObject, type Json } from '../json.ts'
import {
  ANNOTATIONS,
  APPLICATORS,
  type Applies,
  ASSERTIONS,
  patternProblem,
  REFUSED,
} from './keywords.ts'
import { pointer } from './position.ts'
import { items, members, texts, valueAt } from './value.ts'

/** Ceilings of one schema. `work`: schemas that may be applied because of one value, references followed;
 *  a schema that doubles at every level passes it long before it would hold the processor. */
export const SCHEMA_LIMITS: {
  readonly depth: number
  readonly schemas: number
  readonly targets: number
  readonly work: number
} = { depth: 32, schemas: 5_000, targets: 500, work: 20_000 }

/** A fault of a schema; `path` is a JSON Pointer into it. */
export type SchemaFault = { readonly path: string; readonly message: string }

/** What is known of a schema inside its bounds. `names`: every property name that it mentions.
 *  `work`: as in `SCHEMA_LIMITS`. */
export type Bounded = { readonly names: ReadonlySet<string>; readonly work: number }

/** `closed`: keywords that are not known are faults (a contract's own schema); otherwise they are
 *  ignored, as the standard has it. `extra`: further keywords and the check of their form. */
export type Strictness = {
  readonly closed: boolean
  readonly extra: ReadonlyMap<string, (value: Json) => string | null>
}

/** The bounds of a schema, or every fault of it. References other than `#` and `#/...` into the schema
 *  itself are faults: nothing is ever fetched. */
export function bound(schema: Json, strictness: Strictness): Bounded | readonly SchemaFault[] {
  const survey: Survey = {
    ...strictness,
    root: schema,
    places: new Set(),
    names: new Set(),
    refs: [],
    faults: [],
  }
  visit(survey, schema, '', 0)
  if (survey.faults.length > 0) return survey.faults
  for (const { path, target } of survey.refs) {
    if (!survey.places.has(target))
      survey.faults.push({ path, message: 'the reference names no schema' })
  }
  if (survey.faults.length > 0) return survey.faults
  const work = workOf(schema)
  return typeof work === 'string' ? [{ path: '', message: work }] : { names: survey.names, work }
}

type Survey = Strictness & {
  readonly root: Json
  readonly places: Set<string>
  readonly names: Set<string>
  readonly refs: { readonly path: string; readonly target: string }[]
  readonly faults: SchemaFault[]
}

function visit(survey: Survey, schema: Json, path: string, depth: number): void {
  const fault = (message: string): void => {
    survey.faults.push({ path, message })
  }
  if (typeof schema !== 'boolean' && !isObject(schema)) return fault('expected a schema')
  if (depth > SCHEMA_LIMITS.depth) return fault(`nested deeper than ${SCHEMA_LIMITS.depth}`)
  survey.places.add(path)
  if (survey.places.size === SCHEMA_LIMITS.schemas + 1) {
    return fault(`more than ${SCHEMA_LIMITS.schemas} schemas`)
  }
  if (survey.places.size > SCHEMA_LIMITS.schemas || typeof schema === 'boolean') return
  for (const keyword of Object.keys(schema)) {
    visitKeyword(survey, { keyword, value: schema[keyword] ?? null, path, depth })
  }
}

type Member = {
  readonly keyword: string
  readonly value: Json
  readonly path: string
  readonly depth: number
}

function visitKeyword(survey: Survey, member: Member): void {
  const { keyword, value } = member
  const path = pointer(member.path, keyword)
  if (keyword === '$ref') return visitRef(survey, value, path)
  if (APPLICATORS.has(keyword)) return visitChildren(survey, member, path)
  const problem = refusal(keyword, member.depth) ?? assertion(survey, keyword, value)
  if (problem !== null) survey.faults.push({ path, message: problem })
  if (keyword === 'required') for (const name of texts(value)) survey.names.add(name)
}

function refusal(keyword: string, depth: number): string | null {
  if (keyword === '$id' && depth > 0) return '`$id` is known at the top only'
  return REFUSED.has(keyword) ? `\`${keyword}\` is not known here` : null
}

function assertion(survey: Survey, keyword: string, value: Json): string | null {
  const test = ASSERTIONS.get(keyword) ?? ANNOTATIONS.get(keyword) ?? survey.extra.get(keyword)
  return test === undefined ? unknown(survey, keyword) : test(value)
}

function visitChildren(survey: Survey, member: Member, path: string): void {
  const { keyword, value, depth } = member
  if (keyword === 'properties') for (const [name] of members(value)) survey.names.add(name)
  const children = subschemas(keyword, value, path)
  if (children === null) return void survey.faults.push({ path, message: 'expected schemas' })
  for (const child of children) visit(survey, child.schema, child.path, depth + 1)
  if (keyword === 'patternProperties') visitPatterns(survey, value, path)
}

const unknown = (survey: Survey, keyword: string): string | null =>
  survey.closed ? `unknown keyword \`${keyword}\`` : null

function visitRef(survey: Survey, value: Json, path: string): void {
  if (typeof value === 'string' && /^#(\/|$)/.test(value)) {
    survey.refs.push({ path, target: targetOf(value) })
  } else {
    survey.faults.push({ path, message: 'a reference must be `#` or begin with `#/`' })
  }
}

function visitPatterns(survey: Survey, value: Json, path: string): void {
  for (const [pattern] of members(value)) {
    const problem = patternProblem(pattern)
    if (problem !== null) survey.faults.push({ path: pointer(path, pattern), message: problem })
  }
}

/** The JSON Pointer of a reference's fragment. Escapes by % are undone only where they are well-formed. */
export const targetOf = (reference: string): string => {
  const fragment = reference.slice(1)
  return /%[^0-9A-Fa-f]|%.?$/.test(fragment) || !fragment.includes('%')
    ? fragment
    : decoded(fragment)
}

function decoded(fragment: string): string {
  try {
    return decodeURIComponent(fragment)
  } catch {
    // Not UTF-8 behind the escapes: as it stands it names no schema, and that is told.
    return fragment
  }
}

type Child = { readonly schema: Json; readonly path: string; readonly name: string | null }

/** The subschemas under one keyword, or null when its value has not the keyword's form. */
export function subschemas(keyword: string, value: Json, path: string): readonly Child[] | null {
  const form = APPLICATORS.get(keyword)?.form
  if (form === 'map' || form === 'map or names') return named(form, value, path)
  if (form === 'list' || (form === 'one or list' && Array.isArray(value))) {
    if (!Array.isArray(value)) return null
    return items(value).map((schema, at) => ({ schema, path: pointer(path, at), name: String(at) }))
  }
  return [{ schema: value, path, name: null }]
}

function named(form: 'map' | 'map or names', value: Json, path: string): readonly Child[] | null {
  if (!isObject(value)) return null
  return members(value)
    .filter(([, schema]) => form === 'map' || !Array.isArray(schema))
    .map(([name, schema]) => ({ schema, path: pointer(path, name), name }))
}

/** A reference from one unit to another, and the members between the values they apply to. */
type Edge = { readonly to: string; readonly steps: readonly string[] }
/** A schema that is entered on its own: the root, and each target of a reference. */
type Unit = { own: number; readonly edges: Edge[] }

// The root applies to one value; each reference enters its target once more. Without recursion the sum
// over all ways is the work. With it, work stays in proportion to the value only while no value can be
// reached by two ways of one cycle.
function workOf(root: Json): number | string {
  const units = new Map<string, Unit>()
  const waiting = ['']
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    if (units.has(at)) continue
    const unit: Unit = { own: 0, edges: [] }
    units.set(at, unit)
    if (units.size > SCHEMA_LIMITS.targets) return `more than ${SCHEMA_LIMITS.targets} references`
    collect(unit, valueAt(root, at) ?? true, [], 0)
    waiting.push(...unit.edges.map((edge) => edge.to))
  }
  const reach = reachable(units)
  for (const [name, unit] of units) {
    const inside = unit.edges.filter((edge) => reach.get(edge.to)?.has(name) === true)
    if (inside.some((edge) => edge.steps.length === 0)) return 'a reference leads back to itself'
    if (overlap(inside)) return 'references branch at every level'
  }
  const work = total(units, reach, '', new Map())
  return work > SCHEMA_LIMITS.work ? 'too much work for one value' : work
}

function collect(unit: Unit, schema: Json, steps: readonly string[], depth: number): void {
  unit.own++
  if (!isObject(schema) || depth > SCHEMA_LIMITS.depth) return
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword] ?? null
    if (keyword === '$ref' && typeof value === 'string') {
      unit.edges.push({ to: targetOf(value), steps })
    }
    const applies = APPLICATORS.get(keyword)?.applies
    if (applies === undefined || applies === 'none') continue
    for (const child of subschemas(keyword, value, '') ?? []) {
      collect(unit, child.schema, stepped(steps, applies, child.name), depth + 1)
    }
  }
}

const stepped = (
  steps: readonly string[],
  applies: Applies,
  name: string | null,
): readonly string[] =>
  applies === 'same' ? steps : [...steps, applies === 'named' && name !== null ? `=${name}` : '*']

function reachable(units: ReadonlyMap<string, Unit>): ReadonlyMap<string, ReadonlySet<string>> {
  const reach = new Map<string, ReadonlySet<string>>()
  for (const name of units.keys()) reach.set(name, reachedFrom(units, name))
  return reach
}

function reachedFrom(units: ReadonlyMap<string, Unit>, name: string): ReadonlySet<string> {
  const seen = new Set<string>()
  const waiting = [name]
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const fresh = (units.get(at)?.edges ?? []).map((edge) => edge.to).filter((to) => !seen.has(to))
    for (const to of fresh) seen.add(to)
    waiting.push(...fresh)
  }
  return seen
}

/** Whether two of these lead to one value, or one to a value inside the other's. */
const overlap = (edges: readonly Edge[]): boolean =>
  edges.some((a, at) => edges.slice(at + 1).some((b) => meet(a.steps, b.steps)))

function meet(a: readonly string[], b: readonly string[]): boolean {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    if (a[at] !== b[at] && a[at] !== '*' && b[at] !== '*') return false
  }
  return true
}

function total(
  units: ReadonlyMap<string, Unit>,
  reach: ReadonlyMap<string, ReadonlySet<string>>,
  name: string,
  known: Map<string, number>,
): number {
  const before = known.get(name)
  if (before !== undefined) return before
  const unit = units.get(name)
  let work = unit?.own ?? 0
  // Set first: an edge inside a cycle comes back here, and its target is already counted once a value.
  known.set(name, work)
  for (const { to } of unit?.edges ?? []) {
    const inCycle = reach.get(to)?.has(name) === true
    work += inCycle
      ? 1 + (known.has(to) ? 0 : total(units, reach, to, known))
      : total(units, reach, to, known)
  }
  known.set(name, work)
  return work
}
