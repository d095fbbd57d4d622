// Writers side by side, hostile strings and big values do not break the chain.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { type Gate, LONG, type Setup, startGate } from './harness.ts'
import { callsOf, nameIn, rawRequest } from './menu.ts'
import { SIDES, request } from './wire.ts'

/** Calls that each of the two processes has under way at once. */
const CALLS = LONG ? 500 : 150
const PATIENCE = 60_000
const VERIFIER = fileURLToPath(new URL('../ledger/verify.py', import.meta.url))
const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

const linesIn = (gate: Gate): readonly string[] =>
  readFileSync(join(gate.folder, 'state/audit.jsonl'), 'utf8').split('\n').slice(0, -1)

/** Asserts that another program, written from the documentation alone, finds the same head. */
function assertVerified(gate: Gate): void {
  const last = gate.audit().at(-1)
  const file = join(gate.folder, 'state/audit.jsonl')
  const head = `${last?.seq}:${last?.sha256}`
  const other = spawnSync('python3', [VERIFIER, file, head], { encoding: 'utf8' })
  assert.equal(other.status, 0, other.stdout + other.stderr)
  const own = spawnSync(
    process.execPath,
    [MAIN, 'audit', 'verify', join(gate.folder, 'state'), '--head', head],
    { encoding: 'utf8' },
  )
  assert.equal(own.status, 0, own.stdout + own.stderr)
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: two processes on one state directory write one chain`, async (t) => {
    const setup: Setup = {
      front,
      era,
      config: { limits: { calls_at_once: CALLS + 10 } },
      tools: { 'up/wide': { effect: 'read' } },
    }
    const first = await startGate(t, setup)
    const second = await startGate(t, { ...setup, folder: first.folder })
    const gates = [first, second]
    const run = async (gate: Gate, who: number): Promise<void> => {
      const ids = Array.from({ length: CALLS }, (_, n) => who * 10_000 + n)
      const lines = ids.map((id, n) => {
        const params =
          n % 3 === 0
            ? { name: 'wide', arguments: { n: 1 } }
            : { name: n % 3 === 1 ? 'echo' : `no\n${id}`, arguments: { text: `${id}` } }
        return `${JSON.stringify(request(era, id, 'tools/call', params))}\n`
      })
      await gate.write(lines.join(''))
      for (const id of ids) await gate.answer(id, PATIENCE)
    }
    await Promise.all(gates.map((gate, at) => run(gate, at + 1)))
    for (const gate of gates) assert.equal((await gate.stop()).code, 0)

    const entries = first.audit()
    const third = CALLS / 3
    const count = (is: (entry: (typeof entries)[number]) => boolean): number =>
      entries.filter(is).length
    assert.equal(
      count(({ outcome }) => outcome === 'observed'),
      count(({ name, kind }) => name === 'wide' && kind === 'call') +
        count(({ kind }) => kind === 'view'),
    )
    assert.equal(
      count(({ name, kind }) => name === 'wide' && kind === 'call'),
      2 * Math.ceil(third),
    )
    assert.equal(
      count(({ name, kind }) => name === 'echo' && kind === 'intent'),
      2 * Math.ceil(third),
    )
    assert.equal(
      count(({ name, kind }) => name === 'echo' && kind === 'outcome'),
      2 * Math.ceil(third),
    )
    const denied = entries.filter(({ code }) => code === 'tool_denied')
    assert.equal(new Set(denied.map(nameIn)).size, denied.length)
    assert.equal(denied.length, 2 * Math.floor(third))
    assert.equal(
      count(({ kind }) => kind === 'start'),
      2,
    )
    // Both really wrote in turns, or the test would prove nothing.
    const writers = entries.flatMap((one) => (one.kind === 'call' ? [nameIn(one)] : []))
    assert.ok(writers.length > CALLS)
    assert.equal(linesIn(first).length, entries.length)
    assertVerified(first)
  })

  test(`${front} ${era}: strings and values of every kind give one plain line each`, async (t) => {
    const gate = await startGate(t, { front, era })
    const names = ['x\n{"seq":1}', 'x\u2028y', 'x\r\n\u0000', '"\\', '\u{1f512}', 'a'.repeat(1_000)]
    for (const name of names) await gate.call(name, { text: name })
    const big = 'b'.repeat(1024 * 1024)
    await gate.call('echo', { text: big })
    const params = { name: 'echo', arguments: { text: '@' } }
    const sources = ['9007199254740993', '-0', '1.0', '1', '1e3', `"${'\\u0041'.repeat(10)}"`]
    for (const [at, source] of sources.entries()) {
      await gate.write(rawRequest(era, 500 + at, 'tools/call', { params, source }))
      await gate.answer(500 + at)
    }
    await gate.write(rawRequest(era, 600, 'tools/call', { params, source: '"\\ud800"' }))
    await gate.record('the surrogate', (entry) => entry['problem'] === 'surrogate')

    const lines = linesIn(gate)
    assert.equal(lines.length, gate.audit().length)
    for (const line of lines) {
      assert.ok(line.length < 4_096, `${line.length} bytes`)
      assert.match(line, /^[\x20-\x7e]*$/)
    }
    for (const name of names.slice(0, -1)) assert.equal(callsOf(gate, name).length, 1, name)
    const cut = gate.audit().find((entry) => entry['name_cut'] !== undefined)
    assert.deepEqual([cut?.['name_cut'], cut?.name], [1_000, 'a'.repeat(128)])

    // Big values are a digest and a size; equal values of another spelling of a number are not equal.
    const echoes = callsOf(gate, 'echo')
    const [first, ...numbers] = echoes
    assert.equal(first?.args_bytes, JSON.stringify({ text: big }).length)
    assert.equal(numbers.length, sources.length)
    assert.equal(new Set(numbers.map(({ args_digest: digest }) => digest)).size, sources.length)
    assert.ok(!lines.join('\n').includes('bbbbbbbb'))
    await gate.stop()
    assertVerified(gate)
  })
}
