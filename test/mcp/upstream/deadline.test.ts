import assert from 'node:assert/strict'
import { test } from 'node:test'

import { roomy } from '../../pace.ts'
import { call, config, fresh, linesOf, one, scripted, start, textOf, traced, until } from './rig.ts'

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
    config('s', { command: scripted('--trace', trace), callMs: 1000, callMaxMs: 2500 }),
  ])
  await rig.hello('s')
  const long = await call(rig, 'progress', { values: [1, 2, 3, 4, 5], ms: 300 })
  assert.equal(textOf(long), 'done')
  const values = Array.from({ length: 100 }, (_, n) => n)
  const endless = await call(rig, 'progress', { values, ms: 300 })
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
  assert.ok(performance.now() - at < roomy(500))
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
