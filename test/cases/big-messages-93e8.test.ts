// A result of several megabytes on one line passes unchanged when it is below the configured cap.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import { startGate } from './harness.ts'
import { SIDES, refusalCode, request, textOf } from './wire.ts'

const TOOLS = 400
const MIB = 1024 * 1024
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

for (const [front, era] of SIDES) {
  test(`${front} ${era}: long lists and long results pass whole`, async (t) => {
    const many = Array.from({ length: TOOLS }, (_, n) => `up/t${String(n).padStart(3, '0')}`)
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: { flags: ['--tools', String(TOOLS), '--tool-bytes', '800'] } },
      allow: [...many, 'up/dump', 'up/echo'],
    })
    const listed = await gate.request('tools/list')
    const names = listed.result?.tools?.map(({ name }) => name) ?? []
    assert.equal(names.filter((name) => /^t\d{3}$/.test(name)).length, TOOLS)
    assert.ok(JSON.stringify(listed).length > 300 * 1024)

    const dumped = textOf(await gate.call('dump', { bytes: 5 * MIB }))
    assert.equal(sha256(dumped), sha256('x'.repeat(5 * MIB)))

    const before = Date.now()
    assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
    assert.ok(Date.now() - before < roomy(2_000))
  })

  test(`${front} ${era}: a result above the cap is refused, told and survived`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: { more: { share: true } } },
      config: { limits: { upstream_message: '1MiB' } },
    })
    const refused = await gate.call('dump', { bytes: MIB })
    assert.equal(refused.result?.isError, true)
    assert.equal(refusalCode(refused), 'answer_refused')
    const passed = await gate.call('dump', { bytes: MIB - 1_024 })
    assert.equal(textOf(passed).length, MIB - 1_024)
    assert.equal(gate.starts().length, 1)
  })

  test(`${front} ${era}: a request of 3 MiB passes and one above the cap does not`, async (t) => {
    const gate = await startGate(t, { front, era })
    const text = 'y'.repeat(3 * MIB)
    assert.equal(sha256(textOf(await gate.call('echo', { text }))), sha256(text))
    const long = { name: 'echo', arguments: { text: 'z'.repeat(4 * MIB) } }
    await gate.post(request(era, 'long', 'tools/call', long))
    const refused = await gate.answer(null)
    assert.equal(refused.error?.code, -32600)
    assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
    await gate.record('the long line', ({ kind }) => kind === 'malformed')
  })
}
