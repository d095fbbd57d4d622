// Schemas of contracts and of servers: what fits, and what a hostile one can do (nothing).

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import { canonical } from '../../src/canonical.ts'
import { isObject, type Json, object } from '../../src/json.ts'
import { serverCheck } from '../../src/policy/arguments.ts'
import { viewOf } from '../../src/policy/view.ts'
import { json, jsonObject } from './ground.ts'

/** The field at which arguments do not fit, null when they fit, or why the schema cannot be used. */
function field(schema: Json, args: string): string | null {
  const check = serverCheck(schema)
  if ('problem' in check) return `unusable: ${check.problem}`
  const view = viewOf(jsonObject(args))
  assert.ok(view !== null)
  const misfit = check.run(view)
  return view.touched === null ? (misfit?.field ?? null) : `not exact ${view.touched}`
}

const usable = (schema: Json): boolean => !('problem' in serverCheck(schema))
const schemaOf = (text: string): Json => json(text)

const FITS: readonly (readonly [string, string, string, string | null])[] = [
  ['declared members', '{"type":"object","properties":{"a":{"type":"string"}}}', '{"a":"x"}', null],
  ['an undeclared member', '{"type":"object","properties":{"a":{}}}', '{"a":1,"b":2}', '/*'],
  ['no member declared', '{"type":"object"}', '{"b":2}', '/*'],
  ['no member declared and none sent', '{"type":"object"}', '{}', null],
  ['additionalProperties: true', '{"type":"object","additionalProperties":true}', '{"b":2}', null],
  [
    'additionalProperties: a schema',
    '{"properties":{"a":{}},"additionalProperties":{"type":"string"}}',
    '{"b":"x"}',
    null,
  ],
  [
    'additionalProperties: a schema that does not fit',
    '{"additionalProperties":{"type":"string"}}',
    '{"b":1}',
    '/*',
  ],
  ['patternProperties', '{"patternProperties":{"^x_":{}}}', '{"x_a":1}', null],
  ['a member beside patternProperties', '{"patternProperties":{"^x_":{}}}', '{"y":1}', '/*'],
  [
    'members declared under allOf',
    '{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]}',
    '{"a":1,"b":1}',
    null,
  ],
  [
    'an undeclared member under allOf',
    '{"allOf":[{"properties":{"a":{}}}]}',
    '{"a":1,"c":1}',
    '/*',
  ],
  [
    'members declared behind $ref',
    '{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}}}}}',
    '{"a":1}',
    null,
  ],
  [
    'an undeclared member behind $ref',
    '{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}}}}}',
    '{"b":1}',
    '/*',
  ],
  [
    'an undeclared member further down',
    '{"properties":{"o":{"properties":{"a":{}}}}}',
    '{"o":{"a":1,"b":1}}',
    '/o/*',
  ],
  [
    'an undeclared member in a list',
    '{"properties":{"l":{"items":{"properties":{"a":{}}}}}}',
    '{"l":[{"a":1},{"b":1}]}',
    '/l/1/*',
  ],
  [
    'a free object further down',
    '{"properties":{"o":{"type":"object"}}}',
    '{"o":{"anything":1}}',
    null,
  ],
  [
    'a member that must not be, under not',
    '{"properties":{"o":{"not":{"properties":{"a":{"type":"string"}},"required":["a"]}}}}',
    '{"o":{"a":"x","b":1}}',
    '/o',
  ],
  [
    'draft 7',
    '{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"type":"string"}]}}}',
    '{"a":[1]}',
    '/a/0',
  ],
  [
    'draft 7, undeclared',
    '{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"x":{"properties":{"a":{}}}},"$ref":"#/definitions/x"}',
    '{"b":1}',
    '/*',
  ],
  [
    'a required member named constructor',
    '{"required":["constructor"],"properties":{"constructor":{}}}',
    '{}',
    '/constructor',
  ],
  [
    'a required member named toString',
    '{"required":["toString"],"properties":{"toString":{}}}',
    '{}',
    '/toString',
  ],
  ['an object in an enum', '{"properties":{"a":{"enum":[{"x":1},[2]]}}}', '{"a":{"x":1}}', null],
  [
    'an object that is not in an enum',
    '{"properties":{"a":{"enum":[{"x":1},[2]]}}}',
    '{"a":{"x":2}}',
    '/a',
  ],
  [
    'a constant that has a member valueOf',
    '{"properties":{"a":{"const":{"valueOf":1}}}}',
    '{"a":{"valueOf":1}}',
    null,
  ],
  [
    'equal items',
    '{"properties":{"a":{"uniqueItems":true}}}',
    '{"a":[{"x":1,"y":2},{"y":2,"x":1}]}',
    '/a',
  ],
  [
    'different items',
    '{"properties":{"a":{"uniqueItems":true}}}',
    '{"a":[1,"1",[1],{"x":1}]}',
    null,
  ],
  ['lengths in code points', '{"properties":{"a":{"maxLength":2}}}', '{"a":"😀😀"}', null],
  ['a pattern', '{"properties":{"a":{"pattern":"^[a-z]+$"}}}', '{"a":"abc"}', null],
  [
    'a pattern with a code point escape',
    '{"properties":{"a":{"pattern":"^\\\\u0061$"}}}',
    '{"a":"a"}',
    null,
  ],
  [
    'a pattern that does not match',
    '{"properties":{"a":{"pattern":"^[a-z]+$"}}}',
    '{"a":"a1"}',
    '/a',
  ],
  [
    '1e3 for an integer',
    '{"properties":{"a":{"type":"integer","maximum":1000}}}',
    '{"a":1e3}',
    null,
  ],
  ['1e3 above 100', '{"properties":{"a":{"type":"number","maximum":100}}}', '{"a":1e3}', '/a'],
  ['100.0', '{"properties":{"a":{"type":"number","maximum":100}}}', '{"a":100.0}', null],
  ['-0', '{"properties":{"a":{"minimum":0}}}', '{"a":-0}', null],
  ['0.10', '{"properties":{"a":{"enum":[0.1]}}}', '{"a":0.10}', null],
  [
    'an int64 bound of the server',
    '{"properties":{"a":{"type":"integer","maximum":9223372036854775807}}}',
    '{"a":5}',
    null,
  ],
  [
    'a number that is not exact',
    '{"properties":{"a":{"type":"number","maximum":100}}}',
    '{"a":100.0000000000000001}',
    'not exact /a',
  ],
  [
    'a large integer',
    '{"properties":{"a":{"enum":[9007199254740992]}}}',
    '{"a":9007199254740993}',
    'not exact /a',
  ],
  ['a large integer that nothing reads', '{"properties":{"a":{}}}', '{"a":9007199254740993}', null],
  [
    'a large integer in a list that is read',
    '{"properties":{"a":{"uniqueItems":true}}}',
    '{"a":[1,9007199254740993]}',
    'not exact /a/1',
  ],
  [
    'recursion',
    '{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/n"}}}}}',
    '{"n":{"v":1,"next":{"v":2,"next":{"v":"x"}}}}',
    '/n/next/next/v',
  ],
  [
    'recursion through two names',
    '{"$defs":{"f":{"anyOf":[{"properties":{"and":{"items":{"$ref":"#/$defs/f"}}},"required":["and"]},{"properties":{"or":{"items":{"$ref":"#/$defs/f"}}},"required":["or"]},{"properties":{"eq":{"type":"string"}},"required":["eq"]}]}},"properties":{"where":{"$ref":"#/$defs/f"}}}',
    '{"where":{"and":[{"or":[{"eq":"x"}]},{"eq":"y"}]}}',
    null,
  ],
  [
    'an unknown keyword',
    '{"properties":{"a":{"x-ui":1,"nullable":true,"type":"string"}}}',
    '{"a":null}',
    '/a',
  ],
  [
    'an unknown format',
    '{"properties":{"a":{"type":"string","format":"made-up"}}}',
    '{"a":"x"}',
    null,
  ],
]

for (const [name, schema, args, wanted] of FITS) {
  test(`${name}: ${wanted ?? 'fits'}`, () => {
    assert.equal(field(schemaOf(schema), args), wanted)
  })
}

const nested = (depth: number): Json => {
  let schema: Json = object({ type: 'object' })
  for (let at = 0; at < depth; at++) schema = object({ allOf: [schema] })
  return schema
}

/** A small text whose work doubles at each level. */
const bomb = (levels: number): Json => {
  const defs: Record<string, Json> = { d0: object({ type: 'object' }) }
  for (let at = 1; at <= levels; at++) {
    const ref = object({ $ref: `#/$defs/d${at - 1}` })
    defs[`d${at}`] = object({ anyOf: [ref, ref] })
  }
  return object({ $defs: object(defs), $ref: `#/$defs/d${levels}` })
}

const HOSTILE: readonly (readonly [string, Json])[] = [
  ['no object', null],
  ['a list', []],
  ['200 levels of allOf', nested(200)],
  ['work that doubles 28 times', bomb(28)],
  ['a reference that leads nowhere', schemaOf('{"$ref":"#/$defs/nope"}')],
  ['a reference to the network', schemaOf('{"$ref":"http://127.0.0.1:9/s.json"}')],
  ['a reference to a file', schemaOf('{"properties":{"a":{"$ref":"file:///etc/passwd"}}}')],
  ['a reference to a text', schemaOf('{"description":"x","$ref":"#/description"}')],
  ['a reference to itself', schemaOf('{"$ref":"#"}')],
  [
    'references in a circle',
    schemaOf('{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}'),
  ],
  [
    'recursion that branches',
    schemaOf('{"properties":{"n":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}'),
  ],
  [
    'recursion that branches by a pattern',
    schemaOf('{"properties":{"n":{"$ref":"#"}},"additionalProperties":{"$ref":"#"}}'),
  ],
  [
    'recursion at two depths',
    schemaOf('{"properties":{"n":{"$ref":"#","properties":{"n":{"$ref":"#"}}}}}'),
  ],
  ['an unknown dialect', schemaOf('{"$schema":"https://example.test/my-schema"}')],
  ['draft 4', schemaOf('{"$schema":"http://json-schema.org/draft-04/schema#"}')],
  ['a dynamic reference', schemaOf('{"$dynamicRef":"#x"}')],
  ['an id further down', schemaOf('{"properties":{"a":{"$id":"http://x.test/y"}}}')],
  ['look-ahead in a pattern', schemaOf('{"properties":{"a":{"pattern":"(?=a)b"}}}')],
  ['a back-reference in a pattern', schemaOf('{"properties":{"a":{"pattern":"(a)\\\\1"}}}')],
  ['look-ahead in a name', schemaOf('{"patternProperties":{"(?!a)b":{}}}')],
  [
    'a pattern that is too large',
    schemaOf(`{"properties":{"a":{"pattern":"${'(abc|d){100}'.repeat(40)}"}}}`),
  ],
  ['properties that are no map', schemaOf('{"properties":5}')],
  ['a property that is no schema', schemaOf('{"properties":{"a":5}}')],
  ['required that is no list', schemaOf('{"required":"a"}')],
  ['a type that does not exist', schemaOf('{"type":"objekt"}')],
  ['a length that is no count', schemaOf('{"properties":{"a":{"maxLength":-1}}}')],
  ['multipleOf 0', schemaOf('{"properties":{"a":{"multipleOf":0}}}')],
  ['an empty enum', schemaOf('{"properties":{"a":{"enum":[]}}}')],
  ['too many schemas', object({ allOf: Array.from({ length: 6_000 }, () => object({})) })],
]

for (const [name, schema] of HOSTILE) {
  test(`a server's schema with ${name} cannot be used, and is refused within a second`, () => {
    const started = performance.now()
    assert.ok(!usable(schema))
    assert.ok(performance.now() - started < roomy(1_000))
  })
}

test('a pattern with catastrophic backtracking is usable and quick', () => {
  const schema = schemaOf('{"properties":{"a":{"pattern":"^(a+)+$"}}}')
  const started = performance.now()
  assert.equal(field(schema, JSON.stringify({ a: `${'a'.repeat(100_000)}b` })), '/a')
  assert.ok(performance.now() - started < roomy(1_000))
})

test('arguments that would be too much work for their schema do not fit, and are told so at once', () => {
  const rules = Array.from({ length: 2_000 }, (_, at) =>
    object({ not: object({ const: `x${at}` }) }),
  )
  const schema = object({ properties: object({ a: object({ items: object({ allOf: rules }) }) }) })
  const many = JSON.stringify({ a: Array.from({ length: 50_000 }, () => 1) })
  const started = performance.now()
  assert.equal(field(schema, many), '')
  assert.ok(performance.now() - started < roomy(1_000))
  assert.equal(field(schema, '{"a":[1,2]}'), null)
})

test('200,000 objects that must be unique are compared in linear time', () => {
  const schema = schemaOf('{"properties":{"a":{"uniqueItems":true}}}')
  const args = JSON.stringify({ a: Array.from({ length: 60_000 }, (_, at) => ({ x: at })) })
  const started = performance.now()
  assert.equal(field(schema, args), null)
  assert.ok(performance.now() - started < roomy(1_500))
})

test('equal ids of two schemas never meet', () => {
  const one = schemaOf('{"$id":"http://x.test/s","properties":{"a":{"type":"string"}}}')
  const two = schemaOf('{"$id":"http://x.test/s","properties":{"a":{"type":"number"}}}')
  assert.equal(field(one, '{"a":"x"}'), null)
  assert.equal(field(two, '{"a":"x"}'), '/a')
  assert.equal(field(one, '{"a":"x"}'), null)
})

test('a name that only the agent knows is written * in the field', () => {
  const schema = schemaOf('{"additionalProperties":{"properties":{"known":{"type":"string"}}}}')
  assert.equal(field(schema, '{"my secret":{"known":1}}'), '/*/known')
})

test('the view of arguments without source-kept numbers is the arguments themselves', () => {
  const args = jsonObject('{"a":[1,{"b":2.5}]}')
  assert.equal(viewOf(args)?.value, args)
  const exact = jsonObject('{"a":[1,{"b":9007199254740993}],"c":1.50}')
  const view = viewOf(exact)
  assert.ok(view !== null && view.value !== exact)
  assert.equal(view.value['c'], 1.5)
  assert.equal(view.touched, null)
  const [, second] = view.value['a'] as readonly Json[]
  assert.ok(isObject(second))
  assert.ok(Number.isNaN(second['b']))
  assert.equal(view.touched, '/a/1/b')
  assert.equal(canonical(exact), '{"a":[1,{"b":9007199254740993}],"c":1.50}', 'what is sent stays')
})

test('a number written with a million digits is not compared digit by digit', () => {
  const started = performance.now()
  const args = jsonObject(`{"a":1.${'0'.repeat(1_000_000)}1,"b":1${'0'.repeat(200)}1.0}`)
  const view = viewOf(args)
  assert.ok(view !== null && Number.isNaN(view.value['a']))
  assert.ok(performance.now() - started < roomy(1_000))
})
