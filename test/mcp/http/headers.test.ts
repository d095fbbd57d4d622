// Headers of one request against its body, read as the revision says.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import { type JsonObject, parseText, REQUEST_LIMITS } from '../../../src/json.ts'
import {
  decodeValue,
  eraOf,
  HEADER_MISMATCH,
  type Headers,
  hopOf,
  ladder,
  readHeaders,
} from '../../../src/mcp/http/headers.ts'

const META = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }

const json = (value: unknown): JsonObject => {
  const parsed = parseText(
    typeof value === 'string' ? value : JSON.stringify(value),
    REQUEST_LIMITS,
  )
  assert.ok(parsed.kind === 'json')
  return parsed.value as JsonObject
}

const headersOf = (pairs: Readonly<Record<string, string>>): Headers =>
  readHeaders(Object.entries(pairs).flat())

const sentinel = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`

const problem = (
  pairs: Readonly<Record<string, string>>,
  method: string,
  params: unknown,
): number | null =>
  ladder(headersOf(pairs), { method, params: params === null ? null : json(params) })?.rpc ?? null

const GOOD = {
  'MCP-Protocol-Version': '2026-07-28',
  'Mcp-Method': 'tools/call',
  'Mcp-Name': 'echo',
}
const CALL = { name: 'echo', _meta: META }

test('headers that say what the body says pass, whatever the case of their names', () => {
  assert.equal(problem(GOOD, 'tools/call', CALL), null)
  const shouted = Object.fromEntries(Object.entries(GOOD).map(([k, v]) => [k.toUpperCase(), v]))
  assert.equal(problem(shouted, 'tools/call', CALL), null)
})

for (const [what, pairs, params] of [
  ['a version header other than the envelope', { 'MCP-Protocol-Version': '2025-11-25' }, CALL],
  ['a method header in another case', { 'Mcp-Method': 'Tools/Call' }, CALL],
  ['the method of another request', { 'Mcp-Method': 'tools/list' }, CALL],
  ['another name', { 'Mcp-Name': 'Echo' }, CALL],
  [
    'a name with characters that no header can carry',
    { 'Mcp-Name': 'ech\u00e9' },
    { ...CALL, name: 'eché' },
  ],
  ['base64 without its padding', { 'Mcp-Name': '=?base64?ZWNobw?=' }, CALL],
  ['base64 with loose bits at its end', { 'Mcp-Name': '=?base64?ZWNobx==?=' }, CALL],
  ['base64 that is not UTF-8', { 'Mcp-Name': '=?base64?/w==?=' }, CALL],
] as const) {
  test(`${what} is a mismatch`, () => {
    assert.equal(problem({ ...GOOD, ...pairs }, 'tools/call', params), HEADER_MISMATCH)
  })
}

for (const name of ['MCP-Protocol-Version', 'Mcp-Method', 'Mcp-Name']) {
  test(`a request without ${name} is a mismatch`, () => {
    const pairs = Object.fromEntries(Object.entries(GOOD).filter(([key]) => key !== name))
    assert.equal(problem(pairs, 'tools/call', CALL), HEADER_MISMATCH)
  })
  test(`a request with ${name} twice is a mismatch, even when both say the same`, () => {
    const value = GOOD[name as keyof typeof GOOD]
    const headers = readHeaders([...Object.entries(GOOD).flat(), name.toLowerCase(), value])
    assert.equal(
      ladder(headers, { method: 'tools/call', params: json(CALL) })?.rpc,
      HEADER_MISMATCH,
    )
  })
}

test('a parameter twice is a mismatch, though both together are the argument', () => {
  const twice = ['Mcp-Param-Region', 'eu', 'Mcp-Param-Region', 'us']
  const headers = readHeaders([...Object.entries(GOOD).flat(), ...twice])
  const call = { ...CALL, arguments: { region: 'eu, us' } }
  assert.equal(ladder(headers, { method: 'tools/call', params: json(call) })?.rpc, HEADER_MISMATCH)
})

test('a name in a sentinel is compared as what it holds, and a name that looks like one must be in one', () => {
  const call = (name: string, header: string): number | null =>
    problem({ ...GOOD, 'Mcp-Name': header }, 'tools/call', { ...CALL, name })
  assert.equal(call('ação', sentinel('ação')), null)
  assert.equal(call(' echo ', sentinel(' echo ')), null)
  assert.equal(call(sentinel('echo'), sentinel('echo')), HEADER_MISMATCH)
  assert.equal(call(sentinel('echo'), sentinel(sentinel('echo'))), null)
  assert.equal(call('=?base64?ZWNobw==', '=?base64?ZWNobw=='), null)
})

test('resources and tasks are named by their uri and id', () => {
  const pairs = { ...GOOD, 'Mcp-Method': 'resources/read', 'Mcp-Name': 'a://b' }
  assert.equal(problem(pairs, 'resources/read', { uri: 'a://b', _meta: META }), null)
  assert.equal(problem(pairs, 'resources/read', { uri: 'a://c', _meta: META }), HEADER_MISMATCH)
  const task = { ...GOOD, 'Mcp-Method': 'tasks/get', 'Mcp-Name': 't1' }
  assert.equal(problem(task, 'tasks/get', { taskId: 't1', _meta: META }), null)
  assert.equal(problem(task, 'tasks/get', { taskId: 't2', _meta: META }), HEADER_MISMATCH)
})

test('a handshake under a modern header is a mismatch; any other request without envelope is left to its reader', () => {
  assert.equal(problem(GOOD, 'initialize', { protocolVersion: '2025-11-25' }), HEADER_MISMATCH)
  assert.equal(problem({ 'MCP-Protocol-Version': '2026-07-28' }, 'tools/list', {}), null)
  assert.equal(problem({ 'MCP-Protocol-Version': 'v999' }, 'tools/list', {}), -32022)
})

test('an envelope or a header of its own makes a message modern', () => {
  const none = headersOf({})
  assert.equal(eraOf(none, json({ _meta: META })), 'modern')
  assert.equal(eraOf(none, null), 'legacy')
  assert.equal(eraOf(headersOf({ 'mcp-protocol-version': '2025-06-18' }), null), 'legacy')
  assert.equal(eraOf(headersOf({ 'mcp-protocol-version': '2026-07-28' }), null), 'modern')
  assert.equal(eraOf(headersOf({ 'mcp-protocol-version': 'v999' }), null), 'modern')
})

test('every text survives its sentinel, and every plain value is itself', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      assert.equal(decodeValue(sentinel(text)), text)
    }),
  )
  fc.assert(
    fc.property(fc.stringMatching(/^[ -~]{0,40}$/), (text) => {
      fc.pre(!(text.startsWith('=?base64?') && text.endsWith('?=')))
      assert.equal(decodeValue(text), text)
    }),
  )
})

const SCHEMA = json({
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    count: { type: 'integer', 'x-mcp-header': 'Count' },
    dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    ratio: { type: 'number', 'x-mcp-header': 'Ratio' },
    deep: { type: 'object', properties: { id: { type: 'string', 'x-mcp-header': 'Deep-Id' } } },
    list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'Item' } },
    either: { oneOf: [{ type: 'string', 'x-mcp-header': 'Either' }] },
    odd: { type: 'string', 'x-mcp-header': 'not a token' },
  },
})

const params = (pairs: Readonly<Record<string, string>>, args: unknown): string | null =>
  hopOf(headersOf(pairs)).checkParams(SCHEMA, json(args))

test('mirrored arguments must be mirrored, and only they', () => {
  assert.equal(params({ 'Mcp-Param-Region': 'eu' }, { region: 'eu' }), null)
  assert.match(params({}, { region: 'eu' }) ?? '', /Mcp-Param-Region is missing/)
  assert.match(params({ 'mcp-param-region': 'us' }, { region: 'eu' }) ?? '', /is not the argument/)
  assert.match(params({ 'Mcp-Param-Region': 'eu' }, {}) ?? '', /not there/)
  assert.match(params({ 'Mcp-Param-Region': 'eu' }, { region: null }) ?? '', /not there/)
  assert.equal(params({}, { region: null }), null)
  assert.equal(params({ 'Mcp-Param-Deep-Id': 'x' }, { deep: { id: 'x' } }), null)
  assert.match(params({}, { deep: { id: 'x' } }) ?? '', /Deep-Id is missing/)
})

test('integers are compared as numbers, booleans as their names, texts through their sentinel', () => {
  assert.equal(params({ 'Mcp-Param-Count': '42' }, { count: 42 }), null)
  assert.equal(params({ 'Mcp-Param-Count': '42.0' }, { count: 42 }), null)
  assert.equal(params({ 'Mcp-Param-Count': '42' }, '{"count":42.0}'), null)
  assert.match(params({ 'Mcp-Param-Count': '0x2a' }, { count: 42 }) ?? '', /is not/)
  assert.match(
    params({ 'Mcp-Param-Count': '9007199254740993' }, '{"count":9007199254740993}') ?? '',
    /is not/,
  )
  assert.equal(params({ 'Mcp-Param-Dry': 'false' }, { dry: false }), null)
  assert.match(params({ 'Mcp-Param-Dry': 'False' }, { dry: false }) ?? '', /is not/)
  assert.equal(params({ 'Mcp-Param-Region': sentinel('ü') }, { region: 'ü' }), null)
  assert.match(
    params({ 'Mcp-Param-Region': '=?base64?!!?=' }, { region: 'ü' }) ?? '',
    /cannot be read/,
  )
})

test('annotations that are not valid mirror nothing', () => {
  const args = { ratio: 0.5, list: ['a'], either: 'b', odd: 'c' }
  assert.equal(params({}, args), null)
})

test('headers that the schema does not name are passed on, those that it names are not', () => {
  const hop = hopOf(headersOf({ 'Mcp-Param-Region': 'eu', 'Mcp-Param-Other': 'x', 'X-Y': 'z' }))
  assert.deepEqual(hop.otherParams(SCHEMA), { 'mcp-param-other': 'x' })
  assert.deepEqual(hopOf(headersOf({})).otherParams(SCHEMA), {})
})
