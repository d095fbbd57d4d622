// What a gate does while calls run: limits, the end, cancelled reads, changed tools.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { guard, guardHandlers } from '../../src/sdk/guard.ts'
import { bench, codeOf, short, textOf, until } from './bench.ts'

const DEAF = '{"version":1,"allow":["deaf","slow","write_note","read_ledger"]}'

test('a call beyond the limit at once is turned away and recorded', async () => {
  const place = await bench(guard)
  const running = Array.from({ length: 64 }, () => place.call('slow', {}))
  await until(() => place.ran.length === 64)
  const one = await place.call('read_ledger', {})
  assert.equal(codeOf(one), 'too_many_calls')
  assert.equal(one.result?.isError, true)
  for (let requestId = 1; requestId <= running.length; requestId++) {
    place.peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  }
  await until(() => place.ran.length === 128)
  let told = one
  while (codeOf(told) === 'too_many_calls') told = await place.call('read_ledger', {})
  assert.equal(textOf(told), 'nothing')
})

test('a gate that stops waits for what runs and takes nothing new', async () => {
  const place = await bench(guard)
  void place.call('slow', {})
  await until(() => place.ran.length === 1)
  const stopped = place.gate.stop()
  assert.equal(codeOf(await place.call('read_ledger', {})), 'draining')
  place.peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  await stopped
  assert.deepEqual(place.ran, ['slow', 'slow ended'])
  assert.deepEqual(short(place.records()), [
    'intent slow allow pending',
    'call read_ledger deny not_executed',
    'outcome slow allow answered',
  ])
})

test('a cancelled read is recorded at once, though its callback does not listen', async () => {
  let release: (() => void) | undefined
  const place = await bench(
    (server, gate) => {
      guard(server, gate)
      server.registerTool('deaf', { annotations: { readOnlyHint: true } }, async () => {
        await new Promise<void>((resolve) => (release = resolve))
        return { content: [] }
      })
    },
    { options: { policy: { text: DEAF }, tools: { deaf: { effect: 'read' } } } },
  )
  void place.call('deaf', {})
  await until(() => release !== undefined)
  place.peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  await until(() => place.records().length > 0)
  assert.deepEqual(
    place.records().map(({ outcome, code }) => [outcome, code]),
    [['unknown', 'cancelled']],
  )
  release?.()
})

test('a callback that asks for input is not passed on half', async () => {
  const place = await bench(
    (server, gate) => {
      guard(server, gate)
      server.registerTool('deaf', {}, () => ({ resultType: 'input_required', requestState: 'x' }))
    },
    { options: { policy: { text: DEAF }, tools: {} } },
  )
  const told = await place.call('deaf', {})
  assert.equal(codeOf(told), 'not_bridged')
  assert.equal(told.result?.resultType, 'complete')
})

test('a tool that changed is not called until it is approved', async () => {
  const place = await bench(
    (server, gate) => {
      guard(server, gate)
      const tool = server.registerTool('deaf', { description: 'first' }, () => ({ content: [] }))
      server.registerTool('slow_change', {}, () => {
        tool.update({ description: 'second' })
        return { content: [] }
      })
    },
    { options: { policy: { text: '{"version":1,"allow":["deaf","slow_change"]}' }, tools: {} } },
  )
  assert.equal(codeOf(await place.call('deaf', {})), undefined)
  await place.call('slow_change', {})
  assert.equal(codeOf(await place.call('deaf', {})), 'tool_denied')
  assert.equal(place.records().at(-1)?.['code'], 'definition_changed')
})

test('arguments that the policy sets are not lost when only the callbacks are guarded', async () => {
  const policy = `
version: 2
profiles:
  one: { allow: [notes/read_ledger], set: { notes/read_ledger: { vault: family } } }
`
  const place = await bench(guardHandlers, { options: { policy: { text: policy } } })
  const told = await place.call('read_ledger', {})
  assert.equal(told.result?.isError, true)
  assert.match(textOf(told), /guardCalls is needed/)
  assert.deepEqual(place.ran, [])
})

test('a list has one page, and a cursor is refused', async () => {
  const place = await bench(guard)
  const listed = await place.peer.ask('tools/list')
  assert.equal(listed.result?.['nextCursor'], undefined)
  const more = await place.peer.ask('tools/list', { cursor: 'x' })
  assert.equal(more.error?.code, -32602)
})
