// Legacy sessions over HTTP: whose they are, what their streams say, and how a broken one is taken up.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { eventually, handshake, house, type House, JSON_HEADERS, reading } from './rig.ts'

const ALL = { profile: { allow: exact(), client: { elicitation: true } } }

function exact(): readonly string[] {
  return ['echo', 'after', 'progress', 'asks', 'change', 'slow', 'touch'].map(
    (name) => `up/${name}`,
  )
}

const call = (id: number | string, name: string, args: object, meta?: object): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) },
})

const read = (
  { url }: House,
  headers: Readonly<Record<string, string>>,
  body?: object,
): ReturnType<typeof reading> =>
  reading(`${url}/mcp`, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

const TWO = { ana: 'agent', rui: 'agent' }

for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
  test(`a session of ${version} lists, calls and ends`, async (t) => {
    const one = await house(t, ALL)
    const mine = await one.greet(version)
    const list = await one.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, mine)
    assert.equal(list.status, 200)
    assert.equal(list.headers.get('content-type'), 'application/json')
    assert.equal('resultType' in (list.message?.result ?? {}), false)
    const said = await one.post(call(2, 'echo', { text: 'olá' }), mine)
    assert.deepEqual(said.message?.result?.['content'], [{ type: 'text', text: 'olá' }], said.text)
    const ended = await fetch(`${one.url}/mcp`, { method: 'DELETE', headers: mine })
    assert.equal(ended.status, 204)
    const after = await one.post(call(3, 'echo', { text: 'x' }), mine)
    assert.equal(after.status, 404)
    assert.equal((await read(one, mine)).response.status, 404)
  })
}

test('a session of another client does not exist, and nothing of its is said or sent', async (t) => {
  const one = await house(t, { ...ALL, clients: TWO })
  const mine = await one.greet('2025-11-25', one.as('ana'))
  const theirs = { ...mine, ...one.as('rui') }
  const stolen = await one.post(call(1, 'echo', { text: 'x' }), theirs)
  assert.equal(stolen.status, 404)
  assert.equal(stolen.message?.error?.message, 'there is no such session; initialize again')
  assert.equal((await read(one, theirs)).response.status, 404)
  assert.equal((await fetch(`${one.url}/mcp`, { method: 'DELETE', headers: theirs })).status, 404)
  const own = await one.post(call(1, 'echo', { text: 'x' }), mine)
  assert.equal(own.status, 200)
  assert.equal(one.audit().filter(({ kind }) => kind === 'intent').length, 1)
})

test('a session belongs to the endpoint of its handshake', async (t) => {
  const one = await house(t, {
    ...ALL,
    endpoints: new Map([
      ['/a', null],
      ['/b', null],
    ]),
  })
  const hello = await one.post(handshake('2025-11-25'), JSON_HEADERS, '/a')
  const mine = { ...JSON_HEADERS, 'Mcp-Session-Id': hello.headers.get('mcp-session-id') ?? '' }
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  assert.equal((await one.post(ping, mine, '/a')).status, 200)
  assert.equal((await one.post(ping, mine, '/b')).status, 404)
})

test('a handshake that is refused makes no session', async (t) => {
  const one = await house(t, ALL)
  const bad = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { capabilities: {} } }
  const got = await one.post(bad)
  assert.equal(got.message?.error?.code, -32602)
  assert.equal(got.headers.get('mcp-session-id'), null)
})

test('two sessions of one client use one id at once', async (t) => {
  const one = await house(t, ALL)
  const [first, second] = [await one.greet(), await one.greet()]
  const answers = await Promise.all([
    one.post(call(1, 'after', { ms: 60, label: 'first' }), first),
    one.post(call(1, 'after', { ms: 20, label: 'second' }), second),
  ])
  const texts = answers.map(({ message }) => JSON.stringify(message?.result?.['content']))
  assert.match(texts[0] ?? '', /first/)
  assert.match(texts[1] ?? '', /second/)
})

test('progress turns an answer into a stream, with event ids, and first one without a message', async (t) => {
  const one = await house(t, ALL)
  const progress = call(7, 'progress', { values: [1, 2], ms: 5 }, { progressToken: 'p' })
  const got = await read(one, await one.greet('2025-11-25'), progress)
  assert.equal(got.response.headers.get('content-type'), 'text/event-stream')
  assert.equal(got.response.headers.get('x-accel-buffering'), 'no')
  await got.ended
  const [prime, ...events] = got.events()
  assert.equal(prime?.message, null)
  assert.match(got.text(), /^id: \d+-0\nretry: \d+\ndata: \n\n/)
  assert.deepEqual(
    events.map(({ message }) => message?.method ?? message?.id),
    ['notifications/progress', 'notifications/progress', 7],
  )
  const ids = events.map(({ id }) => id)
  assert.equal(new Set(ids).size, 3)
  // Older clients cannot read an event without a message.
  const old = await read(one, await one.greet('2025-06-18'), progress)
  await old.ended
  assert.equal(old.events().length, 3)
})

test('a stream that broke is taken up where it was, and the call was not cancelled', async (t) => {
  const one = await house(t, ALL)
  const mine = await one.greet()
  const body = call(7, 'progress', { values: [1, 2, 3, 4, 5], ms: 40 }, { progressToken: 'p' })
  const first = await read(one, mine, body)
  await first.until((events) => events.length >= 3)
  const last = first.events()[2]?.id ?? ''
  first.close()
  await first.ended
  const second = await read(one, { ...mine, 'Last-Event-ID': last })
  await second.ended
  const values = second.events().map(({ message }) => message?.params?.['progress'] ?? message?.id)
  assert.deepEqual(values, [3, 4, 5, 7])
  const intents = one.audit().filter(({ method, code }) => method === 'tools/call' && code !== null)
  assert.deepEqual(intents, [])
})

test('a response that came while the client was away is read from the event that began the stream', async (t) => {
  const one = await house(t, { ...ALL, times: { legacyStream: 50, sweep: 20 } })
  const mine = await one.greet()
  const first = await read(one, mine, call(7, 'after', { ms: 400, label: 'late' }))
  await first.until((events) => events.length === 1)
  const begun = first.events()[0]?.id ?? ''
  first.close()
  await first.ended
  await eventually('the call ended', () =>
    one.audit().some(({ outcome }) => outcome === 'answered'),
  )
  const second = await read(one, { ...mine, 'Last-Event-ID': begun })
  await second.ended
  assert.deepEqual(
    second.events().map(({ message }) => message?.id),
    [7],
  )
})

test('an event id of another session is not known here', async (t) => {
  const one = await house(t, ALL)
  const progress = call(7, 'progress', { values: [1], ms: 1 }, { progressToken: 'p' })
  const spoken = await read(one, await one.greet(), progress)
  await spoken.ended
  const last = spoken.events()[0]?.id ?? ''
  const other = await read(one, { ...(await one.greet()), 'Last-Event-ID': last })
  await other.until((events) => events.length === 1)
  assert.equal(other.events()[0]?.message, null)
  other.close()
})

test('what belongs to no request goes out on one stream only, and waits for one', async (t) => {
  const one = await house(t, ALL)
  const mine = await one.greet()
  await one.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, mine)
  await one.post(call(2, 'change', { tools: [], hide: ['echo'] }), mine)
  const isChange = ({ message }: { message: { method?: string } | null }): boolean =>
    message?.method === 'notifications/tools/list_changed'
  const first = await read(one, mine)
  await first.until((events) => events.some(isChange))
  const second = await read(one, mine)
  await second.until((events) => events.length === 1)
  await one.post({ jsonrpc: '2.0', id: 3, method: 'tools/list' }, mine)
  await one.post(call(4, 'change', { tools: [], hide: [] }), mine)
  await second.until((events) => events.some(isChange))
  assert.equal(first.events().filter(isChange).length, 1)
  assert.equal(second.events().filter(isChange).length, 1)
  first.close()
  second.close()
})

test('a server asks on the stream of the call, and is answered by a POST of the same session only', async (t) => {
  const one = await house(t, { ...ALL, upstreams: { up: ['--era', 'legacy'] } })
  const hello = handshake('2025-11-25') as { params: { capabilities: object } }
  hello.params.capabilities = { elicitation: {} }
  const greeted = await one.post(hello)
  const mine = { ...JSON_HEADERS, 'Mcp-Session-Id': greeted.headers.get('mcp-session-id') ?? '' }
  const question = {
    method: 'elicitation/create',
    params: {
      message: 'who?',
      requestedSchema: { type: 'object', properties: { n: { type: 'string' } } },
    },
  }
  const stream = await read(one, mine, call(5, 'asks', { requests: [question] }))
  await stream.until((events) => events.some(({ message }) => message?.method !== undefined))
  const ask = stream
    .events()
    .find(({ message }) => message?.method === 'elicitation/create')?.message
  assert.equal(ask?.params?.['message'], 'who?')
  const answer = {
    jsonrpc: '2.0',
    id: ask?.id,
    result: { action: 'accept', content: { n: 'ana' } },
  }
  const foreign = await one.post(answer, await one.greet())
  assert.equal(foreign.status, 202)
  const own = await one.post(answer, mine)
  assert.equal(own.status, 202)
  await stream.ended
  const last = stream.events().at(-1)?.message
  assert.equal(last?.id, 5)
  assert.match(JSON.stringify(last?.result), /ana/)
})

test('a cancelled request is answered with nothing, and its POST ends', async (t) => {
  const one = await house(t, ALL)
  const mine = await one.greet()
  const slow = one.post(call(9, 'slow', { ms: 60_000 }), mine)
  await eventually('the call is in the ledger', () =>
    one.audit().some(({ method, outcome }) => method === 'tools/call' && outcome === 'pending'),
  )
  const params = { requestId: 9 }
  await one.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params }, mine)
  const got = await slow
  assert.equal(got.status, 202)
  assert.equal(got.text, '')
})

test('a session that is not used ends; one that is listened to does not', async (t) => {
  const one = await house(t, { ...ALL, times: { sessionIdle: 300, sweep: 20 } })
  const [idle, heard] = [await one.greet(), await one.greet()]
  const stream = await read(one, heard)
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  await eventually('the idle one ends', async () => {
    await new Promise((resolve) => {
      setTimeout(resolve, 400)
    })
    return (await one.post(ping, idle)).status === 404
  })
  assert.equal((await one.post(ping, heard)).status, 200)
  stream.close()
})

test('a session goes on as it agreed when the headers name another revision, and the operator hears of it', async (t) => {
  const one = await house(t, ALL)
  const mine = { ...(await one.greet('2025-06-18')), 'MCP-Protocol-Version': '2025-11-25' }
  const got = await one.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, mine)
  assert.equal(got.status, 200)
  await one.post({ jsonrpc: '2.0', id: 2, method: 'ping' }, mine)
  const words = one.said().filter((line) => line.includes('but agreed on 2025-06-18'))
  assert.equal(words.length, 1)
})

test('a quiet stream is kept alive with comments', async (t) => {
  const one = await house(t, { ...ALL, times: { silent: 50, sweep: 20 } })
  const mine = await one.greet()
  const stream = await read(one, mine)
  await stream.until((_events, text) => text.split(':\n\n').length > 3)
  stream.close()
})
