import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import { call, config, fresh, linesOf, one, start, textOf } from './rig.ts'

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

test('what was taken back from the queue is never sent, also when its server reads again', async (t) => {
  const trace = fresh('trace')
  const rig = start(t, [config('s', { command: [process.execPath, '-e', SLEEPER, trace] })])
  await rig.hello('s')
  const text = 'x'.repeat(1024 * 1024)
  const stop = new AbortController()
  const made = Array.from({ length: 10 }, () =>
    call(rig, 'echo', { text }, { signal: stop.signal, does: 'read' }),
  )
  stop.abort()
  const ended = await Promise.all(made)
  const handed = ended.filter((attempt) => attempt.kind === 'unknown').length
  assert.ok(ended.some((attempt) => attempt.kind === 'unsent'))
  assert.equal(textOf(await call(rig, 'echo', { text: 'last' })), 'read')
  assert.equal(linesOf(trace).length, handed + 1)
})

/** A server that reads nothing for a while after its greeting, then writes down which calls came. */
const SLEEPER = `
const { appendFileSync } = require('node:fs')
const lines = require('node:readline').createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const { id, method } = JSON.parse(line)
  const discover = { supportedVersions: ['2026-07-28'], capabilities: {} }
  if (method === 'tools/call') appendFileSync(process.argv[1], method + '\\n')
  if (id === undefined) return
  const result = { resultType: 'complete', ...discover, content: [{ type: 'text', text: 'read' }] }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
  if (method !== 'server/discover') return
  process.stdin.pause()
  setTimeout(() => process.stdin.resume(), 1000)
})
`

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
