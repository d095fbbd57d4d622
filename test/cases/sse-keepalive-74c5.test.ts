// A silent stream is kept alive by comments, so that nothing on the way cuts it, and JSON stays JSON.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request as begin, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'

import { eventsOf } from '../mcp/http/rig.ts'
import { type Gate, LONG, startGate } from './harness.ts'
import { type Bag, type Era, ERAS, request } from './wire.ts'

/** The figures of the case, or a fifth of them: the setting `keepalive`, the patience of what stands between,
 *  and how long nothing happens. */
const KEEPALIVE_MS = LONG ? 5_000 : 1_000
const CUT_MS = 3 * KEEPALIVE_MS
const QUIET_MS = 7 * KEEPALIVE_MS
const CONFIG: Bag = { keepalive: `${KEEPALIVE_MS}ms` }

/** Something that passes bytes on, and cuts a connection on which none came for a while. */
async function middlebox(t: TestContext, to: number): Promise<number> {
  const held = new Set<Socket>()
  const server = createServer((near) => {
    const far = connect(to, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      held.add(one)
      one.setTimeout(CUT_MS, () => one.destroy())
      one.on('error', () => undefined)
      one.once('close', () => {
        held.delete(one)
        other.destroy()
      })
      one.pipe(other)
      one.on('data', () => other.setTimeout(CUT_MS))
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const one of held) one.destroy()
  })
  return (server.address() as AddressInfo).port
}

type Stream = {
  readonly response: IncomingMessage
  readonly text: () => string
  readonly isOver: () => boolean
  readonly over: Promise<unknown>
}

/** Begins a request and reads its answer as it comes. */
async function streaming(
  port: number,
  verb: 'GET' | 'POST',
  { headers, body }: { readonly headers: Record<string, string>; readonly body?: string },
): Promise<Stream> {
  const all = { 'content-type': 'application/json', ...headers }
  const out = begin({ host: '127.0.0.1', port, path: '/mcp', method: verb, headers: all })
  out.on('error', () => undefined)
  out.end(body)
  const [response] = (await once(out, 'response')) as [IncomingMessage]
  let text = ''
  let isOver = false
  response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  response.on('error', () => undefined)
  const over = new Promise((resolve) => response.once('close', resolve)).then(() => (isOver = true))
  return { response, text: () => text, isOver: () => isOver, over }
}

const EITHER = 'application/json, text/event-stream'

function headersOf(gate: Gate, method: string, name?: string): Record<string, string> {
  if (gate.era === 'legacy') {
    const session = gate.http.session() ?? assert.fail('there is no session')
    return { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25', accept: EITHER }
  }
  const named = name === undefined ? {} : { 'mcp-name': name }
  const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, ...named }
  return { ...modern, accept: EITHER }
}

/** Only comments and whole events. */
function assertQuiet({ response, text }: Stream): void {
  assert.match(String(response.headers['content-type']), /^text\/event-stream/)
  assert.equal(response.headers['x-accel-buffering'], 'no')
  const comments = text()
    .split('\n')
    .filter((line) => line.startsWith(':'))
  assert.ok(comments.length >= 3, `${comments.length} comments in ${JSON.stringify(text())}`)
  for (const line of text().split('\n')) assert.match(line, /^$|^:|^(data|id|retry):/)
}

const quiet = (era: Era): string =>
  JSON.stringify(
    request(era, 5, 'tools/call', { name: 'after', arguments: { ms: QUIET_MS, label: 'late' } }),
  )

// They mostly wait, so they wait together.
describe('at once', { concurrency: 5 }, () => {
  for (const era of ERAS) {
    test(`${era}: a call that is silent for long gives its result through what cuts silent connections`, async (t) => {
      const gate = await startGate(t, { front: 'http', era, config: CONFIG })
      const port = await middlebox(t, gate.http.port)
      const headers = headersOf(gate, 'tools/call', 'after')
      const call = await streaming(port, 'POST', { headers, body: quiet(era) })
      await call.over
      assertQuiet(call)
      const last = eventsOf(call.text()).at(-1)?.message
      assert.deepEqual(last?.result?.['content'], [{ type: 'text', text: 'late' }])
    })

    test(`${era}: a stream on which nothing happens is held open by comments alone`, async (t) => {
      const gate = await startGate(t, { front: 'http', era, config: CONFIG })
      const port = await middlebox(t, gate.http.port)
      const notifications = { toolsListChanged: true }
      const body = JSON.stringify(request('modern', 5, 'subscriptions/listen', { notifications }))
      const stream =
        era === 'legacy'
          ? await streaming(port, 'GET', {
              headers: { ...headersOf(gate, ''), accept: 'text/event-stream' },
            })
          : await streaming(port, 'POST', {
              headers: headersOf(gate, 'subscriptions/listen'),
              body,
            })
      await new Promise((resolve) => {
        setTimeout(resolve, QUIET_MS)
      })
      assert.equal(stream.isOver(), false, stream.text())
      assertQuiet(stream)
      const messages = eventsOf(stream.text()).flatMap(({ message }) => message?.method ?? [])
      const wanted = era === 'modern' ? ['notifications/subscriptions/acknowledged'] : []
      assert.deepEqual(messages, wanted)
    })

    test(`${era}: whoever takes JSON alone gets JSON, without comments in it`, async (t) => {
      const gate = await startGate(t, { front: 'http', era, config: CONFIG })
      const headers = { ...headersOf(gate, 'tools/call', 'after'), accept: 'application/json' }
      const call = await streaming(gate.http.port, 'POST', { headers, body: quiet(era) })
      await call.over
      assert.match(String(call.response.headers['content-type']), /^application\/json/)
      const { result } = JSON.parse(call.text()) as { readonly result: Bag }
      assert.deepEqual(result['content'], [{ type: 'text', text: 'late' }])
    })
  }
})
