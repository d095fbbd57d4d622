// The digest of a long answer is that of a short one, taken in pieces.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Answer } from '../../src/call.ts'
import { digestOf } from '../../src/hall/digest.ts'
import { object } from '../../src/json.ts'
import { hall } from './rig.ts'

const answered = (text: string): Answer => ({
  kind: 'result',
  era: 'modern',
  value: object({}),
  text,
})

test('a long answer is digested in pieces, a short one at once, and both to the same digest', async (t) => {
  const { doors } = await hall(t, 'modern')
  let took = 0
  const counting = {
    ...doors,
    turn: () => {
      took++
      return doors.turn()
    },
  }
  // An odd beginning puts the middle of a character where a piece would end.
  const long = `x${'\u{1f600}'.repeat(400_000)}`
  const digest = digestOf(counting, answered(long))
  assert.ok(digest instanceof Promise)
  assert.deepEqual(await digest, doors.store.digest(long))
  assert.equal(took, Math.ceil(long.length / (256 * 1024)))
  const short = digestOf(counting, answered('{}'))
  assert.deepEqual(short, doors.store.digest('{}'))
})
