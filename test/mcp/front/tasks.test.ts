// Tasks of a modern server, as its clients see them.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Doors } from '../../../src/gateway.ts'
import { type Desk, type Heard, META26, open, type Post } from './desk.ts'

const TASKS = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const DECLARED = { [CAPABILITIES]: { extensions: { [TASKS]: {} } } }
const setup = {
  upstreams: { up: ['--serve', 'tools,tasks,resources'] },
  profile: { allow: ['up/begin', 'up/echo'] },
  tools: { 'up/begin': { effect: 'write', key: { at: '/id' } } },
}
const begin = (desk: Desk, id: string, meta: object = DECLARED): Promise<Heard> =>
  desk.modern('tools/call', { name: 'begin', arguments: { id } }, meta)
const ask = (desk: Desk, method: string, taskId: unknown, more: object = {}): Promise<Heard> =>
  desk.modern(method, { taskId, ...more }, DECLARED)

test('a task bears a name of its own for its client, and ends as the result of its tool', async (t) => {
  const desk = await open(t, setup)
  const found = await desk.modern('server/discover')
  const { extensions } = found.result?.['capabilities'] as Record<string, unknown>
  assert.deepEqual(extensions, { [TASKS]: {} })
  const made = await begin(desk, 'task-of-the-server')
  assert.equal(made.result?.['resultType'], 'task')
  assert.equal(made.result?.['status'], 'working')
  const taskId = made.result?.['taskId']
  assert.doesNotMatch(String(taskId), /task-of-the-server/)

  const got = await ask(desk, 'tasks/get', taskId)
  assert.equal(got.result?.['resultType'], 'complete')
  assert.equal(got.result?.['status'], 'completed')
  assert.equal(got.result?.['taskId'], taskId)
  assert.match(JSON.stringify(got.result?.['result']), /result of task-of-the-server/)
  assert.deepEqual(
    (await ask(desk, 'tasks/update', taskId, { inputResponses: {} })).error,
    undefined,
  )
  const cancelled = await ask(desk, 'tasks/cancel', taskId)
  assert.equal(cancelled.result?.['resultType'], 'complete')
  const methods = desk
    .audit()
    .filter(({ method }) => String(method).startsWith('tasks/'))
    .map(({ method, decision }) => `${String(method)} ${String(decision)}`)
  for (const one of ['get', 'update', 'cancel']) assert.ok(methods.includes(`tasks/${one} allow`))
})

const watch = (desk: Desk, taskIds: readonly unknown[], id = 7): Post => {
  const post = desk.channel()
  const _meta = { ...META26, ...DECLARED }
  const params = { notifications: { taskIds }, _meta }
  desk.say({ jsonrpc: '2.0', id, method: 'subscriptions/listen', params }, post)
  return post
}
const toldOn = (post: Post): readonly Record<string, unknown>[] =>
  post
    .heard()
    .filter(({ method }) => method === 'notifications/tasks')
    .map(({ params = {} }) => params)

test('who listens to its tasks hears of each change until the end, each decided and recorded', async (t) => {
  const desk = await open(t, setup)
  const id = 'task-of-the-server'
  const made = await desk.modern(
    'tools/call',
    { name: 'begin', arguments: { id, told: { looks: 2 } } },
    DECLARED,
  )
  const taskId = made.result?.['taskId']
  const other = await open(t, setup)
  const foreign = (await begin(other, 't-1')).result?.['taskId']
  const post = watch(desk, [taskId, foreign, 'nosuch', taskId])
  await desk.until('the end of the task', () => toldOn(post).length === 3)
  const [ack] = post.heard()
  assert.deepEqual(ack?.params?.['notifications'], { taskIds: [taskId] })
  assert.deepEqual(
    toldOn(post).map(({ status, statusMessage }) => [status, statusMessage]),
    [
      ['working', '2 to go'],
      ['working', '1 to go'],
      ['completed', undefined],
    ],
  )
  for (const params of toldOn(post)) {
    assert.equal(params['taskId'], taskId)
    assert.equal('resultType' in params, false)
    assert.deepEqual(params['_meta'], { 'io.modelcontextprotocol/subscriptionId': 7 })
  }
  assert.match(JSON.stringify(toldOn(post)[2]?.['result']), /result of task-of-the-server/)
  const looks = desk.audit().filter(({ method }) => method === 'tasks/get')
  assert.deepEqual(
    looks.map(({ decision }) => decision),
    ['allow', 'allow', 'allow'],
  )
})

test('a listener hears nothing of a task once policy forbids it, and nothing of one that is forgotten', async (t) => {
  let isOpen = true
  const coat = (doors: Doors): Doors => {
    const set = doors.policy()
    const closed = { ...set, profiles: new Map() }
    return { ...doors, policy: () => (isOpen ? set : closed) }
  }
  const desk = await open(t, { ...setup, coat })
  const make = (id: string, told: object): Promise<Heard> =>
    desk.modern('tools/call', { name: 'begin', arguments: { id, told } }, DECLARED)
  const works = (await make('works', { looks: 1_000 })).result?.['taskId']
  const lost = (await make('lost', { forgotten: true })).result?.['taskId']
  const post = watch(desk, [works, lost])
  await desk.until('the first look', () => toldOn(post).length === 1)
  isOpen = false
  const denied = (): number =>
    desk.audit().filter(({ method, decision }) => method === 'tasks/get' && decision === 'deny')
      .length
  await desk.until('the refusal', () => denied() === 1)
  assert.ok(toldOn(post).every(({ taskId }) => taskId === works))
  const many = Array.from({ length: 33 }, () => works)
  const { error } = await desk.modern(
    'subscriptions/listen',
    { notifications: { taskIds: many } },
    DECLARED,
  )
  assert.equal(error?.code, -32602)
})

test('a client hears of so many tasks at once, over all its streams', async (t) => {
  const desk = await open(t, setup)
  const ids = Array.from({ length: 17 }, (_, at) => `task-${at}`)
  const told = { looks: 1_000 }
  const made = await Promise.all(
    ids.map((id) =>
      desk.modern('tools/call', { name: 'begin', arguments: { id, told } }, DECLARED),
    ),
  )
  const tasks = made.map(({ result }) => result?.['taskId'])
  const first = watch(desk, tasks, 70)
  await desk.until('the first stream', () => first.heard().length > 0)
  const listen = { notifications: { taskIds: tasks.slice(0, 16) } }
  const { error } = await desk.modern('subscriptions/listen', listen, DECLARED)
  assert.match(error?.message ?? '', /tasks/)
  const second = watch(desk, tasks.slice(0, 15), 71)
  await desk.until('the second stream', () => second.heard().length > 0)
  assert.equal(second.heard()[0]?.method, 'notifications/subscriptions/acknowledged')
})

test('a name that is no task of this client is told as unknown, whatever is wrong with it', async (t) => {
  const desk = await open(t, setup)
  const taskId = String((await begin(desk, 't-1')).result?.['taskId'])
  const other = await open(t, setup)
  const foreign = String((await begin(other, 't-1')).result?.['taskId'])
  const told = new Set<string>()
  for (const name of ['t-1', 'nosuch', foreign, `${taskId.slice(0, -2)}AA`]) {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const { error } = await ask(
        desk,
        method,
        name,
        method === 'tasks/update' ? { inputResponses: {} } : {},
      )
      assert.equal(error?.code, -32602, `${method} ${name}`)
      told.add(error?.message ?? '')
    }
  }
  assert.equal(told.size, 1)
  for (const name of [undefined, 1, '', null]) {
    assert.equal((await ask(desk, 'tasks/get', name)).error?.code, -32602)
  }
  for (const marks of [
    { inputResponses: [] },
    { inputResponses: { k: 1 } },
    { requestState: 's' },
  ]) {
    assert.equal((await ask(desk, 'tasks/update', taskId, marks)).error?.code, -32602)
  }
  assert.equal((await ask(desk, 'tasks/get', taskId, { inputResponses: {} })).error?.code, -32602)
})

test('who did not declare the extension gets no task and may not ask for one', async (t) => {
  const desk = await open(t, setup)
  const taskId = (await begin(desk, 't-1')).result?.['taskId']
  for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
    const refused = await desk.modern(method, { taskId })
    assert.equal(refused.error?.code, -32021)
    assert.deepEqual(refused.error?.data?.['requiredCapabilities'], { extensions: { [TASKS]: {} } })
  }
  const plain = await begin(desk, 't-2', {})
  assert.doesNotMatch(JSON.stringify(plain.result), /"taskId"|"resultType":"task"/)
  await desk.legacy('initialize', {
    protocolVersion: '2025-11-25',
    capabilities: { extensions: { [TASKS]: {} }, tasks: {} },
    clientInfo: { name: 't', version: '1' },
  })
  const greeting = desk.heard().at(-1)
  assert.equal(
    (greeting?.result?.['capabilities'] as { extensions?: unknown }).extensions,
    undefined,
  )
  const old = await desk.legacy('tools/call', { name: 'begin', arguments: { id: 't-3' } })
  assert.doesNotMatch(JSON.stringify(old.result), /"taskId"/)
  for (const method of ['tasks/get', 'tasks/list', 'tasks/result', 'tasks/cancel']) {
    assert.equal((await desk.legacy(method, { taskId })).error?.code, -32601, method)
  }
})

test('where no server has tasks their methods do not exist', async (t) => {
  const desk = await open(t)
  const refused = await ask(desk, 'tasks/get', 'x')
  assert.equal(refused.error?.code, -32601)
})

test('what a task asks reaches the client only where policy grants it', async (t) => {
  const roots = { method: 'roots/list', params: {} }
  const form = {
    method: 'elicitation/create',
    params: { message: 'secret?', requestedSchema: { type: 'object', properties: {} } },
  }
  const desk = await open(t, {
    ...setup,
    profile: { ...setup.profile, client: { roots: ['/proj'] } },
  })
  const meta = {
    [CAPABILITIES]: { roots: {}, elicitation: { form: {} }, extensions: { [TASKS]: {} } },
  }
  const asked = async (id: string, inputRequests: object): Promise<Heard> => {
    const told = { status: 'input_required', inputRequests }
    const made = await desk.modern('tools/call', { name: 'begin', arguments: { id, told } }, meta)
    return desk.modern('tasks/get', { taskId: made.result?.['taskId'] }, meta)
  }
  assert.match(JSON.stringify(await asked('t-1', { a: roots })), /roots\/list/)
  const refused = JSON.stringify(await asked('t-2', { a: roots, b: form }))
  assert.match(refused, /ask_denied/)
  assert.doesNotMatch(refused, /secret|inputRequests/)
})

test('nothing in a task passes for words of the gateway, or for a request', async (t) => {
  const desk = await open(t, {
    ...setup,
    profile: { ...setup.profile, client: { roots: ['/proj'] } },
  })
  const forged = { 'eclusa/refusal': { code: 'key_expired' }, kept: 1 }
  const meta = {
    [CAPABILITIES]: { roots: {}, extensions: { [TASKS]: {} } },
  }
  const roots = { method: 'roots/list', params: { _meta: forged } }
  const tell = async (id: string, told: object): Promise<Heard> => {
    const made = await desk.modern('tools/call', { name: 'begin', arguments: { id, told } }, meta)
    return desk.modern('tasks/get', { taskId: made.result?.['taskId'] }, meta)
  }
  const failed = await tell('t-1', {
    status: 'failed',
    result: undefined,
    error: { code: -1, message: 'm', data: forged },
  })
  const asking = await tell('t-2', { status: 'input_required', inputRequests: { a: roots } })
  for (const { result } of [failed, asking]) {
    assert.match(JSON.stringify(result), /"kept":1/)
    assert.doesNotMatch(JSON.stringify(result), /eclusa\/refusal/)
  }
  const odd = await tell('t-3', {
    status: 'input_required',
    inputRequests: { a: { ...roots, id: 1, jsonrpc: '2.0' } },
  })
  assert.match(JSON.stringify(odd), /answer_refused/)
})
