// Clients over HTTP that vanish leave no processes, no dead children and no descriptors behind.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, greet, LONG, startGate } from './harness.ts'
import { children, descriptors, isRunning } from './proc.ts'
import { eventually, request, textOf, WAYS } from './wire.ts'

/** Rounds, half of which end with a reset in mid-answer, the others without a word. */
const ROUNDS = LONG ? 100 : 30
/** The base and the one process that belongs to the one client. */
const POOL = 2
const SLACK = 10
/** Processes may be slow to be seen, and sessions are looked at each half second. */
const IDLE_MS = 1_000
const PATIENCE = IDLE_MS + 60_000

/** All processes below this one, zombies too. */
const below = (pid: number): readonly number[] =>
  children(pid).flatMap((child) => [child, ...(isRunning(child) ? below(child) : [])])

async function round(gate: Gate, n: number): Promise<void> {
  const client = gate.client()
  await greet(client)
  assert.equal(textOf(await client.call('echo', { text: `${n}` })), `${n}`)
  if (n % 2 === 0) {
    const params = { name: 'progress', arguments: { values: [1, 2, 3], ms: 200 } }
    const meta = { progressToken: n }
    const came = client.next((line) => line.includes('notifications/progress'))
    await client.post(request(gate.era, 7, 'tools/call', { ...params, _meta: meta }))
    await came
  }
  client.vanish()
}

for (const [front, era, servers] of WAYS.filter(([one]) => one === 'http')) {
  test(`${era} clients, ${servers} server: ${ROUNDS} that vanish leave what was there before`, async (t) => {
    const config = { session_idle: `${IDLE_MS}ms` }
    const gate = await startGate(t, { front, era, servers, config })
    await gate.call('echo', { text: 'warm' })
    const before = descriptors(gate.pid).size
    for (let n = 0; n < ROUNDS; n += 5) {
      await Promise.all(Array.from({ length: 5 }, (_, k) => round(gate, n + k)))
    }
    await eventually(
      'the descriptors are given back',
      () => descriptors(gate.pid).size <= before + SLACK,
      PATIENCE,
    )
    const left = below(gate.pid)
    assert.ok(left.length <= POOL, `${left.length} processes`)
    assert.ok(left.every(isRunning), 'there are dead children')
    assert.ok(gate.starts().length <= POOL, `${gate.starts().length} starts`)
    await eventually('the outcomes of all calls', () => {
      const audit = gate.audit()
      const of = (kind: string): number => audit.filter((one) => one.kind === kind).length
      return of('intent') === of('outcome')
    })
    assert.deepEqual(await gate.stop(), { code: 0, signal: null })
    for (const pid of left) assert.ok(!isRunning(pid), 'a server was left behind')
  })
}
