// Headers that disagree with the body are refused, and policy and servers follow the body alone.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer } from '../servers/http-scripted.ts'
import { startFar } from './far.ts'
import { startGate } from './harness.ts'
import type { Headers } from './http-wire.ts'
import { plainTool, ran, received, serving } from './menu.ts'
import { type Bag, META26, type Message, request, textOf } from './wire.ts'

const up = serving({ tools: ['read_file', 'wipe'].map((name) => plainTool(name, `ran ${name}`)) })
const call = (name: string): string =>
  JSON.stringify(request('modern', 1, 'tools/call', { name, arguments: {} }))
const encoded = (text: string): string => `=?base64?${Buffer.from(text).toString('base64')}?=`
const HIDE = { 'mcp-name': undefined, 'mcp-method': undefined, 'mcp-protocol-version': undefined }

test('a header that contradicts the body is 400 and -32020, recorded, and nothing is sent', async (t) => {
  const gate = await startGate(t, {
    front: 'http',
    era: 'modern',
    upstreams: { up },
    allow: ['up/read_file'],
  })
  const begun = gate.audit().length
  const lies: readonly (readonly [Headers, string])[] = [
    [{ 'mcp-name': 'read_file' }, call('wipe')],
    [{ 'mcp-name': encoded('read_file') }, call('wipe')],
    [{ 'mcp-method': 'tools/list', 'mcp-name': undefined }, call('read_file')],
    [{ 'mcp-method': 'tools/list' }, call('read_file')],
    [{ 'mcp-method': 'TOOLS/CALL' }, call('read_file')],
    [{ 'mcp-protocol-version': '2025-11-25' }, call('read_file')],
    [{ 'mcp-protocol-version': undefined }, call('read_file')],
    [{ 'mcp-method': undefined }, call('read_file')],
    [{ 'mcp-name': undefined }, call('read_file')],
    [{ 'mcp-name': 'wipe' }, call('read_file')],
    [{ 'mcp-name': ['read_file', 'wipe'] }, call('read_file')],
    [{ 'mcp-name': '=?base64?cmVhZF9maWxl' }, call('read_file')],
    [{ 'mcp-name': '=?BASE64?cmVhZF9maWxl?=' }, call('read_file')],
  ]
  for (const [at, [headers, body]] of lies.entries()) {
    const answer = await gate.http.exchange({ headers, body })
    const what = JSON.stringify(headers)
    assert.equal(answer.status, 400, what)
    if (answer.text.startsWith('{')) {
      assert.equal((JSON.parse(answer.text) as Message).error?.code, -32020, what)
    }
    const fresh = gate.audit().slice(begun)
    assert.equal(fresh.length, at + 1, what)
    assert.deepEqual(
      [fresh.at(-1)?.kind, fresh.at(-1)?.outcome],
      ['malformed', 'not_executed'],
      what,
    )
  }
  assert.deepEqual(received(gate, 'tools/call'), [])
  // What is decided is the body: its headers are right, and it is still denied.
  const denied = await gate.call('wipe')
  assert.equal(denied.error?.message, 'tool denied: wipe')
  assert.deepEqual(ran(gate), [])
})

test('an encoded name and other spellings of header names are the same headers', async (t) => {
  const gate = await startGate(t, {
    front: 'http',
    era: 'modern',
    upstreams: { up },
    allow: ['up/read_file'],
  })
  for (const headers of [
    { 'mcp-name': encoded('read_file') },
    {
      ...HIDE,
      'MCP-NAME': 'read_file',
      'MCP-METHOD': 'tools/call',
      'MCP-PROTOCOL-VERSION': '2026-07-28',
    },
    {
      ...HIDE,
      'Mcp-Name': ' read_file ',
      'Mcp-Method': 'tools/call',
      'Mcp-Protocol-Version': '2026-07-28',
    },
  ]) {
    const answer = await gate.http.exchange({ headers, body: call('read_file') })
    assert.equal(answer.status, 200, answer.text)
    assert.equal(textOf(JSON.parse(answer.text) as Message), 'ran read_file')
  }
})

test('what is sent on bears headers of its own body, and none of the client', async (t) => {
  const server = await httpServer(t, { era: 'modern' })
  const gate = await startFar(
    t,
    { one: server.url, two: server.url },
    { front: 'http', era: 'modern' },
  )
  const meta: Bag = { ...META26, 'com.example/k': 1 }
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 'mine',
    method: 'tools/call',
    params: { name: 'one__echo', arguments: { text: 'x' }, _meta: meta },
  })
  const answer = await gate.http.exchange({
    body,
    headers: {
      'mcp-name': encoded('one__echo'),
      'mcp-param-later': 'y',
      'x-forwarded-for': '10.0.0.1',
      cookie: 'CANARY',
      authorization: undefined,
    },
  })
  assert.equal(textOf(JSON.parse(answer.text) as Message), 'x', answer.text)
  const [sent] = server.of('tools/call')
  assert.equal(sent?.headers['mcp-name'], 'echo')
  assert.equal(sent?.headers['mcp-method'], 'tools/call')
  assert.equal(sent?.headers['mcp-protocol-version'], '2026-07-28')
  // What stands between must pass on parameters that it does not know (MCP 2026-07-28).
  assert.equal(sent?.headers['mcp-param-later'], 'y')
  for (const name of ['x-forwarded-for', 'cookie', 'authorization', 'origin']) {
    assert.equal(sent?.headers[name], undefined, name)
  }
})
