// The edge cases of the protocol that concern servers; the numbers are those of the project's list of thirty.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, type Turn } from '../servers/http-scripted.ts'
import { reach } from './upstream-http/rig.ts'
import {
  answer,
  asksOf,
  call,
  type CallOptions,
  dataOf,
  fresh,
  json,
  linesOf,
  one,
  textOf,
  ticket,
  traced,
  until,
} from './upstream/rig.ts'

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const FORM = {
  method: 'elicitation/create',
  params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } },
}
const isCall = ({ seen }: Turn): boolean => seen.body['method'] === 'tools/call'
type Params = { readonly [key: string]: unknown }
const paramsOf = (message: Record<string, unknown> | undefined): Params =>
  (message?.['params'] ?? {}) as Params

test('edge 9: a server that names its revisions is never initialized, unless all are legacy', async (t) => {
  const trace = fresh('trace')
  assert.equal(await one(t, '--era', 'future', '--trace', trace).hello('s'), null)
  assert.ok(traced(trace).every(({ method }) => method !== 'initialize'))
  assert.equal((await one(t, '--era', 'picky').hello('s'))?.era, 'legacy')
})

test('edge 10: over HTTP a failure says nothing of the era, an unknown method does', async (t) => {
  const broken = await httpServer(t, {
    era: 'dual',
    script: ({ seen, json: reply }) => {
      if (seen.body['method'] !== 'server/discover') return false
      reply(500, {})
      return true
    },
  })
  assert.equal(await reach(t, broken.url).hello('s'), null)
  assert.equal(broken.of('initialize').length, 0)
  const locked = await httpServer(t, {
    era: 'dual',
    script: ({ json: reply }) => {
      reply(401, {}, { 'www-authenticate': 'Bearer resource_metadata="https://x.example"' })
      return true
    },
  })
  assert.equal(await reach(t, locked.url).hello('s'), null)
  assert.equal(locked.of('initialize').length, 0)
  const old = await httpServer(t, {
    era: 'legacy',
    script: ({ seen, error }) => {
      if (seen.body['method'] !== 'server/discover') return false
      error(200, -32601, 'Method not found')
      return true
    },
  })
  assert.equal((await reach(t, old.url).hello('s'))?.era, 'legacy')
})

test('edge 11: a server that ends at the probe is started once more and initialized', async (t) => {
  const starts = fresh('starts')
  const rig = one(t, '--era', 'exits', '--starts', starts)
  assert.equal((await rig.hello('s'))?.era, 'legacy')
  assert.equal(linesOf(starts).length, 2)
})

test('edge 12: no two requests to one server bear one id, whoever calls', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const clients = ['ana', 'bob', 'ana', 'bob']
  const made = await Promise.all(
    clients.map((client, n) => call(rig, 'after', { ms: 50, label: `${n}` }, { client })),
  )
  assert.deepEqual(made.map(textOf), ['0', '1', '2', '3'])
  const ids = traced(trace).flatMap(({ id }) => (id === undefined ? [] : [id]))
  assert.equal(new Set(ids).size, ids.length)
})

test('edge 13: progress bears the token of its own client, and ends with the call', async (t) => {
  const rig = one(t, '--era', 'modern')
  const heard: [unknown, unknown][] = []
  const watched = (progressToken: unknown): CallOptions => ({
    meta: json({ progressToken }),
    watch: { progress: (params) => heard.push([params['progressToken'], params['progress']]) },
  })
  const both = [watched('7'), watched(7)].map((options) =>
    call(rig, 'progress', { values: [1, 1, 2], ms: 20 }, options),
  )
  await Promise.all(both)
  await call(rig, 'echo', { text: 'x' })
  const of = (token: unknown): unknown[] =>
    heard.filter(([own]) => own === token).map(([, at]) => at)
  assert.deepEqual([of('7'), of(7), heard.length], [[1, 2], [1, 2], 4])
})

test('edge 14: a call that its client gave up is given up at the server, in the way of its transport', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const stop = new AbortController()
  const pending = call(rig, 'hang', {}, { does: 'read', signal: stop.signal })
  await until(() => traced(trace).some(({ method }) => method === 'tools/call'))
  stop.abort()
  assert.equal((await pending).kind, 'unknown')
  await until(() => traced(trace).some(({ method }) => method === 'notifications/cancelled'))
  let closed = false
  const far = await httpServer(t, {
    era: 'modern',
    script: (turn) => {
      if (!isCall(turn)) return false
      turn.stream()
      turn.reply.once('close', () => (closed = true))
      return true
    },
  })
  const gone = new AbortController()
  const hanging = call(reach(t, far.url), 'get', {}, { does: 'read', signal: gone.signal })
  await until(() => far.of('tools/call').length > 0)
  gone.abort()
  assert.equal((await hanging).kind, 'unknown')
  await until(() => closed)
  assert.equal(far.of('notifications/cancelled').length, 0)
})

test('edge 15: an answer that crosses its cancellation is heard for a mutation and dropped for a read', async (t) => {
  const rig = one(t, '--era', 'legacy')
  await rig.hello('s')
  for (const does of ['write', 'read'] as const) {
    const stop = new AbortController()
    const pending = call(rig, 'after', { ms: 200, label: 'done' }, { does, signal: stop.signal })
    setTimeout(() => stop.abort(), 100)
    assert.equal((await pending).kind, does === 'write' ? 'answered' : 'unknown')
  }
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
})

test('edge 16: a server asks in the middle of three methods only', async (t) => {
  const rig = one(t, '--era', 'modern')
  const far = await httpServer(t, {
    era: 'modern',
    script: (turn) => {
      if (turn.seen.body['method'] !== 'completion/complete') return false
      turn.result({ resultType: 'input_required', requestState: 's' })
      return true
    },
  })
  const made = await call(reach(t, far.url), 'get', {}, { method: 'completion/complete' })
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'answer_refused'])
  const raw = '{"resultType":"input_required"}'
  const empty = await call(rig, 'raw', { result: raw }, { capabilities: ALL })
  assert.equal(empty.kind === 'unknown' && empty.code, 'answer_refused')
})

test("edge 18: a parallel call carries nothing of another call's round", async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const options = { capabilities: ALL }
  const args = { requests: { who: FORM }, state: 'mine' }
  const retry = { state: 'mine', responses: { who: { action: 'accept' } } }
  await call(rig, 'inquire', args, options)
  await Promise.all([
    call(rig, 'inquire', args, { ...options, retry }),
    call(rig, 'echo', { text: 'x' }, options),
  ])
  const sent = traced(trace).filter(({ method }) => method === 'tools/call')
  const states = sent.map((message) => paramsOf(message)['requestState'])
  assert.deepEqual(states, [undefined, 'mine', undefined])
  assert.equal(new Set(sent.map(({ id }) => id)).size, 3)
})

test('edge 20: over HTTP the stream tells which of several calls asks', async (t) => {
  let asking: Turn | null = null
  const far = await httpServer(t, {
    era: 'legacy',
    script: (turn) => {
      const { body } = turn.seen
      if (body['id'] === 'q' && asking !== null) {
        asking.finish({ content: [{ type: 'text', text: JSON.stringify(body['result']) }] })
        turn.reply.writeHead(202).end()
        return true
      }
      if (!isCall(turn)) return false
      if (paramsOf(body)['name'] === 'get') return true
      asking = turn
      turn.event({ jsonrpc: '2.0', id: 'q', ...FORM })
      return true
    },
  })
  const rig = reach(t, far.url)
  const stop = new AbortController()
  const options = { capabilities: ALL }
  const other = call(rig, 'get', {}, { ...options, does: 'read', signal: stop.signal })
  await until(() => far.of('tools/call').length === 1)
  const made = asksOf(await call(rig, 'put', {}, options))
  const accepted = { action: 'accept', content: {} }
  assert.equal(textOf(await answer(rig, made, { 'ask-1': accepted })), JSON.stringify(accepted))
  stop.abort()
  await other
})

test('edge 20: what a session says on its own stream is about the only call that it can be about', async (t) => {
  const turns: Turn[] = []
  const far = await httpServer(t, {
    era: 'legacy',
    script: (turn) => {
      if (isCall(turn)) turns.push(turn)
      return isCall(turn)
    },
  })
  const rig = reach(t, far.url)
  await rig.hello('s')
  await until(() => far.streams.size === 1)
  const logs: unknown[] = []
  const options = {
    capabilities: ALL,
    watch: { log: (params: Params) => logs.push(params['data']) },
  }
  const log = { method: 'notifications/message', params: { level: 'info', data: 'mine' } }
  far.announce({ id: 'early', ...FORM })
  await until(() => far.answers.has('early'))
  const first = call(rig, 'put', {}, options)
  await until(() => turns.length === 1 && far.streams.size > 0)
  far.announce(log)
  far.announce({ id: 'mine', ...FORM })
  const made = asksOf(await first)
  assert.deepEqual(logs, ['mine'])
  const done = answer(rig, made, { 'ask-1': { action: 'accept' } })
  await until(() => far.answers.has('mine'))
  const second = call(rig, 'put', {}, options)
  await until(() => turns.length === 2)
  far.announce({ id: 'whose', ...FORM })
  await until(() => far.answers.has('whose'))
  for (const turn of turns) turn.result({ content: [{ type: 'text', text: 'done' }] })
  assert.deepEqual([textOf(await done), textOf(await second)], ['done', 'done'])
  const codes = ['early', 'mine', 'whose'].map(
    (id) => (far.answers.get(id)?.['error'] as { code: number } | undefined)?.code,
  )
  assert.deepEqual(codes, [-32601, undefined, -32603])
})

test('edge 21: a kind of result that nobody knows is inadmissible', async (t) => {
  const rig = one(t, '--era', 'modern')
  for (const type of ['"partial"', '1', 'null']) {
    const made = await call(rig, 'raw', { result: `{"resultType":${type},"content":[]}` })
    assert.equal(made.kind === 'unknown' && made.code, 'answer_refused', type)
  }
})

test('edge 23: the end of a subscription may come as its result or as a cancellation', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  await rig.list('s', 'tools')
  const listens = (): Record<string, unknown>[] =>
    traced(trace).filter(({ method }) => method === 'subscriptions/listen')
  await until(() => listens().length === 1)
  const ends = [
    (id: unknown) => ({ id, result: { resultType: 'complete' } }),
    (id: unknown) => ({ method: 'notifications/cancelled', params: { requestId: id } }),
  ]
  for (const [n, end] of ends.entries()) {
    const line = JSON.stringify({ jsonrpc: '2.0', ...end(listens().at(-1)?.['id']) })
    await call(rig, 'junk', { lines: [line], text: 'x' })
    await until(() => listens().length === n + 2)
  }
})

test('edge 28: a modern server is asked for log messages only where the request wants them', async (t) => {
  const rig = one(t, '--era', 'modern')
  const level = 'io.modelcontextprotocol/logLevel'
  const plain = dataOf(await call(rig, 'meta')) as { meta: Params }
  assert.equal(plain.meta[level], undefined)
  const wanting = await call(rig, 'meta', {}, { meta: json({ [level]: 'debug' }) })
  assert.equal((dataOf(wanting) as { meta: Params }).meta[level], 'debug')
})

test('edge 30: what is sent is what was read, and what is read is what was sent', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const text = '{"text":"x","big":12345678901234567890,"one":1.0,"deep":{"k":[null,-0]}}'
  const params = json({ name: 'echo' })
  const { parseText, UPSTREAM_LIMITS, object } = await import('../../src/json.ts')
  const parsed = parseText(text, UPSTREAM_LIMITS)
  assert.equal(parsed.kind, 'json')
  await rig.attempt(ticket('read'), {
    method: 'tools/call',
    target: { kind: 'tool', upstream: 's', name: 'echo' },
    params: object({ ...params, arguments: parsed.kind === 'json' ? parsed.value : null }),
    client: 'writer',
    capabilities: json({}),
    retry: null,
    headers: {},
    watch: { progress: () => {}, log: () => {} },
    signal: new AbortController().signal,
  })
  assert.ok(linesOf(trace).some((line) => line.includes(text)))
  const result = '{"resultType":"complete","content":[],"n":12345678901234567890}'
  const made = await call(rig, 'raw', { result })
  assert.equal(
    made.kind === 'answered' && made.answer.kind === 'result' && made.answer.text,
    result,
  )
})
