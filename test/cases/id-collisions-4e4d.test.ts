// Duplicate in-flight ids on one session are refused, and id types are kept.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { SIDES, eventually, type Id, request, textOf } from './wire.ts'

const IDS: readonly Id[] = [1, '1', 0, '', 9007199254740991]

for (const [front, era] of SIDES) {
  // Over HTTP a modern client's ids mean something only within one POST: nobody is asked to agree on them.
  const isShared = !(front === 'http' && era === 'modern')
  const rule = isShared
    ? 'is refused and its first owner completes'
    : 'of another POST is another id'
  test(`${front} ${era}: an id in use ${rule}`, async (t) => {
    const gate = await startGate(t, { front, era })
    const call = (ms: number, label: string): ReturnType<typeof request> =>
      request(era, 1, 'tools/call', { name: 'after', arguments: { ms, label } })
    await gate.post(call(800, 'A'))
    await gate.post(call(100, 'B'))
    const answers = await eventually('both answers', () => {
      const found = gate.messages().filter(({ id }) => id === 1)
      return found.length === 2 && found
    })
    if (isShared) {
      const [first, second] = answers
      assert.equal(first?.error?.code, -32600)
      assert.ok(second !== undefined)
      assert.equal(textOf(second), 'A')
    } else assert.deepEqual(answers.map(textOf), ['B', 'A'])

    assert.equal(textOf(await gate.call('after', { ms: 1, label: 'C' }, { id: 2 })), 'C')
    await gate.post(call(1, 'D'))
    await eventually('the id is free again', () =>
      gate.messages().some((one) => one.id === 1 && one.result?.content?.[0]?.text === 'D'),
    )
    const sent = gate.trace().filter(({ method }) => method === 'tools/call')
    assert.equal(sent.length, isShared ? 3 : 4, 'the refused call was sent')
    const audit = gate.audit()
    assert.equal(audit.filter(({ kind }) => kind === 'intent').length, sent.length)
    if (isShared)
      assert.ok(
        audit.some(({ code, decision }) => code === 'malformed' && decision === 'deny'),
        'the refused call has no record',
      )
  })

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
