import assert from 'node:assert/strict'
import { test } from 'node:test'

import { call, config, dataOf, fresh, linesOf, one, scripted, start, textOf, until } from './rig.ts'

for (const era of ['modern', 'legacy'] as const) {
  test(`a call is answered by a ${era} server with its own bytes`, async (t) => {
    const rig = one(t, '--era', era)
    const made = await call(rig, 'echo', { text: 'h\u00e9 \u{1f600}' })
    assert.equal(textOf(made), 'h\u00e9 \u{1f600}')
    const sent = era === 'modern' ? '"resultType": "complete", ' : ''
    const source = `{${sent}"content" : [], "n": 12345678901234567890, "d": 1.0}`
    const raw = await call(rig, 'raw', { result: source })
    assert.equal(raw.kind, 'answered')
    assert.equal(raw.answer.kind, 'result')
    assert.equal(raw.answer.era, era)
    assert.equal(raw.answer.text, source)
    assert.equal((await rig.hello('s'))?.era, era)
  })
}

test('what leaves is written anew: one line, numbers by their source', async (t) => {
  const rig = one(t)
  const args = { text: 'a\nb\u2028', n: 1 }
  const line = textOf(await call(rig, 'source', args))
  assert.deepEqual(JSON.parse(line).params.arguments, args)
})

test('answers reach their calls whatever the order, in pieces and in bursts', async (t) => {
  for (const flags of [['--dribble'], ['--crlf'], ['--junk-first'], ['--answer', 'stray']]) {
    const rig = one(t, ...flags)
    const wanted = Array.from({ length: 20 }, (_, n) => `label ${n}`)
    const made = await Promise.all(
      wanted.map((label, n) => call(rig, 'after', { ms: (20 - n) * 5, label })),
    )
    assert.deepEqual(made.map(textOf), wanted, flags[0])
    assert.equal(textOf(await call(rig, 'echo', { text: 'still here' })), 'still here')
  }
})

test('an answer that comes twice, or for an id never asked, changes nothing', async (t) => {
  const rig = one(t, '--answer', 'twice')
  for (let n = 0; n < 50; n++)
    assert.equal(textOf(await call(rig, 'echo', { text: `${n}` })), `${n}`)
})

test('JSON that is no message never completes a call, and nobody is respawned', async (t) => {
  const starts = fresh('starts')
  const rig = one(t, '--junk-first', '--starts', starts)
  const lines = [
    '{"level":"info","msg":"up"}',
    '42',
    'null',
    '["a"]',
    '{"id":$ID}',
    '{"jsonrpc":"2.0","id":$ID}',
    '{"jsonrpc":"1.0","id":$ID,"result":{}}',
    '{"JSONRPC":"2.0","id":$ID,"Result":{}}',
    '{"jsonrpc":"2.0","id":"$ID","result":{}}',
    '{"jsonrpc":"2.0","id":null,"result":{}}',
    '{"jsonrpc":"2.0","id":99999,"result":{}}',
    'Server listening on stdio',
    '{"jsonrpc":"2.0","method":"notifications/unheard","params":{}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":1}}',
    '{"jsonrpc":"2.0","method":"notifications/message"}',
  ]
  const pending = call(rig, 'after', { ms: 300, label: 'right' })
  assert.equal(textOf(await call(rig, 'junk', { lines, text: 'junk is out' })), 'junk is out')
  assert.equal(textOf(await pending), 'right')
  assert.equal(linesOf(starts).length, 1)
})

test('an inadmissible answer ends its call as unknown, and only that call', async (t) => {
  const rig = one(t)
  const bystander = call(rig, 'after', { ms: 500, label: 'untouched' })
  const deep = '['.repeat(70) + ']'.repeat(70)
  for (const line of [
    '{"jsonrpc":"2.0","id":$ID,"result":{"a":1,"a":2}}',
    '{"result":{"__proto__":{}},"jsonrpc":"2.0","id":$ID}',
    `{"jsonrpc":"2.0","id":$ID,"result":{"deep":${deep}}}`,
    '{"jsonrpc":"2.0","id":$ID,"result":{"s":"\\ud83d"}}',
    '{"jsonrpc":"2.0","id":$ID,"result":[]}',
    '{"jsonrpc":"2.0","id":$ID,"result":{},"error":{"code":1,"message":"x"}}',
    '{"jsonrpc":"2.0","id":$ID,"error":{"code":"1","message":"x"}}',
    '{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}',
  ]) {
    const made = await call(rig, 'line', { text: line })
    assert.equal(made.kind, 'unknown', line)
    assert.equal(made.code, 'answer_refused', line)
  }
  assert.equal(textOf(await bystander), 'untouched')
})

test('a kind of result that a call cannot have is not half passed', async (t) => {
  const cases = [
    ['modern', 'task'],
    ['legacy', 'task'],
    ['legacy', 'input'],
  ] as const
  for (const [era, tool] of cases) {
    const made = await call(one(t, '--era', era), tool)
    const code = made.kind === 'unknown' ? made.code : null
    assert.deepEqual([made.kind, code], ['unknown', 'answer_refused'], `${era} ${tool}`)
  }
})

test('errors of a server are answers', async (t) => {
  const rig = one(t)
  const made = await call(rig, 'refuse', { code: -32002, message: 'no', data: { uri: 'x' } })
  assert.deepEqual(JSON.parse(JSON.stringify(made)), {
    kind: 'answered',
    answer: { kind: 'error', code: -32002, message: 'no', data: { uri: 'x' } },
  })
})

test('a server that dies after it got a call leaves it unknown, and comes back', async (t) => {
  const effects = fresh('effects')
  const rig = one(t, '--effects', effects)
  const made = await call(rig, 'crash', { when: 'after', request_id: 'k', text: 't' })
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'upstream_down'])
  assert.deepEqual(linesOf(effects), ['k\tt'])
  assert.equal(textOf(await call(rig, 'echo', { text: 'back' })), 'back')
})

test('what a server wrote before it died is heard', async (t) => {
  const rig = one(t, '--crash-after', '1')
  assert.equal(textOf(await call(rig, 'dump', { bytes: 1_000_000 })).length, 1_000_000)
})

test('a server that closed its input is restarted, not written to for ever', async (t) => {
  const starts = fresh('starts')
  // What was written just before the end of its input shows nothing; the next write does.
  const command = scripted('--starts', starts)
  const rig = start(t, [config('s', { command, callMs: 1000 })])
  await call(rig, 'shut')
  const made = await call(rig, 'echo', { text: 'x' })
  assert.notEqual(made.kind, 'answered')
  await until(() => linesOf(starts).length === 2)
  assert.equal(textOf(await call(rig, 'echo', { text: 'again' })), 'again')
})

test('what a server asks of clients is refused, a ping is answered', async (t) => {
  const rig = one(t)
  for (const method of ['sampling/createMessage', 'elicitation/create', 'roots/list']) {
    const { answer } = dataOf(await call(rig, 'ask', { method })) as {
      answer: { error: { code: number } }
    }
    assert.equal(answer.error.code, -32601)
  }
  const { answer } = dataOf(await call(rig, 'ask', { method: 'ping' })) as { answer: unknown }
  assert.deepEqual((answer as { result: unknown }).result, {})
})

test('log messages go to the only call in flight, otherwise to no call', async (t) => {
  const rig = one(t)
  const mine: unknown[] = []
  const others: unknown[] = []
  rig.onLog((_upstream, params) => others.push(params['data']))
  const watch = { log: (params: { readonly [key: string]: unknown }) => mine.push(params['data']) }
  await call(rig, 'log', { entries: [{ level: 'info', data: 'one' }] }, { watch })
  assert.deepEqual([mine, others], [['one'], []])
  const busy = call(rig, 'after', { ms: 300, label: 'x' }, { watch })
  await call(rig, 'log', { entries: [{ level: 'info', data: 'two' }] }, { watch })
  await busy
  assert.deepEqual([mine, others], [['one'], ['two']])
})
