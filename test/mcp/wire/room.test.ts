// Pieces of every size make the whole that came, and its two ends.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import { room } from '../../../src/mcp/wire/room.ts'

const pieces = fc.array(
  fc.oneof(
    fc.uint8Array({ minLength: 0, maxLength: 40 }),
    fc.uint8Array({ minLength: 3_000, maxLength: 5_000 }),
    fc.integer({ min: 15_000, max: 70_000 }).map((size) => new Uint8Array(size).fill(size)),
  ),
  { maxLength: 60 },
)

test('what was added in pieces of any size is taken whole, and the room is empty', () => {
  fc.assert(
    fc.property(pieces, pieces, (first, second) => {
      const held = room()
      for (const all of [first, second]) {
        const expected = Buffer.concat(all)
        for (const piece of all) held.add(Buffer.from(piece))
        assert.equal(held.size(), expected.length)
        assert.ok(held.take().equals(expected))
        assert.equal(held.size(), 0)
      }
    }),
    { numRuns: 60 },
  )
})

test('what is dropped leaves its two ends', () => {
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 9_000 }), (all, bytes) => {
      const held = room()
      const expected = Buffer.concat(all)
      for (const piece of all) held.add(Buffer.from(piece))
      const { head, tail } = held.drop(bytes)
      assert.ok(head.equals(expected.subarray(0, bytes)))
      assert.ok(tail.equals(expected.subarray(-bytes)))
      assert.equal(held.size(), 0)
    }),
    { numRuns: 60 },
  )
})

test('small pieces between large ones do not cost a block each', () => {
  const held = room()
  const [large, small] = [Buffer.alloc(16 * 1024), Buffer.alloc(1)]
  const before = process.memoryUsage().arrayBuffers
  for (let at = 0; at < 1_000; at++) {
    held.add(large)
    held.add(small)
  }
  const grown = process.memoryUsage().arrayBuffers - before
  assert.ok(grown < 8 * 1024 * 1024, `${grown} bytes`)
  assert.equal(held.take().length, 1_000 * (16 * 1024 + 1))
})
