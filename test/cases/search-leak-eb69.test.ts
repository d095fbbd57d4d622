// Refusals, completions and timing do not tell a hidden tool from one that does not exist.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, LONG, startGate } from './harness.ts'
import { callsOf, plainTool, received, serving } from './menu.ts'
import { SIDES, request } from './wire.ts'

/** Calls of each name. */
const ROUNDS = LONG ? 200 : 60
/** Between the medians of two names, in ms. */
const MAX_MS = 5
const HIDDEN = ['wipe', 'secret_tool', 'get_b']
const UNKNOWN = ['nope', 'nothing_tool', 'get_c']
const up = serving({ tools: ['get_a', ...HIDDEN].map((name) => plainTool(name)) })
const allow = ['up/get_a']

let lastId = 20_000
/** Milliseconds until the answer, and its text without its id and the name. */
async function refusal(gate: Gate, name: string): Promise<{ readonly ms: number; text: string }> {
  const id = ++lastId
  const mark = `"id":${id},`
  const line = JSON.stringify(request(gate.era, id, 'tools/call', { name, arguments: {} }))
  const begun = performance.now()
  const come = gate.next((one) => one.includes(mark))
  await gate.write(`${line}\n`)
  const text = await come
  const ms = performance.now() - begun
  return { ms, text: text.replace(mark, '').replaceAll(name, 'NAME') }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

for (const [front, era] of SIDES) {
  test(`${front} ${era}: hidden and unknown names get one answer, in one time`, async (t) => {
    const names = [...HIDDEN, ...UNKNOWN]
    const gate = await startGate(t, { front, era, upstreams: { up }, allow })
    await gate.request('tools/list')
    const before = received(gate).length
    const times = new Map<string, number[]>(names.map((name) => [name, []]))
    const texts = new Set<string>()
    for (let round = 0; round < ROUNDS; round++) {
      for (const name of names) {
        const { ms, text } = await refusal(gate, name)
        times.get(name)?.push(ms)
        texts.add(text)
      }
    }
    assert.equal(texts.size, 1, [...texts].join('\n'))
    const medians = [...times.values()].map(median)
    const apart = Math.max(...medians) - Math.min(...medians)
    assert.ok(apart < MAX_MS, `${apart.toFixed(2)} ms: ${medians.map((one) => one.toFixed(2))}`)
    // A name that is not allowed never makes us ask the server anything.
    assert.equal(received(gate).length, before)
    for (const name of names) assert.equal(callsOf(gate, name).length, ROUNDS)
  })

  test(`${front} ${era}: no list, completion or refusal suggests a hidden name`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow })
    const begun = gate.incoming.lines.length
    await gate.request('tools/list')
    for (const name of ['get_A', 'geta', 'get', 'wip', 'secret']) await gate.call(name)
    for (const value of ['w', 'wip', 'sec', '']) {
      for (const name of ['wip', 'get_a']) {
        const ref = { type: 'ref/prompt', name }
        await gate.request('completion/complete', { ref, argument: { name: 'tool', value } })
      }
    }
    await gate.request('tools/lost')
    const said = gate.incoming.lines.slice(begun).join('\n')
    for (const name of HIDDEN) assert.ok(!said.includes(name), name)
  })

  test(`${front} ${era}: with a deny list too they are told alike, and the log tells them apart`, async (t) => {
    const profile = { allow: ['up/get_a', 'up/*'], deny: ['up/wipe'] }
    const gate = await startGate(t, { front, era, upstreams: { up }, profile })
    await gate.request('tools/list')
    const texts = new Set<string>()
    for (const name of ['wipe', 'nope']) texts.add((await refusal(gate, name)).text)
    assert.equal(texts.size, 1, [...texts].join('\n'))
    assert.equal(callsOf(gate, 'wipe')[0]?.code, 'tool_denied')
    assert.equal(callsOf(gate, 'wipe')[0]?.rule, '/profiles/agent/deny/0')
    assert.equal(callsOf(gate, 'nope')[0]?.code, 'tool_unknown')

    // A pattern lets any name through to the look-up; making names up must not cost the server lists.
    const before = received(gate, 'tools/list').length
    const begun = performance.now()
    for (let n = 0; n < 50; n++) await refusal(gate, `made_up_${n}`)
    const most = 1 + (performance.now() - begun) / 1_000
    assert.ok(received(gate, 'tools/list').length - before <= most)
  })
}
