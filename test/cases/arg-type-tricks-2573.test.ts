// Stringified numbers, JSON inside strings and odd numeric forms are judged as they stand, or refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import { callsOf, rawRequest, received, serving } from './menu.ts'
import { type Bag, SIDES, eventually, type Message, refusalCode } from './wire.ts'

const PAY = {
  name: 'pay',
  inputSchema: {
    type: 'object',
    properties: {
      amount: { type: 'number' },
      account: { type: 'string' },
      options: { type: 'array', items: { type: 'object' } },
    },
    required: ['amount', 'account'],
  },
}
const up = serving({ tools: [{ definition: PAY }] })
const allow = ['up/pay']

/** The same limit written as a rule and as a contract. */
const FORMS: Readonly<Record<string, { profile?: Bag; tools?: Bag }>> = {
  rule: {
    profile: {
      rules: [{ tool: 'up/pay', require: 'args.amount <= 100.0 && args.account in ["A1", "A2"]' }],
    },
  },
  contract: {
    tools: {
      'up/pay': {
        effect: 'write',
        args: {
          required: ['amount', 'account'],
          properties: { amount: { type: 'number', maximum: 100 }, account: { enum: ['A1', 'A2'] } },
        },
      },
    },
  },
}

const GOOD = ['100', '100.0', '1e2', '-0', '0.5', '-1e3', '99.99']
const WRONG = ['1e3', '100.5', '101', '1E+3', '100000000']
const INEXACT = ['100.0000000000000001', '99.9999999999999999999']
const TYPES = [
  '"1000"',
  '"1e3"',
  '"0x3E8"',
  '" 1000"',
  '"100\\u0000"',
  '"100"',
  'true',
  'null',
  '["1000"]',
  '[100]',
  '{"value":1}',
]
const TOKENS = ['NaN', 'Infinity', '-Infinity', '0x3E8', '1_000', '.5', '5.', '+1', '01', "'1'"]

let lastId = 30_000
async function pay(gate: Gate, amount: string, more: Bag = {}): Promise<Message> {
  const id = ++lastId
  const params = { name: 'pay', arguments: { amount: '@', account: 'A1', ...more } }
  await gate.write(rawRequest(gate.era, id, 'tools/call', { params, source: amount }))
  return gate.answer(id)
}

const amounts = (gate: Gate): readonly (string | undefined)[] =>
  received(gate, 'tools/call').map((line) => /"amount":([^,}]+)/.exec(line)?.[1])

for (const [front, era] of SIDES) {
  for (const [form, setup] of Object.entries(FORMS)) {
    // Which of the two forms it is makes no difference to the transport: over HTTP one is enough.
    if (front === 'http' && form === 'contract') continue
    test(`${front} ${era}, ${form}: only values of the right type and size pass, as they were written`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { up }, allow, ...setup })
      for (const amount of GOOD) {
        assert.equal((await pay(gate, amount)).result?.isError, undefined, amount)
      }
      for (const amount of WRONG) {
        assert.equal(refusalCode(await pay(gate, amount)), 'arguments_denied', amount)
      }
      for (const amount of INEXACT) {
        assert.equal(refusalCode(await pay(gate, amount)), 'number_not_exact', amount)
      }
      for (const amount of TYPES) {
        const code = refusalCode(await pay(gate, amount))
        assert.ok(code === 'arguments_invalid' || code === 'arguments_denied', `${amount} ${code}`)
      }
      for (const account of [
        'a1',
        'A1 ',
        ' A1',
        '\uff211',
        'A1\u0000',
        'A\u200b1',
        'A3',
        7,
        ['A1'],
      ]) {
        const code = refusalCode(await pay(gate, '1', { account }))
        assert.ok(
          code === 'arguments_denied' || code === 'arguments_invalid',
          `${JSON.stringify(account)} ${code}`,
        )
      }
      // A list written as text is text.
      const options = await pay(gate, '1', { options: '[{"a":1}]' })
      assert.equal(refusalCode(options), 'arguments_invalid')
      assert.equal(options.result?.isError, true)
      assert.match(JSON.stringify(options.result?.content), /\/options/)
      assert.equal((await pay(gate, '1', { options: [{}] })).result?.isError, undefined)

      // What arrived is what was judged, digit for digit.
      assert.deepEqual(amounts(gate), [...GOOD, '1'])
      const records = callsOf(gate, 'pay')
      const refused = WRONG.length + INEXACT.length + TYPES.length + 9 + 1
      assert.equal(records.filter(({ decision }) => decision === 'deny').length, refused)
      assert.ok(records.every(({ args_digest: digest }) => /^[0-9a-f]{64}$/.test(digest ?? '')))
    })
  }

  test(`${front} ${era}: what is no JSON, or arguments that are no object, are refused before any rule`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow, ...FORMS['rule'] })
    const params = { name: 'pay', arguments: { amount: '@', account: 'A1' } }
    for (const source of [...TOKENS, '1E400', '-1E400']) {
      await gate.write(rawRequest(era, ++lastId, 'tools/call', { params, source }))
    }
    const refused = await eventually('every refusal', () => {
      const found = gate.messages().filter(({ id }) => id === null)
      return found.length >= TOKENS.length + 2 && found
    })
    // A number that no reader can hold is JSON, so it is no parse error. Over HTTP each answer comes when it
    // is recorded, in any order.
    const codes = refused.map(({ error }) => error?.code)
    const expected = [...TOKENS.map(() => -32700), -32600, -32600]
    assert.deepEqual(
      front === 'http' ? codes.sort() : codes,
      front === 'http' ? expected.sort() : expected,
    )
    for (const given of ['{"amount":1,"account":"A1"}', [], null, 5, true]) {
      const answer = await gate.request('tools/call', { name: 'pay', arguments: given })
      assert.equal(answer.error?.code, -32602, JSON.stringify(given))
    }
    assert.deepEqual(received(gate, 'tools/call'), [])
  })
}
