// Cancelled calls go on without their client, and take no place from the calls that follow.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { open } from './desk.ts'

test('cancelled writes whose outcome is still awaited do not fill the ceiling of calls', async (t) => {
  const desk = await open(t, {
    calls: 2,
    profile: { allow: ['up/after', 'up/echo', 'up/hang'] },
    tools: { 'up/hang': { effect: 'write' } },
  })
  await desk.greet()
  for (let id = 101; id <= 106; id++) {
    desk.say({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'hang', arguments: {} } })
    desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: id } })
  }
  const params = { name: 'echo', arguments: { text: 'free' } }
  const answer = await desk.legacy('tools/call', params)
  assert.equal(answer.result?.['isError'], undefined, JSON.stringify(answer))
  assert.equal(desk.front.ready(), true)
})
