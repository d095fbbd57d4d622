import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Attempt } from '../../../src/ports.ts'
import {
  call,
  config,
  dataOf,
  fresh,
  json,
  linesOf,
  one,
  type Rig,
  scripted,
  start,
  textOf,
  ticket,
  traced,
  until,
} from './rig.ts'

const subscribe = (rig: Rig, uri: string, client = 'writer'): Promise<Attempt> =>
  rig.attempt(ticket('read'), {
    method: 'resources/subscribe',
    target: { kind: 'resource', upstream: 's', name: uri },
    params: json({ uri }),
    client,
    capabilities: json({}),
    retry: null,
    headers: {},
    watch: { progress: () => {}, log: () => {} },
    signal: new AbortController().signal,
  })

const heardOf = (rig: Rig): { uri: unknown; client: string | null }[] => {
  const heard: { uri: unknown; client: string | null }[] = []
  rig.onUpdated((_upstream, params, client) => heard.push({ uri: params['uri'], client }))
  return heard
}

type Seen = { uris: string[]; listens: { resourceSubscriptions?: string[] }[] }
const seen = async (rig: Rig, client = 'writer'): Promise<Seen> =>
  dataOf(await call(rig, 'subscribed', {}, { client, does: 'read' })) as Seen

test('a resource is subscribed to for each client that wants it, until the last lets go of it', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const heard = heardOf(rig)
  assert.equal((await subscribe(rig, 'notes://a')).kind, 'answered')
  assert.equal((await subscribe(rig, 'notes://a')).kind, 'answered')
  await call(rig, 'touch', { uri: 'notes://a/part' })
  await call(rig, 'touch', { uri: 'notes://b' })
  assert.deepEqual(heard, [{ uri: 'notes://a/part', client: null }])
  const uris = async (): Promise<string[]> => (await seen(rig)).uris
  rig.release('s', 'notes://a', 'writer')
  rig.release('s', 'notes://a', 'nobody')
  assert.deepEqual(await uris(), ['notes://a'])
  rig.release('s', 'notes://a', 'writer')
  assert.deepEqual(await uris(), [])
  rig.release('s', 'notes://a', 'writer')
  await call(rig, 'touch', { uri: 'notes://a' })
  assert.equal(heard.length, 1)
})

test('a legacy server that comes back is subscribed to again', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const heard = heardOf(rig)
  await subscribe(rig, 'notes://a')
  await call(rig, 'crash', { when: 'before' })
  await call(rig, 'touch', { uri: 'notes://a' })
  assert.deepEqual(heard, [{ uri: 'notes://a', client: null }])
})

test("with many clients what a process says of resources is its own client's", async (t) => {
  const command = scripted('--era', 'legacy')
  const rig = start(t, [config('s', { command })], { principals: 'many' })
  const heard = heardOf(rig)
  await subscribe(rig, 'notes://a', 'ana')
  await subscribe(rig, 'notes://a', 'bob')
  await call(rig, 'touch', { uri: 'notes://a' }, { client: 'ana' })
  assert.deepEqual(heard, [{ uri: 'notes://a', client: 'ana' }])
  rig.release('s', 'notes://a', 'ana')
  assert.deepEqual((await seen(rig, 'ana')).uris, [])
  assert.deepEqual((await seen(rig, 'bob')).uris, ['notes://a'])
})

test('a modern server has one open subscription, replaced whenever what is wanted changes', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const heard = heardOf(rig)
  const uris = Array.from({ length: 20 }, (_, n) => `notes://${n}`)
  const made = await Promise.all(uris.map((uri) => subscribe(rig, uri)))
  assert.ok(made.every((each) => each.kind === 'answered' && each.answer.kind === 'result'))
  const open = async (): Promise<Seen['listens']> => (await seen(rig)).listens
  const [only, ...more] = await open()
  assert.deepEqual(more, [])
  assert.deepEqual(only?.resourceSubscriptions?.toSorted(), uris.toSorted())
  assert.ok(traced(trace).filter(({ method }) => method === 'subscriptions/listen').length < 10)
  await call(rig, 'touch', { uri: 'notes://7/part' })
  assert.deepEqual(heard, [{ uri: 'notes://7/part', client: null }])
  for (const uri of uris) rig.release('s', uri, 'writer')
  let left: Seen['listens'] = []
  for (let n = 0; n < 200; n++) {
    left = await open()
    if (left.length === 1 && left[0]?.resourceSubscriptions === undefined) break
  }
  assert.deepEqual(
    left.map((each) => each.resourceSubscriptions),
    [undefined],
  )
})

test('a modern server that comes back is listened to again', async (t) => {
  const rig = one(t, '--era', 'modern')
  const heard = heardOf(rig)
  await subscribe(rig, 'notes://a')
  await call(rig, 'crash', { when: 'before' })
  await call(rig, 'echo', { text: 'x' })
  for (let n = 0; n < 200 && (await seen(rig)).listens.length === 0; n++);
  await call(rig, 'touch', { uri: 'notes://a' })
  assert.deepEqual(heard, [{ uri: 'notes://a', client: null }])
})

test('a modern server that honours only a part says so by its acknowledgement', async (t) => {
  const rig = one(t, '--era', 'modern', '--serve', 'tools,resources', '--honours', 'notes://a')
  const yes = await subscribe(rig, 'notes://a')
  assert.equal(yes.kind === 'answered' && yes.answer.kind, 'result')
  const no = await subscribe(rig, 'notes://b')
  assert.equal(no.kind === 'answered' && no.answer.kind === 'error' && no.answer.code, -32602)
})

test('a subscription that the server ends is opened again', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  await subscribe(rig, 'notes://a')
  const listens = (): Record<string, unknown>[] =>
    traced(trace).filter(({ method }) => method === 'subscriptions/listen')
  const before = listens().length
  const id = listens().at(-1)?.['id']
  const end = `{"jsonrpc":"2.0","id":${String(id)},"result":{"resultType":"complete"}}`
  await call(rig, 'junk', { lines: [end], text: 'ended' })
  await until(() => listens().length > before)
  assert.deepEqual(
    (listens().at(-1)?.['params'] as { notifications: Seen['listens'][0] }).notifications
      .resourceSubscriptions,
    ['notes://a'],
  )
})

test('the level of a legacy server is the most talkative that the calls in flight want', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const meta = (level: string): { meta: ReturnType<typeof json> } => ({
    meta: json({ 'io.modelcontextprotocol/logLevel': level }),
  })
  assert.equal(dataOf(await call(rig, 'level', {}))['level'], null)
  assert.equal(dataOf(await call(rig, 'level', {}, meta('warning')))['level'], 'warning')
  const slow = call(rig, 'after', { ms: 500, label: 'x' }, meta('debug'))
  assert.equal(dataOf(await call(rig, 'level', {}, meta('error')))['level'], 'debug')
  assert.equal(textOf(await slow), 'x')
  assert.equal(dataOf(await call(rig, 'level', {}, meta('error')))['level'], 'error')
  assert.equal(dataOf(await call(rig, 'meta', {}, meta('error')))['meta'] !== null, true)
})

test("with many clients a log message of nobody is told to nobody, but that of one's own process", async (t) => {
  for (const [era, expected] of [
    ['modern', 0],
    ['legacy', 1],
  ] as const) {
    const command = scripted('--era', era)
    const rig = start(t, [config('s', { command })], { principals: 'many' })
    const heard: unknown[] = []
    rig.onLog((_upstream, params, client) => heard.push([params['data'], client]))
    const busy = call(rig, 'after', { ms: 300, label: 'x' }, { client: 'ana' })
    const entries = [{ level: 'info', data: 'of ana' }]
    await call(rig, 'log', { entries }, { client: 'ana' })
    await busy
    assert.deepEqual(heard, [['of ana', 'ana']].slice(0, expected), era)
  }
})

for (const does of ['read', 'write'] as const) {
  test(`what a server still logs of a ${does} that was cancelled is not told to another client`, async (t) => {
    const command = scripted('--era', 'modern')
    const rig = start(t, [config('s', { command })], { principals: 'many' })
    await call(rig, 'pid', {}, { client: 'bob' })
    const stop = new AbortController()
    const wish = { ms: 500, data: 'of ana' }
    void call(rig, 'log_after', wish, { does, client: 'ana', signal: stop.signal })
    const heard: unknown[] = []
    const watch = { log: (params: unknown) => void heard.push(params) }
    const other = call(rig, 'after', { ms: 1000, label: 'x' }, { client: 'bob', watch })
    setTimeout(() => stop.abort(), 150)
    await other
    assert.deepEqual(heard, [])
  })
}

test('a tool that can only be called as a task is driven here, and answers like any other', async (t) => {
  const trace = fresh('trace')
  const flags = ['--serve', 'tools,tasks', '--trace', trace]
  const rig = one(t, '--era', 'legacy', ...flags)
  await rig.list('s', 'tools')
  const made = await call(rig, 'laborious', { ms: 200 })
  assert.equal(textOf(made), 'the work is done')
  const methods = traced(trace).map(({ method }) => method)
  assert.ok(methods.includes('tasks/result'))
  const [sent] = traced(trace).filter(({ method }) => method === 'tools/call')
  const { task } = sent?.['params'] as { task: { ttl: number } }
  assert.equal(task.ttl, 1_800_000)
})

test('a task that is driven here is cancelled as one', async (t) => {
  const command = scripted('--era', 'legacy', '--serve', 'tools,tasks')
  const rig = start(t, [config('s', { command, callMs: 800, callMaxMs: 800 })])
  await rig.list('s', 'tools')
  const made = await call(rig, 'laborious', { ms: 60_000 })
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'timeout'])
  const late = made.kind === 'unknown' ? await made.late : null
  assert.equal(late?.kind === 'error' && late.message, 'the task was cancelled')
  assert.equal((dataOf(await call(rig, 'tasks_seen'))['cancelled'] as string[]).length, 1)
  const stop = new AbortController()
  const pending = call(rig, 'laborious', { ms: 60_000 }, { signal: stop.signal })
  setTimeout(() => stop.abort(), 200)
  const cancelled = await pending
  assert.equal(cancelled.kind, 'answered')
})

test('a task of the extension is an answer where the request takes tasks, and inadmissible elsewhere', async (t) => {
  const rig = one(t, '--era', 'modern', '--serve', 'tools,tasks')
  const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const made = await call(rig, 'begin', { id: 't1' }, { capabilities })
  assert.equal(made.kind === 'answered' && made.answer.kind === 'result', true)
  const without = await call(rig, 'begin', { id: 't1' })
  assert.deepEqual(
    [without.kind, without.kind === 'unknown' && without.code],
    ['unknown', 'answer_refused'],
  )
  const got = await rig.attempt(ticket('read'), {
    method: 'tasks/get',
    target: { kind: 'tool', upstream: 's', name: 'begin' },
    params: json({ taskId: 't1' }),
    client: 'writer',
    capabilities: json(capabilities),
    retry: null,
    headers: {},
    watch: { progress: () => {}, log: () => {} },
    signal: new AbortController().signal,
  })
  const value = got.kind === 'answered' && got.answer.kind === 'result' ? got.answer.value : {}
  assert.equal(value['status'], 'completed')
})

test('a process of a client that nobody uses any more ends, one that waits for changes stays', async (t) => {
  const starts = fresh('starts')
  const command = scripted('--era', 'legacy', '--starts', starts)
  const rig = start(t, [config('s', { command })], { principals: 'many', peerIdleMs: 300 })
  await subscribe(rig, 'notes://a', 'ana')
  await call(rig, 'echo', { text: 'x' }, { client: 'bob' })
  const [, ana = 0, bob = 0] = linesOf(starts).map((line) => Number(line.split(' ')[0]))
  await until(() => linesOf(`/proc/${bob}/status`).length === 0)
  assert.ok(linesOf(`/proc/${ana}/status`).length > 0)
  rig.release('s', 'notes://a', 'ana')
  await until(() => linesOf(`/proc/${ana}/status`).length === 0)
})

test('a subscription too many does not keep the process of its client', async (t) => {
  const starts = fresh('starts')
  const command = scripted('--era', 'legacy', '--starts', starts)
  const rig = start(t, [config('s', { command })], { principals: 'many', peerIdleMs: 300 })
  const uris = Array.from({ length: 1000 }, (_, n) => `notes://${n}`)
  await Promise.all(uris.map((uri) => subscribe(rig, uri, 'ana')))
  const more = await subscribe(rig, 'notes://more', 'ana')
  assert.equal(more.kind === 'unsent' && more.code, 'too_many_calls')
  const [, ana = 0] = linesOf(starts).map((line) => Number(line.split(' ')[0]))
  for (const uri of uris) rig.release('s', uri, 'ana')
  await until(() => linesOf(`/proc/${ana}/status`).length === 0)
})

test('a client whose own process changed its tools is shown them, and nobody else is', async (t) => {
  const command = scripted('--era', 'legacy')
  const rig = start(t, [config('s', { command })], { principals: 'many' })
  let heard = 0
  const names = async (client: string): Promise<string[]> =>
    (await rig.list('s', 'tools', client)).items.map(({ name }) => name)
  const calm = await names('ana')
  rig.onChange(() => heard++)
  const comes = async (count: number): Promise<void> => {
    for (let n = 0; n < 200 && (await names('ana')).length !== count; n++) {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const added = { name: 'brought_up', inputSchema: { type: 'object' } }
  await call(rig, 'change', { tools: [added] }, { client: 'ana' })
  await comes(calm.length + 1)
  assert.deepEqual(await names('ana'), [...calm, 'brought_up'])
  await until(() => heard > 0)
  assert.deepEqual(await names('bob'), calm)
  assert.equal(typeof (await rig.definition('s', 'brought_up', 'ana')), 'object')
  assert.equal(await rig.definition('s', 'brought_up', 'bob'), 'absent')
  assert.equal(textOf(await call(rig, 'brought_up', {}, { client: 'ana' })), 'brought_up')
  await call(rig, 'crash', { when: 'before' }, { client: 'ana' })
  await comes(calm.length)
  assert.deepEqual(await names('ana'), calm)
})
