// Our reader of JSON Schema and ajv say the same of 20,000 generated pairs; where ajv leaves the standard, a table.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'

import { bound } from '../../src/policy/bounds.ts'
import { compileSchema } from '../../src/policy/validate.ts'
import { json } from './ground.ts'

const name = fc.constantFrom('a', 'b', 'c', 'ab', 'x/y')
const scalar = fc.constantFrom<unknown>(0, 1, 2, 2.5, -1, 'a', 'ab', '😀', '', true, false, null)
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}))

type Tie = (key: 'schema') => fc.Arbitrary<unknown>
const some = (tie: Tie, least = 1): fc.Arbitrary<unknown[]> =>
  fc.array(tie('schema'), { minLength: least, maxLength: 3 })
const types = fc.constantFrom('null', 'boolean', 'object', 'array', 'number', 'integer', 'string')

/** Keywords, each with the values that are drawn for it. */
const keywords = (tie: Tie, year: 2019 | 2020): readonly fc.Arbitrary<object>[] => {
  const one = (keyword: string, of: fc.Arbitrary<unknown>): fc.Arbitrary<object> =>
    of.map((drawn) => ({ [keyword]: drawn }))
  return [
    one('type', fc.oneof(types, fc.uniqueArray(types, { minLength: 1, maxLength: 3 }))),
    one('enum', fc.array(value, { minLength: 1, maxLength: 3 })),
    one('const', value),
    ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'].map((each) =>
      one(each, fc.constantFrom(0, 1, 1.5)),
    ),
    one('multipleOf', fc.constantFrom(1, 2, 0.5)),
    ...['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'].map(
      (each) => one(each, fc.nat(3)),
    ),
    one('pattern', fc.constantFrom('^a', 'b$', '^.$')),
    one('uniqueItems', fc.boolean()),
    one('required', fc.uniqueArray(name, { maxLength: 2 })),
    one(
      'dependentRequired',
      fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 }),
    ),
    one('properties', fc.dictionary(name, tie('schema'), { maxKeys: 3 })),
    one(
      'patternProperties',
      fc.dictionary(fc.constantFrom('^a', 'b'), tie('schema'), { maxKeys: 2 }),
    ),
    one('additionalProperties', tie('schema')),
    one('propertyNames', tie('schema')),
    one('allOf', some(tie)),
    one('anyOf', some(tie)),
    one('oneOf', some(tie)),
    one('not', tie('schema')),
    fc.record(
      // oxlint-disable-next-line unicorn/no-thenable -- the keyword of JSON Schema
      { if: tie('schema'), then: tie('schema'), else: tie('schema') },
      { requiredKeys: ['if'] },
    ),
    one('dependentSchemas', fc.dictionary(name, tie('schema'), { maxKeys: 2 })),
    one('$ref', fc.constantFrom('#/$defs/d0', '#/$defs/d1')),
    ...(year === 2020
      ? [one('items', tie('schema')), one('prefixItems', some(tie))]
      : [
          one('items', fc.oneof(tie('schema'), some(tie))),
          fc.record({ items: some(tie), additionalItems: tie('schema') }),
          one(
            'dependencies',
            fc.dictionary(name, fc.oneof(tie('schema'), fc.uniqueArray(name, { maxLength: 2 })), {
              maxKeys: 2,
            }),
          ),
        ]),
  ]
}

const schemaOf = (year: 2019 | 2020): fc.Arbitrary<object> => {
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom<unknown>(true, false, {}),
      fc
        .array(fc.oneof(...keywords(tie as Tie, year)), { minLength: 1, maxLength: 4 })
        .map((all): unknown => Object.assign({}, ...all)),
    ),
  }))
  return fc.tuple(schema, schema, schema).map(([root, d0, d1]) => ({
    ...(typeof root === 'object' ? root : { allOf: [root] }),
    $defs: { d0, d1 },
  }))
}

/** What ajv says; null where the code it made does not run (a name that is not defined in it). */
function said<T>(make: () => T): T | null {
  try {
    return make()
  } catch {
    return null
  }
}

for (const year of [2020, 2019] as const) {
  test(`the schemas of ${year} are read as ajv reads them`, () => {
    const Oracle = year === 2020 ? Ajv2020 : Ajv2019
    const options = {
      strict: false,
      ownProperties: true,
      validateSchema: false,
      meta: false,
      logger: false,
      validateFormats: false,
    } as const
    let fits = 0
    let misfits = 0
    fc.assert(
      fc.property(
        schemaOf(year),
        fc.array(value, { minLength: 10, maxLength: 10 }),
        (schema, values) => {
          const source = JSON.stringify(schema)
          const ours = json(source)
          // Schemas that lead back to themselves are refused before anything is compiled.
          if (!('work' in bound(ours, { closed: false, extra: new Map() }))) return
          const theirs = said(() => new Oracle(options).compile(JSON.parse(source)))
          if (theirs === null) return
          const node = compileSchema(ours, new Map())
          for (const one of values) {
            const text = JSON.stringify(one)
            const found = node(json(text), { steps: 1e9 }, null)
            const wanted: boolean | null = said<boolean>(() => theirs(JSON.parse(text)))
            if (wanted === null) continue
            assert.equal(found === null, wanted, `${source} on ${text}`)
            if (found === null) fits++
            else misfits++
          }
        },
      ),
      { numRuns: process.env['ECLUSA_LONG'] === '1' ? 20_000 : 1_000 },
    )
    assert.ok(fits > 500 && misfits > 500, `${fits} fit, ${misfits} do not`)
  })
}

/** `contains` and `unevaluated...` by the text of the standard: ajv counts what a branch that failed looked
 *  at, lets an empty list pass some `contains`, and does not count what `contains` matched. */
const TABLE: readonly (readonly [string, string, boolean])[] = [
  ['{"contains":{"type":"string"}}', '[]', false],
  ['{"contains":{"type":"string"}}', '[1,"a"]', true],
  ['{"contains":{"type":"string"}}', '{}', true],
  ['{"contains":{"type":"string"},"minContains":2}', '["a",1]', false],
  ['{"contains":{"type":"string"},"minContains":2}', '["a",1,"b"]', true],
  ['{"contains":{"type":"string"},"minContains":0}', '[]', true],
  ['{"contains":{"type":"string"},"maxContains":1}', '["a","b"]', false],
  ['{"prefixItems":[false],"contains":true}', '[]', false],
  ['{"contains":{"type":"string"},"unevaluatedItems":false}', '["a","b"]', true],
  ['{"contains":{"type":"string"},"unevaluatedItems":false}', '["a",1]', false],
  ['{"prefixItems":[true],"unevaluatedItems":false}', '[1]', true],
  ['{"prefixItems":[true],"unevaluatedItems":false}', '[1,2]', false],
  ['{"items":true,"unevaluatedItems":false}', '[1,2]', true],
  ['{"anyOf":[{"prefixItems":[{"type":"string"}]},true],"unevaluatedItems":false}', '["a"]', true],
  ['{"anyOf":[{"prefixItems":[{"type":"string"}]},true],"unevaluatedItems":false}', '[1]', false],
  ['{"properties":{"a":true},"unevaluatedProperties":false}', '{"a":1}', true],
  ['{"properties":{"a":true},"unevaluatedProperties":false}', '{"a":1,"b":1}', false],
  ['{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}', '{"a":1}', true],
  [
    '{"anyOf":[{"required":["b"],"properties":{"b":true}},true],"unevaluatedProperties":false}',
    '{"b":1}',
    true,
  ],
  [
    '{"anyOf":[{"properties":{"b":{"type":"string"}}},true],"unevaluatedProperties":false}',
    '{"b":1}',
    false,
  ],
  [
    '{"oneOf":[{"type":"object"},{"patternProperties":{"^a":false}}],"unevaluatedProperties":{"type":"null"}}',
    '{"a":{}}',
    false,
  ],
  ['{"not":{"not":{"properties":{"a":true}}},"unevaluatedProperties":false}', '{"a":1}', false],
  [
    '{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},"unevaluatedProperties":false}',
    '{"a":1,"b":2}',
    true,
  ],
  [
    '{"if":{"properties":{"a":{"const":1}},"required":["a"]},"then":{"properties":{"b":true}},"unevaluatedProperties":false}',
    '{"a":2}',
    false,
  ],
  [
    '{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":true}}},"unevaluatedProperties":false}',
    '{"a":1}',
    true,
  ],
  [
    '{"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false}',
    '{"a":1,"b":1}',
    true,
  ],
  [
    '{"dependentSchemas":{"a":{"properties":{"b":true}}},"properties":{"a":true},"unevaluatedProperties":false}',
    '{"b":1}',
    false,
  ],
  [
    '{"properties":{"o":{"properties":{"x":true}}},"unevaluatedProperties":false}',
    '{"o":{"y":1}}',
    true,
  ],
  ['{"allOf":[{"unevaluatedProperties":true}],"unevaluatedProperties":false}', '{"a":1}', true],
  [
    '{"allOf":[{"properties":{"a":true},"unevaluatedProperties":false}],"properties":{"b":true}}',
    '{"b":1}',
    false,
  ],
  ['{"additionalProperties":{"type":"number"},"unevaluatedProperties":false}', '{"a":1}', true],
  ['{"patternProperties":{"^a":true},"unevaluatedProperties":false}', '{"ab":1,"b":1}', false],
]

for (const [schema, text, fits] of TABLE) {
  test(`${schema} ${fits ? 'takes' : 'refuses'} ${text}`, () => {
    const node = compileSchema(json(schema), new Map())
    assert.equal(node(json(text), { steps: 1_000 }, null) === null, fits)
  })
}

test('a run past its steps is over, whatever the schema would say', () => {
  const node = compileSchema(json('{"not":{"items":{"type":"string"}}}'), new Map())
  const run = { steps: 10 }
  node(json(`[${Array.from({ length: 100 }, () => '1').join(',')}]`), run, null)
  assert.ok(run.steps < 10)
  const all = compileSchema(json('{"items":{"type":"number"}}'), new Map())
  const spent = { steps: 10 }
  all(json(`[${Array.from({ length: 100 }, () => '1').join(',')}]`), spent, null)
  assert.ok(spent.steps < 0)
})
