// What a server over HTTP cannot do to us: fill the memory, stop the loop, or come through to others.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'

import { httpServer, type Script } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { call, json, textOf, until } from '../upstream/rig.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB

/** Writes so many bytes as fast as they are taken, or until nobody reads. */
function flood(reply: ServerResponse, bytes: number, chunk = Buffer.alloc(MIB, 'x')): void {
  let left = bytes
  const more = (): void => {
    while (left > 0 && !reply.destroyed) {
      left -= chunk.length
      if (!reply.write(chunk)) {
        reply.once('drain', more)
        return
      }
    }
    reply.end()
  }
  more()
}

const onCall =
  (name: string, script: Script): Script =>
  (turn) =>
    (turn.seen.body['params'] as { name?: string } | undefined)?.name === name
      ? script(turn)
      : false

for (const [name, head, start] of [
  ['a JSON body', 'application/json', '{"jsonrpc":"2.0","id":1,"result":{"a":"'],
  ['one event', 'text/event-stream', 'data: {"jsonrpc":"2.0","id":1,"result":{"a":"'],
  ['one comment', 'text/event-stream', ': '],
  ['a page', 'text/html', '<html>'],
] as const) {
  test(`a gigabyte as ${name} is refused at the limit, and others are answered meanwhile`, async (t) => {
    let closed = false
    const server = await httpServer(t, {
      script: onCall('put', ({ reply }) => {
        reply.once('close', () => {
          closed = true
        })
        reply.writeHead(200, { 'content-type': head })
        reply.write(start)
        flood(reply, GIB)
        return true
      }),
    })
    const rig = reach(t, server.url)
    await rig.hello('s')
    const before = process.memoryUsage().rss
    let peak = 0
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss)
    }, 5)
    const [attempt, other] = await Promise.all([call(rig, 'put'), call(rig, 'echo', { text: 'x' })])
    clearInterval(watch)
    assert.ok(
      attempt.kind === 'unknown' && attempt.code === 'answer_refused',
      JSON.stringify(attempt),
    )
    assert.match(attempt.why, /more than [0-9]+ bytes/)
    assert.equal(textOf(other), 'x')
    assert.ok(peak - before < 200 * MIB, `${Math.round((peak - before) / MIB)} MiB`)
    await until(() => closed)
  })
}

test('an answer in a million parts is put together in as much memory as it has bytes', async (t) => {
  const text = 'x'.repeat(15 * MIB)
  const head = 'content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n'
  const part = `10\r\n${'x'.repeat(16)}\r\n`
  const most = Buffer.from(part.repeat(text.length / 16))
  const sized = (one: string): string => `${one.length.toString(16)}\r\n${one}\r\n`
  const server = await httpServer(t, {
    script: onCall('put', ({ reply, seen }) => {
      const start = `{"jsonrpc":"2.0","id":${String(seen.body['id'])},"result":{"content":[{"type":"text","text":"`
      reply.socket?.write(`HTTP/1.1 200 OK\r\n${head}${sized(start)}`)
      reply.socket?.write(most)
      reply.socket?.write(`${sized('"}],"resultType":"complete"}}')}0\r\n\r\n`)
      return true
    }),
  })
  const rig = reach(t, server.url)
  await rig.hello('s')
  const before = process.memoryUsage().heapUsed
  const attempt = call(rig, 'put')
  let peak = 0
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage().heapUsed)
  }, 5)
  assert.equal(textOf(await attempt), text)
  clearInterval(watch)
  assert.ok(peak - before < 80 * MIB, `${Math.round((peak - before) / MIB)} MiB`)
})

test('an answer of just the limit passes, by its announced length a larger one is refused at once', async (t) => {
  const limits = { bytes: 100_000 }
  let pad = 0
  const body = (id: unknown): string =>
    `{"jsonrpc":"2.0","id":${String(id)},"result":{"resultType":"complete","content":[],"p":"${'x'.repeat(pad)}"}}`
  for (const type of ['application/json', 'text/event-stream']) {
    const server = await httpServer(t, {
      script: onCall('put', ({ seen, reply }) => {
        pad = 0
        pad = limits.bytes - body(seen.body['id']).length + (over ? 1 : 0)
        reply.writeHead(200, { 'content-type': type })
        reply.end(
          type === 'application/json'
            ? body(seen.body['id'])
            : `data: ${body(seen.body['id'])}\n\n`,
        )
        return true
      }),
    })
    let over = false
    const rig = reach(t, server.url, {}, { limits })
    assert.equal((await call(rig, 'put')).kind, 'answered', type)
    over = true
    assert.equal((await call(rig, 'put')).kind, 'unknown', type)
  }
})

test('a flood of progress and of notices is thinned out, and the answer still comes', async (t) => {
  const server = await httpServer(t, {
    script: onCall('put', ({ seen, reply, stream }) => {
      stream()
      const { progressToken } = (seen.body['params'] as { _meta: { progressToken: unknown } })._meta
      const one = JSON.stringify({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      })
      const chunk = Buffer.from(`data: ${one}\n\n`.repeat(1000))
      let left = 60
      const more = (): void => {
        if (left-- > 0) {
          reply.write(chunk, more)
          return
        }
        const result = { resultType: 'complete', content: [{ type: 'text', text: 'done' }] }
        reply.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: seen.body['id'], result })}\n\n`)
      }
      more()
      return true
    }),
  })
  const rig = reach(t, server.url)
  let told = 0
  const attempt = await call(
    rig,
    'put',
    {},
    {
      meta: json({ progressToken: 1 }),
      watch: { progress: () => told++ },
    },
  )
  assert.equal(textOf(attempt), 'done')
  assert.equal(told, 1)
})

test('a server that never ends its streams does not keep our connections', async (t) => {
  const server = await httpServer(t, {
    script: onCall('put', ({ seen, event }) => {
      const result = { resultType: 'complete', content: [{ type: 'text', text: 'x' }] }
      event({ jsonrpc: '2.0', id: seen.body['id'], result })
      return true
    }),
  })
  const rig = reach(t, server.url)
  for (let at = 0; at < 20; at++) assert.equal(textOf(await call(rig, 'put')), 'x')
  await until(() => server.sockets.size <= 2)
})

test('a hundred calls at once share few connections, and each gets its own answer', async (t) => {
  const server = await httpServer(t)
  const rig = reach(t, server.url)
  await call(rig, 'echo', { text: 'first' })
  const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`)
  const answers = await Promise.all(texts.map((text) => call(rig, 'echo', { text })))
  assert.deepEqual(answers.map(textOf), texts)
  assert.ok(server.connections <= 101)
  const ids = server.of('tools/call').map(({ body }) => body['id'])
  assert.equal(new Set(ids).size, 101)
})

test('answers of one server that are under way are held up to a limit, and what comes after them is taken', async (t) => {
  let open = 0
  const text = 'x'.repeat(15 * MIB)
  const whole = onCall('whole', ({ reply, seen }) => {
    const result = { content: [{ type: 'text', text }], resultType: 'complete' }
    reply.writeHead(200, { 'content-type': 'application/json' })
    reply.end(JSON.stringify({ jsonrpc: '2.0', id: seen.body['id'], result }))
    return true
  })
  const halves = onCall('put', ({ reply }) => {
    reply.writeHead(200, { 'content-type': 'application/json' })
    reply.write(`{"jsonrpc":"2.0","id":1,"result":{"a":"${text}`)
    open++
    reply.once('close', () => open--)
    return true
  })
  const server = await httpServer(t, {
    script: (turn) => whole(turn) || halves(turn),
  })
  const rig = reach(t, server.url)
  await rig.hello('s')
  const calls = Array.from({ length: 12 }, () => {
    const stop = new AbortController()
    return { stop, attempt: call(rig, 'put', {}, { signal: stop.signal }) }
  })
  const refused = await Promise.race(calls.map(({ attempt }) => attempt))
  assert.ok(
    refused.kind === 'unknown' && /too many bytes/.test(refused.why),
    JSON.stringify(refused),
  )
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  for (const { stop } of calls) stop.abort()
  await Promise.all(calls.map(({ attempt }) => attempt))
  await until(() => open === 0)
  assert.equal(textOf(await call(rig, 'whole')), text)
})
