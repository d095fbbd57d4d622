// One client whose messages come on channels of their own, as over HTTP.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Desk, type Heard, META26, open, type Post } from './desk.ts'

const call = (id: number | string, name: string, args: object = {}, meta: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { ...META26, ...meta } },
})
const textOf = ({ result }: Heard): unknown =>
  (result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const statuses = (post: Post): unknown[] => post.heard().map(({ how }) => [how.weight, how.status])

const READS = { 'up/hang': { effect: 'read' }, 'up/after': { effect: 'read' } }
const modern = (t: Parameters<typeof open>[0]): Promise<Desk> =>
  open(t, {
    ids: 'channel',
    eras: 'modern',
    profile: { allow: ['up/echo', 'up/after', 'up/hang', 'up/progress'] },
    tools: READS,
  })

test('many requests of one client may bear one id, each answered on its own channel', async (t) => {
  const desk = await modern(t)
  const posts = ['a', 'b', 'c'].map((label) => {
    const post = desk.channel()
    desk.say(call(1, 'after', { ms: 50, label }), post)
    return post
  })
  await desk.until('three answers', () => posts.every((post) => post.dones() === 1))
  assert.deepEqual(
    posts.map((post) => post.heard().map(textOf)),
    [['a'], ['b'], ['c']],
  )
  for (const post of posts) assert.deepEqual(statuses(post), [['response', 200]])
  assert.equal(desk.heard().length, 0)
})

test('progress goes to the channel of its request, before the response', async (t) => {
  const desk = await modern(t)
  const [one, two] = [desk.channel(), desk.channel()]
  desk.say(call('x', 'progress', { values: [1, 2], ms: 5 }, { progressToken: 'p' }), one)
  desk.say(call('x', 'echo', { text: 'y' }), two)
  await desk.until('both answers', () => one.dones() === 1 && two.dones() === 1)
  assert.deepEqual(
    one.heard().map(({ params, how }) => [params?.['progress'], how.weight]),
    [
      [1, 'notice'],
      [2, 'notice'],
      [undefined, 'response'],
    ],
  )
  assert.equal(two.heard().length, 1)
})

test('a channel that its client closed ends its modern requests, and no others', async (t) => {
  const desk = await modern(t)
  const [gone, stays] = [desk.channel(), desk.channel()]
  desk.say(call(1, 'hang'), gone)
  desk.say(call(1, 'after', { ms: 300, label: 'L' }), stays)
  desk.front.gone(gone)
  await desk.until('the other answer', () => stays.dones() === 1)
  assert.equal(textOf(stays.heard()[0] ?? {}), 'L')
  assert.deepEqual([gone.heard().length, gone.dones()], [0, 1])
  await desk.until('the record', () => desk.audit().some(({ name }) => name === 'hang'))
  assert.equal(desk.audit().find(({ name }) => name === 'hang')?.['code'], 'cancelled')
})

test('a cancellation on another channel concerns no request of this one', async (t) => {
  const desk = await modern(t)
  const [one, other] = [desk.channel(), desk.channel()]
  desk.say(call(1, 'after', { ms: 100, label: 'L' }), one)
  const params = { requestId: 1 }
  desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params }, other)
  assert.deepEqual([other.heard().length, other.dones()], [0, 1])
  await desk.until('the answer', () => one.dones() === 1)
  assert.equal(textOf(one.heard()[0] ?? {}), 'L')
})

test('each refusal carries the status that HTTP gives it', async (t) => {
  const desk = await modern(t)
  const meta = { _meta: META26 }
  const request = (method: string, params: object = meta): object => ({
    jsonrpc: '2.0',
    id: 1,
    method,
    params,
  })
  const other = { ...META26, 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }
  const cases: readonly (readonly [unknown, number, number])[] = [
    ['{"jsonrpc":"2.0",', -32700, 400],
    ['[]', -32600, 400],
    [{ ...request('tools/list'), id: null }, -32600, 400],
    [{ ...request('tools/list'), id: 1.5 }, -32600, 400],
    [{ ...request('tools/list'), extra: 1 }, -32600, 400],
    [request('tools/list', {}), -32602, 400],
    [request('tools/list', { _meta: other }), -32022, 400],
    [request('initialize'), -32601, 404],
    [request('ping'), -32601, 404],
    [request('nosuch'), -32601, 404],
    [request('tools/list', { ...meta, cursor: 'x' }), -32602, 200],
    [call(1, 'hidden'), -32602, 200],
  ]
  for (const [line, code, status] of cases) {
    const post = desk.channel()
    desk.say(line, post)
    await desk.until('the refusal', () => post.dones() === 1)
    const [said] = post.heard()
    assert.deepEqual([said?.error?.code, said?.how.status], [code, status], JSON.stringify(line))
  }
})

test('what needs no answer is done at once, and what is refused by the door has its record', async (t) => {
  const desk = await modern(t)
  for (const line of [
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    { jsonrpc: '2.0', id: 'eclusa-1', result: {} },
  ]) {
    const post = desk.channel()
    desk.say(line, post)
    assert.deepEqual([post.heard().length, post.dones()], [0, 1])
  }
  const post = desk.channel()
  const told = { problem: 'header', rpc: -32020, message: 'Mcp-Method is missing', data: null }
  desk.front.refuse({ id: 7, method: 'tools/list' }, told, post)
  await desk.until('the refusal', () => post.dones() === 1)
  assert.deepEqual(post.heard()[0]?.error, {
    code: -32020,
    message: 'Mcp-Method is missing',
    data: { 'eclusa/refusal': { code: 'malformed' } },
  })
  assert.equal(post.heard()[0]?.how.status, 400)
  assert.equal(desk.audit().at(-1)?.['kind'], 'malformed')
})

test('a session over channels keeps its requests when a channel breaks, and its ids in all of them', async (t) => {
  const desk = await open(t, { eras: 'legacy', profile: { allow: ['up/after'] }, tools: READS })
  await desk.greet()
  const [one, two] = [desk.channel(), desk.channel()]
  const slow = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'after', arguments: { ms: 100, label: 'L' } },
  }
  desk.say(slow, one)
  desk.say(slow, two)
  desk.front.gone(one)
  await desk.until('the answer', () => one.dones() === 1 && two.dones() === 1)
  assert.equal(textOf(one.heard()[0] ?? {}), 'L')
  assert.equal(two.heard()[0]?.error?.code, -32600)
  const late = desk.channel()
  desk.say(call(2, 'after'), late)
  await desk.until('the refusal', () => late.dones() === 1)
  assert.equal(late.heard()[0]?.error?.code, -32600)
  assert.equal(desk.front.session()?.version, '2025-11-25')
})

test('a batch is done when the last of its elements is', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/after'] }, tools: READS })
  await desk.greet('2025-03-26')
  const post = desk.channel()
  const slow = (id: number, ms: number): object => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name: 'after', arguments: { ms, label: `${id}` } },
  })
  desk.say([slow(1, 120), { jsonrpc: '2.0', method: 'x' }, slow(2, 10)], post)
  await desk.until('one answer', () => post.heard().length === 1)
  assert.equal(post.dones(), 0)
  await desk.until('the end', () => post.dones() === 1)
  assert.deepEqual(post.heard().map(textOf), ['2', '1'])
})

test('headers that mirror arguments are checked for a tool that the client may use, and no other', async (t) => {
  const desk = await modern(t)
  const { readLine } = await import('../../../src/mcp/wire/message.ts')
  const { REQUEST_LIMITS } = await import('../../../src/json.ts')
  const asked: unknown[] = []
  const take = async (name: string, problem: string | null): Promise<Post> => {
    const post = desk.channel()
    const line = Buffer.from(JSON.stringify(call(1, name, { text: 'x' })))
    desk.front.take(readLine(line, REQUEST_LIMITS), line.length, post, {
      checkParams: (schema, args) => {
        asked.push([JSON.parse(JSON.stringify(schema)), { ...args }])
        return problem
      },
      otherParams: () => ({}),
    })
    await desk.until('the answer', () => post.dones() === 1)
    return post
  }
  const wrong = await take('echo', 'Mcp-Param-Text is not what the body says')
  const [said] = wrong.heard()
  assert.deepEqual([said?.error?.code, said?.how.status], [-32020, 400])
  assert.deepEqual(asked, [
    [{ type: 'object', properties: { text: { type: 'string' } } }, { text: 'x' }],
  ])
  assert.equal((await take('hidden', 'wrong')).heard()[0]?.error?.message, 'tool denied: hidden')
  assert.equal(asked.length, 1)
  assert.equal(textOf((await take('echo', null)).heard()[0] ?? {}), 'x')
})
