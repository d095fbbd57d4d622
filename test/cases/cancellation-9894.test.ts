// A cancellation reaches the owning upstream under the id it knows, and is not queued behind its call.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { roomy } from '../pace.ts'
import { startGate } from './harness.ts'
import { eventually, type Message, WAYS, request, textOf } from './wire.ts'

/** How long the call takes that is cancelled, and the cancel to reach its server: behind the call it would come
 *  after it. */
const SLOW_MS = 3_000
const SOON_MS = 2_500

const ofMethod = (trace: readonly Message[], method: string): readonly Message[] =>
  trace.filter((one) => one.method === method)

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era, servers] of WAYS) {
    const pair = `${front}, ${era} client, ${servers} server`

    test(`${pair}: a cancelled write is cancelled at its server, and its outcome is still recorded`, async (t) => {
      const gate = await startGate(t, { front, era, servers, upstreams: { s: {}, f: {} } })
      await gate.call('s__echo', { text: 'warm' })
      await gate.call('f__echo', { text: 'warm' })
      await gate.post(
        request(era, 101, 'tools/call', { name: 's__slow', arguments: { ms: SLOW_MS } }),
      )
      const fast = { name: 'f__after', arguments: { ms: 100, label: 'fast' } }
      await gate.post(request(era, 102, 'tools/call', fast))
      const slow = await eventually('the slow call at its server', () =>
        ofMethod(gate.trace('s'), 'tools/call').find(({ params }) => params?.['name'] === 'slow'),
      )
      await gate.cancel(101)
      const told = await eventually(
        'the cancel at the server',
        () => ofMethod(gate.trace('s'), 'notifications/cancelled')[0],
        SOON_MS,
      )
      assert.equal(told.params?.['requestId'], slow.id)
      assert.equal(textOf(await gate.answer(102)), 'fast')

      const outcome = await gate.record(
        'the cancelled call',
        ({ kind, name, code }) => kind === 'outcome' && name === 's__slow' && code === 'cancelled',
      )
      assert.equal(outcome.decision, 'allow')
      assert.equal(ofMethod(gate.trace('f'), 'notifications/cancelled').length, 0)
      assert.equal(ofMethod(gate.trace('s'), 'notifications/cancelled').length, 1)
      await gate.call('f__echo', { text: 'later' })
      assert.ok(!gate.messages().some(({ id }) => id === 101), 'a cancelled call was answered')
    })

    test(`${pair}: a cancelled read is closed at once`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        servers,
        tools: { 'up/slow': { effect: 'read' } },
      })
      await gate.call('echo', { text: 'warm' })
      await gate.post(request(era, 101, 'tools/call', { name: 'slow', arguments: { ms: 60_000 } }))
      await eventually('the call at its server', () =>
        gate.trace().some(({ params }) => params?.['name'] === 'slow'),
      )
      await gate.cancel(101)
      const closed = await gate.record(
        'the cancelled read',
        ({ name, code }) => name === 'slow' && code === 'cancelled',
        roomy(2_000),
      )
      assert.equal(closed.outcome, 'unknown')
      // The id is free again, and a second cancel of it hits nobody.
      await gate.cancel(101)
      assert.equal(textOf(await gate.call('echo', { text: 'again' }, { id: 101 })), 'again')
    })

    test(`${pair}: a cancel of an unknown or finished id does nothing`, async (t) => {
      const gate = await startGate(t, { front, era, servers })
      assert.equal(textOf(await gate.call('echo', { text: 'done' }, { id: 101 })), 'done')
      await gate.cancel(101)
      const params = { requestId: '102', reason: 'user' }
      await gate.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
      assert.equal(textOf(await gate.call('after', { ms: 50, label: 'kept' }, { id: 102 })), 'kept')
      assert.equal(ofMethod(gate.trace(), 'notifications/cancelled').length, 0)
    })
  }
})
