import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import {
  call,
  config,
  dataOf,
  fresh,
  linesOf,
  one,
  scripted,
  start,
  textOf,
  traced,
  until,
} from './upstream-rig.ts'

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

test('a result that is no complete one is not half passed', async (t) => {
  for (const era of ['modern', 'legacy']) {
    const rig = one(t, '--era', era)
    for (const tool of ['input', 'task']) {
      const made = await call(rig, tool)
      assert.deepEqual(
        [made.kind, made.kind === 'unknown' && made.code],
        ['unknown', 'not_bridged'],
      )
    }
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

test('5 MiB pass unchanged; above the limit the call ends and the next one works', async (t) => {
  const rig = start(t, [config('s')], { limits: { bytes: 6 * 1024 * 1024 } })
  const big = textOf(await call(rig, 'dump', { bytes: 5 * 1024 * 1024 }))
  const digest = (text: string): string => createHash('sha256').update(text).digest('hex')
  assert.equal(digest(big), digest('x'.repeat(5 * 1024 * 1024)))
  for (const result of ['modern', 'legacy']) {
    const made = await call(rig, 'dump', { bytes: 8 * 1024 * 1024 })
    assert.equal(made.kind, 'unknown', result)
    assert.equal(made.code, 'answer_refused')
    assert.equal(textOf(await call(rig, 'echo', { text: 'on' })), 'on')
  }
})

test('the id of a line that is too long is found at its end too', async (t) => {
  const rig = start(t, [config('s')], { limits: { bytes: 100_000 } })
  const text = `{"result":{"id":1,"x":"${'y'.repeat(200_000)}"},"jsonrpc":"2.0","id":$ID}`
  const made = await call(rig, 'line', { text })
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'answer_refused'])
})

test('progress grows strictly, bears the client\u2019s token, and ends with the answer', async (t) => {
  const rig = one(t)
  const seen: unknown[] = []
  const watch = { progress: (params: unknown) => seen.push(JSON.parse(JSON.stringify(params))) }
  const meta = { progressToken: 'mine' }
  const made = await call(rig, 'progress', { values: [1, 5, 5, 3] }, { watch, meta })
  assert.equal(textOf(made), 'done')
  await call(rig, 'echo', { text: 'after' })
  assert.deepEqual(seen, [
    { progressToken: 'mine', progress: 1, message: 'at 1' },
    { progressToken: 'mine', progress: 5, message: 'at 5' },
  ])
  await call(rig, 'progress', { values: [1, 2] }, { watch })
  assert.equal(seen.length, 2)
})

test('progress keeps a call alive beyond its deadline, up to the longest one', async (t) => {
  const trace = fresh('trace')
  const rig = start(t, [
    config('s', { command: scripted('--trace', trace), callMs: 400, callMaxMs: 1500 }),
  ])
  await rig.hello('s')
  const long = await call(rig, 'progress', { values: [1, 2, 3, 4, 5, 6], ms: 150 })
  assert.equal(textOf(long), 'done')
  const values = Array.from({ length: 100 }, (_, n) => n)
  const endless = await call(rig, 'progress', { values, ms: 150 })
  assert.deepEqual(
    [endless.kind, endless.kind === 'unknown' && endless.code],
    ['unknown', 'timeout'],
  )
  const cancelled = (): unknown[] =>
    traced(trace).filter((message) => message['method'] === 'notifications/cancelled')
  await until(() => cancelled().length === 1)
})

test('a call past its deadline is unknown, and what still comes is late', async (t) => {
  const rig = start(t, [config('s', { callMs: 300 })])
  await rig.hello('s')
  const made = await call(rig, 'after', { ms: 800, label: 'too late' })
  assert.equal(made.kind, 'unknown')
  assert.equal(made.code, 'timeout')
  const late = await made.late
  assert.equal(late?.kind, 'result')
  assert.match(JSON.stringify(late.value), /too late/)
})

test('a cancelled read ends at once, and its server alone is told, with the id it knows', async (t) => {
  const [slow, fast] = [fresh('slow'), fresh('fast')]
  const rig = start(t, [
    config('s', { command: scripted('--trace', slow) }),
    config('f', { command: scripted('--trace', fast) }),
  ])
  await Promise.all([rig.hello('s'), rig.hello('f')])
  const stop = new AbortController()
  const pending = call(rig, 'slow', {}, { does: 'read', signal: stop.signal })
  const called = (): Record<string, unknown> | undefined =>
    traced(slow).find((message) => message['method'] === 'tools/call')
  await until(() => called() !== undefined)
  const at = performance.now()
  stop.abort()
  const made = await pending
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'cancelled'])
  const told = (path: string): Record<string, unknown>[] =>
    traced(path).filter((message) => message['method'] === 'notifications/cancelled')
  await until(() => told(slow).length > 0)
  assert.ok(performance.now() - at < 500)
  assert.deepEqual(told(slow)[0]?.['params'], { requestId: called()?.['id'], reason: 'cancelled' })
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' }, { upstream: 'f' })), 'x')
  assert.deepEqual(told(fast), [])
})

test('a cancelled mutation is listened to until it answers', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--trace', trace)
  await rig.hello('s')
  const stop = new AbortController()
  const pending = call(rig, 'after', { ms: 600, label: 'did it' }, { signal: stop.signal })
  await until(() => linesOf(trace).some((line) => line.includes('did it')))
  stop.abort()
  assert.equal(textOf(await pending), 'did it')
  assert.equal(linesOf(trace).filter((line) => line.includes('notifications/cancelled')).length, 1)
})

test('a call cancelled before its server runs was not sent', async (t) => {
  const effects = fresh('effects')
  const rig = one(t, '--start-delay', '1000', '--effects', effects)
  const stop = new AbortController()
  const pending = call(rig, 'mutate', { request_id: 'a', text: 'b' }, { signal: stop.signal })
  setTimeout(() => stop.abort(), 50)
  const made = await pending
  assert.deepEqual([made.kind, made.kind === 'unsent' && made.code], ['unsent', 'cancelled'])
  assert.notEqual(await rig.hello('s'), null)
  await call(rig, 'echo', { text: '' })
  assert.deepEqual(linesOf(effects), [])
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
  const rig = one(t, '--starts', starts)
  await call(rig, 'shut')
  const made = await call(rig, 'echo', { text: 'x' })
  assert.notEqual(made.kind, 'answered')
  await until(() => linesOf(starts).length === 2)
  assert.equal(textOf(await call(rig, 'echo', { text: 'again' })), 'again')
})

test('a server that does not read gets a bounded queue, and what waited there was not sent', async (t) => {
  const rig = start(t, [
    config('s', { command: [process.execPath, '-e', STONE], callMs: 1500 }),
    config('ok'),
  ])
  await rig.hello('s')
  const text = 'x'.repeat(1024 * 1024)
  const made = await Promise.all(Array.from({ length: 50 }, () => call(rig, 'echo', { text })))
  assert.ok(made.every((each) => each.kind !== 'answered'))
  assert.ok(made.some((each) => each.kind === 'unsent' && each.code === 'upstream_down'))
  assert.ok(made.some((each) => each.kind === 'unsent' && each.code === 'timeout'))
  assert.equal(textOf(await call(rig, 'echo', { text: 'y' }, { upstream: 'ok' })), 'y')
})

/** A server that answers initialize and then never reads again. */
const STONE = `
process.stdin.once('data', (chunk) => {
  const { id } = JSON.parse(chunk.toString().split('\\n')[0])
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: { supportedVersions: ['2026-07-28'], capabilities: {}, resultType: 'complete' } }) + '\\n')
  process.stdin.pause()
})
setInterval(() => {}, 1000)
`

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

test('a flood of notifications costs neither the answer nor the memory', async (t) => {
  const rig = one(t)
  await rig.hello('s')
  const before = process.memoryUsage().rss
  const spent = process.cpuUsage()
  assert.equal(textOf(await call(rig, 'flood', { n: 200_000 })), 'done')
  const { user, system } = process.cpuUsage(spent)
  assert.ok(process.memoryUsage().rss - before < 200 * 1024 * 1024)
  assert.ok(user + system < 5_000_000, `${user + system} us of processor`)
})

test('a call that waits in the queue is taken back when it is cancelled', async (t) => {
  const rig = start(t, [config('s', { command: [process.execPath, '-e', STONE], callMs: 20_000 })])
  await rig.hello('s')
  const text = 'x'.repeat(1024 * 1024)
  const stop = new AbortController()
  const signal = stop.signal
  const made = Array.from({ length: 10 }, () => call(rig, 'echo', { text }, { signal }))
  stop.abort()
  const last = await made.at(-1)
  assert.deepEqual([last?.kind, last?.kind === 'unsent' && last.code], ['unsent', 'cancelled'])
})

test('a line of 700 MB from a server costs its call and no memory', async (t) => {
  const rig = start(t, [config('s', { command: [process.execPath, '-e', GIANT], era: 'legacy' })])
  await rig.hello('s')
  const before = process.memoryUsage().rss
  let peak = 0
  const look = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().rss)
  }, 20)
  const made = await call(rig, 'echo', {})
  clearInterval(look)
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'answer_refused'])
  assert.match(made.kind === 'unknown' ? made.why : '', /has 73[0-9]{7} bytes/)
  assert.ok(peak - before < 200 * 1024 * 1024, `${peak - before} bytes more`)
  assert.equal(textOf(await call(rig, 'echo', {})), 'small')
})

/** A server whose first answer to a call is one line of 700 MB. */
const GIANT = `
let giant = true
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'initialize') say({ id, result: { protocolVersion: '2025-11-25', capabilities: {} } })
  if (method !== 'tools/call') return
  if (!giant) return say({ id, result: { content: [{ type: 'text', text: 'small' }] } })
  giant = false
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":{"x":"')
  for (let n = 0; n < 700; n++) {
    if (!process.stdout.write(chunk)) await new Promise((done) => process.stdout.once('drain', done))
  }
  process.stdout.write('"}}\\n')
})
`
