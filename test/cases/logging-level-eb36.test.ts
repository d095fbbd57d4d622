// Log messages reach a modern client only when its request asks for them, at its level, before its answer.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { eventually, type Message, request, SIDES, textOf } from './wire.ts'

const LEVEL = 'io.modelcontextprotocol/logLevel'
const LEVELS = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const
const entries = LEVELS.map((level) => ({ level, data: `it is ${level}` }))

const levelsOf = (messages: readonly Message[]): readonly unknown[] =>
  messages.map(({ params }) => params?.['level'])

for (const [front, server] of SIDES) {
  test(`${front}, ${server} server: nothing is logged to a client that did not ask`, async (t) => {
    const up = { flags: ['--era', server] }
    const gate = await startGate(t, { front, era: 'modern', upstreams: { up } })
    assert.equal(textOf(await gate.call('log', { entries })), 'done')
    assert.equal(textOf(await gate.call('flood', { n: 50 })), 'done')
    assert.equal(textOf(await gate.call('echo', { text: 'x' })), 'x')
    assert.deepEqual(gate.notifications('notifications/message'), [])
  })

  test(`${front}, ${server} server: what is asked for comes from its level on and before the answer`, async (t) => {
    const up = { flags: ['--era', server] }
    const gate = await startGate(t, { front, era: 'modern', upstreams: { up } })
    for (const level of ['warning', 'debug', 'emergency'] as const) {
      const before = gate.messages().length
      const answer = await gate.call('log', { entries }, { meta: { [LEVEL]: level } })
      assert.equal(textOf(answer), 'done')
      const came = gate.messages().slice(before)
      assert.equal(came.at(-1), answer, 'something came after the answer')
      assert.deepEqual(levelsOf(came.slice(0, -1)), LEVELS.slice(LEVELS.indexOf(level)))
    }
    // The next request asks for nothing again: a level is never remembered.
    const before = gate.messages().length
    assert.equal(textOf(await gate.call('log', { entries })), 'done')
    assert.equal(gate.messages().length, before + 1)
  })

  test(`${front}, ${server} server: a level that does not exist is refused`, async (t) => {
    const up = { flags: ['--era', server] }
    const gate = await startGate(t, { front, era: 'modern', upstreams: { up } })
    for (const level of ['loud', 'WARNING', '', 5, null]) {
      const answer = await gate.call('log', { entries }, { meta: { [LEVEL]: level } })
      assert.equal(answer.error?.code, -32602, JSON.stringify(level))
    }
    assert.deepEqual(gate.notifications('notifications/message'), [])
    const calls = gate.trace().filter(({ method }) => method === 'tools/call')
    assert.deepEqual(calls, [])
  })

  test(`${front}, ${server} server: nothing is logged on a stream that listens`, async (t) => {
    const up = { flags: ['--era', server] }
    const gate = await startGate(t, { front, era: 'modern', upstreams: { up } })
    const notifications = { toolsListChanged: true }
    await gate.post(request('modern', 'stream', 'subscriptions/listen', { notifications }))
    await eventually('the acknowledgement', () =>
      gate.notifications('notifications/subscriptions/acknowledged').at(0),
    )
    assert.equal(textOf(await gate.call('log', { entries })), 'done')
    const level = { [LEVEL]: 'emergency' }
    assert.equal(textOf(await gate.call('log', { entries }, { meta: level })), 'done')
    // The one message is that of the request that asked for it.
    assert.deepEqual(levelsOf(gate.notifications('notifications/message')), ['emergency'])
  })
}
