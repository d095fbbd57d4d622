// While the answer of one call is long in the digesting, other calls are recorded and answered.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import type { Answer } from '../../src/call.ts'
import type { Doors } from '../../src/gateway.ts'
import { member, object } from '../../src/json.ts'
import { type Hall, hall } from './rig.ts'

/** Sixteen pieces. */
const LONG = `{"content":[{"type":"text","text":"${'x'.repeat(4 * 1024 * 1024)}"}]}`
const SHORT = '{"content":[]}'

type Scene = {
  readonly rig: Hall
  readonly doors: Doors
  /** Which answers were given to be recorded, in that order. */
  readonly closed: ('long' | 'short')[]
  /** Resolves when the server has given the long answer. */
  readonly given: Promise<void>
}

/** A hall whose server answers `long` with megabytes. */
async function scene(t: TestContext): Promise<Scene> {
  const rig = await hall(t, 'modern', { effect: 'read' })
  // The list is known and pinned before anything is compared.
  await rig.call('inquire', { args: { request_id: 'warm' } })
  const { store, upstreams } = rig.doors
  const closed: ('long' | 'short')[] = []
  const { promise: given, resolve } = Promise.withResolvers<void>()
  const doors: Doors = {
    ...rig.doors,
    store: {
      ...store,
      close(ticket, closing) {
        closed.push((closing.answer?.bytes ?? 0) > SHORT.length ? 'long' : 'short')
        return store.close(ticket, closing)
      },
    },
    upstreams: {
      ...upstreams,
      attempt(_ticket, { params }) {
        const isLong = member(params['arguments'], 'request_id') === 'long'
        const text = isLong ? LONG : SHORT
        const answer: Answer = {
          kind: 'result',
          era: 'modern',
          value: object({ content: [] }),
          text,
        }
        if (isLong) setImmediate(resolve)
        return Promise.resolve({ kind: 'answered', answer })
      },
    },
  }
  return { rig, doors, closed, given }
}

test('a short answer that comes after a long one is recorded before it', async (t) => {
  const { rig, doors, closed, given } = await scene(t)
  const long = rig.call('inquire', { args: { request_id: 'long' }, doors })
  await given
  await rig.call('inquire', { args: { request_id: 'short' }, doors })
  assert.equal((await long).kind, 'answered')
  assert.deepEqual(closed, ['short', 'long'])
})

test('a call that is cancelled while its answer is digested is recorded once, with what came of it', async (t) => {
  const { rig, doors, closed, given } = await scene(t)
  const before = rig.entries().length
  const cancelling = new AbortController()
  const long = rig.call('inquire', {
    args: { request_id: 'long' },
    doors,
    signal: cancelling.signal,
  })
  await given
  assert.deepEqual(closed, [])
  cancelling.abort()
  await long
  const told = rig.entries().slice(before)
  assert.deepEqual(
    told.map(({ kind, outcome, code }) => [kind, outcome, code]),
    [['call', 'observed', 'cancelled']],
  )
})
