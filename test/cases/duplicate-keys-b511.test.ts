// A message with a key twice is refused whole; nothing of it is forwarded.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import { plainTool, ran, received, serving } from './menu.ts'
import { type Era, SIDES, eventually, request } from './wire.ts'

const up = serving({ tools: ['read', 'wipe'].map((name) => plainTool(name)) })

/** A call of `read` with one piece of its text replaced. */
const altered = (era: Era, from: string, to: string): string => {
  const params = { name: 'read', arguments: { path: '/ok', deep: [{ a: 1 }] } }
  const text = JSON.stringify(request(era, 7, 'tools/call', params))
  assert.ok(text.includes(from), from)
  return text.replace(from, () => to)
}

const DOUBLES: readonly (readonly [string, string])[] = [
  ['"name":"read"', '"name":"wipe","name":"read"'],
  ['"name":"read"', '"name":"read","name":"wipe"'],
  ['"name":"read"', '"name":"read","name":"read"'],
  ['"name":"read"', '"n\\u0061me":"wipe","name":"read"'],
  ['"name":"read"', '"name":"read","n\\u0061me":"wipe"'],
  ['"path":"/ok"', '"path":"/x","path":"/ok"'],
  ['"a":1', '"a":1,"\\u0061":2'],
  ['"method":"tools/call"', '"method":"ping","method":"tools/call"'],
  ['"method":"tools/call"', '"m\\u0065thod":"ping","method":"tools/call"'],
  ['"id":7', '"id":7,"id":8'],
  ['"jsonrpc":"2.0"', '"jsonrpc":"2.0","jsonrpc":"2.0"'],
  ['"params":{', '"params":{"name":"wipe"},"params":{'],
  ['"name":"read"', '"name":"read","__proto__":{"name":"wipe"}'],
  ['"name":"read"', '"name":"read","\\u005f_proto__":1'],
]

async function refusals(gate: Gate, count: number): Promise<readonly (number | undefined)[]> {
  const all = await eventually('every refusal', () => {
    const found = gate.messages().filter(({ id }) => id === null)
    return found.length >= count && found
  })
  return all.map(({ error }) => error?.code)
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: a key twice, plain or escaped, anywhere, is -32600 and nothing is sent`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow: ['up/read'] })
    await gate.call('read')
    const before = received(gate).length
    const begun = gate.audit().length
    for (const [from, to] of DOUBLES) await gate.write(`${altered(era, from, to)}\n`)
    assert.deepEqual(
      await refusals(gate, DOUBLES.length),
      DOUBLES.map(() => -32600),
    )
    assert.equal(received(gate).length, before, 'something was forwarded')
    // What could be known of such a message is its fault and its size; none of its readings is recorded.
    const entries = gate.audit().slice(begun)
    assert.equal(entries.length, DOUBLES.length)
    for (const { kind, decision, outcome, name } of entries) {
      assert.deepEqual([kind, decision, outcome, name], ['malformed', 'deny', 'not_executed', ''])
    }
    assert.deepEqual(
      new Set(entries.map((entry) => entry['problem'])),
      new Set(['duplicate_key', 'proto_key']),
    )
    assert.ok(gate.messages().every(({ id }) => id !== 7 && id !== 8))

    // Equal keys of different objects, and keys that only look alike, are no duplicates.
    const clean = altered(era, '"path":"/ok"', '"path":"/ok","Path":"/x","p\\u0430th":{"path":1}')
    await gate.write(`${clean}\n`)
    assert.equal((await gate.answer(7)).error, undefined)
    assert.deepEqual(ran(gate), ['read', 'read'])
    const [, sent = ''] = received(gate, 'tools/call')
    for (const key of ['"name"', '"method"', '"id"', '"params"', '"arguments"']) {
      assert.equal(sent.split(`${key}:`).length, key === '"name"' && era === 'modern' ? 3 : 2, key)
    }
  })
}
