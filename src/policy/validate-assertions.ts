// The assertions of JSON Schema that look at one value by itself.

import { canonical } from '../canonical.ts'
import { isExact, isObject, type Json, type JsonObject } from '../json.ts'
import { linear } from './regex.ts'
import { codePoints, items, members, texts } from './value.ts'
import { plainNumber } from './view.ts'

/** Where a value does not fit: a JSON Pointer below it, and the keyword. */
export type Misfit = { readonly field: string; readonly why: string }

/** One run. `steps`: what is left; below zero nothing more is looked at and nothing fits. */
export type Run = { steps: number }

/** One assertion of one schema. */
export type Assertion = (value: Json, run: Run) => Misfit | null

/** Characters of a text that one step covers, as a power of two. */
const TEXT_SHIFT = 5

const hold =
  (keyword: string, holds: (value: Json, run: Run) => boolean): Assertion =>
  (value, run) =>
    holds(value, run) ? null : { field: '', why: keyword }

/** The assertions of a schema, cheapest first. */
export function assertions(schema: JsonObject): readonly Assertion[] {
  const made: Assertion[] = []
  for (const [keyword, make] of MAKERS) {
    const wanted = schema[keyword]
    if (wanted !== undefined) made.push(...make(wanted, keyword))
  }
  return made
}

type Maker = (wanted: Json, keyword: string) => readonly Assertion[]

/** A bound as a number. One beyond 2^53-1 becomes the nearest double, which is on the same side of every
 *  number that is compared with it. */
const numeric = (wanted: Json): number => Number(isExact(wanted) ? wanted.rawJSON : wanted)

const onNumber =
  (holds: (value: number, bound: number) => boolean): Maker =>
  (wanted, keyword) => {
    const bound = numeric(wanted)
    return [hold(keyword, (value) => typeof value !== 'number' || holds(value, bound))]
  }

const onText =
  (holds: (length: number, bound: number) => boolean): Maker =>
  (wanted, keyword) => {
    const bound = numeric(wanted)
    const fits = (value: Json, run: Run): boolean => {
      if (typeof value !== 'string') return true
      run.steps -= value.length >> TEXT_SHIFT
      return holds(codePoints(value), bound)
    }
    return [hold(keyword, fits)]
  }

const onList =
  (holds: (length: number, bound: number) => boolean): Maker =>
  (wanted, keyword) => {
    const bound = numeric(wanted)
    return [hold(keyword, (value) => !Array.isArray(value) || holds(value.length, bound))]
  }

const onMap =
  (holds: (length: number, bound: number) => boolean): Maker =>
  (wanted, keyword) => {
    const bound = numeric(wanted)
    return [hold(keyword, (value) => !isObject(value) || holds(Object.keys(value).length, bound))]
  }

const atLeast = (value: number, bound: number): boolean => value >= bound
const atMost = (value: number, bound: number): boolean => value <= bound

const type: Maker = (wanted, keyword) => {
  const wants = new Set(Array.isArray(wanted) ? texts(wanted) : [wanted])
  return [
    hold(keyword, (value) => {
      const found = typeOf(value)
      return wants.has(found) || (found === 'integer' && wants.has('number'))
    }),
  ]
}

function typeOf(value: Json): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return typeof value
}

/** Equality by value: scalars as they are, lists and maps by their canonical text, which has no members
 *  that a sender may name. */
function oneOf(values: readonly Json[]): (value: Json) => boolean {
  const scalars = new Set<Json>()
  const shapes = new Set<string>()
  for (const value of values) {
    const plain = settled(value)
    if (typeof plain === 'object' && plain !== null) shapes.add(canonical(plain))
    else scalars.add(plain)
  }
  return (value) =>
    typeof value === 'object' && value !== null
      ? shapes.size > 0 && shapes.has(canonical(value))
      : scalars.has(value)
}

/** Source-kept numbers as numbers where they mean one; the others equal nothing that a rule may read. */
function settled(value: Json): Json {
  if (isExact(value)) return plainNumber(value) ?? value
  if (Array.isArray(value)) return items(value).map(settled)
  if (!isObject(value)) return value
  return Object.fromEntries(members(value).map(([key, one]) => [key, settled(one)]))
}

const unique: Maker = (wanted, keyword) =>
  wanted !== true
    ? []
    : [
        hold(keyword, (value) => {
          const list = items(value)
          return new Set(list.map((one) => canonical(one))).size === list.length
        }),
      ]

const pattern: Maker = (wanted, keyword) => {
  const engine = linear(typeof wanted === 'string' ? wanted : '')
  return [
    hold(keyword, (value, run) => {
      if (typeof value !== 'string') return true
      run.steps -= value.length >> TEXT_SHIFT
      if (!('problem' in engine) && engine.fits(value)) return engine.test(value)
      // Neither answer would be safe: the whole run is over.
      run.steps = -1
      return false
    }),
  ]
}

// Presence is not reading: a member is asked for by its name alone.
const present = (value: JsonObject, names: readonly string[]): Misfit | null => {
  const missing = names.find((name) => !Object.hasOwn(value, name))
  return missing === undefined ? null : { field: field(missing), why: 'required' }
}
const field = (name: string): string => `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`

const required: Maker = (wanted) => {
  const names = texts(wanted)
  return [(value) => (isObject(value) ? present(value, names) : null)]
}

const dependent: Maker = (wanted) =>
  members(wanted)
    .filter(([, names]) => Array.isArray(names))
    .map(([name, names]) => {
      const others = texts(names)
      return (value: Json): Misfit | null =>
        isObject(value) && Object.hasOwn(value, name) ? present(value, others) : null
    })

const MAKERS: ReadonlyMap<string, Maker> = new Map<string, Maker>([
  ['type', type],
  ['enum', (wanted, keyword) => [hold(keyword, oneOf(items(wanted)))]],
  ['const', (wanted, keyword) => [hold(keyword, oneOf([wanted]))]],
  ['minimum', onNumber(atLeast)],
  ['maximum', onNumber(atMost)],
  ['exclusiveMinimum', onNumber((value, bound) => value > bound)],
  ['exclusiveMaximum', onNumber((value, bound) => value < bound)],
  ['multipleOf', onNumber((value, bound) => Number.isInteger(value / bound))],
  ['minLength', onText(atLeast)],
  ['maxLength', onText(atMost)],
  ['pattern', pattern],
  ['minItems', onList(atLeast)],
  ['maxItems', onList(atMost)],
  ['uniqueItems', unique],
  ['minProperties', onMap(atLeast)],
  ['maxProperties', onMap(atMost)],
  ['required', required],
  ['dependentRequired', dependent],
  ['dependencies', dependent],
])
