// Play scripts: lines in, lines out, with real servers behind.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Desk, type Heard, META26, open } from './desk.ts'

const call = (name: string, args: object = {}): object => ({ name, arguments: args })
const textOf = ({ result }: Heard): unknown =>
  (result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const names = ({ result }: Heard, member = 'tools'): unknown =>
  ((result ?? {})[member] as { name: string }[]).map(({ name }) => name)
const kinds = (desk: Desk): unknown[] => desk.audit().map(({ kind }) => kind)
const refusals = (desk: Desk): unknown[] =>
  desk.audit().filter(({ decision }) => decision === 'deny')

test('a modern client lists and calls without a handshake', async (t) => {
  const desk = await open(t)
  const first = await desk.modern('tools/call', call('echo', { text: 'olá' }))
  assert.equal(textOf(first), 'olá')
  assert.equal(first.result?.['resultType'], 'complete')
  const listed = await desk.modern('tools/list')
  assert.deepEqual(names(listed), ['echo', 'after', 'meta'])
  const { resultType, ttlMs, cacheScope, nextCursor } = listed.result ?? {}
  assert.deepEqual(
    [resultType, ttlMs, cacheScope, nextCursor],
    ['complete', 0, 'private', undefined],
  )
  const denied = await desk.modern('tools/call', call('mutate'))
  assert.deepEqual(denied.error, {
    code: -32602,
    message: 'tool denied: mutate',
    data: { 'eclusa/refusal': { code: 'tool_denied' } },
  })
})

test('a legacy session sees nothing of the modern era', async (t) => {
  const desk = await open(t, { profile: { prompts: ['*'], resources: ['notes://*'] } })
  const greeting = await desk.greet('2025-06-18')
  assert.equal(greeting.result?.['protocolVersion'], '2025-06-18')
  assert.deepEqual(greeting.result?.['capabilities'], {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    completions: {},
    logging: {},
  })
  assert.deepEqual(Object.keys((await desk.legacy('tools/list')).result ?? {}), ['tools'])
  const answer = await desk.legacy('tools/call', call('echo', { text: 'x' }))
  assert.deepEqual(answer.result, { content: [{ type: 'text', text: 'x' }] })
  assert.deepEqual((await desk.legacy('ping')).result, {})
})

test('a probe does not pin the connection: initialize may follow, each request speaks for itself', async (t) => {
  const desk = await open(t)
  const found = await desk.modern('server/discover')
  assert.deepEqual(found.result?.['supportedVersions'], ['2026-07-28'])
  assert.deepEqual(found.result?.['capabilities'], { tools: { listChanged: true }, logging: {} })
  assert.equal((await desk.legacy('tools/list')).error?.code, -32602)
  assert.deepEqual((await desk.legacy('ping')).result, {})
  assert.equal((await desk.modern('initialize')).error?.code, -32601)
  const greeting = await desk.greet('2026-07-28')
  assert.equal(greeting.result?.['protocolVersion'], '2025-11-25')
  assert.equal((await desk.legacy('tools/list')).result?.['resultType'], undefined)
  assert.equal((await desk.modern('tools/list')).result?.['resultType'], 'complete')
  for (const gone of ['ping', 'logging/setLevel', 'resources/subscribe', 'tasks/result']) {
    assert.equal((await desk.modern(gone)).error?.code, -32601, gone)
  }
})

test('what follows initialize without waiting is read as its session and answered after it', async (t) => {
  const desk = await open(t)
  desk.say({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18' },
  })
  desk.say({ jsonrpc: '2.0', id: 2, method: 'ping' })
  desk.say({ jsonrpc: '2.0', id: 3, method: 'tools/call', params: call('echo', { text: 'x' }) })
  assert.equal(textOf(await desk.wait(({ id }) => id === 3)), 'x')
  assert.deepEqual(
    desk.heard().map(({ id }) => id),
    [1, 2, 3],
  )
})

test('every refusal of a message has its record before its answer', async (t) => {
  const desk = await open(t)
  const lines: readonly (readonly [string, number])[] = [
    ['{"jsonrpc":"2.0",', -32700],
    ['[]', -32600],
    ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', -32602],
    ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32602],
  ]
  for (const [at, [line, code]] of lines.entries()) {
    desk.say(line)
    await desk.wait(() => desk.heard().length > at)
    assert.equal(desk.heard()[at]?.error?.code, code, line)
    assert.equal(refusals(desk).length, at + 1, line)
  }
  const meta = { _meta: META26 }
  const nameless = [undefined, null, 5, '', ['x'], { a: 1 }]
  for (const name of nameless) {
    const answer = await desk.modern('tools/call', { ...meta, name })
    assert.equal(answer.error?.code, -32602)
  }
  for (const odd of ['Tools/Call', 'tools/call ', 'tools//call', 'tools/call\0', 'vendor/exec']) {
    assert.equal((await desk.modern(odd, call('echo'))).error?.code, -32601, odd)
  }
  assert.equal(
    (await desk.modern('tools/call', { name: 'echo', arguments: [] })).error?.code,
    -32602,
  )
  assert.equal((await desk.modern('tools/list', { cursor: '' })).error?.code, -32602)
  const wrong = await desk.modern(
    'tools/list',
    {},
    { 'io.modelcontextprotocol/protocolVersion': '1' },
  )
  assert.deepEqual(wrong.error?.data?.['supported'], ['2026-07-28'])
  assert.equal(refusals(desk).length, lines.length + nameless.length + 5 + 3)
  assert.ok(!kinds(desk).includes('intent'))
})

test('a batch is taken in a session of 2025-03-26 only, each element on its own', async (t) => {
  const batch = [
    { jsonrpc: '2.0', id: 'a', method: 'tools/call', params: call('echo', { text: 'A' }) },
    { jsonrpc: '2.0', method: 'notifications/initialized' },
    7,
    { jsonrpc: '2.0', id: 'b', method: 'initialize', params: { protocolVersion: '2025-11-25' } },
    { jsonrpc: '2.0', id: 'c', method: 'ping' },
  ]
  const old = await open(t)
  await old.greet('2025-03-26')
  old.say(batch)
  const answers = await Promise.all(
    ['a', null, 'b', 'c'].map((id) => old.wait((message) => message.id === id)),
  )
  assert.equal(textOf(answers[0] ?? {}), 'A')
  assert.deepEqual(
    answers.map(({ error }) => error?.code),
    [undefined, -32600, -32600, undefined],
  )
  assert.equal(old.heard().length, 5)
  const later = await open(t)
  await later.greet('2025-06-18')
  later.say(batch)
  const refused = await later.wait(({ error }) => error !== undefined)
  assert.deepEqual([refused.id, refused.error?.code], [null, -32600])
  assert.equal((await later.legacy('ping')).error, undefined)
  assert.equal(later.heard().length, 3)
})

test('the ceiling of calls at once refuses with a record and never blocks a cancellation', async (t) => {
  const desk = await open(t, { calls: 2, profile: { allow: ['up/after', 'up/echo', 'up/hang'] } })
  await desk.greet()
  const slow = (id: number): object => ({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: call('after', { ms: 1500, label: `label ${id}` }),
  })
  desk.say(slow(1))
  desk.say(slow(2))
  desk.say(slow(3))
  const full = await desk.wait(({ id }) => id === 3)
  assert.equal(full.result?.['isError'], true)
  const meta = full.result?.['_meta'] as Record<string, unknown>
  assert.deepEqual(meta['eclusa/refusal'], { code: 'too_many_calls' })
  assert.equal(refusals(desk).length, 1)
  assert.equal(textOf(await desk.wait(({ id }) => id === 1)), 'label 1')
  assert.equal(textOf(await desk.wait(({ id }) => id === 2)), 'label 2')
  assert.equal(textOf(await desk.legacy('tools/call', call('echo', { text: 'free' }))), 'free')
})

test('a cancelled call is not answered and its id is free again', async (t) => {
  const desk = await open(t, {
    profile: { allow: ['up/after', 'up/echo', 'up/hang'] },
    tools: { 'up/hang': { effect: 'read' } },
  })
  await desk.greet()
  desk.say({ jsonrpc: '2.0', id: 101, method: 'tools/call', params: call('hang') })
  desk.say({
    jsonrpc: '2.0',
    id: 102,
    method: 'tools/call',
    params: call('after', { ms: 100, label: 'F' }),
  })
  assert.equal(textOf(await desk.wait(({ id }) => id === 102)), 'F')
  desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: '101' } })
  desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 101 } })
  desk.say({ jsonrpc: '2.0', id: 101, method: 'tools/call', params: call('echo', { text: 'new' }) })
  assert.equal(textOf(await desk.wait(({ id }) => id === 101)), 'new')
  const closed = desk.audit().find(({ name, code }) => name === 'hang' && code === 'cancelled')
  assert.ok(closed !== undefined, JSON.stringify(desk.audit()))
  assert.equal(desk.heard().filter(({ id }) => id === 101).length, 1)
})

test('after a cancellation nothing more is said, also of what goes on', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/progress', 'up/echo'] } })
  await desk.greet()
  const values = [1, 2, 3, 4, 5, 6]
  desk.say({
    jsonrpc: '2.0',
    id: 5,
    method: 'tools/call',
    params: { ...call('progress', { values, ms: 60 }), _meta: { progressToken: 'p' } },
  })
  await desk.wait(({ method }) => method === 'notifications/progress')
  desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } })
  const said = desk.heard().length
  for (const id of [6, 6]) {
    desk.say({ jsonrpc: '2.0', id, method: 'tools/list' })
    desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
  }
  // The mutation runs to its end and is recorded.
  await desk.front.drain()
  assert.equal(desk.heard().length, said)
  const closed = desk.audit().filter(({ kind }) => kind === 'outcome')
  assert.deepEqual(
    closed.map(({ outcome, code }) => [outcome, code]),
    [['answered', 'cancelled']],
  )
})

test('progress and logs reach who asked, before the response, and nobody else', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/progress', 'up/log'] } })
  const values = call('progress', { values: [1, 5, 5, 3] })
  await desk.modern('tools/call', values, { progressToken: 'p' })
  assert.deepEqual(
    desk.heard().map(({ params }) => params?.['progress']),
    [1, 5, undefined],
  )
  assert.ok(
    desk.heard().every(({ params }) => params === undefined || params['progressToken'] === 'p'),
  )
  const entries = ['debug', 'info', 'warning', 'error'].map((level) => ({ level, data: level }))
  const before = desk.heard().length
  await desk.modern('tools/call', call('log', { entries }))
  assert.equal(desk.heard().length, before + 1)
  const level = { 'io.modelcontextprotocol/logLevel': 'warning' }
  await desk.modern('tools/call', call('log', { entries }), level)
  const logs = desk.heard().slice(before + 1)
  assert.deepEqual(
    logs.map(({ params }) => params?.['level']),
    ['warning', 'error', undefined],
  )
  const loud = { 'io.modelcontextprotocol/logLevel': 'loud' }
  assert.equal(
    (await desk.modern('tools/call', call('log', { entries }), loud)).error?.code,
    -32602,
  )

  await desk.greet()
  assert.equal((await desk.legacy('logging/setLevel', { level: 'loud' })).error?.code, -32602)
  assert.deepEqual((await desk.legacy('logging/setLevel', { level: 'error' })).result, {})
  const quiet = desk.heard().length
  await desk.legacy('tools/call', call('log', { entries }))
  assert.deepEqual(
    desk
      .heard()
      .slice(quiet)
      .map(({ params }) => params?.['level']),
    ['error', undefined],
  )
})

test('a changed list is told to a session once, and only if its own view changed', async (t) => {
  let looks = 0
  const desk = await open(t, {
    profile: { allow: ['up/change', 'up/echo', 'up/new_tool'] },
    coat: (doors) => ({
      ...doors,
      upstreams: {
        ...doors.upstreams,
        async list(upstream, kind) {
          const listed = await doors.upstreams.list(upstream, kind)
          if (listed.items.some(({ name }) => name === 'hidden_tool')) looks++
          return listed
        },
      },
    }),
  })
  await desk.greet()
  const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })
  await desk.legacy('tools/list')
  const change = (...added: string[]): Promise<Heard> =>
    desk.legacy('tools/call', call('change', { tools: added.map(tool), times: 50, ms: 200 }))
  await change('hidden_tool')
  await desk.until('the hidden change to be looked at', () => looks > 0)
  const { id } = await change('hidden_tool', 'new_tool')
  const isNotice = ({ method }: Heard): boolean => method === 'notifications/tools/list_changed'
  await desk.until('a notice after the second change', () => {
    const heard = desk.heard()
    return heard.findLastIndex(isNotice) > heard.findIndex((one) => one.id === id)
  })
  assert.deepEqual(names(await desk.legacy('tools/list')), ['echo', 'change', 'new_tool'])
  const told = desk.heard().filter(({ method }) => method !== undefined)
  assert.equal(told.length, 1, JSON.stringify(told))
})

test('only what servers declare is served', async (t) => {
  const desk = await open(t, {
    upstreams: { up: ['--serve', 'tools'] },
    profile: { prompts: ['*'], resources: ['notes://*'] },
  })
  const found = await desk.modern('server/discover')
  assert.deepEqual(found.result?.['capabilities'], { tools: { listChanged: true } })
  const asked: readonly (readonly [string, object])[] = [
    ['prompts/list', {}],
    ['prompts/get', { name: 'greet' }],
    ['resources/list', {}],
    ['resources/templates/list', {}],
    ['resources/read', { uri: 'notes://a' }],
  ]
  for (const [method, params] of asked) {
    assert.equal((await desk.modern(method, params)).error?.code, -32601, method)
  }
  await desk.greet()
  assert.equal((await desk.legacy('logging/setLevel', { level: 'info' })).error?.code, -32601)
})

test('prompts, resources, templates and completions pass under policy', async (t) => {
  const desk = await open(t, { profile: { prompts: ['*'], resources: ['notes://*'] } })
  assert.deepEqual(names(await desk.modern('prompts/list'), 'prompts'), ['greet'])
  const got = await desk.modern('prompts/get', { name: 'greet', arguments: { name: 'Ana' } })
  assert.match(JSON.stringify(got.result), /Ana/)
  const listed = await desk.modern('resources/list')
  assert.match(JSON.stringify(listed.result), /notes:\/\/public\/1/)
  const templates = await desk.modern('resources/templates/list')
  assert.match(JSON.stringify(templates.result), /notes:\/\/\{id\}/)
  const read = await desk.modern('resources/read', { uri: 'notes://77' })
  assert.deepEqual(
    [read.result?.['ttlMs'] !== undefined, read.result?.['cacheScope']],
    [true, 'private'],
  )
  const completed = await desk.modern('completion/complete', {
    ref: { type: 'ref/prompt', name: 'greet' },
    argument: { name: 'name', value: 'A' },
  })
  assert.match(JSON.stringify(completed.result), /A1/)
  const denied = await desk.modern('resources/read', { uri: 'other://1' })
  assert.deepEqual(denied.error, {
    code: -32602,
    message: 'resource denied: other://1',
    data: { uri: 'other://1', 'eclusa/refusal': { code: 'resource_denied' } },
  })
  const closed = await open(t)
  assert.equal(
    (await closed.modern('prompts/get', { name: 'greet' })).error?.message,
    'prompt denied: greet',
  )
  assert.equal(
    (await closed.modern('prompts/get', { name: 'nosuch' })).error?.message,
    'prompt denied: nosuch',
  )
})

test('what a server asks of clients is refused cleanly', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/input', 'up/task', 'up/refuse'] } })
  const task = await desk.modern('tools/call', call('task'))
  assert.equal(task.result?.['isError'], true)
  assert.equal(task.result?.['resultType'], 'complete')
  assert.match(JSON.stringify(task.result?.['_meta']), /"code":"answer_refused"/)
  // A server that asks nothing and only wants the call again is no question to the client.
  const input = await desk.modern('tools/call', call('input'))
  assert.equal(input.result?.['resultType'], 'input_required')
  assert.equal(input.result?.['inputRequests'], undefined)
})

test('the store cannot record: nothing is sent and the client is told so', async (t) => {
  const { Fault } = await import('../../../src/fault.ts')
  const failing = (): Promise<never> =>
    Promise.reject(new Fault('not_recorded', 'the disk is full'))
  const desk = await open(t, {
    coat: (doors) => ({ ...doors, store: { ...doors.store, open: failing, append: failing } }),
  })
  const answer = await desk.modern('tools/call', call('echo', { text: 'x' }))
  assert.equal(answer.error?.code, -32603)
  assert.deepEqual(answer.error?.data, { 'eclusa/refusal': { code: 'not_recorded' } })
  desk.say('{')
  const malformed = await desk.wait(({ id }) => id === null)
  assert.deepEqual(malformed.error?.data, { 'eclusa/refusal': { code: 'not_recorded' } })
  desk.say('{"jsonrpc":"2.0","method":"x","params":[]}')
  await desk.front.drain()
  assert.equal(desk.heard().length, 2)
})

test('after the drain began calls are turned away with a record', async (t) => {
  const desk = await open(t)
  await desk.modern('tools/list')
  const drained = desk.front.drain()
  const answer = await desk.modern('tools/call', call('echo', { text: 'late' }))
  assert.match(JSON.stringify(answer.result?.['_meta']), /"code":"draining"/)
  await drained
  assert.ok(!kinds(desk).includes('intent'))
})
