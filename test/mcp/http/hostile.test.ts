// Forty hostile requests on raw sockets: each is refused or served as it must be, and the server goes on.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'

import { META26 } from '../front/desk.ts'
import { eventually, house, type House, modernHeaders, raw } from './rig.ts'

const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/list',
  params: { _meta: META26 },
})

type Shape = {
  readonly start?: string
  readonly host?: string | null
  /** Header lines that replace those of the same name; null removes. */
  readonly set?: Readonly<Record<string, string | null>>
  /** Further lines, as they are. */
  readonly more?: readonly string[]
  readonly body?: string
  readonly length?: string | null
  readonly eol?: string
}

/** One request as text, of which everything can be bent. */
function request(shape: Shape = {}): string {
  const { start = 'POST /mcp HTTP/1.1', host = 'localhost', body = BODY, eol = '\r\n' } = shape
  const length = shape.length === undefined ? String(Buffer.byteLength(body)) : shape.length
  const headers = { ...modernHeaders('tools/list'), ...shape.set }
  const lines = [
    start,
    ...(host === null ? [] : [`Host: ${host}`]),
    ...Object.entries(headers).flatMap(([name, value]) =>
      value === null ? [] : [`${name}: ${value}`],
    ),
    ...(length === null ? [] : [`Content-Length: ${length}`]),
    ...(shape.more ?? []),
    'Connection: close',
  ]
  return lines.join(eol) + eol + eol + body
}

const call = (message: unknown): string =>
  typeof message === 'string' ? message : JSON.stringify(message)
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META26 } }

/** What is sent, and the statuses that may come back; 0: the connection is closed without an answer. */
const TABLE: readonly (readonly [string, string, readonly number[]])[] = [
  ['both a length and chunks', request({ more: ['Transfer-Encoding: chunked'] }), [400]],
  ['two lengths that differ', request({ more: ['Content-Length: 5'] }), [400]],
  ['two lengths that agree', request({ more: [`Content-Length: ${BODY.length}`] }), [400]],
  ['a length with a sign', request({ length: `+${BODY.length}` }), [400]],
  ['a length in hex', request({ length: `0x${BODY.length.toString(16)}` }), [400]],
  ['a negative length', request({ length: '-1' }), [400]],
  ['a length beyond any number', request({ length: '9'.repeat(40) }), [400]],
  ['a length beyond the limit', request({ length: '99999999', body: '' }), [413]],
  [
    'chunks of a coding that nobody knows',
    request({ length: null, more: ['Transfer-Encoding: gzip, chunked'] }),
    [501],
  ],
  ['chunks hidden by a space', request({ more: ['Transfer-Encoding : chunked'] }), [400]],
  ['no host', request({ host: null }), [400]],
  ['an empty host', request({ host: '' }), [400, 403]],
  ['two hosts', request({ more: ['Host: evil.example.com'] }), [400]],
  ['a host with a user', request({ host: 'localhost@evil.example.com' }), [400, 403]],
  ['a host that only begins as ours', request({ host: 'localhost.evil.example.com' }), [403]],
  [
    'a target with a host of its own',
    request({ start: 'POST http://evil.example.com/mcp HTTP/1.1' }),
    [400],
  ],
  ['a target that is no path', request({ start: 'POST mcp HTTP/1.1' }), [400]],
  ['a path with dots', request({ start: 'POST /x/../mcp HTTP/1.1' }), [404]],
  ['a path in another case', request({ start: 'POST /MCP HTTP/1.1' }), [404]],
  ['a path with an encoded letter', request({ start: 'POST /%6dcp HTTP/1.1' }), [404]],
  [
    'two authorizations',
    request({ more: ['Authorization: Bearer a', 'Authorization: Bearer b'] }),
    [400],
  ],
  ['an authorization of another scheme', request({ more: ['Authorization: Basic YTpi'] }), [401]],
  ['lines that end with LF only', request({ eol: '\n' }), [400]],
  ['a folded header', request({ more: ['X-A: 1', ' 2'] }), [400]],
  ['a header name with a space', request({ more: ['X A: 1'] }), [400]],
  ['a header without a colon', request({ more: ['nonsense'] }), [400]],
  ['NUL in a header', request({ more: ['X-A: a\0b'] }), [400]],
  ['CR inside a header', request({ more: ['X-A: a\rMcp-Method: tools/call'] }), [400]],
  ['headers of 20 kB', request({ more: [`X-A: ${'a'.repeat(20_000)}`] }), [431]],
  [
    'two hundred headers',
    request({ more: Array.from({ length: 200 }, (_, at) => `X-${at}: 1`) }),
    [431],
  ],
  ['HTTP of no version', request({ start: 'POST /mcp' }), [505]],
  ['HTTP/0.9', 'GET /mcp\r\n\r\n', [505]],
  ['HTTP/2 by its first words', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400]],
  ['a method that nobody knows', request({ start: 'FROB /mcp HTTP/1.1' }), [400, 405]],
  ['TRACE', request({ start: 'TRACE /mcp HTTP/1.1', body: '', length: null }), [400, 405]],
  ['CONNECT', 'CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n', [0]],
  ['an upgrade to another protocol', request({ more: ['Upgrade: websocket'], set: {} }), [200]],
  ['an origin of no host', request({ more: ['Origin: null'] }), [403]],
  ['a TLS handshake', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', [400]],
  ['nothing but lines', '\r\n'.repeat(10_000) + request(), [200, 400]],
  ['a batch', request({ body: call([LIST]) }), [400]],
  [
    'keys in another case',
    request({ body: call({ JSONRPC: '2.0', ID: 1, METHOD: 'tools/list' }) }),
    [400],
  ],
  ['a key twice', request({ body: BODY.replace('"id":1', '"id":1,"id":2') }), [400]],
  [
    'a key twice, once escaped',
    request({ body: BODY.replace('"id":1', '"id":1,"\\u0069d":2') }),
    [400],
  ],
  ['__proto__', request({ body: BODY.replace('"id":1', '"id":1,"__proto__":{}') }), [400]],
  ['ten thousand brackets', request({ body: '['.repeat(10_000) }), [400]],
  [
    'bytes that are not UTF-8',
    request({ body: '{"jsonrpc":"2.0","id":"\xff"}', length: '26' }),
    [400],
  ],
  [
    'a second request in the body of the first',
    request({ body: `${BODY}POST /mcp HTTP/1.1\r\n\r\n` }),
    [400],
  ],
]

const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0)

test('the table has at least forty rows', () => {
  assert.ok(TABLE.length >= 40)
})

test('hostile requests', async (t) => {
  const one = await house(t, {})
  for (const [name, bytes, statuses] of TABLE) {
    await t.test(name, async () => {
      const got = await raw(one.port, bytes)
      assert.ok(statuses.includes(statusOf(got)), got.slice(0, 400))
      assert.doesNotMatch(got, /at .*\.(ts|js):\d/, 'a trace of our own')
      assert.equal(got.split('HTTP/1.1 ').length <= 2, true, 'one request, one answer')
    })
  }
  assert.equal((await one.modern('tools/list')).status, 200)
  assert.doesNotMatch(one.said().join('\n'), /evil|Bearer/)
})

const quick = { headers: 400, request: 800, sweep: 50 }

test('headers that come too slowly are cut off', async (t) => {
  const one = await house(t, { times: quick })
  const got = await raw(one.port, 'POST /mcp HTTP/1.1\r\nHost: localhost\r\n')
  assert.equal(statusOf(got), 408)
})

test('a connection that says nothing is cut off', async (t) => {
  const one = await house(t, { times: quick })
  const got = await raw(one.port, [])
  assert.ok([0, 408].includes(statusOf(got)))
})

test('a body that comes too slowly is cut off', async (t) => {
  const one = await house(t, { times: quick })
  const got = await raw(one.port, request({ body: '{', length: '1000' }))
  assert.equal(statusOf(got), 408, got)
})

test('a request in pieces of one byte is read as one', async (t: TestContext) => {
  const one = await house(t, {})
  const got = await raw(one.port, [...request()])
  assert.equal(statusOf(got), 200)
})

test('a body in chunks of one byte is read as one', async (t) => {
  const one = await house(t, {})
  const chunks = [...BODY].map((byte) => `1\r\n${byte}\r\n`).join('')
  const head = request({ length: null, body: '', more: ['Transfer-Encoding: chunked'] })
  const got = await raw(one.port, `${head}${chunks}0\r\n\r\n`)
  assert.equal(statusOf(got), 200, got)
  assert.match(got, /"tools":\[/)
})

test('a client that vanishes in the middle of its body leaves nothing behind', async (t) => {
  const one = await house(t, {})
  for (const how of ['destroy', 'resetAndDestroy', 'end'] as const) await vanish(one, how)
  assert.equal((await one.modern('tools/list')).status, 200)
})

async function vanish({ port }: House, how: 'destroy' | 'resetAndDestroy' | 'end'): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  await new Promise((resolve) => {
    socket.once('connect', resolve)
  })
  const gone = new Promise((resolve) => socket.once('close', resolve))
  socket.on('error', () => undefined)
  socket.resume()
  const text = request({ body: '{"jsonrpc"', length: '1000' })
  await new Promise((resolve) => {
    socket.write(text, resolve)
  })
  socket[how]()
  await gone
}

test('requests sent ahead on one connection are answered in order, but only so many', async (t) => {
  const one = await house(t, {})
  const alive = request().replace('Connection: close', 'Connection: keep-alive')
  const ten = await raw(one.port, alive.repeat(9) + request())
  assert.equal(ten.split('HTTP/1.1 200 ').length - 1, 10)
  const many = await raw(one.port, alive.repeat(1_000))
  assert.ok(many.split('HTTP/1.1 200 ').length - 1 < 1_000)
  assert.equal((await one.modern('tools/list')).status, 200)
})

test('a client that announces its body first is told to send it, or not to', async (t) => {
  const one = await house(t, {})
  const ask = (length: string): string =>
    request({ more: ['Expect: 100-continue'], body: '', length })
  const good = await raw(one.port, ask(String(BODY.length)), (text) =>
    text.includes('100 Continue'),
  )
  assert.match(good, /^HTTP\/1\.1 100 /)
  const alive = ask('99999999').replace('Connection: close', 'Connection: keep-alive')
  const bad = await raw(one.port, alive)
  assert.equal(statusOf(bad), 413)
  // What follows could be the body or another request.
  assert.match(bad, /Connection: close/)
  const odd = await raw(one.port, request({ more: ['Expect: miracles'] }))
  assert.equal(statusOf(odd), 417)
})

test('what was refused before anybody was known is counted by the second', async (t) => {
  const one = await house(t, {})
  await raw(one.port, request({ host: 'evil.example.com' }))
  await raw(one.port, 'nonsense\r\n\r\n')
  await eventually('the count is in the ledger', () =>
    one.audit().some(({ kind, refused_host: n }) => kind === 'count' && n === 1),
  )
  const counts = one.audit().filter(({ kind }) => kind === 'count')
  assert.ok(counts.some(({ refused_unreadable: n }) => n === 1))
})
