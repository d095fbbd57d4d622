// Every page of the upstream tool list is visible and governed, also when a page is filtered to nothing.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { SIDES, textOf } from './wire.ts'

const NAMES = ['t003', 't077', 't119']
const allow = NAMES.map((name) => `up/${name}`)

for (const [front, era] of SIDES) {
  for (const page of [10, 50]) {
    test(`${front} ${era}: pages of ${page} are merged before they are filtered`, async (t) => {
      const flags = ['--tools', '120', '--page', String(page)]
      const gate = await startGate(t, { front, era, upstreams: { up: { flags } }, allow })
      const listed = await gate.request('tools/list')
      assert.deepEqual(
        listed.result?.tools?.map(({ name }) => name),
        NAMES,
      )
      // Pages are merged, so there is never a further one.
      assert.equal(listed.result?.['nextCursor'], undefined)
      const again = await gate.request('tools/list')
      assert.deepEqual(again.result?.tools, listed.result?.tools)
      assert.equal((await gate.request('tools/list', { cursor: 'at:50' })).error?.code, -32602)
    })
  }

  test(`${front} ${era}: a tool of the last page is governed before anybody listed`, async (t) => {
    const flags = ['--tools', '120', '--page', '50']
    const gate = await startGate(t, { front, era, upstreams: { up: { flags } }, allow })
    assert.equal(textOf(await gate.call('t119')), 't119')
    const denied = await gate.call('t118')
    assert.deepEqual([denied.error?.code, denied.error?.message], [-32602, 'tool denied: t118'])
    const calls = gate.trace().filter(({ method }) => method === 'tools/call')
    assert.deepEqual(
      calls.map(({ params }) => params?.['name']),
      ['t119'],
    )
  })
}
