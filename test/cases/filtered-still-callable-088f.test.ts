// A tool that policy hides cannot be called by name, with or without listing first.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import { assertDenied, callsOf, plainTool, ran, serving } from './menu.ts'
import { SIDES, textOf } from './wire.ts'

const NAMES = ['get_a', 'put_a', 'wipe']
const up = serving({ tools: NAMES.map((name) => plainTool(name, `ran ${name}`)) })
const allow = ['up/get_a']

/** Calls what is hidden and asserts a record each; nothing of it may arrive. */
async function assertHidden(gate: Gate, names: readonly string[]): Promise<void> {
  for (const name of names) {
    assertDenied(await gate.call(name, { a: 1 }), name)
    const records = callsOf(gate, name)
    assert.equal(records.length, 1, `${records.length} records of ${name}`)
    const [record] = records
    assert.match(record?.client ?? '', /^(anonymous:)?agent$/)
    assert.deepEqual(
      [record?.profile, record?.decision, record?.outcome, record?.code],
      ['agent', 'deny', 'not_executed', 'tool_denied'],
    )
    assert.equal(record?.rule, '/profiles/agent/allow')
    assert.match(record?.args_digest ?? '', /^[0-9a-f]{64}$/)
  }
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: the list shows one tool, and the others are refused after it was read`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow })
    const listed = await gate.request('tools/list')
    assert.deepEqual(
      listed.result?.tools?.map(({ name }) => name),
      ['get_a'],
    )
    await assertHidden(gate, ['put_a', 'wipe'])
    assert.equal(textOf(await gate.call('get_a')), 'ran get_a')
    assert.deepEqual(ran(gate), ['get_a'])
  })

  test(`${front} ${era}: they are refused on a fresh connection that never listed`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow })
    await assertHidden(gate, ['wipe', 'put_a'])
    assert.equal(textOf(await gate.call('get_a')), 'ran get_a')
    assert.deepEqual(ran(gate), ['get_a'])
  })

  test(`${front} ${era}: neither the server's name nor any exposed one gets through`, async (t) => {
    const upstreams = { up, side: serving({ tools: [plainTool('wipe', 'ran side')] }) }
    const gate = await startGate(t, { front, era, upstreams, allow: ['up/get_a', 'side/wipe'] })
    await assertHidden(gate, ['up__wipe', 'up__put_a', 'side__get_a', 'side__put_a'])
    // Not of the form in which names of several servers are shown: they name nothing.
    for (const name of ['wipe', 'get_a', 'up/wipe', 'up/get_a', 'up.wipe', 'side__up__wipe']) {
      assertDenied(await gate.call(name), name)
      assert.equal(callsOf(gate, name).length, 1)
    }
    assert.equal(textOf(await gate.call('up__get_a')), 'ran get_a')
    assert.equal(textOf(await gate.call('side__wipe')), 'ran side')
    assert.deepEqual([ran(gate, 'up'), ran(gate, 'side')], [['get_a'], ['wipe']])
  })
}

test('the short form hides and refuses alike', async (t) => {
  const gate = await startGate(t, { era: 'modern', upstreams: { up }, short: ['--read', 'get_a'] })
  const listed = await gate.request('tools/list')
  assert.deepEqual(
    listed.result?.tools?.map(({ name }) => name),
    ['get_a'],
  )
  for (const name of ['put_a', 'wipe']) assertDenied(await gate.call(name), name)
  assert.equal(textOf(await gate.call('get_a')), 'ran get_a')
  assert.deepEqual(ran(gate), ['get_a'])
})
