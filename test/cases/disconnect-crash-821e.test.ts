// An upstream that closes its input, or answers what nobody waits for, does not take the gateway down.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { type Gate, LONG, startGate } from './harness.ts'
import { isRunning } from './proc.ts'
import { SIDES, eventually, type Message, request, textOf } from './wire.ts'

const CALLS = LONG ? 200 : 40
/** A server with one process for all, so that its starts can be counted over each front. */
const OK = { more: { share: true } }
/** Calls of each upstream at once. */
const AT_ONCE = 8

/** Every answer of `count` calls, a few at a time. */
async function many(
  count: number,
  one: (n: number) => Promise<Message>,
): Promise<readonly Message[]> {
  const answers: Message[] = []
  for (let n = 0; n < count; n += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - n) }, (_, k) => one(n + k))
    answers.push(...(await Promise.all(some)))
  }
  return answers
}

/** Calls of `after` that this upstream received. */
const afters = (gate: Gate, upstream: string): number =>
  gate.trace(upstream).filter(({ params }) => params?.['name'] === 'after').length

async function healthy(gate: Gate): Promise<void> {
  const answers = await many(CALLS, (n) => gate.call('ok__echo', { text: String(n) }))
  assert.deepEqual(
    answers.map(textOf),
    answers.map((_, n) => String(n)),
  )
}

/** Each call that was sent has one outcome, and none was answered twice. */
function settled(gate: Gate): void {
  const audit = gate.audit()
  const intents = audit.filter(({ kind }) => kind === 'intent').length
  assert.equal(
    audit.filter(({ kind, outcome }) => kind === 'outcome' && outcome !== 'late').length,
    intents,
  )
  const ids = gate
    .messages()
    .filter(({ method }) => method === undefined)
    .map(({ id }) => id)
  assert.equal(new Set(ids).size, ids.length, 'an id was answered twice')
  assert.equal(gate.starts('ok').length, 1, 'the healthy upstream was started again')
}

async function beside(
  gate: Gate,
  call: (n: number) => Promise<Message>,
): Promise<readonly Message[]> {
  const [answers] = await Promise.all([many(CALLS, call), healthy(gate)])
  assert.equal(answers.length, CALLS)
  for (const one of answers) assert.ok(one.result !== undefined, JSON.stringify(one))
  settled(gate)
  return answers
}

/** A program that starts the real server on its own pipes and leaves a second later. */
const LEAVER = [
  process.execPath,
  '-e',
  `const { spawn } = require('node:child_process')
   spawn(process.argv[1], process.argv.slice(2), { stdio: 'inherit' }).unref()
   setTimeout(() => process.exit(0), 1000)`,
]

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    for (const mode of ['twice', 'stray']) {
      test(`${front} ${era}: answers of mode "${mode}" complete each call once`, async (t) => {
        const gate = await startGate(t, {
          front,
          era,
          upstreams: { odd: { flags: ['--answer', mode], more: { share: true } }, ok: OK },
        })
        const answers = await beside(gate, (n) => gate.call('odd__echo', { text: String(n) }))
        assert.deepEqual(
          answers.map(textOf),
          answers.map((_, n) => String(n)),
        )
        assert.equal(gate.starts('odd').length, 1)
      })
    }

    test(`${front} ${era}: an answer that comes before the request was written whole counts`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { odd: { flags: ['--early'], more: { share: true } }, ok: OK },
      })
      const text = 'x'.repeat(300_000)
      const answers = await beside(gate, () => gate.call('odd__echo', { text }))
      assert.ok(answers.every((one) => ['early', text].includes(textOf(one))))
      assert.ok(
        answers.some((one) => textOf(one) === 'early'),
        'nothing was answered early',
      )
    })

    test(`${front} ${era}: a closed stdin is an upstream that failed, and it is started again`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { odd: OK, ok: OK } })
      assert.equal(textOf(await gate.call('odd__shut')), 'shut')
      assert.ok(isRunning(gate.starts('odd')[0]?.pid ?? 0))
      await beside(gate, (n) => gate.call('odd__echo', { text: String(n) }))
      await eventually('the second start', () => gate.starts('odd').length >= 2)
      assert.ok(gate.starts('odd').length <= 4)
    })
  }
})

describe('then at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: answers after the client left, or stopped waiting, are recorded and told to nobody`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { odd: OK, ok: OK } })
      await gate.call('odd__echo', { text: 'warm' })
      for (let n = 0; n < 10; n++) {
        const slow = { name: 'odd__after', arguments: { ms: 300, label: String(n) } }
        await gate.post(request(era, `left ${n}`, 'tools/call', slow))
        await eventually('it is at the server', () => afters(gate, 'odd') > n)
        await gate.cancel(`left ${n}`)
      }
      await healthy(gate)
      await eventually(
        'all outcomes',
        () =>
          gate.audit().filter(({ kind, name }) => kind === 'outcome' && name === 'odd__after')
            .length >=
          gate.audit().filter(({ kind, name }) => kind === 'intent' && name === 'odd__after')
            .length,
      )
      assert.ok(!gate.messages().some(({ id }) => String(id).startsWith('left')))
      for (let n = 0; n < 5; n++) {
        const last = { name: 'odd__after', arguments: { ms: 200, label: String(n) } }
        await gate.post(request(era, `last ${n}`, 'tools/call', last))
      }
      assert.deepEqual(await gate.stop(), { code: 0, signal: null })
      settled(gate)
    })

    test(`${front} ${era}: what is written after a wrapper's exit harms nobody`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { odd: { wrap: LEAVER, more: { share: true } }, ok: OK },
      })
      await gate.call('odd__echo', { text: 'first' })
      const begun = Date.now()
      while (Date.now() - begun < 1_500) {
        const answer = await gate.call('odd__after', { ms: 50, label: 'x' })
        assert.ok(answer.result !== undefined)
      }
      await healthy(gate)
      settled(gate)
    })
  }
})
