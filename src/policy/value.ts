// Readers of admitted values: members, items and what stands at a pointer.

import { isObject, type Json } from '../json.ts'
import { segmentsOf } from './position.ts'

/** An object without a prototype: a key in it can only be one that was put there. */
export function bare<T = Json>(): Record<string, T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an object of nothing holds only T
  return Object.create(null) as Record<string, T>
}

/** The items of an array; none for anything else. */
export function items(value: Json | undefined): readonly Json[] {
  const made: readonly Json[] = Array.isArray(value) ? value : []
  return made
}

/** The members of an object in their order; none for anything else. */
export const members = (value: Json | undefined): readonly (readonly [string, Json])[] =>
  isObject(value) ? Object.entries(value).map(([key, one]) => [key, one ?? null] as const) : []

/** The strings among the items of an array. */
export const texts = (value: Json | undefined): readonly string[] =>
  items(value).filter((one) => typeof one === 'string')

/** A string, or null for anything else. */
export const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' ? value : null

/** What stands at a JSON Pointer, or undefined. */
export function valueAt(root: Json, path: string): Json | undefined {
  let value: Json | undefined = root
  for (const segment of segmentsOf(path) ?? []) {
    if (Array.isArray(value)) value = items(value)[Number(segment)]
    else value = isObject(value) && Object.hasOwn(value, segment) ? value[segment] : undefined
  }
  return value
}

/** The length of well-formed text in code points. */
export function codePoints(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length - 1; at++) {
    if (text.charCodeAt(at) >> 10 !== HIGH_SURROGATE) continue
    length--
    at++
  }
  return length
}
const HIGH_SURROGATE = 0xd800 >> 10
