// What the ledger knows of a key is told while its server is away: a repeat needs no server.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'

import { type Gate, type Setup, startGate } from '../cases/harness.ts'
import { type Bag, eventually, refusalCode, SIDES, textOf } from '../cases/wire.ts'

/** The server as it starts, and a start that ends at once or hangs where the folder says so. */
const WAY = ['sh', '-c', 'test -e gone && exit 1; test -e hangs && exec sleep 60; exec "$@"', 'sh']
const TOOLS: Bag = {
  'up/echo': { effect: 'write', key: { at: '/text' } },
  'up/crash': { effect: 'write', key: { at: '/when' } },
}

const setupOf = ([front, era]: (typeof SIDES)[number]): Setup => ({
  front,
  era,
  tools: TOOLS,
  // What mirrors the arguments of a call over HTTP is compared with the schema of a server that starts.
  upstreams: { up: { wrap: WAY, more: { share: true, probe: front === 'http' ? '1s' : '60s' } } },
})

const mark = ({ folder }: Gate, name: 'gone' | 'hangs'): void =>
  writeFileSync(join(folder, name), '')

/** Kills the server, and waits until calls are told that it is down. */
async function takeAway(gate: Gate): Promise<void> {
  mark(gate, 'gone')
  const crashed = await gate.call('crash', { when: 'before' })
  assert.equal(refusalCode(crashed), 'outcome_unknown', JSON.stringify(crashed))
  await eventually('the server is down', () => gate.errors().includes('ended'))
}

const outcomes = (gate: Gate, key: string): readonly unknown[] =>
  gate.audit().flatMap(({ request_id: id, outcome }) => (id === key ? [outcome] : []))

async function begun(t: TestContext, setup: Setup): Promise<Gate> {
  const gate = await startGate(t, setup)
  assert.equal(textOf(await gate.call('echo', { text: 'done-once' })), 'done-once')
  return gate
}

describe('at once', { concurrency: 2 }, () => {
  for (const side of SIDES) {
    const name = side.join(' ')

    test(`${name}: a key that is done is replayed while its server is down, and what is not is told as down`, async (t) => {
      const gate = await begun(t, setupOf(side))
      await takeAway(gate)
      const again = await gate.call('echo', { text: 'done-once' }, { withinMs: 5_000 })
      assert.equal(textOf(again), 'done-once')
      assert.deepEqual(outcomes(gate, 'done-once'), ['pending', 'committed', 'replay'])
      const lost = await gate.call('crash', { when: 'before' }, { withinMs: 5_000 })
      assert.equal(refusalCode(lost), 'outcome_unknown')
      const fresh = await gate.call('echo', { text: 'not-done' }, { withinMs: 5_000 })
      assert.equal(refusalCode(fresh), 'upstream_down')
      assert.deepEqual(outcomes(gate, 'not-done'), ['not_executed'])
    })

    // A handshake waits for the one server that there is, so only modern clients come before its patience ends.
    for (const how of side[1] === 'modern' ? (['gone', 'hangs'] as const) : (['gone'] as const)) {
      test(`${name}: a key that is done is replayed though its server never came up (${how})`, async (t) => {
        const setup = setupOf(side)
        const first = await begun(t, setup)
        await first.stop()
        mark(first, how)
        const handshake = how !== 'hangs'
        const next = await startGate(t, { ...setup, folder: first.folder, handshake })
        const again = await next.call('echo', { text: 'done-once' }, { withinMs: 5_000 })
        assert.equal(textOf(again), 'done-once')
        assert.deepEqual(outcomes(next, 'done-once'), ['pending', 'committed', 'replay'])
      })
    }
  }
})
