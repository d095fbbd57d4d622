// Subscriptions: a session that subscribes, and streams that listen.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Doors } from '../../../src/gateway.ts'
import { object } from '../../../src/json.ts'
import { type Desk, type Heard, META26, open, type Post } from './desk.ts'

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId'
const listen = (id: number | string, notifications: unknown, meta: object = {}): object => ({
  jsonrpc: '2.0',
  id,
  method: 'subscriptions/listen',
  params: { notifications, _meta: { ...META26, ...meta } },
})
const idOf = ({ params, result }: Heard): unknown =>
  ((params ?? result)?.['_meta'] as Record<string, unknown> | undefined)?.[SUBSCRIPTION]
const profile = {
  allow: ['up/echo', 'up/change', 'up/touch', 'up/subscribed', 'up/new_tool'],
  resources: ['notes://public/*', 'notes://a'],
}
const touch = (desk: Desk, uri: string): Promise<Heard> =>
  desk.modern('tools/call', { name: 'touch', arguments: { uri } })
const subscribed = async (desk: Desk): Promise<Record<string, unknown>> => {
  const { result } = await desk.modern('tools/call', { name: 'subscribed', arguments: {} })
  return result?.['structuredContent'] as Record<string, unknown>
}

async function begin(desk: Desk, id: number | string, wish: unknown): Promise<Post> {
  const post = desk.channel()
  desk.say(listen(id, wish), post)
  await desk.until('the acknowledgement', () => post.heard().length > 0)
  return post
}

for (const era of ['modern', 'legacy']) {
  test(`a stream first hears what is honoured, then only that, in front of a ${era} server`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    const post = await begin(desk, 7, {
      toolsListChanged: false,
      promptsListChanged: true,
      resourceSubscriptions: ['notes://a', 'notes://private', 'notes://a'],
      unknown: 1,
    })
    const [ack] = post.heard()
    assert.equal(ack?.method, 'notifications/subscriptions/acknowledged')
    assert.deepEqual(ack?.params?.['notifications'], { resourceSubscriptions: ['notes://a'] })
    assert.strictEqual(idOf(ack ?? {}), 7)
    assert.equal(ack?.how.weight, 'ask')
    await touch(desk, 'notes://b')
    await touch(desk, 'notes://a')
    await desk.until('the notice', () => post.heard().length > 1)
    const [, notice] = post.heard()
    assert.equal(notice?.method, 'notifications/resources/updated')
    assert.deepEqual(notice?.params, { uri: 'notes://a', _meta: { [SUBSCRIPTION]: 7 } })
    assert.equal(post.heard().length, 2)
    const reads = desk.audit().filter(({ method }) => method === 'resources/subscribe')
    assert.deepEqual(reads.map(({ name, decision }) => [name, decision]).sort(), [
      ['notes://a', 'allow'],
      ['notes://private', 'deny'],
    ])
  })

  test(`a session hears what it subscribed to, and parts of it, until it unsubscribes, in front of a ${era} server`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    const greeting = await desk.greet()
    const { resources } = greeting.result?.['capabilities'] as Record<string, unknown>
    assert.deepEqual(resources, { subscribe: true, listChanged: true })
    const subscribe = (uri: string): Promise<Heard> => desk.legacy('resources/subscribe', { uri })
    assert.deepEqual((await subscribe('notes://public/1')).result, {})
    assert.deepEqual((await subscribe('notes://public/1')).result, {})
    const denied = await subscribe('notes://private')
    assert.equal(denied.error?.message, 'resource denied: notes://private')
    assert.equal((await desk.legacy('resources/subscribe', {})).error?.code, -32602)
    const told = (): unknown[] =>
      desk
        .heard()
        .filter(({ method }) => method === 'notifications/resources/updated')
        .map(({ params }) => params)
    for (const uri of ['notes://public/1', 'notes://public/1/part', 'notes://public/10']) {
      await touch(desk, uri)
    }
    await desk.until('two notices', () => told().length === 2)
    assert.deepEqual(told(), [{ uri: 'notes://public/1' }, { uri: 'notes://public/1/part' }])
    const gone = await desk.legacy('resources/unsubscribe', { uri: 'notes://public/1' })
    assert.deepEqual(gone.result, {})
    const { uris } = await subscribed(desk)
    assert.deepEqual(uris, [])
    await touch(desk, 'notes://public/1')
    assert.equal(told().length, 2)
  })
}

test('a stream ends silently when its client ends it, and the server hears of it', async (t) => {
  const desk = await open(t, { upstreams: { up: ['--era', 'legacy'] }, profile })
  const wish = { resourceSubscriptions: ['notes://a'] }
  const closed = await begin(desk, 1, wish)
  assert.deepEqual((await subscribed(desk))['uris'], ['notes://a'])
  desk.front.gone(closed)
  await desk.until('the end', () => closed.dones() === 1)
  const cancelled = await begin(desk, 'one', wish)
  desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'one' } })
  await desk.until('the end', () => cancelled.dones() === 1)
  await touch(desk, 'notes://a')
  assert.deepEqual([closed.heard().length, cancelled.heard().length], [1, 1])
  assert.deepEqual((await subscribed(desk))['uris'], [])
})

test('when the gateway stops, a stream ends with the result that names it', async (t) => {
  const desk = await open(t, { profile })
  const posts = [await begin(desk, 5, { toolsListChanged: true }), await begin(desk, '5', {})]
  assert.deepEqual(posts[1]?.heard()[0]?.params?.['notifications'], {})
  await desk.front.drain()
  for (const [at, id] of [5, '5'].entries()) {
    const last = posts[at]?.heard().at(-1)
    assert.strictEqual(last?.id, id)
    assert.equal(last?.result?.['resultType'], 'complete')
    assert.strictEqual(idOf(last ?? {}), id)
    assert.equal(posts[at]?.dones(), 1)
  }
})

test('a stream hears of a list soon, once for many changes, and only when its own view changed', async (t) => {
  const desk = await open(t, { profile })
  const post = await begin(desk, 1, { toolsListChanged: true })
  const deaf = await begin(desk, 2, { resourcesListChanged: true })
  const STORM_MS = 2_000
  const change = (...added: string[]): Promise<Heard> =>
    desk.modern('tools/call', {
      name: 'change',
      arguments: {
        tools: added.map((name) => ({ name, inputSchema: { type: 'object' } })),
        times: 20,
        ms: STORM_MS / 20,
      },
    })
  const started = performance.now()
  await change('new_tool')
  await desk.until('a notice', () => post.heard().length > 1)
  const waited = performance.now() - started
  assert.ok(waited < STORM_MS, `${waited} ms`)
  assert.equal(post.heard()[1]?.method, 'notifications/tools/list_changed')
  assert.deepEqual(post.heard()[1]?.params, { _meta: { [SUBSCRIPTION]: 1 } })
  await change('new_tool', 'hidden_tool')
  await change()
  await desk.until('the next notice', () => post.heard().length > 2)
  assert.equal(post.heard().length, 3)
  assert.equal(deaf.heard().length, 1)
})

test('a wish of the wrong shape is -32602, tasks need their extension, and a flood of resources is refused', async (t) => {
  const desk = await open(t, { profile })
  const wrong: readonly unknown[] = [
    undefined,
    [],
    { toolsListChanged: 1 },
    { promptsListChanged: null },
    { resourceSubscriptions: 'notes://a' },
    { resourceSubscriptions: [1] },
    { resourceSubscriptions: Array.from({ length: 1001 }, (_, n) => `notes://public/${n}`) },
    { resourceSubscriptions: [`notes://public/${'x'.repeat(3000)}`] },
    { taskIds: [1] },
  ]
  for (const wish of wrong) {
    const refused = await desk.modern('subscriptions/listen', { notifications: wish })
    assert.equal(refused.error?.code, -32602, JSON.stringify(wish)?.slice(0, 80))
  }
  const post = await begin(desk, 1, { taskIds: ['t'] })
  assert.equal(post.heard()[0]?.error?.code, -32021)
  assert.deepEqual(post.heard()[0]?.error?.data?.['requiredCapabilities'], {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  })
  const streams = Array.from({ length: 64 }, (_, n) => begin(desk, `s${n}`, {}))
  await Promise.all(streams)
  const full = await begin(desk, 'more', {})
  assert.match(JSON.stringify(full.heard()[0]?.error?.data), /too_many_calls/)
  // Streams take no place of calls: the session still reads.
  assert.ok(desk.front.ready())
  assert.equal((await desk.modern('tools/call', { name: 'echo' })).error, undefined)
})

test('a policy that changed stops the notices at once', async (t) => {
  let isOpen = true
  const coat = (doors: Doors): Doors => {
    const set = doors.policy()
    const closed = { ...set, profiles: new Map(set.profiles) }
    const agent = set.profiles.get('agent')
    assert.ok(agent !== undefined)
    closed.profiles.set('agent', { ...agent, resources: [] })
    return { ...doors, policy: () => (isOpen ? set : closed) }
  }
  const desk = await open(t, { profile, coat })
  await desk.greet()
  await desk.legacy('resources/subscribe', { uri: 'notes://a' })
  const post = await begin(desk, 1, { resourceSubscriptions: ['notes://a'] })
  await touch(desk, 'notes://a')
  await desk.until('the notice', () => post.heard().length === 2)
  isOpen = false
  await touch(desk, 'notes://a')
  await touch(desk, 'notes://a')
  assert.equal(post.heard().length, 2)
  const told = desk.heard().filter(({ method }) => method === 'notifications/resources/updated')
  assert.equal(told.length, 1)
})

test("what a server says in another client's own session is told to nobody else", async (t) => {
  const desk = await open(t, { profile })
  await desk.greet()
  await desk.legacy('resources/subscribe', { uri: 'notes://a' })
  const before = desk.heard().length
  const params = object({ uri: 'notes://a' })
  const log = object({ level: 'error', data: 'x' })
  desk.front.updated('up', params, 'another')
  desk.front.logged(log, 'another')
  assert.equal(desk.heard().length, before)
  desk.front.updated('up', params, 'agent')
  desk.front.logged(log, 'agent')
  desk.front.updated('up', params, null)
  desk.front.logged(log, null)
  assert.equal(desk.heard().length, before + 4)
})

test('streams and resources that are asked for at the same moment are counted together', async (t) => {
  const desk = await open(t, { profile })
  const uris = Array.from({ length: 400 }, (_, n) => `notes://public/${n}`)
  const posts = Array.from({ length: 4 }, (_, n) => {
    const post = desk.channel()
    desk.say(listen(`u${n}`, { resourceSubscriptions: uris }), post)
    return post
  })
  const streams = Array.from({ length: 70 }, (_, n) => {
    const post = desk.channel()
    desk.say(listen(`s${n}`, {}), post)
    return post
  })
  const all = [...posts, ...streams]
  await desk.until('all are told', () => all.every((post) => post.heard().length > 0))
  const refused = (some: readonly Post[]): number =>
    some.filter((post) => /too_many_calls/.test(JSON.stringify(post.heard()))).length
  assert.deepEqual([refused(posts), refused(streams)], [2, 70 - 62])
})
