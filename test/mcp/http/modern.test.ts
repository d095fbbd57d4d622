// Modern clients over HTTP: JSON or a stream as it comes, headers of arguments, and the end of a stream as a cancel.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { META26 } from '../front/desk.ts'
import { eventually, house, type House, modernHeaders, raw, reading } from './rig.ts'

const exact = (...names: readonly string[]): readonly string[] => names.map((name) => `up/${name}`)
const ALL = {
  profile: { allow: exact('echo', 'after', 'progress', 'log', 'slow', 'change', 'meta', 'dump') },
}

const stream = (
  { url }: House,
  method: string,
  params: Readonly<Record<string, unknown>>,
  meta: object = {},
): ReturnType<typeof reading> =>
  reading(`${url}/mcp`, {
    method: 'POST',
    headers: modernHeaders(method, params),
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: { ...params, _meta: { ...META26, ...meta } },
    }),
  })

test('many requests of one client may bear one id at once', async (t) => {
  const one = await house(t, ALL)
  const calls = Array.from({ length: 8 }, (_, at) => {
    const params = { name: 'after', arguments: { ms: 80 - at * 10, label: `n${at}` } }
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { ...params, _meta: META26 },
    }
    return one.post(body, modernHeaders('tools/call', params))
  })
  const texts = (await Promise.all(calls)).map(({ message }) =>
    JSON.stringify(message?.result?.['content']),
  )
  texts.forEach((text, at) => assert.match(text, new RegExp(`"n${at}"`)))
})

test('progress and logs turn the answer into a stream without event ids; without them it is JSON', async (t) => {
  const one = await house(t, ALL)
  const params = { name: 'progress', arguments: { values: [1, 2], ms: 1 } }
  const told = await stream(one, 'tools/call', params, { progressToken: 'p' })
  await told.ended
  assert.equal(told.response.headers.get('content-type'), 'text/event-stream')
  assert.equal(told.response.headers.get('x-accel-buffering'), 'no')
  assert.equal(told.response.headers.get('cache-control'), 'no-store')
  assert.doesNotMatch(told.text(), /^id:/m)
  assert.deepEqual(
    told.events().map(({ message }) => message?.method ?? message?.id),
    ['notifications/progress', 'notifications/progress', 1],
  )
  const plain = await one.modern('tools/call', params)
  assert.equal(plain.headers.get('content-type'), 'application/json')
})

test('a client that takes no streams gets its answer, without what would have come before', async (t) => {
  const one = await house(t, ALL)
  const params = {
    name: 'progress',
    arguments: { values: [1, 2], ms: 1 },
    _meta: { ...META26, progressToken: 1 },
  }
  const got = await one.modern('tools/call', params, { Accept: 'application/json' })
  assert.equal(got.headers.get('content-type'), 'application/json')
  assert.equal(got.status, 200)
})

test('an answer that takes long becomes a stream that is kept alive', async (t) => {
  const one = await house(t, { ...ALL, times: { modernStream: 50, silent: 50, sweep: 20 } })
  const slow = await stream(one, 'tools/call', {
    name: 'after',
    arguments: { ms: 600, label: 'x' },
  })
  await slow.until((_events, text) => text.split(':\n\n').length > 3)
  await slow.ended
  assert.equal(slow.events().length, 1)
  assert.equal(slow.events()[0]?.message?.id, 1)
})

test('closing the connection is the cancel of what came in on it, and of nothing else', async (t) => {
  const one = await house(t, {
    ...ALL,
    tools: { 'up/slow': { effect: 'read' } },
    times: { modernStream: 20, sweep: 10 },
  })
  const params = { name: 'slow', arguments: { ms: 60_000 } }
  const gone = await stream(one, 'tools/call', params)
  const stays = one.modern('tools/call', { name: 'after', arguments: { ms: 800, label: 'x' } })
  gone.close()
  await eventually('the cancel is in the ledger', () =>
    one.audit().some(({ method, code }) => method === 'tools/call' && code === 'cancelled'),
  )
  assert.equal((await stays).status, 200)
})

test('a connection that closes before anything was said cancels too', async (t) => {
  const one = await house(t, { ...ALL, tools: { 'up/slow': { effect: 'read' } } })
  const abort = new AbortController()
  const params = { name: 'slow', arguments: { ms: 60_000 } }
  const call = fetch(`${one.url}/mcp`, {
    method: 'POST',
    headers: modernHeaders('tools/call', params),
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { ...params, _meta: META26 },
    }),
    signal: abort.signal,
  }).catch(() => null)
  await eventually('nobody else hears', async () => (await one.modern('tools/list')).status === 200)
  await new Promise((resolve) => {
    setTimeout(resolve, 100)
  })
  abort.abort()
  await call
  await eventually('the cancel is in the ledger', () =>
    one.audit().some(({ method, code }) => method === 'tools/call' && code === 'cancelled'),
  )
})

test('a call that waits its turn is not made when its client is gone by then', async (t) => {
  const one = await house(t, { ...ALL, upstreams: { up: ['--start-delay', '2500'] } })
  const crowd = Array.from({ length: 64 }, () => one.modern('tools/list'))
  const params = { name: 'echo', arguments: { text: 'x' } }
  const abort = new AbortController()
  await eventually(
    'they are in work',
    async () => (await fetch(`${one.url}/health`)).status === 200,
  )
  const call = fetch(`${one.url}/mcp`, {
    method: 'POST',
    headers: modernHeaders('tools/call', params),
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { ...params, _meta: META26 },
    }),
    signal: abort.signal,
  }).catch(() => null)
  await new Promise((resolve) => {
    setTimeout(resolve, 300)
  })
  abort.abort()
  await call
  const statuses = new Set((await Promise.all(crowd)).map(({ status }) => status))
  assert.deepEqual([...statuses], [200])
  assert.equal((await one.modern('tools/call', params)).status, 200)
  assert.equal(one.audit().filter(({ kind }) => kind === 'intent').length, 1)
})

test('a subscription acknowledges first, tells changes, and ends with its connection', async (t) => {
  const one = await house(t, ALL)
  await one.modern('tools/list')
  const heard = await stream(one, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  })
  await heard.until((events) => events.length === 1)
  assert.equal(heard.events()[0]?.message?.method, 'notifications/subscriptions/acknowledged')
  await one.modern('tools/call', { name: 'change', arguments: { tools: [], hide: ['echo'] } })
  await heard.until((events) =>
    events.some(({ message }) => message?.method === 'notifications/tools/list_changed'),
  )
  heard.close()
})

const REGION = { type: 'string', 'x-mcp-header': 'Region' }
const MIRROR = {
  tools: [
    {
      definition: {
        name: 'mirror',
        inputSchema: { type: 'object', properties: { region: REGION } },
      },
    },
  ],
}

test('an argument that a schema mirrors must stand in its header, decoded', async (t) => {
  const one = await house(t, {
    upstreams: { up: ['--menu', JSON.stringify(MIRROR)] },
    profile: { allow: ['up/mirror'] },
  })
  const call = (
    args: object,
    headers: Readonly<Record<string, string>>,
  ): ReturnType<House['modern']> =>
    one.modern('tools/call', { name: 'mirror', arguments: args }, headers)
  const bad = await call({ region: 'eu' }, {})
  assert.equal(bad.status, 400, bad.text)
  assert.equal(bad.message?.error?.code, -32020)
  const wrong = await call({ region: 'eu' }, { 'Mcp-Param-Region': 'us' })
  assert.equal(wrong.status, 400, wrong.text)
  const loose = await call({ region: 'Hello' }, { 'Mcp-Param-Region': '=?base64?SGVsbG8?=' })
  assert.equal(loose.status, 400, loose.text)
  const good = await call({ region: 'Hello' }, { 'Mcp-Param-Region': '=?base64?SGVsbG8=?=' })
  assert.equal(good.status, 200, good.text)
  const none = await call({}, {})
  assert.equal(none.status, 200, none.text)
})

test('a tool that may not be used is refused alike, whatever its headers mirror', async (t) => {
  const one = await house(t, {
    upstreams: { up: ['--menu', JSON.stringify(MIRROR)] },
    profile: { allow: ['up/other'] },
  })
  const told = await Promise.all(
    ['mirror', 'unknown'].map((name) =>
      one.modern('tools/call', { name, arguments: { region: 'eu' } }),
    ),
  )
  const texts = told.map(({ message }) =>
    JSON.stringify(message?.error).replaceAll('unknown', 'mirror'),
  )
  assert.equal(texts[0], texts[1])
  assert.deepEqual(
    told.map(({ status }) => status),
    [200, 200],
  )
})

test('modern, legacy and mixed clients are served by one endpoint at once', async (t) => {
  const one = await house(t, ALL)
  const sessions = await Promise.all(
    ['2025-11-25', '2025-06-18', '2025-03-26'].map((v) => one.greet(v)),
  )
  const answers = await Promise.all([
    ...sessions.flatMap((mine, at) => [
      one.post(
        {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'echo', arguments: { text: `s${at}` } },
        },
        mine,
      ),
      // A client that has a session may also speak without it.
      one.modern(
        'tools/call',
        { name: 'echo', arguments: { text: `m${at}` } },
        { 'Mcp-Session-Id': mine['Mcp-Session-Id'] ?? '' },
      ),
    ]),
  ])
  const texts = answers.map(({ message }) => JSON.stringify(message?.result?.['content']))
  const wanted = ['s0', 'm0', 's1', 'm1', 's2', 'm2']
  wanted.forEach((want, at) => assert.match(texts[at] ?? '', new RegExp(`"${want}"`)))
  const types = answers.map(({ message }) => message?.result?.['resultType'])
  assert.deepEqual(
    types,
    wanted.map((want) => (want.startsWith('m') ? 'complete' : undefined)),
  )
})

test('a body longer than the limit is 413, whether it says so before or not', async (t) => {
  const one = await house(t, { ...ALL, requestBytes: 10_000 })
  const long = { name: 'echo', arguments: { text: 'x'.repeat(20_000) } }
  const told = await one.modern('tools/call', long)
  assert.equal(told.status, 413, told.text)
  const text = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { ...long, _meta: META26 },
  })
  const lines = Object.entries(modernHeaders('tools/call', long)).map(([k, v]) => `${k}: ${v}`)
  const head = ['POST /mcp HTTP/1.1', 'Host: localhost', ...lines, 'Transfer-Encoding: chunked']
  const chunk = `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`
  const untold = await raw(one.port, `${head.join('\r\n')}\r\n\r\n${chunk}`, (answer) =>
    answer.includes('\r\n\r\n'),
  )
  assert.match(untold, /^HTTP\/1\.1 413 /)
  const refused = one.audit().filter(({ problem }) => problem === 'too_long')
  assert.equal(refused.length, 2)
  assert.equal((await one.modern('tools/list')).status, 200)
})
