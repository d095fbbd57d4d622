// Byte caps are counted in bytes, not UTF-16 units, and no character is ever cut.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { SIDES, refusalCode, request, textOf } from './wire.ts'

const EMOJI = '\u{1f600}'

for (const [front, era] of SIDES) {
  test(`${front} ${era}: wide characters pass whole, also when the bytes of a line come one by one`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up: { flags: ['--dribble'] } } })
    for (const n of [200, 250, 251, 400]) {
      assert.equal(textOf(await gate.call('wide', { n })), EMOJI.repeat(n))
    }
    const message = request(era, 7, 'tools/call', {
      name: 'echo',
      arguments: { text: `é${EMOJI}\u4e2d` },
    })
    for (const byte of Buffer.from(`${JSON.stringify(message)}\n`))
      await gate.write(Buffer.of(byte))
    assert.equal(textOf(await gate.answer(7)), `é${EMOJI}\u4e2d`)
    for (const line of gate.incoming.lines) assert.ok(!line.includes('\ufffd'))
  })

  test(`${front} ${era}: the limit of a request counts bytes`, async (t) => {
    const gate = await startGate(t, { front, era, config: { limits: { request: '2KiB' } } })
    // About 1,400 UTF-16 units but more than 2,048 bytes.
    const wide = request(era, 1, 'tools/call', {
      name: 'echo',
      arguments: { text: EMOJI.repeat(500) },
    })
    assert.ok(
      JSON.stringify(wide).length < 1_800 && Buffer.byteLength(JSON.stringify(wide)) > 2_048,
    )
    await gate.post(wide)
    assert.equal((await gate.answer(null)).error?.code, -32600)
    const narrow = 'a'.repeat(1_000)
    assert.equal(textOf(await gate.call('echo', { text: narrow })), narrow)
    assert.equal(gate.trace().filter(({ method }) => method === 'tools/call').length, 1)
  })

  test(`${front} ${era}: half a character is refused from both sides and the chain holds`, async (t) => {
    const gate = await startGate(t, { front, era })
    const type = era === 'modern' ? '"resultType":"complete",' : ''
    const half = `{"jsonrpc":"2.0","id":$ID,"result":{${type}"content":[{"type":"text","text":"\\ud83d"}]}}`
    const refused = await gate.call('line', { text: half })
    assert.equal(refused.result?.isError, true)
    assert.equal(refusalCode(refused), 'answer_refused')

    const text = JSON.stringify(
      request(era, 5, 'tools/call', { name: 'echo', arguments: { text: '@' } }),
    )
    await gate.write(`${text.replace('"@"', '"\\ud83d"')}\n`)
    assert.equal((await gate.answer(null)).error?.code, -32600)
    await gate.write(Buffer.concat([Buffer.from(text.slice(0, -4)), Buffer.of(0xf0, 0x9f, 0x0a)]))
    await gate.call('echo', { text: 'after' })
    assert.deepEqual(
      gate
        .messages()
        .filter(({ id }) => id === null)
        .map(({ error }) => error?.code),
      [-32600, -32700],
    )
    assert.equal(gate.audit().filter(({ kind }) => kind === 'malformed').length, 2)
  })
}

test('a result above the cap of its profile is cut at a code point', { todo: 'part 3' })
