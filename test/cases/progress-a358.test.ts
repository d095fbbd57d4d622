// Forwarded progress keeps its token and its growth, and none follows the answer.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { WAYS, textOf } from './wire.ts'

// How one era is bridged to the other makes no difference to the transport.
const SOME = WAYS.filter(([front, era, servers]) => front === 'stdio' || era === servers)

for (const [front, era, servers] of SOME) {
  const pair = `${front}, ${era} client, ${servers} server`
  for (const token of ['tok-1', 7]) {
    test(`${pair}: progress under ${typeof token} tokens grows and ends with the answer`, async (t) => {
      const gate = await startGate(t, { front, era, servers })
      const answer = await gate.call(
        'progress',
        { values: [1, 5, 5, 3] },
        { meta: { progressToken: token } },
      )
      assert.equal(textOf(answer), 'done')
      await gate.call('echo', { text: 'after' })
      const seen = gate.notifications('notifications/progress')
      assert.deepEqual(
        seen.map(({ params }) => [params?.['progressToken'], params?.['progress']]),
        [
          [token, 1],
          [token, 5],
        ],
      )
      const messages = gate.messages()
      const end = messages.indexOf(answer)
      for (const one of seen) assert.ok(messages.indexOf(one) < end, 'progress after the answer')
    })
  }

  test(`${pair}: two calls with one token each get their own progress`, async (t) => {
    const gate = await startGate(t, { front, era, servers })
    const ask = (token: string | number, values: number[]): ReturnType<typeof gate.call> =>
      gate.call('progress', { values, ms: 20 }, { meta: { progressToken: token } })
    await Promise.all([ask(1, [10, 20]), ask('1', [30, 40])])
    const of = (token: string | number): unknown[] =>
      gate
        .notifications('notifications/progress')
        .filter(({ params }) => params?.['progressToken'] === token)
        .map(({ params }) => params?.['progress'])
    assert.deepEqual(
      [of(1), of('1')],
      [
        [10, 20],
        [30, 40],
      ],
    )
  })

  test(`${pair}: a client without a token gets no progress, and unknown tokens harm nobody`, async (t) => {
    const upstreams = { up: { more: { share: true } } }
    const gate = await startGate(t, { front, era, servers, upstreams })
    const foreign = JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progressToken: 'nobody', progress: 1 },
    })
    const odd =
      '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"x"}}'
    assert.equal(textOf(await gate.call('junk', { lines: [foreign, odd], text: 'fine' })), 'fine')
    assert.equal(textOf(await gate.call('progress', { values: [1, 2] })), 'done')
    assert.equal(textOf(await gate.call('echo', { text: 'up' })), 'up')
    assert.equal(gate.notifications('notifications/progress').length, 0)
    assert.equal(gate.starts().length, 1)
  })
}
