// Checks arguments against a JSON Schema: a contract's own, or the server's, which may be hostile.

import { isObject, type Json, type JsonObject, object } from '../json.ts'
import {
  bound,
  type Bounded,
  SCHEMA_LIMITS,
  type SchemaFault,
  subschemas,
  targetOf,
} from './bounds.ts'
import { APPLICATORS } from './keywords.ts'
import { hostEntryProblem, isHostIn, isUnder, pathProblem } from './normal.ts'
import { pointer, segmentsOf } from './position.ts'
import { compileSchema, type Extra, type Node } from './validate.ts'
import type { Misfit } from './validate-assertions.ts'
import { bare, items, members, texts, valueAt } from './value.ts'
import type { View } from './view.ts'

/** Steps of one check, about 50 ns each: schemas applied, members read, 32 characters of a text. */
export const MAX_STEPS = 1_000_000

/** A schema that is inside its bounds. Made into functions when it is first run. Never throws: what is too
 *  much to check fits nothing. A misfit's field has `*` for names that the schema does not mention. */
export type Check = {
  readonly names: ReadonlySet<string>
  readonly run: (view: View) => Misfit | null
}

const strings = (value: Json, problem: (text: string) => string | null): string | null => {
  for (const one of Array.isArray(value) ? items(value) : [value]) {
    const found = typeof one === 'string' ? problem(one) : 'expected a string or a list of strings'
    if (found !== null) return typeof one === 'string' ? `\`${one}\`: ${found}` : found
  }
  return null
}

/** The keywords that a contract may use on top of JSON Schema. */
const OWN_KEYWORDS: ReadonlyMap<string, (value: Json) => string | null> = new Map([
  ['path_under', (value: Json) => strings(value, pathProblem)],
  ['host_in', (value: Json) => strings(value, hostEntryProblem)],
])

/** The check of a contract's `args`, or every fault of it. */
export function contractCheck(schema: JsonObject): Check | readonly SchemaFault[] {
  if (dialectOf(schema) !== '2020')
    return [{ path: '/$schema', message: 'args are JSON Schema 2020-12' }]
  const bounds = bound(schema, { closed: true, extra: OWN_KEYWORDS })
  if (!('names' in bounds)) return bounds
  return checkOf({ schema, bounds, extras: EXTRAS })
}

/** The check of a server's `inputSchema`, closed against members that it does not declare; or why it cannot
 *  be used. */
export function serverCheck(schema: Json | undefined): Check | { readonly problem: string } {
  if (!isObject(schema)) return { problem: 'the schema is no object' }
  if (dialectOf(schema) === null)
    return { problem: 'the schema is of a dialect that is not known here' }
  const bounds = bound(schema, { closed: false, extra: new Map() })
  if (!('names' in bounds)) {
    const [first] = bounds
    return { problem: `${first?.path ?? ''}: ${first?.message ?? ''}` }
  }
  return checkOf({ schema: close(schema), bounds, extras: new Map() })
}

/** `2019` also reads drafts 6 and 7: their array form of `items` and their `dependencies`. */
function dialectOf(schema: JsonObject): '2020' | '2019' | null {
  const named = schema['$schema']
  if (named === undefined) return '2020'
  if (typeof named !== 'string') return null
  const [, year] = /^https?:\/\/json-schema\.org\/(.*?)\/schema#?$/.exec(named) ?? []
  if (year === 'draft/2020-12') return '2020'
  return year === 'draft/2019-09' || year === 'draft-07' || year === 'draft-06' ? '2019' : null
}

type Recipe = {
  readonly schema: Json
  readonly bounds: Bounded
  readonly extras: ReadonlyMap<string, Extra>
}

function checkOf({ schema, bounds, extras }: Recipe): Check {
  const { names } = bounds
  let node: Node | null = null
  const run = (view: View): Misfit | null => {
    node ??= compileSchema(schema, extras)
    const state = { steps: MAX_STEPS }
    const found = node(view.value, state, null)
    if (state.steps < 0) return { field: '', why: 'there is too much to check' }
    return found === null ? null : { field: known(found.field, names), why: found.why }
  }
  return { names, run }
}

// A name that the schema does not mention is the agent's own text: it goes into no record.
function known(path: string, names: ReadonlySet<string>): string {
  let made = ''
  for (const segment of segmentsOf(path) ?? []) {
    made += names.has(segment) || /^[0-9]{1,6}$/.test(segment) ? pointer('', segment) : '/*'
  }
  return made
}

const listOf = (wanted: Json): readonly string[] =>
  typeof wanted === 'string' ? [wanted] : texts(wanted)

/** The keywords of contracts. Whatever is no string is refused too: nothing slips past by its type. */
const EXTRAS: ReadonlyMap<string, Extra> = new Map<string, Extra>([
  ['path_under', (bases) => (value) => typeof value === 'string' && isUnder(value, listOf(bases))],
  ['host_in', (hosts) => (value) => typeof value === 'string' && isHostIn(value, listOf(hosts))],
])

/** Under these a stricter subschema would make the whole looser. */
const INVERTING: ReadonlySet<string> = new Set(['not', 'if', 'contains', 'propertyNames'])

/** The schema, closed where it declares members and does not say what becomes of others: at the top
 *  always, below wherever members are declared. */
function close(root: JsonObject): JsonObject {
  const inner = (schema: Json, keyword: string): Json => {
    const applies = APPLICATORS.get(keyword)?.applies
    if (!isObject(schema) || INVERTING.has(keyword)) return schema
    return deeper(applies === 'named' || applies === 'each' ? shut(schema, root, false) : schema)
  }
  const deeper = (schema: JsonObject): JsonObject => {
    const made = bare()
    for (const [keyword, value] of members(schema)) {
      made[keyword] = APPLICATORS.has(keyword) ? mapped(keyword, value, inner) : value
    }
    return made
  }
  return deeper(shut(root, root, true))
}

function mapped(
  keyword: string,
  value: Json,
  inner: (schema: Json, keyword: string) => Json,
): Json {
  const form = APPLICATORS.get(keyword)?.form
  if (Array.isArray(value)) return items(value).map((one) => inner(one, keyword))
  if (form !== 'map' && form !== 'map or names') return inner(value, keyword)
  // What stands there as a list are names, not schemas.
  return object(
    Object.fromEntries(
      members(value).map(([name, one]) => [name, Array.isArray(one) ? one : inner(one, keyword)]),
    ),
  )
}

function shut(schema: JsonObject, root: JsonObject, always: boolean): JsonObject {
  if ('additionalProperties' in schema || 'unevaluatedProperties' in schema) return schema
  if (!always && !declares(schema, root, new Set())) return schema
  const alone = Object.keys(schema).every(
    (keyword) => keyword !== '$ref' && APPLICATORS.get(keyword)?.applies !== 'same',
  )
  return { ...schema, [alone ? 'additionalProperties' : 'unevaluatedProperties']: false }
}

/** Whether this schema, or one that applies to the same value, names members. */
function declares(schema: Json, root: JsonObject, seen: Set<string>): boolean {
  if (!isObject(schema)) return false
  if ('properties' in schema) return true
  const target = schema['$ref']
  if (typeof target === 'string' && !seen.has(target) && seen.size < SCHEMA_LIMITS.targets) {
    seen.add(target)
    if (declares(valueAt(root, targetOf(target)) ?? true, root, seen)) return true
  }
  return Object.keys(schema).some(
    (keyword) =>
      APPLICATORS.get(keyword)?.applies === 'same' &&
      (subschemas(keyword, schema[keyword] ?? null, '') ?? []).some((one) =>
        declares(one.schema, root, seen),
      ),
  )
}
