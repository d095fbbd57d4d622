// Versions that are not known, malformed or missing are refused as each era has it, and negotiable clients are not.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Answered, Headers } from './http-wire.ts'
import { startGate } from './harness.ts'
import { type Bag, META26, type Message, request } from './wire.ts'

const PROTOCOL = 'io.modelcontextprotocol/'
const CALL: Bag = { name: 'echo', arguments: { text: 'x' } }
const messageOf = ({ text }: Answered): Message => JSON.parse(text) as Message
const LEGACY = ['2025-11-25', '2025-06-18', '2025-03-26']

test('legacy: a header with a version that nobody speaks is 400, and none at all is served', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'legacy' })
  const body = JSON.stringify(request('legacy', 1, 'tools/call', CALL))
  const called = (version: string | undefined): Promise<Answered> =>
    gate.http.exchange({ body, headers: { 'mcp-protocol-version': version } })
  for (const version of [
    '1999-01-01',
    '2025-11-25 x',
    'D\u00e9j\u00e0',
    '2025-11-2',
    'x'.repeat(100),
    '',
  ]) {
    const answer = await called(version)
    assert.equal(answer.status, 400, JSON.stringify(version))
    assert.notEqual(messageOf(answer).error, undefined)
  }
  for (const version of [undefined, '2025-11-25']) {
    assert.equal((await called(version)).status, 200, version)
  }
  const calls = gate.trace().filter(({ method }) => method === 'tools/call')
  assert.equal(calls.length, 2)
})

test('modern: a version that is not served is -32022 with those that are, and an envelope must be whole', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  const sent = (meta: Bag, version: string): Promise<Answered> =>
    gate.http.exchange({
      headers: { 'mcp-protocol-version': version },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { ...CALL, _meta: meta },
      }),
    })
  for (const version of ['2027-01-01', '2099-12-31', 'draft']) {
    const answer = await sent({ ...META26, [`${PROTOCOL}protocolVersion`]: version }, version)
    assert.equal(answer.status, 400, version)
    const { code, data } = messageOf(answer).error ?? {}
    assert.equal(code, -32022, version)
    assert.ok((data?.['supported'] as string[]).includes('2026-07-28'))
    assert.equal(data?.['requested'], version)
  }
  const { [`${PROTOCOL}clientCapabilities`]: _none, ...bare } = META26
  for (const meta of [bare, { ...bare, [`${PROTOCOL}clientCapabilities`]: [] }]) {
    const answer = await sent(meta, '2026-07-28')
    assert.equal(answer.status, 400)
    assert.equal(messageOf(answer).error?.code, -32602)
  }
  const { [`${PROTOCOL}clientInfo`]: _nobody, ...nameless } = META26
  assert.equal((await sent(nameless, '2026-07-28')).status, 200)
  assert.equal(gate.trace().filter(({ method }) => method === 'tools/call').length, 1)
})

test('initialize is answered with a version that is served, whatever is asked for', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'legacy', handshake: false })
  for (const version of ['2099-01-01', '1999-01-01', '2026-07-28', 'x', ...LEGACY]) {
    const client = gate.client()
    const answer = await client.request('initialize', {
      protocolVersion: version,
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    })
    const agreed = LEGACY.includes(version) ? version : '2025-11-25'
    assert.equal(answer.result?.['protocolVersion'], agreed, version)
    assert.equal((await client.request('ping')).error, undefined)
  }
  for (const version of [5, null, undefined, ['2025-11-25']]) {
    const answer = await gate.client().request('initialize', {
      protocolVersion: version,
      capabilities: {},
      clientInfo: { name: 't', version: '1' },
    })
    assert.equal(answer.error?.code, -32602, JSON.stringify(version))
  }
})

test('every order and weight of Accept that includes what is sent is served', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  const body = JSON.stringify(request('modern', 1, 'tools/call', CALL))
  const status = async (headers: Headers): Promise<number> =>
    (await gate.http.exchange({ body, headers })).status
  for (const accept of [
    'text/event-stream, application/json',
    'application/json;q=0.5, text/event-stream;q=0.9',
    'text/event-stream;q=0.1,application/json;q=1.0',
    '*/*',
    'Application/JSON, Text/Event-Stream',
    'application/*, text/*;q=0.8',
    'text/html, */*;q=0.1',
    undefined,
  ]) {
    assert.equal(await status({ accept }), 200, accept)
  }
  for (const accept of ['text/html', 'application/xml, text/plain']) {
    assert.equal(await status({ accept }), 406, accept)
  }
})
