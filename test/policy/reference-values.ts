// The reference's readers of values: exact numbers, a small interpreter of schemas, another CEL.

import { Environment } from '@marcbachmann/cel-js'

import type { Call } from '../../src/call.ts'
import { canonical } from '../../src/canonical.ts'
import type { Facts } from '../../src/decision.ts'
import { isExact, isObject, type Json, type JsonObject } from '../../src/json.ts'

/** What a check found: that the value does not fit, that a number was read that is not exact, or both. */
export type Found = { misfit: boolean; inexact: boolean }

export function get(value: Json | undefined, ...path: readonly string[]): Json | undefined {
  let at: Json | undefined = value
  for (const key of path) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  return at
}

export const list = (value: Json | undefined): readonly Json[] => {
  const made: readonly Json[] = Array.isArray(value) ? value : []
  return made
}

/** A string that the generator wrote as one. */
export const word = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

type Decimal = { readonly digits: bigint; readonly scale: number }

function decimal(text: string): Decimal {
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e')
  const [whole = '', fraction = ''] = mantissa.split('.')
  return { digits: BigInt(whole + fraction), scale: Number(power) - fraction.length }
}

/** The number a source means when a double holds it, by integer arithmetic; null otherwise. */
export function exactValue(source: string): number | null {
  const value = Number(source)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER && Number.isInteger(value)) return null
  const a = decimal(source)
  const b = decimal(String(value))
  const low = Math.min(a.scale, b.scale)
  const up = ({ digits, scale }: Decimal): bigint => digits * 10n ** BigInt(scale - low)
  return up(a) === up(b) ? value + 0 : null
}

const isInexact = (value: Json | undefined): boolean =>
  value !== undefined && isExact(value) && exactValue(value.rawJSON) === null

/** Interprets the keywords that the generator uses; `closed`: as a server's schema is. */
export function fits(schema: Json, value: JsonObject, closed: boolean): Found {
  if (!isObject(schema)) return { misfit: true, inexact: false }
  const found = { misfit: false, inexact: false }
  walk({ found, closed }, schema, value, true)
  return found
}

type Walk = { readonly found: Found; readonly closed: boolean }

function walk(at: Walk, schema: Json, given: Json, top: boolean): void {
  if (!isObject(schema) || Object.keys(schema).length === 0) return
  if (isInexact(given)) {
    at.found.inexact = true
    return
  }
  const value = isExact(given) ? exactValue(given.rawJSON) : given
  if (!fitsAlone(schema, value)) at.found.misfit = true
  if (schema['items'] !== undefined) {
    for (const item of list(value)) walk(at, schema['items'], item, false)
  }
  if (isObject(value)) walkMembers(at, schema, value, top)
}

function fitsAlone(schema: JsonObject, value: Json): boolean {
  if (schema['type'] !== undefined && !isType(value, word(schema['type']))) return false
  if (schema['enum'] !== undefined) {
    if (!list(schema['enum']).some((one) => canonical(one) === canonical(value))) return false
  }
  if (typeof value === 'number') return value <= Number(schema['maximum'] ?? Infinity)
  if (typeof value !== 'string') return true
  const length = Array.from(value).length
  return (
    length >= Number(schema['minLength'] ?? 0) && length <= Number(schema['maxLength'] ?? Infinity)
  )
}

function walkMembers(at: Walk, schema: JsonObject, value: JsonObject, top: boolean): void {
  const { properties, required, additionalProperties: rest } = schema
  if (list(required).some((name) => value[word(name)] === undefined)) at.found.misfit = true
  const shut =
    rest === false || (at.closed && rest === undefined && (top || properties !== undefined))
  for (const [name, member] of Object.entries(value)) {
    const declared = get(properties, name)
    if (declared !== undefined) walk(at, declared, member ?? null, false)
    else if (shut) at.found.misfit = true
  }
}

function isType(value: Json, type: string): boolean {
  if (type === 'integer') return typeof value === 'number' && Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return typeof value === type
}

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
})

/** What another implementation of CEL makes of an expression; undefined for an error. */
export function cel(
  text: string,
  args: JsonObject,
  call: Call,
  facts: Facts,
): { readonly value: unknown; readonly inexact: boolean } {
  const found = { misfit: false, inexact: false }
  const { name, profile, attributes } = call.client
  const context = {
    args: lift(args, found),
    client: { name, profile, attributes: { ...attributes } },
    facts: { definition: facts.definition?.hash ?? null, pin: facts.pin },
  }
  try {
    const value: unknown = environment.evaluate(text, context)
    return { value, inexact: found.inexact }
  } catch {
    return { value: undefined, inexact: found.inexact }
  }
}

function lift(value: Json, found: Found): unknown {
  if (isExact(value)) return lift(exactValue(value.rawJSON), found)
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return list(value).map((one) => lift(one, found))
  if (!isObject(value)) return value
  const made: Record<string, unknown> = {}
  for (const [key, one] of Object.entries(value)) {
    const read = (): unknown => {
      found.inexact = true
      return null
    }
    if (isInexact(one)) Object.defineProperty(made, key, { enumerable: true, get: read })
    else made[key] = lift(one ?? null, found)
  }
  return made
}
