// Secrets of the gateway process are not inherited by upstream processes.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { type Bag, SIDES, type Message } from './wire.ts'

const environmentOf = (answer: Message): Bag => answer.result?.structuredContent?.['env'] as Bag

for (const [front, era] of SIDES) {
  test(`${front} ${era}: an upstream sees a minimal environment and what is configured for it`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      upstreams: {
        a: {
          more: {
            env: { A_TOKEN: 'synthetic-3', B_TOKEN: '${GIVEN}' },
            pass_env: ['PASSED', 'HTTPS_PROXY'],
          },
        },
        b: {},
      },
      env: {
        AUDIT_KEY: 'synthetic-1',
        OTHER_UPSTREAM_TOKEN: 'synthetic-2',
        HTTPS_PROXY: 'http://user:synthetic-4@proxy.example:3128',
        https_proxy: 'http://user:synthetic-4@proxy.example:3128',
        NODE_OPTIONS: '--max-old-space-size=4000',
        GIVEN: 'synthetic-5',
        PASSED: 'synthetic-6',
      },
    })
    const seen = environmentOf(await gate.call('a__env'))
    assert.equal(seen['A_TOKEN'], 'synthetic-3')
    assert.equal(seen['B_TOKEN'], 'synthetic-5')
    assert.equal(seen['PASSED'], 'synthetic-6')
    assert.equal(seen['HTTPS_PROXY'], 'http://proxy.example:3128')
    for (const name of ['PATH', 'HOME']) assert.equal(seen[name], process.env[name], name)
    for (const name of [
      'AUDIT_KEY',
      'OTHER_UPSTREAM_TOKEN',
      'ECLUSA_STATE',
      'NODE_OPTIONS',
      'GIVEN',
    ]) {
      assert.equal(seen[name], undefined, name)
    }
    const other = environmentOf(await gate.call('b__env'))
    for (const name of ['A_TOKEN', 'B_TOKEN', 'PASSED']) assert.equal(other[name], undefined, name)
    for (const one of [seen, other])
      assert.doesNotMatch(JSON.stringify(one), /synthetic-4|synthetic-[12]/)
  })
}
