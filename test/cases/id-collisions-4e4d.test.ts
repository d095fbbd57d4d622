// Duplicate in-flight ids on one session are refused, and id types are kept.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import {
  type Bag,
  type Era,
  eventually,
  type Id,
  type Message,
  request,
  SIDES,
  textOf,
} from './wire.ts'

const IDS: readonly Id[] = [1, '1', 0, '', 9007199254740991]

const call = (era: Era, ms: number, label: string): Bag =>
  request(era, 1, 'tools/call', { name: 'after', arguments: { ms, label } })

/** Sends two calls under one id and gives both answers, in the order in which they came. */
async function twice(gate: Gate): Promise<readonly Message[]> {
  await gate.post(call(gate.era, 800, 'A'))
  await gate.post(call(gate.era, 100, 'B'))
  return eventually('both answers', () => {
    const found = gate.messages().filter(({ id }) => id === 1)
    return found.length === 2 && found
  })
}

const sent = (gate: Gate): number =>
  gate.trace().filter(({ method }) => method === 'tools/call').length

test('http modern: an id of another POST is another id, which nobody has to agree on', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  assert.deepEqual((await twice(gate)).map(textOf), ['B', 'A'])
  assert.equal(sent(gate), 2)
})

for (const [front, era] of SIDES.filter(([one, of]) => one === 'stdio' || of === 'legacy')) {
  test(`${front} ${era}: an id in use is refused and its first owner completes`, async (t) => {
    const gate = await startGate(t, { front, era })
    const [first, second] = await twice(gate)
    assert.equal(first?.error?.code, -32600)
    assert.ok(second !== undefined)
    assert.equal(textOf(second), 'A')

    assert.equal(textOf(await gate.call('after', { ms: 1, label: 'C' }, { id: 2 })), 'C')
    await gate.post(call(era, 1, 'D'))
    await eventually('the id is free again', () =>
      gate.messages().some((one) => one.id === 1 && one.result?.content?.[0]?.text === 'D'),
    )
    assert.equal(sent(gate), 3, 'the refused call was sent')
    const audit = gate.audit()
    assert.equal(audit.filter(({ kind }) => kind === 'intent').length, 3)
    assert.ok(
      audit.some(({ code, decision }) => code === 'malformed' && decision === 'deny'),
      'the refused call has no record',
    )
  })
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: ids that look alike are kept apart`, async (t) => {
    const gate = await startGate(t, { front, era })
    const answers = await Promise.all(
      IDS.map((id) => gate.call('after', { ms: 60, label: `${typeof id} ${id}` }, { id })),
    )
    assert.deepEqual(
      answers.map(textOf),
      IDS.map((id) => `${typeof id} ${id}`),
    )
    assert.equal(gate.audit().filter(({ kind }) => kind === 'outcome').length, IDS.length)
  })
}
