// The short form of the soak: everything but the slope of memory, which a short run cannot show.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { faultsIn, slopeOf, soak } from './soak.ts'
import { account, type Done } from './account.ts'
import { problems } from './verdict.ts'

test('fifty clients of both eras, servers that crash: no call is lost, doubled or told wrongly', async () => {
  const seed = Date.now() % 1_000_000
  const figures = await soak({ calls: 3_000, clients: 50, servers: 4, crashEvery: 150, seed })
  assert.deepEqual(problems(figures, { slope: false }), [], `seed ${seed}`)
  const { account: counts, cuts, cancels, sessions } = figures
  assert.ok(counts.crashes >= 4 && counts.unknown > 0, JSON.stringify(counts))
  assert.ok(counts.answered > counts.calls / 2, JSON.stringify(counts))
  assert.ok(cuts > 0 && cancels > 0 && sessions >= 25)
})

const done = (some: Partial<Done>): Done => ({
  executed: new Map(),
  crashed: new Set(),
  unheard: new Set(),
  fleeting: new Set(),
  crashes: 0,
  ...some,
})
const OK = { kind: 'ok', code: '', text: 'w-1' } as const
const UNKNOWN = { kind: 'refused', code: 'outcome_unknown', text: '' } as const
const DOWN = { kind: 'refused', code: 'upstream_down', text: '' } as const
const ONCE = new Map([['w-1', 1]])
const COMMITTED = ['pending', 'committed']

for (const [what, told, servers, outcomes] of [
  ['a call that ran twice', OK, done({ executed: new Map([['w-1', 2]]) }), COMMITTED],
  ['an answer to a call that never ran', OK, done({}), COMMITTED],
  ['a call that ran and was told not to have', DOWN, done({ executed: ONCE }), ['unsent']],
  ['an answer that was lost without a crash', UNKNOWN, done({ executed: ONCE }), COMMITTED],
  ['a call that ran without an intent', OK, done({ executed: ONCE }), ['committed']],
  ['another call’s answer', { ...OK, text: 'w-2' }, done({ executed: ONCE }), COMMITTED],
  ['two commits of one key', OK, done({ executed: ONCE }), [...COMMITTED, 'committed']],
] as const) {
  test(`the account of a soak finds ${what}`, () => {
    const one = { id: 'w-1', isRead: false, ms: 0, leaves: null, told: [told] }
    assert.equal(account([one], servers, new Map([['w-1', outcomes]])).wrong.length, 1)
  })
}

test('the account of a soak has nothing to say of what went well, or was told as unknown', () => {
  const good = { id: 'w-1', isRead: false, ms: 0, leaves: null, told: [OK] }
  assert.deepEqual(
    account([good], done({ executed: ONCE }), new Map([['w-1', COMMITTED]])).wrong,
    [],
  )
  const gone = { kind: 'gone', code: '', text: '' } as const
  const fleeting = done({ executed: ONCE, fleeting: new Set(['w-1']) })
  const lost = new Map([['w-1', ['pending', 'unknown']]])
  assert.deepEqual(account([{ ...good, told: [gone, UNKNOWN] }], fleeting, lost).wrong, [])
  assert.equal(account([{ ...good, told: [UNKNOWN] }], fleeting, lost).wrong.length, 1)
  const crashed = done({ executed: ONCE, crashed: new Set(['w-1']) })
  const pending = new Map([['w-1', ['pending', 'unknown']]])
  assert.deepEqual(account([{ ...good, told: [UNKNOWN] }], crashed, pending).wrong, [])
})

test('growth is found in samples, and faults in what was said', () => {
  const samples = [0, 1, 2, 3].map((at) => ({
    calls: at * 100,
    rss: 5_000 + at * 300,
    descriptors: 1,
  }))
  assert.equal(slopeOf(samples), 3)
  assert.deepEqual(faultsIn('eclusa: serving\neclusa: u1: it ended with status 1'), [])
  assert.equal(faultsIn('    at step (file.ts:1:1)\nUnhandled rejection').length, 2)
})
