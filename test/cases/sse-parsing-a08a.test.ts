// An event stream is read as the standard says, whatever its shape and wherever its chunks end.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'

import { httpServer, type Script } from '../servers/http-scripted.ts'
import { startFar } from './far.ts'
import { SIDES, WAYS, refusalCode, textOf } from './wire.ts'

const onCall =
  (act: (reply: ServerResponse, answer: string) => void): Script =>
  ({ seen, reply }) => {
    if (seen.body['method'] !== 'tools/call') return false
    const result = { resultType: 'complete', content: [{ type: 'text', text: 'naïve 🙂' }] }
    reply.writeHead(200, { 'content-type': 'text/event-stream' })
    act(reply, JSON.stringify({ jsonrpc: '2.0', id: seen.body['id'], result }, null, 1))
    return true
  }

/** Writes these pieces, each as a chunk of its own. */
async function inPieces(
  reply: ServerResponse,
  pieces: readonly (string | Buffer)[],
): Promise<void> {
  for (const piece of pieces) {
    reply.write(piece)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
  reply.end()
}

for (const [front, era, servers] of WAYS) {
  test(`${front}, ${era} client, ${servers} server: one answer comes of every odd shape of a stream`, async (t) => {
    const server = await httpServer(t, {
      era: servers,
      script: onCall((reply, answer) => {
        const lines = answer.split('\n').map((one) => `data:${one}`)
        const emoji = Buffer.from(lines.slice(2).join('\r\n'))
        const middle = emoji.indexOf(0xf0) + 2
        void inPieces(reply, [
          Buffer.from([0xef, 0xbb]),
          Buffer.from([0xbf]),
          ': welcome\r',
          '\n:\n\n',
          'event: ping\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
          'id: prime\ndata:\n\n',
          'unknown: field\nretry: 1000\n',
          `${lines[0]}\r`,
          `\n${lines[1]}\r\n`,
          emoji.subarray(0, middle),
          emoji.subarray(middle),
          '\r\n\r',
          '\n',
        ])
      }),
    })
    const gate = await startFar(t, { up: server.url }, { front, era })
    const answer = await gate.call('echo', {})
    assert.equal(textOf(answer), 'naïve 🙂')
    assert.equal(server.of('tools/call').length, 1)
    assert.deepEqual(gate.notifications('notifications/message'), [])
  })
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: a last event without its empty line is no answer, and the call ends with an error`, async (t) => {
    const server = await httpServer(t, {
      era,
      script: onCall((reply, answer) => void inPieces(reply, [`data: ${answer}\n`])),
    })
    const gate = await startFar(t, { up: server.url }, { front, era })
    const answer = await gate.call('echo', {})
    assert.equal(answer.result?.isError, true)
    assert.equal(refusalCode(answer), 'outcome_unknown')
    assert.equal(server.of('tools/call').length, 1)
  })
}
