// Big integers are neither rounded on their way up nor when rules read them.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import { callsOf, plainTool, rawRequest, received, serving } from './menu.ts'
import { type Bag, SIDES, type Message, WAYS, refusalCode } from './wire.ts'

const MAX = '9007199254740991'
const allow = ['up/del', 'up/write', 'up/free']
const tools = {
  'up/del': {
    effect: 'write',
    args: { required: ['id'], properties: { id: { enum: [Number(MAX), 7] } } },
  },
  'up/write': { effect: 'write', key: { at: '/request_id' } },
}
const up = serving({
  tools: ['del', 'write', 'free'].map((name) => ({
    ...plainTool(name),
    definition: { name, inputSchema: { type: 'object', properties: { id: true } } },
  })),
})

let lastId = 10_000
/** Calls a tool with `id` written as `source`. */
async function call(gate: Gate, name: string, source: string, more: Bag = {}): Promise<Message> {
  const id = ++lastId
  const params = { name, arguments: { ...more, id: '@' } }
  await gate.write(rawRequest(gate.era, id, 'tools/call', { params, source }))
  return gate.answer(id)
}

const sources = (gate: Gate): readonly (string | undefined)[] =>
  received(gate, 'tools/call').map((line) => /"id":([^,"{}]+|"[^"]*")\}/.exec(line)?.[1])

for (const [front, era] of SIDES) {
  test(`${front} ${era}: a rule lets exactly equal integers through, with the digits that came`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow, tools })
    // Forms that mean exactly one of the listed integers are that integer, and stay as they were written.
    const good = [MAX, '7', '7.0', '0.7e1', '70E-1', `${MAX}.0`, '9.007199254740991e15']
    for (const source of good) {
      assert.equal((await call(gate, 'del', source)).result?.isError, undefined, source)
    }
    assert.deepEqual(sources(gate), good)

    const inexact = ['9007199254740992', '9007199254740993', '9007199254740992.0']
    const forms = ['9.007199254740992e15', '7.00000000000000000001', `-${MAX}0`, `${MAX}.5`]
    for (const source of [...inexact, ...forms]) {
      const answer = await call(gate, 'del', source)
      assert.equal(refusalCode(answer), 'number_not_exact', source)
      assert.equal(answer.error?.code, -32602, source)
    }
    for (const source of ['8', '"9007199254740993"', `"${MAX}"`, '7.5', 'true', '[7]', 'null']) {
      assert.equal(refusalCode(await call(gate, 'del', source)), 'arguments_denied', source)
    }
    assert.equal(received(gate, 'tools/call').length, good.length)
    const denied = callsOf(gate, 'del').filter(({ decision }) => decision === 'deny')
    assert.equal(denied.length, inexact.length + forms.length + 7)
    assert.ok(denied.every(({ rule }) => rule === '/tools/up~1del/args'))
  })

  test(`${front} ${era}: a number that no rule reads arrives digit for digit`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow, tools })
    const all = ['9007199254740993', '1.0', '1e3', '-0', '123456789012345678901234567890.5', '0.10']
    for (const source of all) {
      assert.equal((await call(gate, 'free', source)).result?.isError, undefined, source)
    }
    assert.deepEqual(sources(gate), all)
    // Beyond any double there is no reader that would not round: refused, never rounded.
    const id = ++lastId
    const params = { name: 'free', arguments: { id: '@' } }
    await gate.write(rawRequest(era, id, 'tools/call', { params, source: '1e400' }))
    await gate.record(
      'the number',
      ({ kind, code }) => kind === 'malformed' && code === 'malformed',
    )
    assert.equal((await gate.answer(null)).error?.code, -32600)
    assert.equal(received(gate, 'tools/call').length, all.length)
  })

  test(`${front} ${era}: one key with two numbers that round alike is a conflict`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow, tools })
    const key = { request_id: 'big-numbers' }
    const first = await call(gate, 'write', '9007199254740992', key)
    assert.equal(first.result?.isError, undefined)
    const again = await call(gate, 'write', '9007199254740992', key)
    assert.deepEqual(again.result?.content, first.result?.content)
    for (const source of ['9007199254740993', '9007199254740992.0']) {
      assert.equal(refusalCode(await call(gate, 'write', source, key)), 'key_conflict', source)
    }
    assert.deepEqual(sources(gate), ['9007199254740992'])
  })
}

/** Numbers as a server writes them. */
const DIGITS =
  '{"id":9007199254740993,"n":[-0,1.0,1e3,0.10,123456789012345678901234567890],"x":{"f":1E+2}}'

for (const [front, era, servers] of WAYS) {
  test(`${front} ${era} client, ${servers} server: results keep their digits, replayed ones too`, async (t) => {
    const keyed = { 'up/raw': { effect: 'write', key: { at: '/request_id' } } }
    const gate = await startGate(t, {
      front,
      era,
      servers,
      tools: keyed,
      profile: { result: 'full' },
    })
    const type = servers === 'modern' ? '"resultType":"complete",' : ''
    const result = `{${type}"content":[],"structuredContent":${DIGITS}}`
    for (let round = 0; round < 2; round++) {
      await gate.call('raw', { request_id: 'digits-01', result })
      assert.ok(gate.incoming.lines.at(-1)?.includes(`"structuredContent":${DIGITS}`))
    }
    assert.equal(received(gate, 'tools/call').length, 1)
  })
}
