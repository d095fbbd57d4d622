// Arguments as rules may read them: plain numbers, and a trap where a number is not exact.

import { isExact, isObject, type Exact, type Json, type JsonObject } from '../json.ts'
import { pointer } from './position.ts'
import { bare, items } from './value.ts'

/** Nesting that is still looked at; admission stops at 64. */
const MAX_DEPTH = 100

/** Arguments to judge. `value` equals the arguments but for source-kept numbers: one that equals its double
 *  exactly (100.0, 1e3) is that number; any other is a property that notes in `touched` the JSON
 *  Pointer of the first such number that was read, and reads as NaN. Without source-kept numbers `value` is
 *  the arguments themselves. `nodes` counts all values. */
export type View = {
  readonly value: JsonObject
  readonly nodes: number
  touched: string | null
}

/** A fresh view of these arguments, or null when they nest deeper than anything that was admitted. */
export function viewOf(args: JsonObject): View | null {
  const survey = { nodes: 0, exact: false, deep: false }
  look(args, survey, 0)
  if (survey.deep) return null
  const view: View & { value: JsonObject } = { value: args, nodes: survey.nodes, touched: null }
  if (survey.exact) view.value = copyObject(args, view, '')
  return view
}

function look(
  value: Json,
  survey: { nodes: number; exact: boolean; deep: boolean },
  depth: number,
): void {
  survey.nodes++
  if (typeof value !== 'object' || value === null) return
  if (depth > MAX_DEPTH) survey.deep = true
  else if (Array.isArray(value)) for (const item of items(value)) look(item, survey, depth + 1)
  else if (isExact(value)) survey.exact = true
  else if (isObject(value)) {
    for (const key of Object.keys(value)) look(value[key] ?? null, survey, depth + 1)
  }
}

function copyObject(value: JsonObject, view: View, path: string): JsonObject {
  const made = bare()
  for (const key of Object.keys(value)) put(made, key, value[key] ?? null, { view, path })
  return made
}

function put(
  made: Record<string, Json> | Json[],
  key: string | number,
  value: Json,
  at: { readonly view: View; readonly path: string },
): void {
  const path = pointer(at.path, key)
  const plain = copy(value, at.view, path)
  if (plain !== NOT_EXACT) {
    Object.defineProperty(made, key, { value: plain, enumerable: true })
    return
  }
  Object.defineProperty(made, key, {
    enumerable: true,
    get: () => {
      at.view.touched ??= path
      return Number.NaN
    },
  })
}

const NOT_EXACT: unique symbol = Symbol('not exact')

function copy(value: Json, view: View, path: string): Json | typeof NOT_EXACT {
  if (isExact(value)) return plainNumber(value) ?? NOT_EXACT
  if (Array.isArray(value)) {
    const made: Json[] = []
    for (const [at, item] of items(value).entries()) put(made, at, item, { view, path })
    return made
  }
  return isObject(value) ? copyObject(value, view, path) : value
}

/** Longest source that is compared digit by digit; the shortest form of any double is shorter. */
const MAX_SOURCE = 64

/** The number that this source means, or null when a double does not hold it, it is an integer beyond
 *  2^53-1, or it is written with more than 64 characters. `-0` is 0. */
export function plainNumber(exact: Exact): number | null {
  if (exact.rawJSON.length > MAX_SOURCE) return null
  const value = Number(exact.rawJSON)
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return null
  if (decimal(exact.rawJSON) !== decimal(String(value))) return null
  return value === 0 ? 0 : value
}

/** One spelling for each decimal value: significant digits and a power of ten. */
function decimal(source: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(source) ?? []
  const digits = (whole + fraction).replace(/^0+/, '')
  if (digits === '') return '0'
  const short = digits.replace(/0+$/, '')
  const exponent = Number(power) - fraction.length + (digits.length - short.length)
  return `${sign}${short}e${exponent}`
}
