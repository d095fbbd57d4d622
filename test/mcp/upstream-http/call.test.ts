import assert from 'node:assert/strict'
import { createServer as createTcp, type AddressInfo } from 'node:net'
import { test } from 'node:test'

import { httpServer, type Script } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { answer, asksOf, call, json, textOf, until } from '../upstream/rig.ts'

for (const era of ['modern', 'legacy', 'dual'] as const) {
  test(`a ${era} server over HTTP is found out and called`, async (t) => {
    const server = await httpServer(t, { era })
    const rig = reach(t, server.url)
    const hello = await rig.hello('s')
    assert.equal(hello?.era, era === 'legacy' ? 'legacy' : 'modern')
    assert.equal(hello.info?.['name'], 'http-scripted')
    assert.equal((await rig.list('s', 'tools')).items.length, 3)
    assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
    assert.equal(textOf(await call(rig, 'echo', { text: 'y' }, { does: 'read' })), 'y')
    assert.equal(server.of('server/discover').length, 1)
    assert.equal(server.of('initialize').length, era === 'legacy' ? 1 : 0)
    assert.deepEqual(rig.said, [])
  })
}

/** Does this to the calls of tools and nothing to the rest. */
const onCall =
  (script: Script): Script =>
  (turn) =>
    turn.seen.body['method'] === 'tools/call' ? script(turn) : false

test('a modern call carries the headers of its own body and the configured ones, nothing else', async (t) => {
  const server = await httpServer(t)
  const rig = reach(t, server.url, { headers: { Authorization: 'Bearer ours' } })
  await call(rig, 'écho', { text: 'x' })
  const [seen] = server.of('tools/call')
  assert.deepEqual(Object.keys(seen?.headers ?? {}).sort(), [
    'accept',
    'accept-encoding',
    'authorization',
    'connection',
    'content-length',
    'content-type',
    'host',
    'mcp-method',
    'mcp-name',
    'mcp-protocol-version',
    'user-agent',
  ])
  assert.equal(seen?.headers['authorization'], 'Bearer ours')
  assert.equal(seen.headers['mcp-name'], '=?base64?w6ljaG8=?=')
  assert.equal(seen.headers['accept'], 'application/json, text/event-stream')
})

test('a legacy session keeps its id to itself and ends with DELETE', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = reach(t, server.url)
  await call(rig, 'echo', { text: 'x' })
  const [id] = server.sessions
  const [seen] = server.of('tools/call')
  assert.equal(seen?.headers['mcp-session-id'], id)
  assert.equal(seen?.headers['mcp-protocol-version'], '2025-11-25')
  assert.equal(server.of('initialize')[0]?.headers['mcp-session-id'], undefined)
  assert.ok(!JSON.stringify(await call(rig, 'echo', { text: 'x' })).includes(String(id)))
  await rig.stop()
  assert.equal(server.seen.at(-1)?.verb, 'DELETE')
  assert.equal(server.sessions.size, 0)
})

for (const era of ['modern', 'legacy'] as const) {
  test(`progress and logs of a ${era} call come on its own stream as they are sent, then its answer`, async (t) => {
    const told: string[] = []
    const server = await httpServer(t, {
      era,
      script: onCall(({ seen, event, finish }) => {
        const token = (seen.body['params'] as { _meta: { progressToken: unknown } })._meta
          .progressToken
        const progress = (at: number, of: unknown = token): void =>
          event({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: of, progress: at },
          })
        progress(1)
        progress(1)
        progress(5, 'other')
        event({
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: { level: 'info', data: 1 },
        })
        // The answer comes only once the progress was heard: a door that buffered would never end.
        const timer = setInterval(() => {
          if (told.length < 2) return
          clearInterval(timer)
          progress(2)
          finish({ resultType: 'complete', content: [{ type: 'text', text: 'done' }] })
        }, 5)
        return true
      }),
    })
    const rig = reach(t, server.url)
    const attempt = await call(
      rig,
      'echo',
      {},
      {
        meta: json({ progressToken: 'mine' }),
        watch: {
          progress: (params) =>
            told.push(`${String(params['progressToken'])} ${String(params['progress'])}`),
          log: (params) => told.push(String(params['level'])),
        },
      },
    )
    assert.equal(textOf(attempt), 'done')
    assert.deepEqual(told, ['mine 1', 'info', 'mine 2'])
  })
}

test('a result passes with the text in which it came', async (t) => {
  const text =
    '{ "resultType":"complete","content":[],"structuredContent":{"n":12345678901234567890,"d":1.0} }'
  const server = await httpServer(t, {
    script: onCall(({ seen, reply }) => {
      reply.writeHead(200, { 'content-type': 'application/json; charset=utf-8' })
      reply.end(`{"jsonrpc":"2.0","id":${String(seen.body['id'])},"result":${text}}`)
      return true
    }),
  })
  const attempt = await call(reach(t, server.url), 'echo')
  assert.ok(attempt.kind === 'answered' && attempt.answer.kind === 'result')
  assert.equal(attempt.answer.text, text)
})

test('what a legacy server asks on the stream of a call is asked, and the answer goes to its session', async (t) => {
  const server = await httpServer(t, {
    era: 'legacy',
    script: onCall(({ event, finish }) => {
      event({ jsonrpc: '2.0', id: 'p', method: 'ping' })
      event({ jsonrpc: '2.0', id: 'x', method: 'tools/list' })
      event({
        jsonrpc: '2.0',
        id: 'q',
        method: 'elicitation/create',
        params: { message: 'sure?', requestedSchema: { type: 'object', properties: {} } },
      })
      void until(() => server.answers.has('q')).then(() =>
        finish({ content: [{ type: 'text', text: JSON.stringify(server.answers.get('q')) }] }),
      )
      return true
    }),
  })
  const rig = reach(t, server.url)
  const asking = await call(rig, 'put', {}, { capabilities: { elicitation: {} } })
  const [key = ''] = Object.keys(asksOf(asking).asks.asks)
  const attempt = await answer(rig, asking, { [key]: { action: 'accept', content: {} } })
  assert.deepEqual(JSON.parse(textOf(attempt)), {
    jsonrpc: '2.0',
    id: 'q',
    result: { action: 'accept', content: {} },
  })
  await until(() => server.answers.has('p') && server.answers.has('x'))
  assert.deepEqual(server.answers.get('p')?.['result'], {})
  assert.equal((server.answers.get('x')?.['error'] as { code: number }).code, -32601)
  const posted = server.seen.filter(
    ({ body }) => body['id'] === 'q' && body['method'] === undefined,
  )
  assert.ok(posted.every(({ headers }) => headers['mcp-session-id'] !== undefined))
})

test('cancelling a modern call closes its stream; what it did is then unknown for a write', async (t) => {
  let closed = false
  const server = await httpServer(t, {
    script: onCall(({ reply, stream }) => {
      stream()
      reply.once('close', () => {
        closed = true
      })
      return true
    }),
  })
  const rig = reach(t, server.url)
  const stop = new AbortController()
  const running = call(rig, 'put', {}, { signal: stop.signal })
  await until(() => server.of('tools/call').length === 1)
  stop.abort()
  assert.equal((await running).kind, 'unknown')
  await until(() => closed)
  assert.equal(server.of('notifications/cancelled').length, 0)
})

test('cancelling a legacy call is told on its session and its answer still counts', async (t) => {
  const server = await httpServer(t, {
    era: 'legacy',
    script: onCall(({ stream, finish }) => {
      stream()
      void until(() => server.of('notifications/cancelled').length === 1).then(() =>
        finish({ content: [{ type: 'text', text: 'too late' }] }),
      )
      return true
    }),
  })
  const rig = reach(t, server.url)
  const stop = new AbortController()
  const running = call(rig, 'put', {}, { signal: stop.signal })
  await until(() => server.of('tools/call').length === 1)
  stop.abort()
  assert.equal(textOf(await running), 'too late')
  const [told] = server.of('notifications/cancelled')
  const sent = server.of('tools/call')[0]?.body['id']
  assert.equal((told?.body['params'] as { requestId: unknown }).requestId, sent)
})

test('a call past its deadline is given up, and a modern stream is closed', async (t) => {
  let closed = 0
  const server = await httpServer(t, {
    script: onCall(({ reply, stream }) => {
      stream()
      reply.once('close', () => closed++)
      return true
    }),
  })
  const rig = reach(t, server.url, { callMs: 200, callMaxMs: 200 })
  const attempt = await call(rig, 'put')
  assert.ok(attempt.kind === 'unknown' && attempt.code === 'timeout', JSON.stringify(attempt))
  await until(() => closed === 1)
})

test('a call to a server that is not there is unsent, and so is one without TLS', async (t) => {
  const server = await httpServer(t)
  const rig = reach(t, server.url)
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  await server.close()
  // The kept connection is closed by now, but its end has to be read first.
  await new Promise((resolve) => setTimeout(resolve, 50))
  const attempt = await call(rig, 'put')
  assert.ok(attempt.kind === 'unsent' && attempt.code === 'upstream_down', JSON.stringify(attempt))
  assert.match(rig.explain('s') ?? '', /refuses connections/)
  await server.listen()
  await until(() => rig.explain('s') === null)
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')

  const tcp = createTcp((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'))
  await new Promise<void>((resolve) => tcp.listen(0, '127.0.0.1', resolve))
  t.after(() => tcp.close())
  const url = `https://127.0.0.1:${(tcp.address() as AddressInfo).port}/`
  const insecure = reach(t, url)
  assert.equal((await call(insecure, 'put')).kind, 'unsent')
  await until(() => insecure.said.length > 0)
})

test('a list that met a closed connection is asked for again; a call is not', async (t) => {
  let cut = ''
  const server = await httpServer(t, {
    script({ seen, reply }) {
      if (cut === '' || seen.body['method'] !== cut) return false
      cut = ''
      reply.socket?.destroy()
      return true
    },
  })
  const rig = reach(t, server.url)
  await rig.hello('s')
  cut = 'tools/list'
  assert.equal((await rig.list('s', 'tools')).items.length, 3)
  assert.equal(server.of('tools/list').length, 2)
  cut = 'tools/call'
  const attempt = await call(rig, 'put')
  assert.equal(attempt.kind, 'unknown')
  assert.equal(server.of('tools/call').length, 1)
})
