// Long work takes turns: one piece of it in each turn of the event loop.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as loop } from 'node:timers/promises'

import { turns } from '../../src/cli/turns.ts'

test('one of those who ask goes on in a turn of the event loop, first come, first served', async () => {
  const turn = turns()
  const went: string[] = []
  const work = async (name: string): Promise<void> => {
    for (let piece = 1; piece <= 3; piece++) {
      await turn()
      went.push(`${name}${piece}`)
    }
  }
  const all = Promise.all([work('a'), work('b')])
  for (let seen = 0; seen < 6; seen = went.length) {
    await loop()
    assert.ok(went.length <= seen + 1, `${went.length - seen} pieces in one turn`)
  }
  await all
  assert.deepEqual(went, ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'])
})
