import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'

import {
  answer,
  asksOf,
  call,
  config,
  dataOf,
  fresh,
  json,
  linesOf,
  one,
  scripted,
  start,
  textOf,
  traced,
  until,
} from './rig.ts'

const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const QUESTION = { message: 'who?', requestedSchema: { type: 'object', properties: {} } }
const FORM = { method: 'elicitation/create', params: QUESTION }
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('a modern server asks, and is called again with its own state and the bare answers', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  const requests = { who: FORM, where: { method: 'roots/list' } }
  const args = { requests, state: ' opaque "state" é ' }
  const made = asksOf(await call(rig, 'inquire', args, { capabilities: ALL }))
  assert.equal(made.parked, null)
  assert.deepEqual(plain(made.asks), {
    asks: { who: FORM, where: { method: 'roots/list', params: {} } },
    state: args.state,
  })
  const responses = { who: { action: 'accept', content: { name: 'ana' } }, where: { roots: [] } }
  const retry = { state: args.state, responses }
  const done = await call(rig, 'inquire', args, { capabilities: ALL, retry })
  assert.deepEqual(dataOf(done), { responses, state: args.state })
  const [first, second] = traced(trace).filter(({ method }) => method === 'tools/call')
  assert.notEqual(first?.['id'], second?.['id'])
})

test('a modern server that gave no state gets none, and one that only gave a state gets it alone', async (t) => {
  const rig = one(t, '--era', 'modern')
  const first = { requests: { who: FORM } }
  const made = asksOf(await call(rig, 'inquire', first, { capabilities: ALL }))
  assert.equal(made.asks.state, null)
  const responses = { who: { action: 'decline' } }
  const retry = { state: null, responses }
  const done = await call(rig, 'inquire', first, { capabilities: ALL, retry })
  assert.deepEqual(dataOf(done), { responses, state: null })
  const polling = asksOf(await call(rig, 'inquire', { state: 's' }, { capabilities: ALL }))
  assert.deepEqual(plain(polling.asks), { asks: {}, state: 's' })
  const again = { state: 's', responses: {} }
  const polled = await call(rig, 'inquire', { state: 's' }, { capabilities: ALL, retry: again })
  assert.deepEqual(dataOf(polled), { responses: null, state: 's' })
})

test('questions that are none make an answer inadmissible', async (t) => {
  const rig = one(t, '--era', 'modern')
  const bad = [
    {},
    { requests: {} },
    { requests: [] },
    { requests: { a: { method: 'tools/call', params: {} } } },
    { requests: { a: { ...FORM, id: 1 } } },
    { requests: { a: { ...FORM, jsonrpc: '2.0' } } },
    { requests: { a: { method: 'elicitation/create' } } },
    { requests: { a: 'who?' }, state: 's' },
    { requests: { ['k'.repeat(257)]: FORM } },
    { requests: Object.fromEntries(Array.from({ length: 17 }, (_, n) => [`k${n}`, FORM])) },
  ]
  for (const args of bad) {
    const made = await call(rig, 'inquire', args, { capabilities: ALL })
    assert.equal(made.kind, 'unknown', JSON.stringify(args))
    assert.equal(made.code, 'answer_refused', JSON.stringify(args))
  }
  const raw = '{"resultType":"input_required","requestState":7}'
  assert.equal((await call(rig, 'raw', { result: raw })).kind, 'unknown')
})

test('the marks of a later round that stand in the params themselves are never sent', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'modern', '--trace', trace)
  await rig.attempt({ operation: 'x', does: 'read' } as never, {
    method: 'tools/call',
    target: { kind: 'tool', upstream: 's', name: 'echo' },
    params: json({
      name: 'echo',
      arguments: { text: 'x' },
      inputResponses: { a: {} },
      requestState: 'forged',
      task: { ttl: 1 },
    }),
    client: 'writer',
    capabilities: json({}),
    retry: null,
    headers: {},
    watch: { progress: () => {}, log: () => {} },
    signal: new AbortController().signal,
  })
  const [sent] = traced(trace).filter(({ method }) => method === 'tools/call')
  const { _meta: _, ...params } = sent?.['params'] as Record<string, unknown>
  assert.deepEqual(params, { name: 'echo', arguments: { text: 'x' } })
})

test('a modern server is told of exactly what this request lets it ask', async (t) => {
  const rig = one(t, '--era', 'modern')
  for (const capabilities of [ALL, {}, { roots: {} }]) {
    const said = dataOf(await call(rig, 'capabilities', {}, { capabilities }))
    assert.deepEqual(said['request'], capabilities)
  }
})

test('a legacy server asks in the middle of a call, which waits, and goes on with the answer', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const made = asksOf(await call(rig, 'ask', FORM, { capabilities: ALL }))
  assert.equal(typeof made.parked, 'string')
  assert.deepEqual(plain(made.asks), { asks: { 'ask-1': FORM }, state: null })
  const response = { action: 'accept', content: { name: 'ana' } }
  const done = await answer(rig, made, { 'ask-1': response })
  const { answer: heard } = dataOf(done) as { answer: { result: unknown } }
  assert.deepEqual(heard.result, response)
})

test('several questions of one legacy call come in one round, and those left open are asked again', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const sampling = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
  const requests = [FORM, sampling, { method: 'roots/list', params: {} }]
  const first = asksOf(await call(rig, 'asks', { requests }, { capabilities: ALL }))
  assert.deepEqual(Object.keys(first.asks.asks), ['ask-1', 'ask-2', 'ask-3'])
  const accepted = { action: 'accept' }
  const second = asksOf(
    await answer(rig, first, { 'ask-1': accepted, 'ask-3': { roots: [] }, other: {} }),
  )
  assert.deepEqual(Object.keys(second.asks.asks), ['ask-2'])
  assert.notEqual(second.parked, first.parked)
  const taken = await answer(rig, first, { 'ask-2': accepted })
  assert.deepEqual([taken.kind, taken.kind === 'unsent' && taken.code], ['unsent', 'state_invalid'])
  const done = dataOf(await answer(rig, second, { 'ask-2': { role: 'assistant' } }))
  const results = (done['answers'] as { result: unknown }[]).map(({ result }) => result)
  assert.deepEqual(results, [accepted, { role: 'assistant' }, { roots: [] }])
})

test('a legacy server that asks what was not declared for the call hears that nobody offers it', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const cases: [unknown, unknown][] = [
    [{}, FORM],
    [{ elicitation: { url: {} } }, FORM],
    [{ elicitation: {} }, { method: 'elicitation/create', params: { mode: 'url', url: 'x:y' } }],
    [{ sampling: {} }, { method: 'sampling/createMessage', params: { tools: [] } }],
    [
      { elicitation: {}, sampling: {} },
      { method: 'roots/list', params: {} },
    ],
    [ALL, { method: 'tools/list', params: {} }],
  ]
  for (const [capabilities, question] of cases) {
    const done = dataOf(await call(rig, 'ask', question, { capabilities }))
    const { error } = done['answer'] as { error: { code: number } }
    assert.equal(error.code, -32601, JSON.stringify(question))
  }
})

test('a call that fails after its server asked in vain says what was missing', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const sampling = { method: 'sampling/createMessage', params: { messages: [], tools: [] } }
  const failed = await call(rig, 'needs', sampling, { capabilities: { sampling: {} } })
  assert.equal(failed.kind, 'answered')
  assert.deepEqual(plain(failed.lacks), { sampling: { tools: {} } })
  const forms = await call(rig, 'needs', FORM)
  assert.deepEqual(plain(forms.kind === 'answered' && forms.lacks), { elicitation: { form: {} } })
  const went = await call(rig, 'ask', FORM)
  assert.equal('lacks' in went, false)
})

test('the deadline of a call stands still while its client is asked', async (t) => {
  const command = scripted('--era', 'legacy')
  const rig = start(t, [config('s', { command, callMs: 1500, callMaxMs: 3000 })])
  await rig.hello('s')
  const made = await call(rig, 'ask', FORM, { capabilities: ALL })
  await new Promise((resolve) => setTimeout(resolve, 2500))
  const done = await answer(rig, made, { 'ask-1': { action: 'decline' } })
  assert.equal(done.kind, 'answered')
})

test('what a legacy server says by itself while its question is out is kept for who takes the call up', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const patience = { ...FORM, ms: 200 }
  const made = asksOf(await call(rig, 'impatient', patience, { capabilities: ALL }))
  let ended = false
  void made.expired?.then(() => (ended = true))
  await new Promise((resolve) => setTimeout(resolve, 600))
  assert.equal(ended, false)
  const done = await answer(rig, made, { 'ask-1': { action: 'accept' } })
  assert.equal(textOf(done), 'nobody answered')
})

test('a parked call whose server dies ends as unknown, and cannot be taken up', async (t) => {
  const rig = one(t, '--era', 'legacy', '--die-after', '1500')
  const made = asksOf(await call(rig, 'ask', FORM, { capabilities: ALL }))
  const end = await made.expired
  assert.deepEqual([end?.kind, end?.kind === 'unknown' && end.code], ['unknown', 'upstream_down'])
  const late = await answer(rig, made, { 'ask-1': { action: 'accept' } })
  assert.deepEqual([late.kind, late.kind === 'unsent' && late.code], ['unsent', 'state_invalid'])
})

test('a dropped question is refused, its server is told to stop, and what it makes of it is known', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'legacy', '--trace', trace)
  const made = asksOf(await call(rig, 'ask', FORM, { capabilities: ALL }))
  rig.drop(made.parked ?? '', 'ask_denied')
  const end = await made.expired
  assert.equal(end?.kind, 'answered')
  const { error } = dataOf(end)['answer'] as { error: { code: number } }
  assert.equal(error.code, -32603)
  await until(() => traced(trace).some(({ method }) => method === 'notifications/cancelled'))
  rig.drop(made.parked ?? '', 'ask_denied')
})

test('with two calls in flight on one process nobody is asked, and nothing is guessed', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const options = { capabilities: ALL }
  const slow = call(rig, 'after', { ms: 800, label: 'untouched' }, options)
  const done = dataOf(await call(rig, 'ask', FORM, options))
  const { error } = done['answer'] as { error: { code: number; message: string } }
  assert.equal(error.code, -32603)
  assert.match(error.message, /several calls/)
  assert.equal(textOf(await slow), 'untouched')
})

test('a cancelled call is not asked any more', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const stop = new AbortController()
  const options = { capabilities: ALL, signal: stop.signal }
  const requests = [FORM, { method: 'roots/list', params: {} }]
  const made = await call(rig, 'asks', { requests }, options)
  const again = new AbortController()
  const pending = answer(rig, made, { 'ask-1': { action: 'accept' } }, again.signal)
  again.abort()
  const done = await pending
  const answers = dataOf(done)['answers'] as { error?: { code: number } }[]
  assert.deepEqual(
    answers.map(({ error }) => error?.code),
    [undefined, -32603],
  )
})

test('a legacy error that URLs must be opened first asks for them, and calls again only when they were', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'legacy', '--trace', trace)
  const args = { url: 'https://login.example/x' }
  const made = asksOf(await call(rig, 'url_first', args, { capabilities: ALL }))
  assert.equal(made.parked, null)
  const params = { mode: 'url', message: 'please sign in', url: args.url }
  const asked = { 'url-1': { method: 'elicitation/create', params } }
  assert.deepEqual(plain(made.asks), { asks: asked, state: null })
  const retryWith = (action: string): Parameters<typeof call>[3] => ({
    capabilities: ALL,
    retry: { state: null, responses: { 'url-1': { action } } },
  })
  const declined = await call(rig, 'url_first', args, retryWith('decline'))
  assert.deepEqual(
    [declined.kind, declined.kind === 'unsent' && declined.code],
    ['unsent', 'ask_denied'],
  )
  assert.equal(textOf(await call(rig, 'url_first', args, retryWith('accept'))), 'opened')
  const sent = traced(trace).filter(({ method }) => method === 'tools/call')
  assert.equal(sent.length, 2)
  assert.ok(sent.every((each) => !('inputResponses' in (each['params'] as object))))
})

test('without consent to URLs the error stays the answer', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const made = await call(rig, 'url_first', { url: 'https://x.example' }, { capabilities: {} })
  assert.equal(made.kind === 'answered' && made.answer.kind === 'error' && made.answer.code, -32042)
})

test('the one client of a legacy server has one process, told of all that its calls let it ask', async (t) => {
  const starts = fresh('starts')
  const rig = one(t, '--era', 'legacy', '--starts', starts)
  await rig.list('s', 'tools')
  const { pid } = dataOf(await call(rig, 'pid', {}, { capabilities: ALL })) as { pid: number }
  const said = dataOf(await call(rig, 'capabilities', {}, { capabilities: {} }))
  assert.deepEqual(said['initialized'], ALL)
  assert.equal(dataOf(await call(rig, 'pid', {}))['pid'], pid)
  assert.equal(linesOf(starts).length, 2)
  assert.ok((await rig.list('s', 'tools')).complete)
  await until(() => !linesOf(`/proc/${linesOf(starts)[0]?.split(' ')[0]}/status`).length)
})

test('lists are asked as somebody who can be asked what the clients can', async (t) => {
  const rig = start(t, [config('s', { command: scripted('--era', 'legacy') })], {
    principals: 'many',
  })
  await rig.expect?.(json({}))
  const names = async (): Promise<string[]> =>
    (await rig.list('s', 'tools')).items.map(({ name }) => name)
  assert.ok(!(await names()).includes('for_the_able'))
  await rig.expect?.(json({ roots: {} }))
  assert.ok((await names()).includes('for_the_able'))
  await rig.expect?.(json({ sampling: {} }))
  assert.ok((await names()).includes('for_the_able'))
})

test('with many clients a legacy server has a process for each, and a modern one is shared', async (t) => {
  for (const [era, count] of [
    ['legacy', 3],
    ['modern', 1],
  ] as const) {
    const rig = start(t, [config('s', { command: scripted('--era', era) })], {
      principals: 'many',
    })
    const pids = new Set<unknown>()
    for (const [client, capabilities] of [
      ['ana', {}],
      ['ana', ALL],
      ['bob', {}],
      ['ana', {}],
    ] as const) {
      pids.add(dataOf(await call(rig, 'pid', {}, { client, capabilities }))['pid'])
    }
    assert.equal(pids.size, count, era)
  }
})

test('a legacy server that may be shared has a process for each set of capabilities', async (t) => {
  const command = scripted('--era', 'legacy')
  const rig = start(t, [config('s', { command, share: true })], { principals: 'many' })
  const pids = new Set<unknown>()
  for (const client of ['ana', 'bob']) {
    for (const capabilities of [{}, { roots: {} }]) {
      pids.add(dataOf(await call(rig, 'pid', {}, { client, capabilities }))['pid'])
    }
  }
  assert.equal(pids.size, 2)
})

const OFFICIAL = [process.execPath, join(import.meta.dirname, '../../servers/official-asks.ts')]

for (const era of ['modern', 'legacy'] as const) {
  test(`a server on the official SDK asks in the ${era} era and hears the answer`, async (t) => {
    const rig = start(t, [config('s', { command: OFFICIAL, era })])
    const options = { capabilities: ALL }
    const made = asksOf(await call(rig, 'who', {}, options))
    const [key = ''] = Object.keys(made.asks.asks)
    const ask = made.asks.asks[key]
    assert.equal(ask?.method, 'elicitation/create')
    assert.equal(ask.params['message'], 'who are you?')
    const responses = { [key]: { action: 'accept', content: { name: 'ana' } } }
    const done =
      era === 'modern'
        ? await call(rig, 'who', {}, { ...options, retry: { state: made.asks.state, responses } })
        : await answer(rig, made, responses)
    assert.equal(textOf(done), 'hello ana')
  })
}

test("what a server still asks of a read that was cancelled is not asked of another client's call", async (t) => {
  const command = scripted('--era', 'legacy')
  const rig = start(t, [config('s', { command, share: true })], { principals: 'many' })
  await call(rig, 'pid', {}, { client: 'bob', capabilities: ALL })
  const stop = new AbortController()
  const wish = { ms: 700, method: FORM.method, params: { message: "ana's secret" } }
  const read = { does: 'read', client: 'ana', capabilities: ALL, signal: stop.signal } as const
  const cancelled = call(rig, 'ask_after', wish, read)
  const slow = { ms: 1500, label: 'untouched' }
  const other = call(rig, 'after', slow, { client: 'bob', capabilities: ALL })
  setTimeout(() => stop.abort(), 200)
  assert.equal((await cancelled).kind, 'unknown')
  assert.equal(textOf(await other), 'untouched')
})
