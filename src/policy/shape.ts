// Checks a document against a published shape and names every fault with its place.

import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Read } from './document.ts'
import { type ConfigFault, pointer } from './position.ts'
import type { Shape, ShapeType } from './schema.ts'
import { codePoints } from './value.ts'

/** Every way in which the document is not of this shape, in the order of the text; empty when it is. */
export function misfits(document: Read, root: Shape): readonly ConfigFault[] {
  const faults: ConfigFault[] = []
  const report = (path: string, on: 'key' | 'at', message: string): void => {
    const where = on === 'key' ? document.key(path) : document.at(path)
    faults.push({ file: document.file, ...where, path, level: 'error', message })
  }
  check({ root, report }, root, document.value, '')
  return faults.sort((a, b) => a.line - b.line || a.column - b.column)
}

type Check = {
  readonly root: Shape
  readonly report: (path: string, on: 'key' | 'at', message: string) => void
}

function check(walk: Check, given: Shape, value: Json, path: string): void {
  const shape = resolve(walk.root, given)
  if (shape.oneOf !== undefined) return checkOne(walk, shape.oneOf, value, path)
  if (shape.type !== undefined && !isType(value, shape.type)) {
    return walk.report(path, 'at', `expected ${NAMES[shape.type]}, found ${NAMES[typeOf(value)]}`)
  }
  if (shape.const !== undefined && value !== shape.const) {
    return walk.report(path, 'at', `expected ${JSON.stringify(shape.const)}`)
  }
  if (shape.enum !== undefined && !shape.enum.some((one) => one === value)) {
    return walk.report(path, 'at', `expected one of ${shape.enum.join(', ')}`)
  }
  if (typeof value === 'string') checkText(walk, shape, value, path)
  else if (typeof value === 'number') checkNumber(walk, shape, value, path)
  else if (isObject(value)) checkObject(walk, shape, value, path)
  else if (Array.isArray(value)) checkArray(walk, shape, value, path)
}

const resolve = (root: Shape, shape: Shape): Shape =>
  shape.$ref === undefined ? shape : (root.$defs?.[shape.$ref.slice('#/$defs/'.length)] ?? shape)

// Every oneOf of the published shape has at most one branch that a value's type can fit.
function checkOne(walk: Check, branches: readonly Shape[], value: Json, path: string): void {
  const branch = branches.find((one) =>
    one.const === undefined
      ? one.type !== undefined && isType(value, one.type)
      : one.const === value,
  )
  if (branch !== undefined) return check(walk, branch, value, path)
  const wanted = branches.map((one) =>
    one.const === undefined ? NAMES[one.type ?? 'object'] : JSON.stringify(one.const),
  )
  walk.report(path, 'at', `expected ${wanted.join(' or ')}`)
}

function checkText(walk: Check, shape: Shape, value: string, path: string): void {
  const length = codePoints(value)
  if (shape.minLength !== undefined && length < shape.minLength) {
    walk.report(path, 'at', `shorter than ${shape.minLength} characters`)
  } else if (shape.maxLength !== undefined && length > shape.maxLength) {
    walk.report(path, 'at', `longer than ${shape.maxLength} characters`)
  } else if (shape.pattern !== undefined && !new RegExp(shape.pattern, 'u').test(value)) {
    walk.report(path, 'at', misfit(shape))
  }
}

const misfit = (shape: Shape): string =>
  shape.description === undefined
    ? `does not match ${shape.pattern ?? ''}`
    : `expected ${shape.description}`

function checkNumber(walk: Check, shape: Shape, value: number, path: string): void {
  if (shape.minimum !== undefined && value < shape.minimum) {
    walk.report(path, 'at', `less than ${shape.minimum}`)
  }
  if (shape.maximum !== undefined && value > shape.maximum) {
    walk.report(path, 'at', `more than ${shape.maximum}`)
  }
}

function checkArray(walk: Check, shape: Shape, value: readonly Json[], path: string): void {
  if (shape.minItems !== undefined && value.length < shape.minItems) {
    walk.report(path, 'at', `fewer than ${shape.minItems} items`)
  }
  if (shape.maxItems !== undefined && value.length > shape.maxItems) {
    walk.report(path, 'at', `more than ${shape.maxItems} items`)
  }
  const { items: each } = shape
  if (each === undefined) return
  for (const [at, item] of value.entries()) check(walk, each, item, pointer(path, at))
}

function checkObject(walk: Check, shape: Shape, value: JsonObject, path: string): void {
  const keys = Object.keys(value)
  if (shape.minProperties !== undefined && keys.length < shape.minProperties) {
    walk.report(path, 'at', 'is empty')
  }
  for (const name of shape.required ?? []) {
    if (!keys.includes(name)) walk.report(path, 'at', `\`${name}\` is missing`)
  }
  for (const key of keys) checkMember(walk, shape, value[key] ?? null, { path, key })
}

function checkMember(
  walk: Check,
  shape: Shape,
  value: Json,
  place: { readonly path: string; readonly key: string },
): void {
  const path = pointer(place.path, place.key)
  const known = Object.hasOwn(shape.properties ?? {}, place.key)
    ? shape.properties?.[place.key]
    : undefined
  if (known !== undefined) return check(walk, known, value, path)
  if (shape.additionalProperties === false) {
    return walk.report(path, 'key', `unknown key \`${place.key}\`${hint(shape, place.key)}`)
  }
  if (shape.propertyNames !== undefined) {
    const names = resolve(walk.root, shape.propertyNames)
    const report = (at: string, _on: 'key' | 'at', message: string): void =>
      walk.report(at, 'key', `bad name \`${place.key}\`: ${message}`)
    checkText({ ...walk, report }, names, place.key, path)
  }
  if (shape.additionalProperties !== undefined) check(walk, shape.additionalProperties, value, path)
}

function hint(shape: Shape, key: string): string {
  const known = Object.keys(shape.properties ?? {})
  const near = known.find((one) => distance(one, key.slice(0, 40)) <= 2)
  return near === undefined ? `; known here: ${known.join(', ')}` : `; did you mean \`${near}\`?`
}

/** Levenshtein's distance of two short words. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const NAMES: Readonly<Record<ShapeType, string>> = {
  object: 'a map',
  array: 'a list',
  string: 'a string',
  integer: 'an integer',
  number: 'a number',
  boolean: 'true or false',
  null: 'nothing',
}

function isType(value: Json, type: ShapeType): boolean {
  const found = typeOf(value)
  return found === type || (type === 'number' && found === 'integer')
}

function typeOf(value: Json): ShapeType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'boolean'
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number'
  return 'object'
}
