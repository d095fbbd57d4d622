// How long a small call takes beside clients and servers that misbehave: `node test/soak/neighbours.ts [PART OF A NAME]`.
//
// Each disturbance takes turns with quiet; what is told is the 99th percentile of the calls of one client,
// quiet and disturbed, and their ratio. A script and no test: a shared machine cannot promise times.

import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'

import { type Gate, startGate } from '../cases/harness.ts'
import { addClient, dialled, post } from './raw.ts'

const MIB = 1024 * 1024
const ROUNDS = 5
/** Calls of one round. */
const CALLS = 150
/** From the end of one timed call to the next. */
const PACE_MS = 4

/** Begins a disturbance; the result ends it. */
type Disturbance = (t: TestContext, gate: Gate, token: string) => Promise<() => void>

const many = async (
  t: TestContext,
  gate: Gate,
  count: number,
  first: (at: number) => string | null,
): Promise<() => void> => {
  const sockets: Socket[] = []
  for (let at = 0; at < count; at++) {
    const socket = await dialled(t, gate)
    socket.on('error', () => undefined)
    socket.pause()
    const text = first(at)
    if (text !== null) socket.write(text)
    sockets.push(socket)
  }
  return () => sockets.forEach((socket) => socket.destroy())
}

/** Does it again and again until it is ended. */
function again(step: () => Promise<void>): () => void {
  const over = new AbortController()
  void (async () => {
    while (!over.signal.aborted) await step().catch(() => undefined)
  })()
  return () => over.abort()
}

const DISTURBANCES: Readonly<Record<string, Disturbance>> = {
  '1,000 idle connections': (t, gate) => many(t, gate, 1_000, () => null),
  '200 connections whose headers never end': (t, gate) =>
    many(t, gate, 200, () => 'POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
  '16 readers that do not read 4 MiB each': (t, gate, token) =>
    many(t, gate, 16, () => post({ name: 'up__dump', args: { bytes: 4 * MIB }, token })),
  'clients that vanish in the middle of 1 MiB': (t, gate, token) =>
    Promise.resolve(
      again(async () => {
        const socket = await dialled(t, gate)
        socket.write(post({ name: 'up__dump', args: { bytes: MIB }, token }))
        await new Promise((resolve) => {
          socket.once('data', resolve)
          socket.once('close', resolve)
        })
        socket.destroy()
        await sleep(20)
      }),
    ),
  'a server that sends a gigabyte, once a second': (t, gate, token) =>
    Promise.resolve(
      again(async () => {
        const socket = await dialled(t, gate)
        socket.write(post({ name: 'far__put', args: {}, token }))
        await new Promise((resolve) => {
          socket.once('data', resolve)
          socket.once('close', resolve)
        })
        socket.destroy()
        await sleep(1_000)
      }),
    ),
}

test('neighbours', async (t) => {
  // In a thread of its own: what it costs must not be taken from the calls that are timed.
  const worker = new Worker(new URL('./endless.ts', import.meta.url))
  t.after(() => worker.terminate())
  const [url] = (await once(worker, 'message')) as [string]
  const gate = await startGate(t, {
    front: 'http',
    era: 'modern',
    // What is timed goes to a server of its own: a pipe that is full of another's answer is no fault of ours.
    upstreams: { up: {}, near: {}, far: { more: { url, command: undefined } } },
    allow: ['near/echo', 'up/dump', 'far/put'],
    tools: { 'near/echo': { effect: 'read' }, 'up/dump': { effect: 'read' } },
  })
  const token = await addClient(gate, 'neighbour')
  await timed(gate)
  const [, , only = ''] = process.argv
  for (const [name, disturb] of Object.entries(DISTURBANCES)) {
    if (!name.includes(only)) continue
    const quiet: number[] = []
    const loud: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      quiet.push(...(await timed(gate)))
      const end = await disturb(t, gate, token)
      loud.push(...(await timed(gate)))
      end()
      await sleep(500)
    }
    const [before, beside] = [p99(quiet), p99(loud)]
    const ratio = (beside / before).toFixed(2)
    process.stdout.write(
      `${name}: p99 ${before.toFixed(1)} ms quiet, ${beside.toFixed(1)} ms, ${ratio} x\n`,
    )
  }
})

async function timed(gate: Gate): Promise<readonly number[]> {
  const all: number[] = []
  for (let at = 0; at < CALLS; at++) {
    const from = performance.now()
    await gate.call('near__echo', { text: 'x' })
    all.push(performance.now() - from)
    await sleep(PACE_MS)
  }
  return all
}

const p99 = (all: readonly number[]): number =>
  [...all].sort((a, b) => a - b)[Math.floor(all.length * 0.99)] ?? Number.NaN
