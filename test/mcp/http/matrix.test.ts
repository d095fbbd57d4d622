// The rejection matrix of the protocol over HTTP: what comes in, and the status and code that it gets.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'

import { META26 } from '../front/desk.ts'
import { type Got, handshake, house, type House, JSON_HEADERS, modernHeaders } from './rig.ts'

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META26 } }

const expect = (got: Got, status: number, code: number | null): void => {
  assert.equal(got.status, status, got.text)
  assert.equal(got.message?.error?.code ?? null, code, got.text)
}

const row = (name: string, run: (house: House, t: TestContext) => Promise<void>): void =>
  void test(name, async (t) => run(await house(t), t))

row('a modern request with all its headers is served', async ({ modern }) => {
  const got = await modern('tools/list')
  expect(got, 200, null)
  assert.equal(got.headers.get('content-type'), 'application/json')
  assert.equal(got.message?.result?.['resultType'], 'complete')
})

row('a modern header without an envelope is 400 and -32602', async ({ post }) => {
  const headers = modernHeaders('tools/list')
  expect(await post({ ...LIST, params: {} }, headers), 400, -32602)
  expect(await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, headers), 400, -32602)
})

row(
  'a modern envelope without or with another version header is 400 and -32020',
  async ({ modern }) => {
    expect(await modern('tools/list', {}, { 'MCP-Protocol-Version': '' }), 400, -32020)
    expect(await modern('tools/list', {}, { 'MCP-Protocol-Version': '2025-11-25' }), 400, -32020)
  },
)

row('initialize under a modern header without an envelope is 400 and -32020', async ({ post }) => {
  expect(await post(handshake('2025-11-25'), modernHeaders('initialize')), 400, -32020)
})

row('initialize with a modern envelope is 404 and -32601', async ({ modern }) => {
  expect(await modern('initialize', { protocolVersion: '2025-11-25' }), 404, -32601)
})

row('initialize that asks for 2026-07-28 without a header gets 2025-11-25', async ({ post }) => {
  const got = await post(handshake('2026-07-28'))
  expect(got, 200, null)
  assert.equal(got.message?.result?.['protocolVersion'], '2025-11-25')
  assert.match(got.headers.get('mcp-session-id') ?? '', /^[0-9a-f]{64}$/)
})

row('an array with a modern element is 400 and -32600', async ({ post, greet }) => {
  expect(await post([LIST], modernHeaders('tools/list')), 400, -32600)
  const session = await greet('2025-03-26')
  const ping = { jsonrpc: '2.0', id: 2, method: 'ping' }
  expect(await post([ping, LIST], session), 400, -32600)
})

row(
  'an array of legacy requests is served at 2025-03-26, and nowhere else',
  async ({ post, greet }) => {
    const two = [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' }))
    const old = await post(two, { ...(await greet('2025-03-26')), Accept: 'application/json' })
    assert.equal(old.status, 200, old.text)
    const answers = JSON.parse(old.text) as readonly { id: number; result: object }[]
    assert.deepEqual(answers.map(({ id }) => id).sort(), [1, 2])
    expect(await post(two, await greet('2025-06-18')), 400, -32600)
    expect(await post(two), 400, -32600)
    expect(await post([], await greet('2025-03-26')), 400, -32600)
  },
)

row('an id of null or 1.5 is 400 and -32600', async ({ post }) => {
  for (const id of [null, 1.5]) {
    expect(await post({ ...LIST, id }, modernHeaders('tools/list')), 400, -32600)
  }
})

row('a member that JSON-RPC does not know is 400 and -32600', async ({ post }) => {
  expect(await post({ ...LIST, extra: 1 }, modernHeaders('tools/list')), 400, -32600)
})

row('Mcp-Method twice is 400 and -32020', async ({ post }) => {
  const headers = { ...modernHeaders('tools/list'), 'Mcp-Method': 'tools/list, tools/list' }
  expect(await post(LIST, headers), 400, -32020)
})

row(
  'a session id and an event id on a modern request are ignored and never said again',
  async ({ modern }) => {
    const got = await modern(
      'tools/list',
      {},
      { 'Mcp-Session-Id': 'nobody', 'Last-Event-ID': '1-1' },
    )
    expect(got, 200, null)
    assert.equal(got.headers.get('mcp-session-id'), null)
  },
)

row(
  'a posted response is 400 under a modern header, and for nobody at all',
  async ({ post, greet }) => {
    const answer = { jsonrpc: '2.0', id: 1, result: {} }
    expect(
      await post(answer, { ...JSON_HEADERS, 'MCP-Protocol-Version': '2026-07-28' }),
      400,
      -32600,
    )
    expect(await post(answer), 400, -32600)
    const got = await post(answer, await greet())
    assert.equal(got.status, 202)
    assert.equal(got.text, '')
  },
)

row('a posted modern notifications/cancelled is 202 and has no effect', async ({ post }) => {
  const got = await post(
    { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, _meta: META26 } },
    modernHeaders('notifications/cancelled'),
  )
  assert.equal(got.status, 202, got.text)
  assert.equal(got.text, '')
})

row(
  'a call without an id is 400 and in the ledger, in both eras',
  async ({ post, greet, audit }) => {
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo', _meta: META26 } }
    assert.equal((await post(call, modernHeaders('tools/call', { name: 'echo' }))).status, 400)
    const old = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'echo' } }
    assert.equal((await post(old, await greet())).status, 400)
    assert.equal(audit().filter(({ problem }) => problem === 'id_missing').length, 2)
  },
)

row('a body that is not said to be JSON is 415', async ({ post }) => {
  for (const type of [
    'text/plain',
    'application/json; charset=utf-16',
    'application/x-www-form-urlencoded',
  ]) {
    expect(await post(LIST, modernHeaders('tools/list', {}, { 'Content-Type': type })), 415, -32600)
  }
})

row('a compressed body is 415', async ({ post }) => {
  expect(
    await post(LIST, modernHeaders('tools/list', {}, { 'Content-Encoding': 'gzip' })),
    415,
    -32600,
  )
})

row('an Accept without event streams is served', async ({ modern }) => {
  expect(await modern('tools/list', {}, { Accept: 'application/json' }), 200, null)
})

row('an Accept with neither kind is 406', async ({ modern }) => {
  expect(await modern('tools/list', {}, { Accept: 'text/html' }), 406, -32600)
})

row('GET and DELETE of no session are 405', async ({ url }) => {
  for (const method of ['GET', 'DELETE', 'PUT', 'PATCH']) {
    const headers = { 'MCP-Protocol-Version': '2026-07-28', Accept: 'text/event-stream' }
    for (const sent of [headers, { Accept: 'text/event-stream' }]) {
      const got = await fetch(`${url}/mcp`, { method, headers: sent })
      assert.equal(got.status, 405)
      assert.equal(got.headers.get('allow'), 'POST')
    }
  }
})

row(
  'a version that nobody speaks is 400 and -32022 with those that are spoken',
  async ({ post }) => {
    const meta = { ...META26, 'io.modelcontextprotocol/protocolVersion': 'v999' }
    const headers = modernHeaders('tools/list', {}, { 'MCP-Protocol-Version': 'v999' })
    const got = await post({ ...LIST, params: { _meta: meta } }, headers)
    expect(got, 400, -32022)
    assert.deepEqual(got.message?.error?.data?.['supported'], ['2026-07-28'])
    assert.equal(got.message?.error?.data?.['requested'], 'v999')
  },
)

row(
  'a method that is not served is 404 and -32601, and so are those of older revisions',
  async ({ modern }) => {
    for (const method of ['nothing/here', 'ping', 'logging/setLevel', 'resources/subscribe']) {
      const params = method === 'resources/subscribe' ? { uri: 'a://b' } : {}
      expect(await modern(method, params), 404, -32601)
    }
  },
)

row('text that is not JSON is 400 and -32700', async ({ post }) => {
  for (const body of ['', '{', '{"jsonrpc":"2.0"}x', '\ufeff{}']) {
    expect(await post(body, modernHeaders('tools/list')), 400, -32700)
  }
})

row(
  'a legacy request without a session is 400, with one that is not known 404',
  async ({ post }) => {
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    expect(await post(list), 400, -32600)
    const headers = { ...JSON_HEADERS, 'Mcp-Session-Id': 'f'.repeat(64) }
    const got = await post(list, headers)
    expect(got, 404, -32600)
    assert.equal(got.message?.id, 1)
  },
)

row('every refusal of a known client is in the ledger before it is answered', async (one) => {
  const { modern, post, audit } = one
  await post(LIST, modernHeaders('tools/list', {}, { 'Content-Type': 'text/plain' }))
  await modern('tools/list', {}, { 'Mcp-Method': 'tools/call' })
  await post(LIST)
  await post('{', modernHeaders('tools/list'))
  const problems = audit()
    .filter(({ kind }) => kind === 'malformed')
    .map(({ problem, transport }) => [problem, transport])
  assert.deepEqual(problems, [
    ['content_type', 'http'],
    ['headers', 'http'],
    ['headers', 'http'],
    ['syntax', 'http'],
  ])
})
