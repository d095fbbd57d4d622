import assert from 'node:assert/strict'
import { test } from 'node:test'

import { array, assert as check, constant, json, oneof, property, string } from 'fast-check'

import { parseText, REQUEST_LIMITS } from '../../../src/json.ts'
import { type Line, readLine, readMessage } from '../../../src/mcp/wire/message.ts'

const read = (line: string): Line => readLine(Buffer.from(line), REQUEST_LIMITS)

/** What is told of a malformed line: its code, problem and id. */
function refusal(line: string): unknown {
  const message = read(line)
  assert.equal(message.kind, 'malformed', line)
  return message.kind === 'malformed' && [message.rpc, message.problem, message.id]
}

test('a request keeps its id with its type', () => {
  for (const id of ['1', '"1"', '0', '""', '-1', '9007199254740991', '"__proto__"', '"é"']) {
    const message = read(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`)
    assert.equal(message.kind, 'request')
    assert.equal(message.kind === 'request' && JSON.stringify(message.id), id)
  }
})

test('an id that could not come back as it was is refused with id null', () => {
  const bad = ['null', '1.5', '1.0', '1e2', '-0', '9007199254740992', '{}', '[1]', 'true']
  for (const id of [...bad, JSON.stringify('i'.repeat(257)), JSON.stringify('é'.repeat(129))]) {
    assert.deepEqual(refusal(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`), [-32600, 'id', null])
  }
  assert.equal(read(`{"jsonrpc":"2.0","id":"${'i'.repeat(256)}","method":"ping"}`).kind, 'request')
})

test('what is no JSON is a parse error, what other readers would take is an invalid request', () => {
  const parse = ['', '{', '{"jsonrpc":"2.0",}', "{'a':1}", 'NaN', '\ufeff{}', '{} {}', '{"a":01}']
  for (const line of parse) assert.deepEqual(refusal(line), [-32700, 'syntax', null], line)
  const bytes = Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])
  assert.equal(readLine(bytes, REQUEST_LIMITS).kind, 'malformed')
  const invalid = [
    ['{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 'duplicate_key'],
    [
      '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"name":1,"n\\u0061me":2}}',
      'duplicate_key',
    ],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"__proto__":{}}}', 'proto_key'],
    ['{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', 'surrogate'],
    ['{"jsonrpc":"2.0","id":1,"method":"ping","params":{"n":1e400}}', 'number_range'],
    [`${'['.repeat(65)}${']'.repeat(65)}`, 'too_deep'],
  ] as const
  for (const [line, problem] of invalid) assert.deepEqual(refusal(line), [-32600, problem, null])
})

test('members are matched exactly and none may be added', () => {
  const lines = [
    '{"jsonrpc":"2.0","id":7,"method":"ping","extra":1}',
    '{"jsonrpc":"2.0","id":7,"method":"ping","Params":{}}',
    '{"jsonrpc":"2.0","id":7,"method":"ping","result":{}}',
    '{"jsonrpc":"2.0","id":7,"method":"ping","ID":8}',
  ]
  for (const line of lines) assert.deepEqual(refusal(line), [-32600, 'member', 7], line)
  assert.deepEqual(refusal('{"jsonrpc":"2.0","id":7,"Method":"ping"}'), [-32600, 'method', 7])
  assert.deepEqual(refusal('{"JSONRPC":"2.0","id":7,"method":"ping"}'), [-32600, 'version', 7])
})

test('the version is the text 2.0 and nothing else', () => {
  for (const version of ['"1.0"', '2.0', '2', 'null', '"2.0 "', '["2.0"]']) {
    const line = `{"jsonrpc":${version},"id":7,"method":"ping"}`
    assert.deepEqual(refusal(line), [-32600, 'version', 7])
  }
  assert.deepEqual(refusal('{"id":7,"method":"ping"}'), [-32600, 'version', 7])
})

test('params that are no object are refused, and told only to who asked with an id', () => {
  for (const params of ['[]', 'null', '"x"', '5', 'true', '1.0']) {
    const line = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`
    assert.deepEqual(refusal(line), [-32602, 'params', 7])
    const silent = read(`{"jsonrpc":"2.0","method":"notifications/x","params":${params}}`)
    assert.equal(silent.kind === 'malformed' && silent.told, false)
  }
})

test('a response is taken for what it is and answers nothing', () => {
  assert.equal(read('{"jsonrpc":"2.0","id":4711,"result":{}}').kind, 'response')
  assert.equal(
    read('{"jsonrpc":"2.0","id":4711,"error":{"code":1,"message":"x"}}').kind,
    'response',
  )
  const odd = read('{"jsonrpc":"2.0","id":4711,"result":{},"extra":1}')
  assert.equal(odd.kind === 'malformed' && odd.told, false)
})

test('an array is a batch, whatever it holds', () => {
  assert.deepEqual(read('[]'), { kind: 'batch', elements: [] })
  assert.equal(read('[1,{"jsonrpc":"2.0","id":1,"method":"ping"}]').kind, 'batch')
})

test('no JSON value crashes the reader, and only what is whole is a request', () => {
  const version = constant('2.0')
  const member = oneof(version, string(), constant(1), constant(null), array(constant(0)))
  check(
    property(json(), member, member, (text, first, second) => {
      const parsed = parseText(text, REQUEST_LIMITS)
      if (parsed.kind === 'json') readMessage(parsed.value)
      const made = JSON.stringify({ jsonrpc: first, id: second, method: second, params: first })
      const message = read(made)
      const whole = first === '2.0' && typeof second === 'string' && message.kind === 'request'
      assert.ok(message.kind === 'malformed' || whole, made)
    }),
    { numRuns: 500 },
  )
})
