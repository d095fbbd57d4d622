// A crash-looping or unstartable upstream is restarted with backoff and does not take others down.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Gate, LONG, startGate } from './harness.ts'
import { SIDES, eventually, refusalCode, textOf } from './wire.ts'

/** How long starts of the looping upstream are counted, how many there may be, and when `slow` speaks. */
const WATCH_MS = LONG ? 60_000 : 8_000
const MOST_STARTS = LONG ? 11 : 7
const SLOW_MS = LONG ? 8_000 : 2_000

const UPSTREAMS = {
  ok: { more: { share: true } },
  gone: { command: ['/nonexistent/eclusa-case'] },
  loop: { flags: ['--die-after', '50'], more: { share: true } },
  slow: { flags: ['--start-delay', String(SLOW_MS)] },
}

async function names(gate: Gate): Promise<readonly string[]> {
  const listed = await gate.request('tools/list')
  return listed.result?.tools?.map(({ name }) => name) ?? []
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: one healthy upstream works at once among three broken ones`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: UPSTREAMS })
      const begun = Date.now()
      assert.equal(textOf(await gate.call('ok__echo', { text: 'at once' })), 'at once')

      const failed = await gate.call('gone__echo', { text: 'x' })
      assert.equal(failed.result?.isError, true)

      assert.ok((await names(gate)).includes('ok__echo'))
      await eventually('slow has started', () => Date.now() - begun > SLOW_MS + 1_000)
      let later: readonly string[] = []
      const end = Date.now() + 60_000
      while (!later.includes('slow__echo') && Date.now() < end) {
        later = await names(gate)
        await sleep(200)
      }
      assert.ok(later.includes('slow__echo'), 'the slow upstream never appeared')
      assert.equal(textOf(await gate.call('slow__echo', { text: 'now' })), 'now')

      await sleep(Math.max(0, WATCH_MS - (Date.now() - begun)))
      const starts = gate.starts('loop').map(({ atMs }) => atMs)
      assert.ok(starts.length <= MOST_STARTS, `${starts.length} starts`)
      const gaps = starts.slice(1).map((at, n) => at - (starts[n] ?? 0))
      assert.ok(
        gaps.length < 2 || (gaps.at(-1) ?? 0) > (gaps[0] ?? 0) * 1.5,
        `gaps ${gaps.join(' ')}`,
      )
      assert.equal(gate.starts('ok').length, 1)
      assert.equal(textOf(await gate.call('ok__echo', { text: 'still' })), 'still')
    })

    test(`${front} ${era}: an upstream that crashes in a call is started again, and that call is told as unknown`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { up: { more: { share: true } } } })
      const crashed = await gate.call('crash', { when: 'before' })
      assert.equal(crashed.result?.isError, true)
      assert.equal(refusalCode(crashed), 'outcome_unknown')
      assert.match(textOf(crashed), /not known; check the state/)
      const outcome = await gate.record(
        'the crash',
        ({ kind, name }) => kind === 'outcome' && name === 'crash',
      )
      assert.equal(outcome.outcome, 'unknown')
      let answer = await gate.call('echo', { text: 'back' })
      const end = Date.now() + 60_000
      while (answer.result?.isError === true && Date.now() < end) {
        await sleep(100)
        answer = await gate.call('echo', { text: 'back' })
      }
      assert.equal(textOf(answer), 'back')
      assert.equal(gate.starts().length, 2)
    })
  }
})
