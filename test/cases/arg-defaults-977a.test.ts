// Leaving out a constrained argument does not satisfy the constraint, unless the rule itself says so.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { received, serving } from './menu.ts'
import { type Bag, SIDES, type Message, refusalCode } from './wire.ts'

const scope = { type: 'string', enum: ['test', 'all', ''], default: 'all' }
const purge = (more: Bag): Bag => ({
  name: 'purge',
  inputSchema: { type: 'object', properties: { scope, extra: { type: 'integer' } }, ...more },
})
const open = serving({ tools: [{ definition: purge({ additionalProperties: true }) }] })
const shut = serving({ tools: [{ definition: purge({ additionalProperties: false }) }] })
const silent = serving({ tools: [{ definition: purge({}) }] })
const allow = ['up/purge']

const contract = (args: Bag): Bag => ({ 'up/purge': { effect: 'write', args } })
const rule = (require: string): Bag => ({ rules: [{ tool: 'up/purge', require }] })
const properties = { scope: { const: 'test' } }

const STRICT: Readonly<Record<string, { profile?: Bag; tools?: Bag }>> = {
  contract: { tools: contract({ required: ['scope'], properties }) },
  rule: { profile: rule('args.scope == "test"') },
}
/** Absence is allowed, and the text of the rule says it. */
const LENIENT: Readonly<Record<string, { profile?: Bag; tools?: Bag }>> = {
  contract: { tools: contract({ properties }) },
  rule: { profile: rule('!("scope" in args) || args.scope == "test"') },
}
/** Present, but not the one value. */
const OTHERS: readonly Bag[] = [
  { scope: null },
  { scope: 'all' },
  { scope: '' },
  { scope: 'Test' },
  { scope: 'test ' },
  { scope: ['test'] },
  { scope: { test: true } },
  { scope: 0 },
]

const isPassed = (message: Message): boolean =>
  message.error === undefined && message.result?.isError === undefined

for (const [front, era] of SIDES) {
  // Which of the two forms it is makes no difference to the transport: over HTTP one is enough.
  for (const form of front === 'http' ? ['rule'] : ['contract', 'rule']) {
    test(`${front} ${era}, ${form}: only the explicit value passes`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { up: open },
        allow,
        ...STRICT[form],
      })
      const absent = await gate.request('tools/call', { name: 'purge' })
      assert.notEqual(refusalCode(absent), undefined)
      for (const args of [{}, { Scope: 'test' }, { '/scope': 'test' }, { a: { scope: 'test' } }]) {
        assert.notEqual(
          refusalCode(await gate.call('purge', args)),
          undefined,
          JSON.stringify(args),
        )
      }
      for (const args of OTHERS) {
        assert.notEqual(
          refusalCode(await gate.call('purge', args)),
          undefined,
          JSON.stringify(args),
        )
      }
      for (const bad of [null, [], [{ scope: 'test' }], 'scope=test']) {
        const answer = await gate.request('tools/call', { name: 'purge', arguments: bad })
        assert.equal(answer.error?.code, -32602, JSON.stringify(bad))
      }
      assert.deepEqual(received(gate, 'tools/call'), [])
      assert.ok(isPassed(await gate.call('purge', { scope: 'test' })))
      // The server's schema says that further members are welcome.
      assert.ok(isPassed(await gate.call('purge', { scope: 'test', more: 1 })))
      assert.equal(received(gate, 'tools/call').length, 2)
    })

    test(`${front} ${era}, ${form}: absence passes where the rule says so, another value never`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { up: open },
        allow,
        ...LENIENT[form],
      })
      assert.ok(isPassed(await gate.request('tools/call', { name: 'purge' })))
      assert.ok(isPassed(await gate.call('purge', {})))
      assert.ok(isPassed(await gate.call('purge', { scope: 'test' })))
      // Nothing was filled in on the way.
      const [first = '', second = ''] = received(gate, 'tools/call')
      assert.ok(!first.includes('arguments') && second.includes('"arguments":{}'))
      for (const args of OTHERS) {
        assert.notEqual(
          refusalCode(await gate.call('purge', args)),
          undefined,
          JSON.stringify(args),
        )
      }
      assert.equal(received(gate, 'tools/call').length, 3)
    })

    test(`${front} ${era}, ${form}: undeclared members are refused unless the server's schema allows them`, async (t) => {
      for (const up of [shut, silent]) {
        const gate = await startGate(t, { front, era, upstreams: { up }, allow, ...STRICT[form] })
        const answer = await gate.call('purge', { scope: 'test', more: 1 })
        assert.equal(refusalCode(answer), 'arguments_invalid')
        assert.equal(answer.result?.isError, true)
        assert.deepEqual(received(gate, 'tools/call'), [])
        assert.ok(isPassed(await gate.call('purge', { scope: 'test', extra: 1 })))
      }
    })
  }
}
