import assert from 'node:assert/strict'
import { test } from 'node:test'

import { only } from '../../../src/mcp/upstream/correlate.ts'

const one = (
  of: string,
  client: string | null,
  waits = false,
): Parameters<typeof only>[0] extends Iterable<infer C> ? C : never => ({ of, client, waits })

test('what a server says without a name is about the only call that it can be about', () => {
  const cases = [
    [[], 'none'],
    [[one('a', 'x')], 'a'],
    [[one('a', 'x', true)], 'a'],
    [[one('a', 'x'), one('b', 'x')], 'several'],
    [[one('a', 'x', true), one('b', 'x')], 'b'],
    [[one('b', 'x'), one('a', 'x', true), one('c', 'x', true)], 'b'],
    [[one('a', 'x', true), one('b', 'x', true)], 'several'],
    [[one('a', 'x', true), one('b', 'y')], 'several'],
    [[one('a', null), one('b', 'y', true)], 'several'],
  ] as const
  for (const [candidates, expected] of cases) {
    assert.equal(only(candidates), expected, JSON.stringify(candidates))
  }
})
