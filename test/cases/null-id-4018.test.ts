// Ids 0, empty string, negative and very long values work and stray responses are ignored.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { SIDES, eventually, type Id, request, textOf } from './wire.ts'

const IDS: readonly Id[] = [0, '0', '', -1, '__proto__', 'constructor']

for (const [front, era] of SIDES) {
  test(`${front} ${era}: each id comes back with its type, all at once`, async (t) => {
    const gate = await startGate(t, { front, era })
    // One write, so that all are admitted within the same millisecond.
    const lines = IDS.map((id) => {
      const args = { ms: 50, label: `label of ${JSON.stringify(id)}` }
      return JSON.stringify(request(era, id, 'tools/call', { name: 'after', arguments: args }))
    })
    await gate.write(`${lines.join('\n')}\n`)
    for (const id of IDS) {
      assert.equal(textOf(await gate.answer(id)), `label of ${JSON.stringify(id)}`)
    }
    const sent = gate.trace().filter(({ method }) => method === 'tools/call')
    assert.equal(new Set(sent.map(({ id }) => id)).size, IDS.length, 'ids collide upstream')
  })

  test(`${front} ${era}: null, fractional and endless ids are refused with id null`, async (t) => {
    const gate = await startGate(t, { front, era })
    const bad = [
      'null',
      '1.5',
      '{}',
      '[1]',
      'true',
      '9007199254740993',
      JSON.stringify('i'.repeat(10_240)),
    ]
    for (const id of bad) {
      const text = JSON.stringify(request(era, 0, 'tools/list'))
      await gate.write(`${text.replace('"id":0', `"id":${id}`)}\n`)
    }
    const refused = await eventually('every refusal', () => {
      const found = gate.messages().filter(({ id }) => id === null)
      return found.length >= bad.length && found
    })
    assert.deepEqual(
      refused.map(({ error }) => error?.code),
      bad.map(() => -32600),
    )
    assert.equal(gate.audit().filter(({ kind }) => kind === 'malformed').length, bad.length)
  })

  test(`${front} ${era}: answers to nothing are dropped, from both sides`, async (t) => {
    const upstreams = {
      stray: { flags: ['--answer', 'stray'], more: { share: true } },
      twice: { flags: ['--answer', 'twice'], more: { share: true } },
    }
    const gate = await startGate(t, { front, era, upstreams })
    await gate.post({ jsonrpc: '2.0', id: 4711, result: {} })
    await gate.post({ jsonrpc: '2.0', id: 'never', error: { code: -1, message: 'no' } })
    for (const text of ['1', '2', '3']) {
      assert.equal(textOf(await gate.call('stray__echo', { text })), text)
      assert.equal(textOf(await gate.call('twice__echo', { text })), text)
    }
    const asked = 6 + 1
    // Over HTTP each POST is answered somehow: an answer to nothing with its refusal.
    const answers = gate.messages().filter(({ id }) => id !== null)
    assert.equal(answers.length, asked, 'something was answered that nobody asked')
    assert.equal(gate.starts('stray').length + gate.starts('twice').length, 2)
  })
}
