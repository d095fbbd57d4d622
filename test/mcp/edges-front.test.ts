// The edge cases of the protocol that concern clients, by their numbers in the list of the thirty hardest.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { type Desk, type Heard, META26, open, type Post } from './front/desk.ts'

const NAME = 'io.modelcontextprotocol/'
const TASKS = { extensions: { [`${NAME}tasks`]: {} } }
const declares = (capabilities: object): object => ({
  [`${NAME}clientCapabilities`]: capabilities,
})
const call = (name: string, args: object = {}): object => ({ name, arguments: args })
const textOf = ({ result }: Heard): unknown =>
  (result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const request = (id: unknown, method: string, params: object, meta: object = META26): object => ({
  jsonrpc: '2.0',
  id,
  method,
  params: { ...params, _meta: meta },
})
const channels = (t: TestContext, allow: readonly string[]): Promise<Desk> =>
  open(t, {
    ids: 'channel',
    eras: 'modern',
    profile: { allow, resources: ['notes://*'] },
    tools: { 'up/hang': { effect: 'read' } },
  })
async function said(desk: Desk, line: unknown): Promise<Post> {
  const post = desk.channel()
  desk.say(line, post)
  await desk.until('the answer', () => post.dones() === 1)
  return post
}

test('edge 6: no clientInfo is served, no clientCapabilities is refused', async (t) => {
  const desk = await channels(t, ['up/echo'])
  const { [`${NAME}clientInfo`]: _info, ...nameless } = META26
  const served = await said(desk, request(1, 'tools/call', call('echo', { text: 'x' }), nameless))
  assert.equal(textOf(served.heard()[0] ?? {}), 'x')
  const { [`${NAME}clientCapabilities`]: _able, ...bare } = META26
  const refused = await said(desk, request(1, 'tools/list', {}, bare))
  const [first] = refused.heard()
  assert.deepEqual([first?.error?.code, first?.how.status], [-32602, 400])
})

test('edge 7: initialize with an envelope does not exist, without one it is a handshake of the old era', async (t) => {
  const desk = await open(t)
  const post = await said(desk, request(1, 'initialize', { protocolVersion: '2026-07-28' }))
  const [first] = post.heard()
  assert.deepEqual([first?.error?.code, first?.how.status], [-32601, 404])
  assert.equal(desk.front.session(), null)
  const greeting = await desk.greet('2026-07-28')
  assert.equal(greeting.result?.['protocolVersion'], '2025-11-25')
})

test('edge 8: initialize may follow a discover on the same stream', async (t) => {
  const desk = await open(t)
  assert.equal((await desk.modern('server/discover')).error, undefined)
  assert.equal((await desk.greet()).result?.['protocolVersion'], '2025-11-25')
  assert.equal(textOf(await desk.legacy('tools/call', call('echo', { text: 'x' }))), 'x')
})

test('edge 12: 1 and "1" are two requests, and each answer has the type of its id', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/after'] } })
  desk.say(request(1, 'tools/call', call('after', { ms: 30, label: 'number' })))
  desk.say(request('1', 'tools/call', call('after', { ms: 10, label: 'string' })))
  assert.equal(textOf(await desk.wait(({ id }) => id === 1)), 'number')
  assert.equal(textOf(await desk.wait(({ id }) => id === '1')), 'string')
})

test('edge 13: tokens keep their type, may be equal in two requests, and end with the response', async (t) => {
  const desk = await channels(t, ['up/progress'])
  const posts = [7, '7', 7].map((progressToken) => {
    const post = desk.channel()
    const params = call('progress', { values: [1, 2], ms: 5 })
    desk.say(request(1, 'tools/call', params, { ...META26, progressToken }), post)
    return { post, progressToken }
  })
  await desk.until('all answers', () => posts.every(({ post }) => post.dones() === 1))
  for (const { post, progressToken } of posts) {
    const heard = post.heard()
    assert.deepEqual(
      heard.map(({ params }) => params?.['progressToken']),
      [progressToken, progressToken, undefined],
    )
  }
})

test('edge 14: a modern stream that is closed cancels, a legacy one does not', async (t) => {
  const desk = await channels(t, ['up/hang'])
  const closed = desk.channel()
  desk.say(request(1, 'tools/call', call('hang')), closed)
  desk.front.gone(closed)
  await desk.until('the record', () => desk.audit().some(({ code }) => code === 'cancelled'))
  const session = await open(t, { profile: { allow: ['up/after'] } })
  await session.greet()
  const broken = session.channel()
  const params = call('after', { ms: 50, label: 'L' })
  session.say({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }, broken)
  session.front.gone(broken)
  await session.until('the answer', () => broken.dones() === 1)
  assert.equal(textOf(broken.heard()[0] ?? {}), 'L')
})

test('edge 15: a cancellation of an unknown or finished request does nothing, and nothing follows one', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/echo', 'up/hang'] } })
  const cancel = (requestId: unknown): void =>
    desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  for (const id of [99, 'x', null, {}, 1.5]) cancel(id)
  desk.say(request(1, 'tools/call', call('echo', { text: 'x' })))
  await desk.wait(({ id }) => id === 1)
  cancel(1)
  desk.say(request(2, 'tools/call', call('hang')))
  cancel(2)
  desk.say(request(3, 'tools/call', call('echo', { text: 'y' })))
  await desk.wait(({ id }) => id === 3)
  assert.deepEqual(
    desk.heard().map(({ id }) => id),
    [1, 3],
  )
})

const FORM = {
  method: 'elicitation/create',
  params: { message: 'm', requestedSchema: { type: 'object', properties: {} } },
}
const asked = (t: TestContext): Promise<Desk> =>
  open(t, {
    upstreams: { up: ['--era', 'modern'] },
    profile: { allow: ['up/inquire', 'up/echo'], client: { elicitation: true } },
    tools: { 'up/inquire': { args: { properties: { state: { maxLength: 10 } } } } },
  })
const ABLE = declares({ elicitation: {} })
const inquire = (state: string): object => call('inquire', { requests: { who: FORM }, state })
const answers = { inputResponses: { who: { action: 'decline' } } }

test('edge 17: a retry is decided anew, and a state of another call or another ledger is refused', async (t) => {
  const desk = await asked(t)
  const { result } = await desk.modern('tools/call', inquire('s'), ABLE)
  const requestState = result?.['requestState']
  const longer = { ...inquire('longer than allowed'), ...answers, requestState }
  assert.equal((await desk.modern('tools/call', longer, ABLE)).error?.code, -32602)
  const changed = { ...inquire('t'), ...answers, requestState }
  assert.equal((await desk.modern('tools/call', changed, ABLE)).error?.code, -32602)
  const other = await asked(t)
  const foreign = { ...inquire('s'), ...answers, requestState }
  assert.equal((await other.modern('tools/call', foreign, ABLE)).error?.code, -32602)
  const intents = desk.audit().filter(({ kind }) => kind === 'intent')
  assert.equal(intents.length, 1)
})

test('edge 18: a retry has the state byte for byte under a new id, and a parallel call none', async (t) => {
  const desk = await asked(t)
  const { result } = await desk.modern('tools/call', inquire('s'), ABLE)
  const state = String(result?.['requestState'])
  for (const requestState of [`${state} `, state.toUpperCase()]) {
    const marks = { ...inquire('s'), ...answers, requestState }
    assert.equal((await desk.modern('tools/call', marks, ABLE)).error?.code, -32602)
  }
  const beside = await desk.modern('tools/call', call('echo', { text: 'x' }), ABLE)
  assert.equal(textOf(beside), 'x')
  // Without the state it is another call, which carries nothing of this one.
  const first = await desk.modern('tools/call', { ...inquire('s'), ...answers }, ABLE)
  assert.match(JSON.stringify(first.result?.['structuredContent']), /"state":null/)
  const retried = { ...inquire('s'), ...answers, requestState: state }
  const done = await desk.modern('tools/call', retried, ABLE)
  assert.match(JSON.stringify(done.result?.['structuredContent']), /"state":"s"/)
})

test('edge 19: what the request did not declare is never forwarded, and named as an object', async (t) => {
  const desk = await asked(t)
  const post = await said(desk, request('r', 'tools/call', inquire('s')))
  const [first] = post.heard()
  assert.deepEqual([first?.error?.code, first?.how.status], [-32021, 400])
  assert.deepEqual(first?.error?.data?.['requiredCapabilities'], { elicitation: { form: {} } })
})

const tasks = (t: TestContext): Promise<Desk> =>
  open(t, {
    upstreams: { up: ['--serve', 'tools,tasks'] },
    profile: { allow: ['up/begin', 'up/raw'] },
  })

test('edge 21: a task goes only to who declared the extension, another kind of result to nobody', async (t) => {
  const desk = await tasks(t)
  const begin = call('begin', { id: 'x' })
  const made = await desk.modern('tools/call', begin, declares(TASKS))
  assert.equal(made.result?.['resultType'], 'task')
  for (const [params, capabilities] of [
    [begin, {}],
    [call('raw', { result: '{"resultType":"later","content":[]}' }), TASKS],
    [call('raw', { result: '{"resultType":"input_required"}' }), TASKS],
  ] as const) {
    const { result, error } = await desk.modern('tools/call', params, declares(capabilities))
    assert.ok(error !== undefined || result?.['isError'] === true)
    assert.notEqual(result?.['resultType'], 'later')
    assert.notEqual(result?.['resultType'], 'task')
  }
})

test('edge 22: a task id is its own client’s, and its result passes like that of its tool', async (t) => {
  const desk = await tasks(t)
  const made = await desk.modern('tools/call', call('begin', { id: 'x' }), declares(TASKS))
  const taskId = made.result?.['taskId']
  const got = await desk.modern('tasks/get', { taskId }, declares(TASKS))
  assert.match(JSON.stringify(got.result?.['result']), /result of x/)
  assert.equal(
    (await desk.modern('tasks/get', { taskId: 'x' }, declares(TASKS))).error?.code,
    -32602,
  )
  const other = await tasks(t)
  assert.equal((await other.modern('tasks/get', { taskId }, declares(TASKS))).error?.code, -32602)
})

test('edge 23: the acknowledgement comes first, only what was asked follows, and ids keep their type', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/echo', 'up/change', 'up/fresh'] } })
  const wish = { notifications: { toolsListChanged: true } }
  const posts = [3, '3'].map((id) => {
    const post = desk.channel()
    desk.say(request(id, 'subscriptions/listen', wish), post)
    return post
  })
  await desk.until('both', () => posts.every((post) => post.heard().length === 1))
  const tool = { name: 'fresh', inputSchema: { type: 'object' } }
  await desk.modern('tools/call', call('change', { tools: [tool] }))
  await desk.until('the change', () => posts.every((post) => post.heard().length === 2))
  await desk.front.drain()
  for (const [at, id] of [3, '3'].entries()) {
    const heard = posts[at]?.heard() ?? []
    assert.deepEqual(
      heard.map(({ method }) => method),
      ['notifications/subscriptions/acknowledged', 'notifications/tools/list_changed', undefined],
    )
    for (const { params, result } of heard) {
      const meta = (params ?? result)?.['_meta'] as Record<string, unknown>
      assert.strictEqual(meta[`${NAME}subscriptionId`], id)
    }
  }
})

test('edge 24: an update below the subscribed resource is delivered under its own URI', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/touch'], resources: ['notes://*'] } })
  await desk.greet()
  await desk.legacy('resources/subscribe', { uri: 'notes://a' })
  await desk.legacy('tools/call', call('touch', { uri: 'notes://ab' }))
  await desk.legacy('tools/call', call('touch', { uri: 'notes://a/b' }))
  const notice = await desk.wait(({ method }) => method === 'notifications/resources/updated')
  assert.deepEqual(notice.params, { uri: 'notes://a/b' })
})

test('edge 25: what a server calls public is private behind a filter', async (t) => {
  const desk = await open(t, {
    upstreams: { up: ['--ttl', '5000'] },
    profile: { resources: ['notes://*'], prompts: ['*'] },
  })
  const asks: readonly (readonly [string, object])[] = [
    ['tools/list', {}],
    ['prompts/list', {}],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'notes://a' }],
    ['server/discover', {}],
  ]
  for (const [method, params] of asks) {
    const { result } = await desk.modern(method, params)
    assert.equal(result?.['cacheScope'], 'private', method)
    assert.equal(typeof result?.['ttlMs'], 'number', method)
  }
})

test('edge 26: an empty cursor is a cursor, and none of ours is -32602', async (t) => {
  const desk = await open(t)
  for (const cursor of ['', 'at:0', 'at:1']) {
    assert.equal((await desk.modern('tools/list', { cursor })).error?.code, -32602)
  }
})

test('edge 27: a list does not depend on what was called or on the connection, and keeps its order', async (t) => {
  const desk = await open(t, {
    upstreams: { b: [], a: [] },
    profile: { allow: ['a/echo', 'b/echo'] },
  })
  const names = ({ result }: Heard): unknown =>
    (result?.['tools'] as { name: string }[]).map(({ name }) => name)
  const first = names(await desk.modern('tools/list'))
  await desk.modern('tools/call', call('a__echo', { text: 'x' }))
  assert.deepEqual(names(await desk.modern('tools/list')), first)
  await desk.greet()
  assert.deepEqual(names(await desk.legacy('tools/list')), first)
  assert.deepEqual(first, ['b__echo', 'a__echo'])
})

test('edge 28: no log message without a level in its request, and never on a stream of subscriptions', async (t) => {
  const desk = await channels(t, ['up/log'])
  const stream = desk.channel()
  const wish = { notifications: { toolsListChanged: true } }
  const level = { ...META26, [`${NAME}logLevel`]: 'debug' }
  desk.say(request(1, 'subscriptions/listen', wish, level), stream)
  await desk.until('the acknowledgement', () => stream.heard().length === 1)
  const log = call('log', { entries: [{ level: 'error', data: 'x' }] })
  const quiet = await said(desk, request(1, 'tools/call', log))
  const loud = await said(desk, request(1, 'tools/call', log, level))
  assert.deepEqual([quiet.heard().length, loud.heard().length, stream.heard().length], [1, 2, 1])
})

test('edge 29: structured content that is no object is wrapped for a session and left alone otherwise', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/raw'] } })
  await desk.greet()
  for (const value of ['[1,2]', '"x"', 'null']) {
    const raw = call('raw', {
      result: `{"resultType":"complete","content":[],"structuredContent":${value}}`,
    })
    const modern = await desk.modern('tools/call', raw)
    assert.deepEqual(modern.result?.['structuredContent'], JSON.parse(value))
    const legacy = await desk.legacy('tools/call', raw)
    assert.deepEqual(legacy.result?.['structuredContent'], { result: JSON.parse(value) as unknown })
    assert.deepEqual(legacy.result?.['content'], [{ type: 'text', text: value }])
  }
})

test('edge 30: what is forwarded means what was inspected', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/source'] } })
  const meta = JSON.stringify(META26)
  const line = (id: string, args: string): string =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"source","arguments":${args},"_meta":${meta}}}`
  const refused: readonly string[] = [
    line('1', '{"a":1,"a":2}'),
    line('1', '{"__proto__":{}}'),
    line('null', '{}'),
    line('1.5', '{}'),
    `[${line('1', '{}')}]`,
  ]
  for (const [at, one] of refused.entries()) {
    desk.say(one)
    await desk.until('a refusal', () => desk.heard().length === at + 1)
    assert.ok([-32600, -32602].includes(desk.heard()[at]?.error?.code ?? 0), one)
  }
  desk.say(line('2', '{"big":12345678901234567890,"one":1.0,"odd":{"later":true}}'))
  const source = textOf(await desk.wait(({ id }) => id === 2))
  assert.match(String(source), /\{"big":12345678901234567890,"one":1\.0,"odd":\{"later":true\}\}/)
})
