// A long answer over HTTP goes out in pieces, and arrives whole.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from '../../cases/harness.ts'
import { textOf } from '../../cases/wire.ts'

for (const era of ['modern', 'legacy'] as const) {
  test(`${era}: a long answer of four-byte characters arrives whole, and so does what follows it`, async (t) => {
    const gate = await startGate(t, { front: 'http', era, allow: ['up/wide', 'up/echo'] })
    const count = 700_001
    const wide = textOf(await gate.call('wide', { n: count }))
    assert.equal(wide.length, 2 * count)
    assert.ok(wide.isWellFormed())
    assert.equal(new Set(wide).size, 1)
    assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
  })
}
