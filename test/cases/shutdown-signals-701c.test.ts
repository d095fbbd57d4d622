// SIGTERM with calls in flight drains or cancels them, closes the audit and escalates to stubborn upstreams.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { roomy } from '../pace.ts'
import { type Gate, startGate, within } from './harness.ts'
import { isRunning } from './proc.ts'
import { SIDES, type Era, eventually, refusalCode, request, textOf, type Front } from './wire.ts'

/** From the first signal to the exit, for the gateway and for all it started. */
const GONE_MS = roomy(10_000)

async function inFlight(gate: Gate, era: Era, ms: number): Promise<void> {
  await gate.call('echo', { text: 'warm' })
  for (const id of ['one', 'two']) {
    await gate.post(request(era, id, 'tools/call', { name: 'slow', arguments: { ms } }))
  }
  await eventually(
    'both calls at the server',
    () => gate.trace().filter(({ params }) => params?.['name'] === 'slow').length === 2,
  )
}

const echoes = (gate: Gate): number =>
  gate.trace().filter(({ params }) => params?.['name'] === 'echo').length

async function isRefused(gate: Gate, front: Front): Promise<boolean> {
  if (front === 'http') {
    const body = JSON.stringify(request(gate.era, 'new', 'ping'))
    return (await gate.http.exchange({ body })).status === 503
  }
  const answer = await gate.call('echo', { text: 'new' }, { withinMs: roomy(1_000) })
  return refusalCode(answer) === 'draining'
}

/** Resolves once new requests are refused, which a signal brings about soon. */
async function refused(gate: Gate, front: Front): Promise<void> {
  const end = Date.now() + roomy(1_000)
  for (;;) {
    if (await isRefused(gate, front)) return
    assert.ok(Date.now() < end, 'new requests are still served')
  }
}

/** After the exit: the chain verifies, every intent has exactly one outcome, nobody is left. */
function settled(gate: Gate): void {
  const audit = gate.audit()
  const intents = audit.filter(({ kind }) => kind === 'intent')
  const outcomes = audit.filter(({ kind }) => kind === 'outcome')
  assert.equal(outcomes.length, intents.length, 'a call without exactly one outcome')
  assert.equal(audit.at(-1)?.kind, 'stop')
  for (const { pid } of gate.starts()) assert.ok(!isRunning(pid), 'an upstream was left behind')
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: SIGTERM, then again: calls end, a deaf upstream is killed, the audit is whole`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { up: { flags: ['--deaf'] } } })
      await inFlight(gate, era, 60_000)
      gate.child.kill('SIGTERM')
      await refused(gate, front)
      const sent = echoes(gate)
      await sleep(1_000)
      gate.child.kill('SIGTERM')
      const exit = await within('the exit', gate.exit, GONE_MS - 1_000)
      assert.equal(exit.signal, null)
      assert.equal(echoes(gate), sent, 'a call was sent during the drain')
      for (const id of ['one', 'two']) {
        const answer = gate.messages().find((one) => one.id === id)
        if (answer !== undefined) assert.equal(answer.result?.isError, true)
      }
      settled(gate)
      const outcomes = gate
        .audit()
        .filter(({ kind, name }) => kind === 'outcome' && name === 'slow')
      assert.deepEqual(
        outcomes.map(({ outcome }) => outcome),
        ['unknown', 'unknown'],
      )
    })

    // SIGHUP is what a terminal sends that is closed.
    for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
      test(`${front} ${era}: one ${signal} is enough, whatever calls and servers do`, async (t) => {
        const config = { drain: '500ms' }
        const gate = await startGate(t, {
          front,
          era,
          config,
          upstreams: { up: { flags: ['--deaf'] } },
        })
        await inFlight(gate, era, 60_000)
        gate.child.kill(signal)
        const exit = await within('the exit', gate.exit, GONE_MS)
        assert.equal(exit.signal, null)
        settled(gate)
      })
    }

    test(`${front} ${era}: a client that reads nothing holds nobody up`, async (t) => {
      const gate = await startGate(t, { front, era })
      await gate.call('echo', { text: 'warm' })
      if (front === 'http') gate.http.deafen()
      else gate.child.stdout?.pause()
      for (let id = 0; id < 6; id++) {
        await gate.post(
          request(era, id, 'tools/call', { name: 'dump', arguments: { bytes: 500_000 } }),
        )
      }
      const answered = (): boolean =>
        gate.audit().filter(({ kind, name }) => kind === 'outcome' && name === 'dump').length === 6
      await eventually('the outcomes', answered)
      gate.child.kill('SIGTERM')
      const exit = await within('the exit', gate.exit, GONE_MS)
      assert.equal(exit.signal, null)
      settled(gate)
    })

    test(`${front} ${era}: a call that ends within the drain is answered`, async (t) => {
      const gate = await startGate(t, { front, era })
      await inFlight(gate, era, 700)
      gate.child.kill('SIGINT')
      const exit = await within('the exit', gate.exit, GONE_MS)
      assert.equal(exit.signal, null)
      for (const id of ['one', 'two']) assert.equal(textOf(await gate.answer(id)), 'done')
      settled(gate)
    })

    for (const flags of [[], ['--deaf']]) {
      const kind = flags.length === 0 ? 'polite' : 'deaf'
      test(`${front} ${era}: ${front === 'http' ? 'SIGTERM' : 'the end of stdin'} alone ends ${kind} upstreams and their children`, async (t) => {
        const gate = await startGate(t, { front, era, upstreams: { up: { flags } } })
        const answer = await gate.call('spawn')
        const grandchild = answer.result?.structuredContent?.['pid'] as number
        t.after(() => isRunning(grandchild) && process.kill(grandchild, 'SIGKILL'))
        assert.ok(isRunning(grandchild))
        assert.deepEqual(await gate.stop(GONE_MS), { code: 0, signal: null })
        settled(gate)
        await eventually('the end of the grandchild', () => !isRunning(grandchild))
      })
    }
  }
})
