// The published schema: the file is the shape that the program checks, and ajv reads it the same way.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { Ajv2020 } from 'ajv/dist/2020.js'

import { read } from '../../src/policy/document.ts'
import { CONFIG_SHAPE, type Shape, VERSION_1_SHAPE } from '../../src/policy/schema.ts'
import { misfits } from '../../src/policy/shape.ts'

const oracle = (shape: Shape) =>
  new Ajv2020({ strict: true, strictTypes: false, allErrors: true }).compile(shape)

test('eclusa.schema.json is the shape that the program checks', () => {
  const text = readFileSync(new URL('../../eclusa.schema.json', import.meta.url), 'utf8')
  assert.deepEqual(JSON.parse(text), JSON.parse(JSON.stringify(CONFIG_SHAPE)))
})

const GOOD = {
  version: 2,
  upstreams: {
    notes: { command: ['node', 's.js'], env: { A: 'b' }, pass_env: ['P'], era: 'auto', call: '5m' },
  },
  tools: {
    'notes/w': {
      effect: 'write',
      key: { at: '/request_id', honoured: true },
      args: { type: 'object' },
    },
  },
  profiles: {
    reader: { allow: ['notes/r', 'notes/*', '*'], resources: ['notes://x/*'], token: 'required' },
    writer: {
      extends: 'reader',
      rules: [{ tool: 'notes/w', when: 'true', require: 'true', code: 'x', message: 'y' }],
      approve: { 'notes/w': 'none' },
      set: { 'notes/w': { a: { cel: '1' }, b: 2 } },
      client: { elicitation: true, roots: ['/proj'] },
    },
  },
  must_deny: [{ profile: 'reader', tool: 'notes/w', args: {} }],
  messages: { tool_denied: { code: 'NAO', message: 'no' }, busy: 'later' },
  pins: 'strict',
  state: { dir: '.x', create: false },
  audit: { min_free: '64MiB' },
  limits: { request: '4MiB', calls_at_once: 3 },
  drain: '5s',
}

/** Every document that differs from `GOOD` by one value, one missing or one unknown member. */
function* variants(value: unknown): Generator {
  yield* [null, true, 0, -1, 1.5, '', '*', 'notes/x', 'a'.repeat(400), [], {}, ['x'], { x: 1 }]
  if (Array.isArray(value)) {
    for (const [at, item] of value.entries()) {
      for (const one of variants(item)) yield value.with(at, one)
    }
  } else if (typeof value === 'object' && value !== null) {
    yield { ...value, surplus: 1 }
    for (const [key, member] of Object.entries(value)) {
      const { [key]: _gone, ...rest } = value as Record<string, unknown>
      yield rest
      for (const one of variants(member)) yield { ...value, [key]: one }
    }
  }
}

for (const [name, shape, good] of [
  ['version 2', CONFIG_SHAPE, GOOD],
  [
    'version 1',
    VERSION_1_SHAPE,
    { version: 1, allow: ['a'], deny: ['b'], arg_rules: { a: { f: { min_len: 1, max_len: 2 } } } },
  ],
] as const) {
  test(`the shape of ${name} is read as ajv reads it`, () => {
    const validate = oracle(shape)
    let refused = 0
    let count = 0
    for (const one of [good, ...variants(good)]) {
      const text = JSON.stringify(one)
      const document = read({ file: 'f', text })
      assert.ok('value' in document)
      const ours = misfits(document, shape).length === 0
      assert.equal(ours, validate(JSON.parse(text)), text)
      count++
      if (!ours) refused++
    }
    assert.ok(refused > 100 && refused < count, `${refused} of ${count} refused`)
  })
}
