// Broken pipes and endless floods do not turn into a busy loop.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { roomy } from '../pace.ts'
import { type Gate, LONG, startGate, within } from './harness.ts'
import { cpuSeconds, isRunning } from './proc.ts'
import { ERAS, textOf } from './wire.ts'

const WATCH_MS = LONG ? 10_000 : 2_500
/** What a calm process takes of a processor; one that spins takes all of it. */
const CALM = LONG ? 0.05 : 0.15
/** From SIGTERM to the exit. */
const TERM_MS = roomy(1_000)
/** One flooding message each so many milliseconds. */
const FLOOD_MS = 20
const SHOWN_A_SECOND = 250_000

async function busyShare(gate: Gate): Promise<number> {
  const from = cpuSeconds(gate.pid)
  await sleep(WATCH_MS)
  return (cpuSeconds(gate.pid) - from) / (WATCH_MS / 1_000)
}

async function calm(gate: Gate): Promise<void> {
  // What the start left behind (compiled code, collected memory) is not what is measured.
  await sleep(500)
  const share = await busyShare(gate)
  assert.ok(share < CALM, `${(share * 100).toFixed(1)} percent of a processor`)
}

async function ends(gate: Gate, signal: NodeJS.Signals): Promise<void> {
  gate.child.kill(signal)
  await within(`the exit on ${signal}`, gate.exit, TERM_MS)
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 2 }, () => {
  for (const era of ERAS) {
    test(`${era}: when nobody reads stdout any more, the session ends`, async (t) => {
      const gate = await startGate(t, { era })
      await gate.call('drip', { ms: FLOOD_MS })
      gate.child.stdout?.destroy()
      // A notice or an answer meets the broken pipe.
      await gate.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
      await within('the exit', gate.exit, roomy(5_000))
      for (const { pid } of gate.starts()) assert.ok(!isRunning(pid))
      assert.equal(gate.audit().at(-1)?.kind, 'stop')
    })

    test(`${era}: when nobody reads stderr any more, it goes on calmly`, async (t) => {
      const gate = await startGate(t, { era })
      await gate.call('babble', { ms: FLOOD_MS, text: 'words '.repeat(20) })
      gate.child.stderr?.destroy()
      await calm(gate)
      assert.equal(textOf(await gate.call('echo', { text: 'here' })), 'here')
      await ends(gate, 'SIGTERM')
    })

    test(`${era}: with both closed it is gone`, async (t) => {
      const gate = await startGate(t, { era })
      await gate.call('babble', { ms: FLOOD_MS, text: 'words' })
      gate.child.stdout?.destroy()
      gate.child.stderr?.destroy()
      await gate.post({ jsonrpc: '2.0', id: 1, method: 'ping' })
      await within('the exit', gate.exit, roomy(5_000))
      gate.audit()
    })

    test(`${era}: an upstream that closes its stdin and floods is ended, and nothing spins`, async (t) => {
      const gate = await startGate(t, { era })
      await gate.call('drip', { ms: FLOOD_MS })
      await gate.call('babble', { ms: FLOOD_MS, text: 'words' })
      await gate.call('shut')
      const [first] = gate.starts()
      await gate.call('echo', { text: 'meets the closed pipe' })
      await calm(gate)
      assert.ok(!isRunning(first?.pid ?? 0), 'the useless upstream still runs')
      await ends(gate, 'SIGTERM')
    })

    test(`${era}: a flooding upstream costs a bounded log, and SIGTERM works at once`, async (t) => {
      const gate = await startGate(t, { era })
      await gate.call('babble', { ms: 1, text: 'x'.repeat(2_000) })
      await sleep(WATCH_MS)
      // Two megabytes a second are said; of each second a share is shown and the rest counted.
      const most = SHOWN_A_SECOND * (WATCH_MS / 1_000 + 2)
      assert.ok(gate.errors().length < most, `${gate.errors().length} bytes on stderr`)
      assert.match(gate.errors(), /x{1000}/)
      await ends(gate, 'SIGTERM')
    })
  }
})
