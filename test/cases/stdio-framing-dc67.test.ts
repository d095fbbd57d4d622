// Fragmented, coalesced and CRLF-terminated frames are all parsed as one message per line.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { startGate } from './harness.ts'
import { type Bag, ERAS, request, textOf } from './wire.ts'

for (const era of ERAS) {
  const line = (id: number, tool: string, args: Bag): string =>
    JSON.stringify(request(era, id, 'tools/call', { name: tool, arguments: args }))

  test(`${era}: frames are lines, however the bytes arrive`, async (t) => {
    const gate = await startGate(t, { era })

    const ping = era === 'legacy' ? 'ping' : 'tools/list'
    for (const byte of Buffer.from(`${JSON.stringify(request(era, 1, ping))}\n`)) {
      await gate.write(Buffer.of(byte))
      await sleep(2)
    }
    assert.ok((await gate.answer(1)).result)

    const two = line(2, 'together', { count: 2, text: 'two' })
    const three = line(3, 'together', { count: 2, text: 'three' })
    await gate.write(`${two}\r\n${three}\n\n\r\n${line(4, 'pieces', { text: 'vier ✓ 😀' })}\n`)
    assert.equal(textOf(await gate.answer(2)), 'two')
    assert.equal(textOf(await gate.answer(3)), 'three')
    assert.equal(textOf(await gate.answer(4)), 'vier ✓ 😀')

    await gate.call('echo', { text: 'last' })
    const ids = gate.messages().map(({ id }) => id)
    for (const id of [1, 2, 3, 4]) {
      assert.equal(ids.filter((one) => one === id).length, 1, `answers to ${id}`)
    }
    assert.ok(!ids.includes(null), 'an empty line was answered')
    assert.equal(gate.incoming.rest(), '')
    for (const one of gate.incoming.lines) assert.match(one, /^\{.*\}$/)
  })

  test(`${era}: an upstream that writes in pieces and ends lines with CRLF is understood`, async (t) => {
    const gate = await startGate(t, { era, upstreams: { up: { flags: ['--dribble', '--crlf'] } } })
    const answers = await Promise.all(['a', 'b', 'c'].map((text) => gate.call('echo', { text })))
    assert.deepEqual(answers.map(textOf), ['a', 'b', 'c'])
  })
}
