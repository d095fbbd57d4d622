import assert from 'node:assert/strict'
import { test } from 'node:test'

import { mirrorsIn } from '../../../src/mcp/wire/mirrors.ts'
import { encoded, headersOf } from '../../../src/mcp/upstream-http/headers.ts'
import { json } from '../upstream/rig.ts'

const META = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }
const NONE = { mirrors: [], passed: {} }

for (const [text, header] of [
  ['read_file', 'read_file'],
  ['a b', 'a b'],
  ['', ''],
  [' a', '=?base64?IGE=?='],
  ['a\t', '=?base64?YQk=?='],
  ['a\nb', '=?base64?YQpi?='],
  ['naïve', '=?base64?bmHDr3Zl?='],
  ['=?base64?YQ==?=', '=?base64?PT9iYXNlNjQ/WVE9PT89?='],
  ['=?base64?', '=?base64?'],
] as const) {
  test(`${JSON.stringify(text)} is the header value ${header}`, () => {
    assert.equal(encoded(text), header)
  })
}

test('the headers of a request are those of its body', () => {
  const of = (method: string, params: object): object =>
    headersOf(method, json({ ...params, ...META }), NONE)
  const version = { 'MCP-Protocol-Version': '2026-07-28' }
  assert.deepEqual(of('tools/list', { name: 'x' }), { 'Mcp-Method': 'tools/list', ...version })
  assert.deepEqual(of('prompts/get', { name: 'p' }), {
    'Mcp-Method': 'prompts/get',
    ...version,
    'Mcp-Name': 'p',
  })
  assert.deepEqual(of('resources/read', { uri: 'a://ü' }), {
    'Mcp-Method': 'resources/read',
    ...version,
    'Mcp-Name': '=?base64?YTovL8O8?=',
  })
  assert.deepEqual(of('tasks/cancel', { taskId: 't1' }), {
    'Mcp-Method': 'tasks/cancel',
    ...version,
    'Mcp-Name': 't1',
  })
})

test('arguments are mirrored from the body, and a header of the client never replaces one', () => {
  const { mirrors, problem } = mirrorsIn(
    json({
      type: 'object',
      properties: {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        n: { type: 'integer', 'x-mcp-header': 'N' },
        dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
        gone: { type: 'string', 'x-mcp-header': 'Gone' },
        deep: { type: 'object', properties: { a: { type: 'string', 'x-mcp-header': 'Deep-A' } } },
      },
    }),
  )
  assert.equal(problem, null)
  const args = { region: 'São', n: 7, dry: false, gone: null, deep: { a: 'x' } }
  const made = headersOf('tools/call', json({ name: 't', arguments: args, ...META }), {
    mirrors,
    passed: {
      'mcp-param-region': 'forged',
      'mcp-param-gone': 'forged',
      'mcp-param-other': 'kept',
      'mcp-param-split': 'a\r\nX: y',
      authorization: 'Bearer x',
    },
  })
  assert.deepEqual(made, {
    'Mcp-Method': 'tools/call',
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Name': 't',
    'Mcp-Param-Region': '=?base64?U8Ojbw==?=',
    'Mcp-Param-N': '7',
    'Mcp-Param-Dry': 'false',
    'Mcp-Param-Deep-A': 'x',
    'mcp-param-other': 'kept',
  })
})

for (const [name, schema] of [
  [
    'under items',
    { properties: { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } } },
  ],
  ['under oneOf', { oneOf: [{ properties: { a: { type: 'string', 'x-mcp-header': 'A' } } }] }],
  ['under $defs', { $defs: { a: { type: 'string', 'x-mcp-header': 'A' } } }],
  ['at the root', { type: 'object', 'x-mcp-header': 'A' }],
  ['on a number', { properties: { a: { type: 'number', 'x-mcp-header': 'A' } } }],
  ['on no type', { properties: { a: { 'x-mcp-header': 'A' } } }],
  ['on two types', { properties: { a: { type: ['string', 'null'], 'x-mcp-header': 'A' } } }],
  ['with a space', { properties: { a: { type: 'string', 'x-mcp-header': 'A b' } } }],
  ['with a line break', { properties: { a: { type: 'string', 'x-mcp-header': 'A\r\nX: y' } } }],
  ['empty', { properties: { a: { type: 'string', 'x-mcp-header': '' } } }],
  ['that is no text', { properties: { a: { type: 'string', 'x-mcp-header': 3 } } }],
  [
    'twice, in another case',
    {
      properties: {
        a: { type: 'string', 'x-mcp-header': 'A' },
        b: { type: 'string', 'x-mcp-header': 'a' },
      },
    },
  ],
] as const) {
  test(`an x-mcp-header ${name} makes a tool unusable over HTTP`, () => {
    assert.equal(typeof mirrorsIn(json(schema)).problem, 'string')
  })
}

test('a property that is only called x-mcp-header, and data that holds one, are no annotations', () => {
  assert.deepEqual(
    mirrorsIn(
      json({
        properties: {
          'x-mcp-header': { type: 'string' },
          b: { type: 'object', default: { 'x-mcp-header': 'A' } },
        },
      }),
    ),
    { mirrors: [], problem: null },
  )
})
