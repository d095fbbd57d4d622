// An empty or failed list during warm-up is not cached as the truth.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Gate, LONG, startGate } from './harness.ts'
import { SIDES, textOf } from './wire.ts'

/** How long the server's list is empty, and by when all must be seen, from its start. */
const WARM_UP_MS = LONG ? 5_000 : 2_000
const HEALED_MS = LONG ? 15_000 : 60_000
/** The most that a list from the warm-up may claim for its freshness. */
const SHORT_TTL_MS = 5_000
const EIGHT = Array.from({ length: 8 }, (_, n) => `t00${n}`)
const allow = EIGHT.map((name) => `up/${name}`)

async function list(gate: Gate): Promise<{ names: readonly string[]; ttlMs: unknown }> {
  const { result } = await gate.request('tools/list')
  return { names: result?.tools?.map(({ name }) => name) ?? [], ttlMs: result?.['ttlMs'] }
}

const asked = (gate: Gate): number =>
  gate.trace().filter(({ method }) => method === 'tools/list').length

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: an empty list heals by itself, without any notice`, async (t) => {
      const flags = ['--tools', '8', '--no-list-changed', '--empty-for', String(WARM_UP_MS)]
      const gate = await startGate(t, { front, era, upstreams: { up: { flags } }, allow })
      const early = await list(gate)
      assert.deepEqual(early.names, [])
      if (era === 'modern') assert.ok((early.ttlMs as number) <= SHORT_TTL_MS)
      const since = (): number => Date.now() - (gate.starts()[0]?.atMs ?? 0)
      let late = await list(gate)
      while (late.names.length < 8 && since() < HEALED_MS) {
        await sleep(250)
        late = await list(gate)
      }
      assert.deepEqual(late.names, EIGHT)
      assert.ok(since() >= WARM_UP_MS)
    })

    test(`${front} ${era}: a tool that the stale list lacks is asked for once more, and works`, async (t) => {
      const flags = ['--tools', '8', '--no-list-changed', '--empty-for', String(WARM_UP_MS)]
      const gate = await startGate(t, { front, era, upstreams: { up: { flags } }, allow })
      assert.deepEqual((await list(gate)).names, [])
      await sleep(WARM_UP_MS + 100 - (Date.now() - (gate.starts()[0]?.atMs ?? 0)))
      const before = asked(gate)
      assert.equal(textOf(await gate.call('t003')), 't003')
      assert.equal(asked(gate), before + 1)
    })

    test(`${front} ${era}: a list that failed once is not taken for an empty one`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { up: { flags: ['--tools', '8', '--list-fails', '1'] }, ok: {} },
        allow: [...allow, 'ok/echo'],
      })
      const part = await list(gate)
      assert.ok(part.names.includes('ok__echo'))
      if (era === 'modern') assert.equal(part.ttlMs, 0)
      const end = Date.now() + 60_000
      let whole = part
      while (whole.names.length < 9 && Date.now() < end) {
        await sleep(200)
        whole = await list(gate)
      }
      assert.equal(whole.names.length, 9)
    })
  }
})
