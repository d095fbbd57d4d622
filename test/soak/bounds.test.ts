// What clients and servers do with the memory of a real `serve`: there is a ceiling, and it is named here.

import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { startFar } from '../cases/far.ts'
import { type Gate, startGate } from '../cases/harness.ts'
import { descriptors, peakRss, rss } from '../cases/proc.ts'
import type { Answered } from '../cases/http-wire.ts'
import { eventually, PATIENCE, refusalCode, request, textOf } from '../cases/wire.ts'
import { httpServer } from '../servers/http-scripted.ts'
import { addClient, dialled, flood, post } from './raw.ts'

const MIB = 1024 * 1024
/** What a gateway may take that starts, serves one client and holds nothing: two heaps of V8, and Node. */
const BASE = 400 * MIB
/** Unread answers of all clients (`MAX_UNREAD_IN_ALL`), each as text and as what the socket holds of it. */
const UNREAD = 2 * 256 * MIB
/** Answers on their way when that limit is reached, each as its bytes, as values and as text. */
const ON_THE_WAY = 256 * MIB

async function isServed(gate: Gate): Promise<void> {
  assert.equal(textOf(await gate.call('echo', { text: 'here' })), 'here')
}

/** The first line of the answer on this connection, of which nothing more is read. */
const begun = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('data', (chunk: Buffer) => {
      socket.pause()
      socket.on('error', () => undefined)
      resolve(chunk.toString('latin1').split('\r\n', 1)[0] ?? '')
    })
  })

const called = (gate: Gate, token: string): Promise<Answered> =>
  gate.http.exchange({
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify(
      request('modern', 1, 'tools/call', { name: 'echo', arguments: { text: 'again' } }),
    ),
  })

function below(gate: Gate, ceiling: number): void {
  const peak = peakRss(gate.pid)
  assert.ok(peak < ceiling, `${Math.round(peak / MIB)} MiB at most, not ${ceiling / MIB}`)
}

test('answers that nobody reads have a ceiling over all clients, and are given back', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  const tokens = await Promise.all(
    Array.from({ length: 8 }, (_, at) => addClient(gate, `greedy-${at}`)),
  )
  const sockets: Socket[] = []
  const statuses: string[] = []
  // 320 MiB are asked for, of which nobody reads more than the beginning.
  for (let at = 0; at < 40; at++) {
    const socket = await dialled(t, gate)
    sockets.push(socket)
    socket.write(post({ name: 'dump', args: { bytes: 8 * MIB }, token: tokens[at % 8] ?? '' }))
    statuses.push(await begun(socket))
  }
  assert.match(statuses[0] ?? '', /200/)
  assert.match(statuses.at(-1) ?? '', /503/)
  below(gate, BASE + UNREAD + ON_THE_WAY)
  for (const socket of sockets) socket.destroy()
  const end = Date.now() + PATIENCE
  for (;;) {
    const { status, text } = await called(gate, tokens[0] ?? '')
    if (status === 200) break
    assert.ok(Date.now() < end, `a greedy client is not served again: ${status} ${text}`)
    await sleep(50)
  }
  await isServed(gate)
})

test('bodies that never end have a ceiling, and hold nobody else', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  const token = await addClient(gate, 'endless')
  const piece = 'x'.repeat(2 * MIB)
  // 600 MiB, of bodies that want to be 4 MiB each.
  for (let at = 0; at < 300; at++) {
    const socket = await dialled(t, gate)
    socket.on('error', () => undefined)
    const text = post({ name: 'echo', args: { text: piece }, token }, 4 * MIB - 1)
    await new Promise((resolve) => {
      socket.write(text, resolve)
      socket.once('close', resolve)
    })
  }
  await isServed(gate)
  below(gate, BASE)
})

test('a thousand idle connections cost little memory and nobody an answer', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  await isServed(gate)
  const before = rss(gate.pid)
  for (let at = 0; at < 10; at++) {
    await Promise.all(Array.from({ length: 100 }, () => dialled(t, gate)))
  }
  await isServed(gate)
  const each = (rss(gate.pid) - before) / 1_000
  assert.ok(each < 64 * 1024, `${Math.round(each / 1024)} KiB a connection`)
})

test('clients that vanish in the middle of large answers leave no memory and no descriptor', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  await isServed(gate)
  const before = descriptors(gate.pid).size
  // 400 MiB, of which a little is read.
  for (let at = 0; at < 100; at++) {
    const socket = await dialled(t, gate)
    socket.on('error', () => undefined)
    socket.write(post({ name: 'dump', args: { bytes: 4 * MIB } }))
    await new Promise((resolve) => {
      socket.once('data', resolve)
      socket.once('close', resolve)
    })
    socket.destroy()
  }
  await isServed(gate)
  below(gate, BASE)
  await eventually('descriptors are given back', () => descriptors(gate.pid).size <= before + 4)
})

test('a server that sends a gigabyte has a ceiling, and its neighbour answers meanwhile', async (t) => {
  const endless = await httpServer(t, {
    script: ({ seen, reply }) => {
      if (seen.body['method'] !== 'tools/call') return false
      reply.writeHead(200, { 'content-type': 'application/json' })
      reply.write('{"jsonrpc":"2.0","id":1,"result":{"a":"')
      flood(reply, 1024 * MIB)
      return true
    },
  })
  const other = await httpServer(t)
  const gate = await startFar(t, { a: endless.url, b: other.url }, { front: 'http', era: 'modern' })
  const [flooded, ...answers] = await Promise.all([
    gate.call('a__put'),
    ...Array.from({ length: 20 }, (_, at) => gate.call('b__echo', { text: String(at) })),
  ])
  assert.equal(refusalCode(flooded), 'answer_refused')
  assert.deepEqual(
    answers.map((one) => textOf(one)),
    answers.map((_, at) => String(at)),
  )
  below(gate, BASE)
})
