// Values of expressions: what they are, how they compare, and what reading them costs.

import { byCodePoint } from '../canonical.ts'
import type { Json, JsonObject } from '../json.ts'
import { bare, codePoints } from './value.ts'

/** A CEL double. Integers are plain numbers within 2^53-1, so that `5 / 2` and `5.0 / 2.0` differ. */
export type Double = { readonly [DOUBLE]: number }
/** An error as a value: `false && error` is false, as CEL has it. */
export type Failed = { readonly [FAILED]: string }
/** A CEL list. */
export type List = readonly Value[]
/** A CEL map; its keys are strings. */
export type Dictionary = { readonly [key: string]: Value | undefined }
/** `undefined` never occurs but in the index type of a dictionary. */
export type Value = null | boolean | number | string | Double | Failed | List | Dictionary

const DOUBLE: unique symbol = Symbol('double')
const FAILED: unique symbol = Symbol('failed')

/** Steps that one evaluation has left. Below zero it is over: its result is an error whatever it is. */
export type Budget = { steps: number }

/** What an expression may read. */
export type Scope = {
  readonly args: JsonObject
  readonly client: JsonObject
  readonly facts: JsonObject
}
/** State of one evaluation: its budget, what it reads, and the variables of its macros by depth. */
export type Frame = Budget & { readonly scope: Scope; readonly locals: Value[] }
/** One node of an expression, compiled. */
export type Code = (frame: Frame) => Value

/** The double of this number. */
export const double = (value: number): Double => ({ [DOUBLE]: value })
/** The error with this sentence. */
export const failed = (why: string): Failed => ({ [FAILED]: why })
/** True for an error. */
export const isFailed = (value: Value): value is Failed =>
  typeof value === 'object' && value !== null && FAILED in value
/** The sentence of an error, or null. */
export const whyOf = (value: Value): string | null => (isFailed(value) ? value[FAILED] : null)
/** True for a double. */
export const isDouble = (value: Value): value is Double =>
  typeof value === 'object' && value !== null && DOUBLE in value
/** True for a list. */
export const isList = (value: Value): value is List => Array.isArray(value)
/** True for a map. */
export const isDictionary = (value: Value): value is Dictionary =>
  typeof value === 'object' &&
  value !== null &&
  !isList(value) &&
  !(DOUBLE in value) &&
  !(FAILED in value)

/** A JSON value as an expression sees it: a number that is no integer is a double. */
export function lift(value: Value | Json | undefined): Value {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? value : double(value)
  // Arrays and objects stay as they are; their members are lifted when they are read.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON is part of Value
  return (value ?? null) as Value
}

/** The number of an int or a double, or null. */
export function numberOf(value: Value): number | null {
  if (typeof value === 'number') return value
  return isDouble(value) ? value[DOUBLE] : null
}

/** An own member, or an error. */
export function memberOf(value: Value, key: string): Value {
  if (isFailed(value)) return value
  if (!isDictionary(value)) return failed('no such overload: a member of something that is no map')
  const map: Dictionary = value
  return Object.hasOwn(map, key) ? lift(map[key]) : failed('no such key')
}

/** Deep equality, numbers across int and double; values of different kinds are unequal. */
export function equal(a: Value, b: Value, budget: Budget): boolean {
  if (--budget.steps < 0) return false
  const x = numberOf(a)
  if (x !== null) return x === numberOf(b)
  if (typeof a === 'string' && typeof b === 'string') {
    budget.steps -= Math.min(a.length, b.length) >> TEXT_SHIFT
    return a === b
  }
  if (isList(a)) return isList(b) && equalLists(a, b, budget)
  if (isDictionary(a)) return isDictionary(b) && equalDictionaries(a, b, budget)
  return a === b
}

/** Characters that one step covers: 2 to this power. */
export const TEXT_SHIFT = 5

const equalLists = (a: List, b: List, budget: Budget): boolean =>
  a.length === b.length && a.every((item, at) => equal(lift(item), lift(b[at]), budget))

function equalDictionaries(a: Dictionary, b: Dictionary, budget: Budget): boolean {
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every((key) => Object.hasOwn(b, key) && equal(lift(a[key]), lift(b[key]), budget))
}

/** Below, at or above zero; an error for kinds that have no order. */
export function compare(a: Value, b: Value, budget: Budget): number | Failed {
  if (typeof a === 'string' && typeof b === 'string') {
    budget.steps -= Math.min(a.length, b.length) >> TEXT_SHIFT
    return byCodePoint(a, b)
  }
  const x = typeof a === 'boolean' && typeof b === 'boolean' ? Number(a) : numberOf(a)
  const y = typeof a === 'boolean' && typeof b === 'boolean' ? Number(b) : numberOf(b)
  if (x === null || y === null) return failed('no such overload: these have no order')
  // NaN is in no order: every comparison with it is false.
  return x < y ? -1 : x > y ? 1 : x === y ? 0 : Number.NaN
}

/** The length in code points of a string, in items of a list or map. */
export function sizeOf(value: Value, budget: Budget): Value {
  if (typeof value === 'string') {
    budget.steps -= value.length >> TEXT_SHIFT
    return codePoints(value)
  }
  if (isList(value)) return value.length
  if (isDictionary(value)) return Object.keys(value).length
  return isFailed(value) ? value : failed('no such overload: size()')
}

/** A value as JSON, or undefined for one that JSON does not have. */
export function jsonOf(value: Value): Json | undefined {
  const number = numberOf(value)
  if (number !== null) return Number.isFinite(number) ? number : undefined
  if (isList(value)) {
    const items = value.map((item) => jsonOf(lift(item)))
    return items.every((item) => item !== undefined) ? items : undefined
  }
  if (isFailed(value)) return undefined
  if (!isDictionary(value)) return typeof value === 'object' && value !== null ? undefined : value
  const map: Dictionary = value
  const made = bare()
  for (const key of Object.keys(map)) {
    const member = jsonOf(lift(map[key]))
    if (member === undefined) return undefined
    made[key] = member
  }
  return made
}
