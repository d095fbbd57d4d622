// A pass is for one run of one callback behind one gate.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { takePass, withPass } from '../../src/sdk/pass.ts'

const [gate, other] = [{}, {}]

test('a pass is taken once, and survives asynchronous steps', async () => {
  const taken = await withPass(gate, 'write', async () => {
    await new Promise((resolve) => setImmediate(resolve))
    return [takePass(gate, 'write'), takePass(gate, 'write')]
  })
  assert.deepEqual(taken, [true, false])
})

test('a pass of another tool, of another gate, or of nobody is none', () => {
  assert.equal(
    withPass(gate, 'write', () => takePass(gate, 'read')),
    false,
  )
  assert.equal(
    withPass(gate, 'write', () => takePass(other, 'write')),
    false,
  )
  assert.equal(takePass(gate, 'write'), false)
})
