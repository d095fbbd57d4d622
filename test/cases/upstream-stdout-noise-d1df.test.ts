// Valid JSON that is not a JSON-RPC message on upstream stdout is ignored safely.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { LONG, startGate } from './harness.ts'
import { SIDES, textOf } from './wire.ts'

/** How long no restart may be seen. */
const WATCH_MS = LONG ? 10_000 : 1_500

const JUNK = [
  '{"level":"info","msg":"up"}',
  '42',
  'null',
  '["a"]',
  'plain words, no JSON',
  '{"id":$ID}',
  '{"id":$ID,"result":{"content":[]}}',
  '{"jsonrpc":"1.0","id":$ID,"result":{"content":[]}}',
  '{"jsonrpc":"2.0","result":{"content":[]}}',
  '{"jsonrpc":"2.0","id":"$ID","result":{"content":[]}}',
  '[{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]',
]

for (const [front, era] of SIDES) {
  test(`${front} ${era}: junk before the first answer completes nothing and restarts nothing`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      handshake: era === 'legacy',
      upstreams: { up: { flags: ['--junk-first'], more: { share: true } } },
    })
    const listed = await gate.request('tools/list', {}, { id: 1 })
    assert.ok(listed.result?.tools?.some(({ name }) => name === 'echo'))
    assert.equal(textOf(await gate.call('echo', { text: 'still here' })), 'still here')
    await sleep(WATCH_MS)
    assert.equal(gate.starts().length, 1)
    await gate.answer(1)
  })

  test(`${front} ${era}: junk that carries the id of a pending call does not complete it`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up: { more: { share: true } } } })
    const type = era === 'modern' ? '"resultType":"complete",' : ''
    const right = `{"jsonrpc":"2.0","id":$ID,"result":{${type}"content":[{"type":"text","text":"right"}]}}`
    const answer = await gate.call('line', { text: [...JUNK, right].join('\n') })
    assert.equal(textOf(answer), 'right')
    await gate.record('the call', ({ name, outcome }) => name === 'line' && outcome === 'answered')
    assert.equal(gate.starts().length, 1)
  })
}
