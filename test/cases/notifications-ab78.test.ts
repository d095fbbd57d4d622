// Notifications are never answered, whatever their content.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { SIDES, textOf } from './wire.ts'

const NOTIFICATIONS = [
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  '{"jsonrpc":"2.0","method":"notifications/unknown","params":{"secret":"abc"}}',
  '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1}}',
  '{"jsonrpc":"2.0","method":"notifications/progress","params":"wrong"}',
  '{"jsonrpc":"2.0","method":"notifications/unknown","params":[1,2]}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled"}',
  '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}',
  '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}',
  '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"text":"no id"}}}',
  '{"jsonrpc":"2.0","method":""}',
]

for (const [front, era] of SIDES) {
  test(`${front} ${era}: nothing is answered, forwarded or ended by a notification`, async (t) => {
    const gate = await startGate(t, { front, era })
    // The upstream is up before, so that all it receives afterwards comes from these lines.
    await gate.call('echo', { text: 'before' })
    const said = gate.messages().length
    const heard = gate.trace().length
    await gate.write(`${NOTIFICATIONS.join('\n')}\n`)
    assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
    assert.equal(gate.messages().length, said + 1)
    const later = gate.trace().slice(heard)
    assert.deepEqual(
      later.map(({ method }) => method),
      ['tools/call'],
    )
    assert.doesNotMatch(gate.errors(), /abc/)
  })
}
