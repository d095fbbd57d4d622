// Binary content passes byte for byte; what is looked for inside it comes with redaction.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { serving } from './menu.ts'
import { type Bag, SIDES } from './wire.ts'

const TOKEN = `ghp_${'Ab1'.repeat(12)}`
// A picture of one pixel; its base64 is continued with what looks like a token.
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const TRICKY = `${Buffer.from(`${'\u0089PNG'}x`).toString('base64')}ghpAb1Ab1Ab1Ab1Ab1Ab1Ab1`
const BLOCKS: Readonly<Record<string, readonly Bag[]>> = {
  image: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }],
  tricky: [{ type: 'image', data: TRICKY, mimeType: 'image/png' }],
  audio: [{ type: 'audio', data: PIXEL, mimeType: 'audio/wav' }],
  text: [{ type: 'text', text: `token ${TOKEN}` }],
  blob: [
    {
      type: 'resource',
      resource: {
        uri: 'a://1',
        mimeType: 'text/plain',
        blob: Buffer.from(`secret ${TOKEN}`).toString('base64'),
      },
    },
  ],
  link: [{ type: 'resource_link', uri: 'a://2', name: 'two', mimeType: 'text/plain' }],
  address: [{ type: 'text', text: `see data:text/plain;base64,${btoa(TOKEN)}` }],
  unknown: [{ type: 'hologram', data: { x: [1, null, 'y'] } }],
  mixed: [
    { type: 'text', text: '' },
    { type: 'image', data: PIXEL, mimeType: 'image/png', annotations: { priority: 1 } },
  ],
}
const names = Object.keys(BLOCKS)
const tools = names.map((name) => ({
  definition: { name, inputSchema: { type: 'object' } },
  result: { content: BLOCKS[name] },
}))

for (const [front, era] of SIDES) {
  test(`${front} ${era}: content of every type arrives as it was sent`, async (t) => {
    const allow = names.map((name) => `up/${name}`)
    const upstreams = { up: serving({ tools }) }
    const gate = await startGate(t, { front, era, upstreams, allow, profile: { result: 'full' } })
    for (const name of names) {
      const answer = await gate.call(name)
      assert.deepEqual(answer.result?.content, BLOCKS[name], name)
    }
    // Byte for byte: not even another spelling of the same text.
    const line = gate.incoming.lines.find((one) => one.includes(PIXEL.slice(0, 20)))
    assert.ok(line?.includes(`"data":"${PIXEL}"`))
  })
}

test('a token in text, in a text blob and in a data URI is redacted', { todo: 'part 3' })
test('a block that says image and holds none is treated as unknown', { todo: 'part 3' })
