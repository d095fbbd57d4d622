// Sessions of the real program: pressure on both pipes, and every way to an end.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Gate, LONG, says, startGate, within } from '../../cases/harness.ts'
import { eventually, PATIENCE, request, textOf } from '../../cases/wire.ts'

const outcomes = (gate: Gate): unknown[] =>
  gate
    .audit()
    .filter(({ kind }) => kind === 'outcome')
    .map(({ outcome }) => outcome)
const call = (id: number, name: string, args: object): string =>
  `${JSON.stringify(request('modern', id, 'tools/call', { name, arguments: args }))}\n`
const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
const opened = (gate: Gate, count: number): Promise<unknown> =>
  eventually(
    `${count} intents`,
    () => gate.audit().filter(({ kind }) => kind === 'intent').length >= count,
  )

test('while a client does not read, no further call is taken, and nothing is lost', async (t) => {
  const gate = await startGate(t, { era: 'modern' })
  const { stdout } = gate.child
  assert.ok(stdout)
  stdout.pause()
  const wave = (from: number): string =>
    Array.from({ length: 20 }, (_, n) => call(from + n, 'dump', { bytes: 1_000_000 })).join('')
  await gate.write(wave(0))
  await eventually('the first outcomes', () => outcomes(gate).length === 20)
  await gate.write(wave(20))
  let looks = 0
  await eventually('the gateway to stand still', () => {
    looks = outcomes(gate).length === 20 ? looks + 1 : 0
    return looks > 50
  })
  stdout.resume()
  await eventually('every answer', () => gate.messages().length === 1 + 40)
  const lengths = gate
    .messages()
    .slice(1)
    .map((one) => textOf(one).length)
  assert.deepEqual(new Set(lengths), new Set([1_000_000]))
})

test('lines that were written before the end of the input are answered', async (t) => {
  const gate = await startGate(t, { era: 'modern' })
  await gate.write(call(1, 'after', { ms: 300, label: 'late' }))
  const exit = await gate.stop()
  assert.deepEqual(exit, { code: 0, signal: null })
  assert.equal(textOf(await gate.answer(1)), 'late')
  assert.deepEqual(outcomes(gate), ['answered'])
})

test('a last line without its end is taken', async (t) => {
  const gate = await startGate(t, { era: 'modern' })
  await gate.write(call(1, 'echo', { text: 'x' }).trimEnd())
  await gate.stop()
  assert.equal(textOf(await gate.answer(1)), 'x')
})

test('a client that is gone ends the session, with the outcome of what it had begun', async (t) => {
  const gate = await startGate(t, { era: 'modern', config: { drain: '10s' } })
  const { stdout } = gate.child
  assert.ok(stdout)
  await gate.write(
    call(1, 'after', { ms: 600, label: 'x' }) + call(2, 'dump', { bytes: 1_000_000 }),
  )
  await opened(gate, 2)
  stdout.destroy()
  assert.deepEqual(await gate.exit, { code: 0, signal: null })
  assert.deepEqual(outcomes(gate), ['answered', 'answered'])
  await says(gate, /the client is gone \(EPIPE\)/)
})

test('at SIGTERM what hangs is closed as unknown after the drain, and new calls are turned away', async (t) => {
  const gate = await startGate(t, { era: 'modern', config: { drain: '3s' } })
  await gate.write(call(1, 'hang', {}))
  await opened(gate, 1)
  gate.child.kill('SIGTERM')
  let next = 100
  await eventually('a call turned away', () => {
    void gate.write(call(next++, 'echo', { text: 'x' })).catch(() => undefined)
    return gate.messages().some((one) => JSON.stringify(one).includes('"draining"'))
  })
  assert.equal((await gate.exit).signal, null)
  const hung = gate.audit().filter(({ name, kind }) => name === 'hang' && kind === 'outcome')
  assert.deepEqual(
    hung.map(({ outcome }) => outcome),
    ['unknown'],
  )
  assert.equal(gate.audit().at(-1)?.kind, 'stop')
})

test('a second signal ends the wait at once, and nothing is left open', async (t) => {
  const gate = await startGate(t, { era: 'modern', config: { drain: '5m' } })
  await gate.write(call(1, 'hang', {}))
  await opened(gate, 1)
  gate.child.kill('SIGINT')
  gate.child.kill('SIGTERM')
  const again = setInterval(() => gate.child.kill('SIGTERM'), 200)
  const exit = await within('the exit', gate.exit, PATIENCE).finally(() => clearInterval(again))
  assert.equal(exit.signal, null)
  assert.deepEqual(outcomes(gate), ['unknown'])
})

test('words for the operator that nobody reads any more harm no call', async (t) => {
  const gate = await startGate(t, { era: 'modern' })
  const { stderr } = gate.child
  assert.ok(stderr)
  stderr.destroy()
  for (let round = 0; round < 5; round++) {
    await gate.call('stderr', { text: 'x'.repeat(2_000), times: 20 })
    assert.equal(textOf(await gate.call('echo', { text: `${round}` })), `${round}`)
  }
})

test('a flood of malformed lines is refused one by one within bounds', async (t) => {
  const gate = await startGate(t, { era: 'modern' })
  const before = residentMiB(gate.pid)
  const flood = '1\n'.repeat(5_000)
  await gate.write(flood + call(7, 'echo', { text: 'after' }))
  assert.equal(textOf(await gate.answer(7, 60_000)), 'after')
  assert.equal(gate.messages().filter(({ error }) => error?.code === -32600).length, 5_000)
  assert.equal(gate.audit().filter(({ kind }) => kind === 'malformed').length, 5_000)
  assert.ok(residentMiB(gate.pid) - before < 200)
})

test('a session that was idle for 91 seconds still answers', { skip: !LONG }, async (t) => {
  const gate = await startGate(t, { era: 'legacy' })
  await gate.call('echo', { text: 'before' })
  await sleep(91_000)
  assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
})
