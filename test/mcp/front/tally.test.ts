// What a session only counts has one record at its end.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { open } from './desk.ts'

test('pings, strange notifications and responses are counted in one record, not recorded singly', async (t) => {
  const desk = await open(t)
  await desk.greet()
  for (let round = 0; round < 3; round++) await desk.legacy('ping')
  desk.say({ jsonrpc: '2.0', method: 'notifications/unknown' })
  desk.say({ jsonrpc: '2.0', id: 77, result: {} })
  await desk.front.drain()
  const counts = desk.audit().filter(({ kind }) => kind === 'count')
  assert.equal(counts.length, 1)
  const { pings, notifications, responses, client } = counts[0] ?? {}
  assert.deepEqual({ pings, responses, client }, { pings: 3, responses: 1, client: 'agent' })
  assert.ok(Number(notifications) >= 1)
})

test('a session that counted nothing leaves no record of counts', async (t) => {
  const desk = await open(t)
  await desk.modern('tools/list')
  await desk.front.drain()
  assert.deepEqual(
    desk.audit().filter(({ kind }) => kind === 'count'),
    [],
  )
})
