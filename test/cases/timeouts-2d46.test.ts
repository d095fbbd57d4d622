// A long call that reports progress is not killed by a hidden default; the configured limits hold.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { LONG, startGate } from './harness.ts'
import { FRONTS, SIDES, eventually, refusalCode, textOf } from './wire.ts'

/** The figures of the case, or a fiftieth of them. */
const SECOND = LONG ? 1_000 : 20
const CALL_MS = 180 * SECOND
const MOST_MS = 240 * SECOND
const CRUNCH = { values: Array.from({ length: 10 }, (_, n) => n + 1), ms: 10 * SECOND }
const QUIET = { ms: 90 * SECOND, label: 'quiet' }
const PATIENCE = MOST_MS + 60_000
const more = { call: `${CALL_MS}ms`, call_max: `${MOST_MS}ms` }

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: calls inside their limits succeed, and nobody gets unasked progress`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { up: { more } } })
      const wait = { withinMs: PATIENCE }
      const [crunch, quiet] = await Promise.all([
        gate.call('progress', CRUNCH, wait),
        gate.call('after', QUIET, wait),
      ])
      assert.equal(textOf(crunch), 'done')
      assert.equal(textOf(quiet), 'quiet')
      assert.equal(gate.notifications('notifications/progress').length, 0)
      const asked = gate.trace().find(({ params }) => params?.['name'] === 'progress')
      assert.ok(
        (asked?.params?.['_meta'] as object | undefined) !== undefined,
        'no progress was asked for',
      )
    })

    test(`${front} ${era}: silence ends a call at its limit, progress extends it, and only up to the maximum`, async (t) => {
      const short = { call: '1s', call_max: '2500ms' }
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { up: { more: { ...short, share: true } } },
      })
      await gate.call('echo', { text: 'warm' })

      const begun = Date.now()
      const silent = await gate.call('after', { ms: 3_000, label: 'late' })
      assert.equal(silent.result?.isError, true)
      assert.equal(refusalCode(silent), 'timeout')
      assert.ok(
        Date.now() - begun >= 990 && Date.now() - begun < 2_900,
        `after ${Date.now() - begun} ms`,
      )
      await eventually('the cancel at the server', () =>
        gate.trace().some(({ method }) => method === 'notifications/cancelled'),
      )
      await gate.record(
        'the answer that came late',
        ({ outcome, name }) => outcome === 'late' && name === 'after',
      )

      const extended = await gate.call('progress', { values: [1, 2, 3, 4, 5], ms: 300 })
      assert.equal(textOf(extended), 'done')

      const from = Date.now()
      const endless = await gate.call('progress', {
        values: Array.from({ length: 40 }, (_, n) => n),
        ms: 200,
      })
      assert.equal(refusalCode(endless), 'timeout')
      assert.ok(
        Date.now() - from >= 2_450 && Date.now() - from < 7_000,
        `after ${Date.now() - from} ms`,
      )
      assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
      assert.equal(gate.starts().length, 1)
    })
  }
})

for (const front of FRONTS) {
  test(
    `${front}: a call of 65 s passes where nothing is configured`,
    { skip: !LONG },
    async (t) => {
      const gate = await startGate(t, { front, era: 'modern' })
      const answer = await gate.call(
        'after',
        { ms: 65_000, label: 'patient' },
        { withinMs: 80_000 },
      )
      assert.equal(textOf(answer), 'patient')
    },
  )

  test(`${front}: a session that was idle for 91 s still answers`, { skip: !LONG }, async (t) => {
    const gate = await startGate(t, { front, era: 'legacy' })
    await gate.call('echo', { text: 'before' })
    const begun = Date.now()
    await eventually('91 s of silence', () => Date.now() - begun > 91_000, 95_000)
    assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
  })
}
