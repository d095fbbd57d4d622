// Sessions that nobody ends are freed after their idle time, with their streams, and never with a call in flight.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { liveHeap } from '../soak/heap.ts'
import { type Gate, greet, LONG, startGate } from './harness.ts'
import { descriptors, rss } from './proc.ts'
import { eventually, request, textOf } from './wire.ts'

/** The figures of the case, or a tenth of them. */
const SESSIONS = LONG ? 20_000 : 2_000
const FIRST = LONG ? 500 : 300
const IDLE_S = LONG ? 3 : 1
/** Sessions of one client, as docs/http.md says. */
const MAX_SESSIONS_A_CLIENT = 256
const MORE_BYTES = 40 * 1024 * 1024
const AT_ONCE = 8

/** Opens a session, lists, and goes without a word; each second one has a stream open, which is reset. */
async function passing(gate: Gate, n: number): Promise<string> {
  const client = gate.client()
  await greet(client)
  await client.request('tools/list')
  if (n % 2 === 0) assert.equal((await client.listen()).status, 200)
  client.vanish()
  return client.session() ?? assert.fail('there is no session')
}

async function many(gate: Gate, count: number): Promise<readonly string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += AT_ONCE) {
    ids.push(
      ...(await Promise.all(Array.from({ length: AT_ONCE }, (_, k) => passing(gate, n + k)))),
    )
  }
  return ids
}

const isKnown = async (gate: Gate, id: string): Promise<boolean> => {
  const body = JSON.stringify(request('legacy', 1, 'ping'))
  const headers = { 'mcp-session-id': id }
  return (await gate.client().exchange({ body, headers })).status === 200
}

test(`${SESSIONS} sessions that nobody ends cost no more memory than the first ${FIRST}`, async (t) => {
  const gate = await startGate(t, {
    front: 'http',
    era: 'legacy',
    handshake: false,
    config: { session_idle: `${IDLE_S}s` },
    // The inspector forces a collection: what waits for one is no leak.
    env: { NODE_OPTIONS: '--inspect=127.0.0.1:0 --max-semi-space-size=4' },
  })
  const held = async (): Promise<number> => {
    await liveHeap(gate.errors())
    return rss(gate.pid)
  }
  const open = descriptors(gate.pid).size
  await many(gate, FIRST)
  const first = await held()
  const ids = await many(gate, SESSIONS - FIRST)
  await sleep(IDLE_S * 1_000 + (LONG ? 10_000 : 2_000))
  const now = await held()
  assert.ok(now < first + MORE_BYTES, `${Math.round((now - first) / 1024)} KiB more`)
  for (const at of [0, 1, Math.floor(ids.length / 2), ids.length - 2, ids.length - 1]) {
    assert.equal(await isKnown(gate, ids[at] ?? ''), false, `session ${at} is still there`)
  }
  assert.ok(descriptors(gate.pid).size <= open + 10)
})

test('an open stream keeps a session; when it is gone the idle time begins, comments or not', async (t) => {
  const config = { session_idle: '1s', keepalive: '500ms' }
  const gate = await startGate(t, { front: 'http', era: 'legacy', handshake: false, config })
  const client = gate.client()
  await greet(client)
  const id = client.session() ?? assert.fail('there is no session')
  const { close } = await client.listen()
  await sleep(3_000)
  const ping = await client.request('ping')
  assert.equal(ping.error, undefined, 'a session whose stream is read was ended')
  close()
  // Asking would be use: it is looked at once, after the time and a sweep.
  await sleep(4_000)
  assert.equal(await isKnown(gate, id), false)
})

test('past the most sessions of a client the one longest unused goes, never one with a call in flight', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'legacy', handshake: false })
  const busy = gate.client()
  await greet(busy)
  const idle = gate.client()
  await greet(idle)
  const slow = { name: 'after', arguments: { ms: 120_000, label: 'kept' } }
  await busy.post(request('legacy', 'slow', 'tools/call', slow))
  await eventually('the call at its server', () =>
    gate.trace().some(({ params }) => params?.['name'] === 'after'),
  )
  const ids = await many(gate, MAX_SESSIONS_A_CLIENT)
  assert.equal(
    await isKnown(gate, idle.session() ?? ''),
    false,
    'the oldest idle one is still there',
  )
  assert.equal(await isKnown(gate, ids.at(-1) ?? ''), true)
  assert.equal(textOf(await busy.call('echo', { text: 'here' })), 'here')
  assert.ok(!busy.messages().some(({ id }) => id === 'slow'), 'the call in flight was ended')
})
