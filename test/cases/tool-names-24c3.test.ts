// Unusual characters and near-equal names are preserved and never collapsed.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { says, startGate } from './harness.ts'
import { assertDenied, callsOf, plainTool, ran, serving } from './menu.ts'
import { type Message, request, SIDES, textOf } from './wire.ts'

const LONG_NAME = `n${'a'.repeat(126)}z`
const NAMES = ['a-b', 'a_b', 'a.b', 'A_B', 'a/b', 'a b', 'na\u00efve', LONG_NAME]
const tools = [...NAMES.map((name) => plainTool(name, `ran ${name}`)), plainTool('')]
const up = serving({ tools })

for (const [front, era] of SIDES) {
  test(`${front} ${era}: one of several near-equal names is allowed, and only that one works`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow: ['up/a-b'] })
    const listed = await gate.request('tools/list')
    assert.deepEqual(
      listed.result?.tools?.map(({ name }) => name),
      ['a-b'],
    )
    await says(gate, /has no name/)
    assert.equal(textOf(await gate.call('a-b')), 'ran a-b')
    for (const name of NAMES.slice(1)) {
      assertDenied(await gate.call(name), name)
      assert.deepEqual(
        callsOf(gate, name).map(({ decision, outcome }) => `${decision} ${outcome}`),
        ['deny not_executed'],
        name,
      )
    }
    assert.equal((await gate.call('')).error?.code, -32602)
    assert.deepEqual(ran(gate), ['a-b'])
  })

  test(`${front} ${era}: each unusual name can be allowed and leads to its own tool`, async (t) => {
    const allow = NAMES.map((name) => `up/${name}`)
    const gate = await startGate(t, { front, era, upstreams: { up }, allow })
    const listed = await gate.request('tools/list')
    assert.deepEqual(
      listed.result?.tools?.map(({ name }) => name),
      NAMES,
    )
    for (const name of NAMES) assert.equal(textOf(await gate.call(name)), `ran ${name}`)
    assert.deepEqual(ran(gate), NAMES)
  })
}

test('http modern: a name beyond ASCII is encoded in its header, and its bare bytes are refused', async (t) => {
  const allow = NAMES.map((name) => `up/${name}`)
  const gate = await startGate(t, { front: 'http', era: 'modern', upstreams: { up }, allow })
  const name = 'na\u00efve'
  const body = JSON.stringify(request('modern', 1, 'tools/call', { name, arguments: {} }))
  const encoded = `=?base64?${Buffer.from(name).toString('base64')}?=`
  const sent = (value: string) => gate.http.exchange({ body, headers: { 'mcp-name': value } })
  assert.equal((await sent(encoded)).status, 200)
  for (const value of [name, Buffer.from(name).toString('latin1'), 'naive', `${encoded}x`]) {
    const refused = await sent(value)
    assert.equal(refused.status, 400, value)
    assert.equal((JSON.parse(refused.text) as Message).error?.code, -32020, value)
  }
  assert.deepEqual(ran(gate), [name])
})
