// What comes and goes leaves nothing alive: each kind is done many times, and the heap is asked before and after.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { type Gate, LONG, startGate } from '../cases/harness.ts'
import type { HttpWire } from '../cases/http-wire.ts'
import { type Era, request } from '../cases/wire.ts'
import { tried } from '../pace.ts'
import { liveHeap } from './heap.ts'
import { dialled, post } from './raw.ts'

/** How often each kind is done before the heap is first asked: caches are full and code is compiled then.
 *  More than the sessions that one client may have. */
const WARM = 300
const MORE = LONG ? 5_000 : 600
/** Bytes that may be alive afterwards beyond those before: in the short form four kilobytes each time, in the
 *  long form two hundred. */
const MAX_MORE = (LONG ? 1 : 2.4) * 1024 * 1024
/** Of one kind at once. */
const ABREAST = 8

/** One coming and going, the `at`-th. */
type Step = (at: number, ground: Ground) => Promise<unknown>
type Ground = { readonly t: TestContext; readonly gate: Gate; readonly http: HttpWire }

const ask = (era: Era, method: string, params: Readonly<Record<string, unknown>>, id = 1): string =>
  JSON.stringify(request(era, id, method, params))

const HELLO = ask('legacy', 'initialize', {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 't', version: '1' },
})
const NO_SESSION = { 'mcp-session-id': undefined, 'mcp-protocol-version': undefined }

async function begun({ http }: Ground): Promise<string> {
  const { status, headers } = await http.exchange({ headers: NO_SESSION, body: HELLO })
  assert.equal(status, 200)
  return String(headers['mcp-session-id'])
}

const call = (name: string, args: Readonly<Record<string, unknown>>): string =>
  ask('modern', 'tools/call', { name, arguments: args })

/** Sends a request of which the answer is not read, and closes the connection soon. */
async function cut({ t, gate }: Ground, text: string): Promise<void> {
  const socket = await dialled(t, gate)
  socket.on('error', () => undefined)
  await new Promise((resolve) => {
    socket.write(text, resolve)
  })
  await new Promise((resolve) => {
    setTimeout(resolve, 5)
  })
  socket.destroy()
}

const MODERN: Readonly<Record<string, Step>> = {
  'calls of tools that nobody knows': (at, { http }) =>
    http.exchange({ body: call(`unknown-${at}`, {}) }),
  'writes, each with a key of its own': (at, { http }) =>
    http.exchange({ body: call('mutate', { request_id: `churn-${at}`, text: 'x' }) }),
  'resources, each with a URI of its own': (at, { http }) =>
    http.exchange({ body: ask('modern', 'resources/read', { uri: `notes://churn-${at}` }) }),
  'messages that cannot be read': (at, { http }) => http.exchange({ body: `{"at":${at}` }),
  'tokens of nobody': (at, { http }) =>
    http.exchange({ headers: { authorization: `Bearer nobody-${at}` }, body: call('echo', {}) }),
  'calls whose client goes away': (_at, ground) =>
    cut(ground, post({ name: 'after', args: { ms: 20, label: 'x' } })),
  'lists and discoveries': async (_at, { http }) => {
    await http.exchange({ body: ask('modern', 'tools/list', {}) })
    await http.exchange({ body: ask('modern', 'server/discover', {}) })
  },
}

const LEGACY: Readonly<Record<string, Step>> = {
  'sessions that end': async (_at, ground) => {
    const headers = { 'mcp-session-id': await begun(ground) }
    assert.equal((await ground.http.exchange({ verb: 'DELETE', headers })).status, 204)
  },
  'sessions that are forgotten': (_at, ground) => begun(ground),
  'subscriptions that end': async (at, { http }) => {
    const uri = `notes://churn-${at}`
    await http.exchange({ body: ask('legacy', 'resources/subscribe', { uri }, at) })
    await http.exchange({ body: ask('legacy', 'resources/unsubscribe', { uri }, at) })
  },
}

async function times(ground: Ground, step: Step, from: number, count: number): Promise<void> {
  let next = from
  const lane = async (): Promise<void> => {
    while (next < from + count) await step(++next, ground)
  }
  await Promise.all(Array.from({ length: ABREAST }, lane))
}

// One gateway a kind would cost more than the kinds themselves, and a leak shows beside others too.
for (const [era, steps] of [
  ['modern', MODERN],
  ['legacy', LEGACY],
] as const) {
  test(`${era}: nothing stays alive of what comes and goes`, async (t) => {
    const gate = await startGate(t, {
      front: 'http',
      era,
      tools: { 'up/mutate': { effect: 'write', key: { at: '/request_id' } } },
      env: { NODE_OPTIONS: '--inspect=127.0.0.1:0' },
    })
    for (const [name, step] of Object.entries(steps)) {
      await t.test(name, async () => {
        const ground = { t, gate, http: gate.http }
        let done = WARM
        await times(ground, step, 0, WARM)
        // What is left of something else comes once; a leak comes each time.
        const { before, after } = await tried(
          async () => {
            const from = await liveHeap(gate.errors())
            await times(ground, step, done, MORE)
            done += MORE
            return { before: from, after: await liveHeap(gate.errors()) }
          },
          (heap) => heap.after - heap.before < MAX_MORE,
        )
        const each = Math.round((after - before) / MORE)
        assert.ok(after - before < MAX_MORE, `${each} bytes each: ${before} before, ${after} after`)
        t.diagnostic(`${name}: ${each} bytes each`)
      })
    }
  })
}
