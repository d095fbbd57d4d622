// Checks arguments against a JSON Schema: a contract's own, or the server's, which may be hostile.

import { createRequire } from 'node:module'

import type { Ajv as AjvType, ErrorObject, Options, ValidateFunction } from 'ajv'

import { canonical } from '../canonical.ts'
import { isExact, isObject, type Json, type JsonObject } from '../json.ts'
import {
  bound,
  type Bounded,
  SCHEMA_LIMITS,
  type SchemaFault,
  subschemas,
  targetOf,
} from './bounds.ts'
import { APPLICATORS, ASSERTIONS } from './keywords.ts'
import { hostEntryProblem, isHostIn, isUnder, pathProblem } from './normal.ts'
import { pointer, segmentsOf } from './position.ts'
import { linear } from './regex.ts'
import { items, valueAt } from './value.ts'
import { plainNumber, type View } from './view.ts'

/** Work that one check may be: the schema's own (`SCHEMA_LIMITS.work`) times the values of the arguments. */
export const MAX_WORK = 100_000_000

/** Where arguments do not fit, a JSON Pointer in which names that the schema does not know are `*`; null
 *  when they fit. */
export type Misfit = { readonly field: string; readonly why: string }

/** A schema that is inside its bounds. Compiled when it is first run. Never throws: what cannot be
 *  compiled or checked fits nothing. */
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
  const dialect = dialectOf(schema)
  if (dialect !== '2020') return [{ path: '/$schema', message: 'args are JSON Schema 2020-12' }]
  const bounds = bound(schema, { closed: true, extra: OWN_KEYWORDS })
  if (!('names' in bounds)) return bounds
  return checkOf({ schema, bounds, dialect, own: true })
}

/** The check of a server's `inputSchema`, closed against members that it does not declare; or why it cannot
 *  be used. */
export function serverCheck(schema: Json | undefined): Check | { readonly problem: string } {
  if (!isObject(schema)) return { problem: 'the schema is no object' }
  const dialect = dialectOf(schema)
  if (dialect === null) return { problem: 'the schema is of a dialect that is not known here' }
  const bounds = bound(schema, { closed: false, extra: new Map() })
  if (!('names' in bounds)) {
    const [first] = bounds
    return { problem: `${first?.path ?? ''}: ${first?.message ?? ''}` }
  }
  return checkOf({ schema, bounds, dialect, own: false })
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
  readonly schema: JsonObject
  readonly bounds: Bounded
  readonly dialect: '2020' | '2019'
  readonly own: boolean
}

function checkOf(recipe: Recipe): Check {
  const { names, work } = recipe.bounds
  let validate: ValidateFunction | null = null
  const run = (view: View): Misfit | null => {
    if (work * view.nodes > MAX_WORK) return { field: '', why: 'there is too much to check' }
    try {
      validate ??= compile(recipe)
      if (validate(view.value)) return null
    } catch {
      // Whatever a hostile schema makes the library throw, its arguments do not fit.
      return { field: '', why: 'the schema cannot be checked' }
    }
    return misfitOf(validate.errors?.[0], names)
  }
  return { names, run }
}

function misfitOf(error: ErrorObject | undefined, names: ReadonlySet<string>): Misfit {
  if (error === undefined) return { field: '', why: 'does not fit' }
  const missing: unknown = error.params['missingProperty']
  const extra =
    error.keyword === 'additionalProperties' || error.keyword === 'unevaluatedProperties'
  const last = typeof missing === 'string' ? pointer('', missing) : extra ? '/*' : ''
  return {
    field: known(error.instancePath, names) + last,
    why: extra ? 'is not declared' : error.keyword,
  }
}

// A name that the schema does not mention is the agent's own text: it goes into no record.
function known(path: string, names: ReadonlySet<string>): string {
  let made = ''
  for (const segment of segmentsOf(path) ?? []) {
    made += names.has(segment) || /^[0-9]{1,6}$/.test(segment) ? pointer('', segment) : '/*'
  }
  return made
}

const require = createRequire(import.meta.url)
type AjvModule = { readonly default: new (options: Options) => AjvType }

const OPTIONS: Options = {
  // Without it `required: [constructor]` passes on an empty object.
  ownProperties: true,
  strict: false,
  validateFormats: false,
  validateSchema: false,
  meta: false,
  addUsedSchema: false,
  messages: false,
  logger: false,
  code: { regExp: Object.assign(engine, { code: 'linear' }) },
}

function engine(pattern: string): { test: (text: string) => boolean } {
  const made = linear(pattern)
  if ('problem' in made) throw new RangeError(made.problem)
  return { test: made.test }
}

// A fresh instance a schema: nothing of one server's schema is seen by another's.
function compile({ schema, dialect, own }: Recipe): ValidateFunction {
  // Loaded at the first check, not at start: it takes some 40 ms.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library's own module
  const { default: Ajv } = require(`ajv/dist/${dialect}.js`) as AjvModule
  const ajv = new Ajv(OPTIONS)
  for (const keyword of ['enum', 'const', 'uniqueItems']) ajv.removeKeyword(keyword)
  // The library compares objects by their `valueOf` and `constructor`, which a sender may name; canonical
  // texts have no such members.
  ajv.addKeyword({ keyword: 'enum', compile: (values: readonly Json[]) => oneOf(values) })
  ajv.addKeyword({ keyword: 'const', compile: (value: Json) => oneOf([value]) })
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    compile: (wanted: boolean) => (list: readonly Json[]) =>
      !wanted || new Set(list.map((item) => canonical(item))).size === list.length,
  })
  if (own) addOwn(ajv)
  return ajv.compile(own ? plain(schema, (child) => child) : close(schema))
}

function oneOf(values: readonly Json[]): (value: Json) => boolean {
  const texts = new Set(values.map((value) => canonical(settled(value))))
  return (value) => texts.has(canonical(value))
}

const listOf = (value: string | readonly string[]): readonly string[] =>
  typeof value === 'string' ? [value] : value

function addOwn(ajv: AjvType): void {
  // Without `type`: a value of another kind than string does not slip past.
  ajv.addKeyword({
    keyword: 'path_under',
    compile: (bases: string | readonly string[]) => (value: unknown) =>
      typeof value === 'string' && isUnder(value, listOf(bases)),
  })
  ajv.addKeyword({
    keyword: 'host_in',
    compile: (hosts: string | readonly string[]) => (value: unknown) =>
      typeof value === 'string' && isHostIn(value, listOf(hosts)),
  })
}

/** A schema as the library takes it: plain objects, plain numbers, known keywords only, no ids. */
function plain(
  schema: JsonObject,
  child: (schema: Json, keyword: string) => Json,
): Record<string, Json> {
  const made: Record<string, Json> = {}
  for (const keyword of Object.keys(schema)) {
    const value = schema[keyword] ?? null
    if (APPLICATORS.has(keyword)) made[keyword] = inner(keyword, value, child)
    else if (ASSERTIONS.has(keyword) || OWN_KEYWORDS.has(keyword)) made[keyword] = settled(value)
    else if (keyword === '$ref') made[keyword] = value
  }
  return made
}

function inner(keyword: string, value: Json, child: (schema: Json, keyword: string) => Json): Json {
  const form = APPLICATORS.get(keyword)?.form
  const down = (given: Json): Json => {
    const schema = INVERTING.has(keyword) ? given : child(given, keyword)
    if (!isObject(schema)) return schema
    return plain(schema, INVERTING.has(keyword) ? (one) => one : child)
  }
  if (Array.isArray(value)) {
    return form === 'map or names' ? settled(value) : value.map((one: Json) => down(one))
  }
  if (form !== 'map' && form !== 'map or names') return down(value)
  const made: Record<string, Json> = {}
  if (!isObject(value)) return made
  for (const name of Object.keys(value)) {
    const one = value[name] ?? null
    made[name] = Array.isArray(one) ? settled(one) : down(one)
  }
  return made
}

/** A value with source-kept numbers as numbers where they mean one. A bound beyond 2^53-1 becomes the
 *  nearest double, which is on the same side of every number that is compared with it. */
function settled(value: Json): Json {
  if (isExact(value)) return plainNumber(value) ?? Number(value.rawJSON)
  if (Array.isArray(value)) return value.map((one: Json) => settled(one))
  if (!isObject(value)) return value
  const made: Record<string, Json> = {}
  for (const key of Object.keys(value)) made[key] = settled(value[key] ?? null)
  return made
}

/** Under these a stricter subschema would make the whole looser. */
const INVERTING: ReadonlySet<string> = new Set(['not', 'if', 'contains', 'propertyNames'])

/** The schema, closed where it declares members and does not say what becomes of others: at the top
 *  always, below wherever members are declared. */
function close(root: JsonObject): JsonObject {
  const child = (one: Json, keyword: string): Json => {
    if (!isObject(one)) return one
    const here = APPLICATORS.get(keyword)?.applies
    return here === 'named' || here === 'each' ? shut(one, root, false) : one
  }
  return plain(shut(root, root, true), child)
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
