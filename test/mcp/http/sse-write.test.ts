// The writing end of an event stream before a reader that does not read.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'

import {
  type EventLine,
  eventLine,
  type Load,
  MAX_UNREAD,
} from '../../../src/mcp/http/sse-write.ts'
import { eventually } from './rig.ts'

type Scene = {
  readonly line: EventLine
  readonly load: Load
  readonly socket: Socket
  readonly closes: () => number
}

/** A stream to a client that is connected and reads nothing. */
async function scene(t: TestContext): Promise<Scene> {
  let unread = 0
  let closes = 0
  const load = {
    unread: () => unread,
    add(units: number) {
      unread += units
    },
  }
  const server = createServer()
  const asked = once(server, 'request')
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  t.after(() => {
    socket.destroy()
    server.close()
  })
  socket.pause()
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const [, response] = (await asked) as [unknown, ServerResponse]
  const closed = (): void => void closes++
  const line = eventLine(response, { headers: [], load, nowMs: () => 0, closed })
  return { line, load, socket, closes: () => closes }
}

const PIECE = `data: ${'x'.repeat(64 * 1024)}\n\n`
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Sends until nothing more is taken; how many were. */
async function fill(line: EventLine, weight: 'notice' | 'response', most: number): Promise<number> {
  for (let at = 0; at < most; at++) {
    if (!line.send(PIECE, weight)) return at
    await turn()
  }
  return most
}

test('notices are dropped once they are not read, a response is still taken, and all is read in order', async (t) => {
  const { line, load, socket, closes } = await scene(t)
  const sent = await fill(line, 'notice', 2_000)
  assert.ok(sent < 2_000, 'no notice was dropped')
  assert.ok(load.unread() < 1024 * 1024, String(load.unread()))
  assert.equal(line.send('data: "answer"\n\n', 'response'), true)
  line.end()
  let text = ''
  socket.on('data', (chunk: Buffer) => void (text += chunk.toString()))
  socket.resume()
  await eventually('the answer is read', () => text.includes('"answer"'))
  assert.equal(text.split('data: x').length - 1, sent)
  await eventually('nothing is counted any more', () => load.unread() === 0)
  assert.equal(closes(), 0)
})

test('a stream of which too much is unread is cut, once, and gives back what it counted', async (t) => {
  const { line, load, closes } = await scene(t)
  const most = Math.ceil((2 * MAX_UNREAD) / PIECE.length)
  const sent = await fill(line, 'response', most)
  assert.ok(sent < most, 'it was never cut')
  await eventually('it is closed', () => closes() === 1)
  assert.equal(load.unread(), 0)
  assert.equal(line.send(PIECE, 'response'), false)
})

test('a stream whose client goes away is closed, once', async (t) => {
  const { line, load, socket, closes } = await scene(t)
  await fill(line, 'response', 200)
  socket.destroy()
  await eventually('it is closed', () => closes() === 1)
  assert.equal(load.unread(), 0)
  assert.equal(line.send('data: "late"\n\n', 'response'), false)
})
