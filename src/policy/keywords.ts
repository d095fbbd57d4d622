// The keywords of JSON Schema that are known here: their form, and where their subschemas apply.

import { isExact, isObject, type Json } from '../json.ts'
import { linear } from './regex.ts'

/** Where a subschema applies, seen from the value under its parent: to that same value (`same`), to one
 *  member by name or index (`named`), to any member (`each`), or nowhere by itself (`none`). */
export type Applies = 'same' | 'named' | 'each' | 'none'

/** How subschemas stand under a keyword. */
export type Form = 'one' | 'list' | 'map' | 'one or list' | 'map or names'

/** Keywords that hold subschemas. */
export const APPLICATORS: ReadonlyMap<string, { readonly form: Form; readonly applies: Applies }> =
  new Map<string, { readonly form: Form; readonly applies: Applies }>([
    ['allOf', { form: 'list', applies: 'same' }],
    ['anyOf', { form: 'list', applies: 'same' }],
    ['oneOf', { form: 'list', applies: 'same' }],
    ['not', { form: 'one', applies: 'same' }],
    ['if', { form: 'one', applies: 'same' }],
    ['then', { form: 'one', applies: 'same' }],
    ['else', { form: 'one', applies: 'same' }],
    ['dependentSchemas', { form: 'map', applies: 'same' }],
    ['dependencies', { form: 'map or names', applies: 'same' }],
    ['properties', { form: 'map', applies: 'named' }],
    ['patternProperties', { form: 'map', applies: 'each' }],
    ['additionalProperties', { form: 'one', applies: 'each' }],
    ['unevaluatedProperties', { form: 'one', applies: 'each' }],
    ['propertyNames', { form: 'one', applies: 'each' }],
    ['prefixItems', { form: 'list', applies: 'named' }],
    ['items', { form: 'one or list', applies: 'each' }],
    ['additionalItems', { form: 'one', applies: 'each' }],
    ['unevaluatedItems', { form: 'one', applies: 'each' }],
    ['contains', { form: 'one', applies: 'each' }],
    ['$defs', { form: 'map', applies: 'none' }],
    ['definitions', { form: 'map', applies: 'none' }],
  ])

type Test = (value: Json) => string | null

const TYPES: ReadonlySet<Json> = new Set<Json>([
  'null',
  'boolean',
  'object',
  'array',
  'number',
  'integer',
  'string',
])

const test =
  (holds: (value: Json) => boolean, wanted: string): Test =>
  (value) =>
    holds(value) ? null : `expected ${wanted}`

const isNumber = (value: Json): boolean => typeof value === 'number' || isExact(value)
const isCount = (value: Json): boolean =>
  Number.isInteger(Number(isExact(value) ? value.rawJSON : value)) &&
  isNumber(value) &&
  Number(isExact(value) ? value.rawJSON : value) >= 0
const isNames = (value: Json): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const count = test(isCount, 'a count')
const number = test(isNumber, 'a number')
const text = test((value) => typeof value === 'string', 'a string')
const names = test(isNames, 'a list of names')
const free: Test = () => null

/** Keywords that assert something of a value, and the check of their own form. */
export const ASSERTIONS: ReadonlyMap<string, Test> = new Map<string, Test>([
  [
    'type',
    test(
      (value) =>
        TYPES.has(value) ||
        (Array.isArray(value) && value.length > 0 && value.every((one: Json) => TYPES.has(one))),
      'one or more of the seven types',
    ),
  ],
  ['enum', test((value) => Array.isArray(value) && value.length > 0, 'a list that is not empty')],
  ['const', free],
  ['required', names],
  [
    'dependentRequired',
    test(
      (value) => isObject(value) && Object.values(value).every((one) => isNames(one ?? null)),
      'a map of lists of names',
    ),
  ],
  ['minLength', count],
  ['maxLength', count],
  ['minItems', count],
  ['maxItems', count],
  ['minProperties', count],
  ['maxProperties', count],
  ['minContains', count],
  ['maxContains', count],
  ['minimum', number],
  ['maximum', number],
  ['exclusiveMinimum', number],
  ['exclusiveMaximum', number],
  [
    'multipleOf',
    test(
      (value) => isNumber(value) && Number(isExact(value) ? value.rawJSON : value) > 0,
      'a number above 0',
    ),
  ],
  ['uniqueItems', test((value) => typeof value === 'boolean', 'true or false')],
  ['pattern', (value) => (typeof value === 'string' ? patternProblem(value) : 'expected a string')],
])

/** Why a pattern is refused, or null. */
export function patternProblem(pattern: string): string | null {
  const engine = linear(pattern)
  return 'problem' in engine ? engine.problem : null
}

/** Keywords that say nothing of whether a value fits. `$id` is one of them here: it is dropped, so that equal
 *  ids of two tools never meet. */
export const ANNOTATIONS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['$schema', text],
  ['$id', text],
  ['$comment', text],
  ['title', text],
  ['description', text],
  ['default', free],
  ['examples', free],
  ['deprecated', free],
  ['readOnly', free],
  ['writeOnly', free],
  ['format', free],
  ['contentEncoding', free],
  ['contentMediaType', free],
  ['contentSchema', free],
])

/** Keywords whose meaning depends on where a validation came from: such a schema is not checked but
 *  refused. */
export const REFUSED: ReadonlySet<string> = new Set([
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$anchor',
])
