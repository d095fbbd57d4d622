import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, TOOLS } from '../../servers/http-scripted.ts'
import { far, reach } from './rig.ts'
import { call, start, textOf, until } from '../upstream/rig.ts'

test('a lost session is made anew once for all who met that, and each call is sent once more', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = reach(t, server.url)
  assert.equal(textOf(await call(rig, 'get')), 'get')
  server.sessions.clear()
  assert.equal(textOf(await call(rig, 'get')), 'get')
  assert.equal(textOf(await call(rig, 'put')), 'put')
  assert.equal(server.of('initialize').length, 2)
  server.sessions.clear()
  const before = server.of('tools/call').length
  const all = await Promise.all(Array.from({ length: 10 }, () => call(rig, 'get')))
  assert.deepEqual(
    all.map(textOf),
    Array.from({ length: 10 }, () => 'get'),
  )
  assert.equal(server.of('initialize').length, 3)
  assert.ok(server.of('tools/call').length - before <= 20)
  assert.ok(server.of('initialize').every(({ headers }) => headers['mcp-session-id'] === undefined))
  assert.deepEqual(rig.said, [])
})

test('a server that says 400 for a session that it does not know is understood too', async (t) => {
  let forgets = false
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, json }) {
      if (!forgets || seen.body['method'] !== 'tools/call') return false
      forgets = false
      const error = { code: -32000, message: 'Bad Request: No valid session ID provided' }
      json(400, { jsonrpc: '2.0', id: null, error })
      return true
    },
  })
  const rig = reach(t, server.url)
  await rig.hello('s')
  forgets = true
  assert.equal(textOf(await call(rig, 'put')), 'put')
  assert.equal(server.of('initialize').length, 2)
})

test('a call that met two lost sessions is unsent', async (t) => {
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, json }) {
      if (seen.body['method'] !== 'tools/call') return false
      json(404, { jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } })
      return true
    },
  })
  const attempt = await call(reach(t, server.url), 'put')
  assert.ok(attempt.kind === 'unsent' && attempt.code === 'upstream_down', JSON.stringify(attempt))
  assert.equal(server.of('tools/call').length, 2)
})

test('a session that the stream finds lost is made anew before a call needs it', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = reach(t, server.url)
  await rig.hello('s')
  await until(() => server.streams.size === 1)
  server.sessions.clear()
  for (const one of server.streams) one.end()
  await until(() => server.of('initialize').length === 2)
  assert.equal(textOf(await call(rig, 'put')), 'put')
  assert.equal(server.of('tools/call').length, 1)
})

test('what a legacy server announces on its own stream is heard, also after the stream broke', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = reach(t, server.url)
  const changes: string[] = []
  rig.onChange((_upstream, kind) => changes.push(kind))
  assert.equal((await rig.list('s', 'tools')).items.length, 3)
  await until(() => server.streams.size === 1)
  await until(() => changes.filter((kind) => kind === 'tools').length === 1)
  server.tools = [...TOOLS, { name: 'new', inputSchema: { type: 'object' } }]
  server.announce({ method: 'notifications/tools/list_changed' }, 'event-7')
  await until(() => changes.filter((kind) => kind === 'tools').length === 2)
  assert.equal((await rig.list('s', 'tools')).items.length, 4)

  for (const one of server.streams) one.destroy()
  await until(() => server.seen.filter(({ verb }) => verb === 'GET').length === 2)
  const again = server.seen.filter(({ verb }) => verb === 'GET')[1]
  assert.equal(again?.headers['last-event-id'], 'event-7')
  await until(() => server.streams.size === 1)
  server.announce({ method: 'notifications/tools/list_changed' })
  await until(() => changes.filter((kind) => kind === 'tools').length === 3)
})

test('a question that belongs to no call is refused, and a ping is answered', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = reach(t, server.url)
  await rig.hello('s')
  await until(() => server.streams.size === 1)
  server.announce({ id: 1, method: 'roots/list' })
  server.announce({ id: 'p', method: 'ping' })
  await until(() => server.answers.has(1) && server.answers.has('p'))
  assert.equal((server.answers.get(1)?.['error'] as { code: number }).code, -32601)
  assert.deepEqual(server.answers.get('p')?.['result'], {})
})

test('a server without a stream of its own is not asked for it again', async (t) => {
  const server = await httpServer(t, { era: 'legacy', get: false })
  const rig = reach(t, server.url)
  for (let at = 0; at < 5; at++) await call(rig, 'get')
  assert.equal(server.seen.filter(({ verb }) => verb === 'GET').length, 1)
})

test('a broken stream of a legacy call is taken up by its last event, and the call is not sent again', async (t) => {
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, reply, request, event }) {
      if (seen.body['method'] === 'tools/call') {
        reply.writeHead(200, { 'content-type': 'text/event-stream' })
        reply.write('retry: 20\nid: call-1\ndata:\n\n')
        // Once it is ended politely, once it is cut.
        setTimeout(() => (server.of('tools/call').length === 1 ? reply.end() : reply.destroy()), 10)
        return true
      }
      if (request.method !== 'GET' || seen.headers['last-event-id'] === undefined) return false
      const id = server.of('tools/call').at(-1)?.body['id']
      event({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'resumed' }] } })
      reply.end()
      return true
    },
  })
  const rig = reach(t, server.url)
  assert.equal(textOf(await call(rig, 'put')), 'resumed')
  assert.equal(textOf(await call(rig, 'put')), 'resumed')
  assert.equal(server.of('tools/call').length, 2)
  const resumed = server.seen.filter(({ headers }) => headers['last-event-id'] !== undefined)
  assert.deepEqual(
    resumed.map(({ headers }) => headers['last-event-id']),
    ['call-1', 'call-1'],
  )
  assert.ok(resumed.every(({ headers }) => headers['mcp-session-id'] !== undefined))
})

test('a stream that cannot be taken up ends the call as unknown', async (t) => {
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, reply, json, request }) {
      if (seen.body['method'] === 'tools/call') {
        reply.writeHead(200, { 'content-type': 'text/event-stream' })
        reply.end('retry: 5\nid: call-1\ndata:\n\n')
        return true
      }
      if (request.method !== 'GET') return false
      json(405, {})
      return true
    },
  })
  const attempt = await call(reach(t, server.url), 'put')
  assert.equal(attempt.kind, 'unknown')
  assert.equal(server.of('tools/call').length, 1)
})

test('a modern stream that breaks is never taken up, whatever ids it had', async (t) => {
  const server = await httpServer(t, {
    script({ seen, reply }) {
      if (seen.body['method'] !== 'tools/call') return false
      reply.writeHead(200, { 'content-type': 'text/event-stream' })
      reply.end('retry: 5\nid: call-1\ndata:\n\n')
      return true
    },
  })
  assert.equal((await call(reach(t, server.url), 'put')).kind, 'unknown')
  assert.equal(server.seen.filter(({ verb }) => verb === 'GET').length, 0)
})

test('two clients of a legacy server have two sessions, which say what each can be asked', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = start(t, [far(server.url)], { principals: 'many' })
  const capabilities = { elicitation: {} }
  await call(rig, 'get', {}, { client: 'ana', capabilities })
  await call(rig, 'get', {}, { client: 'rui' })
  const used = new Set(server.of('tools/call').map(({ headers }) => headers['mcp-session-id']))
  assert.equal(used.size, 2)
  const declared = server
    .of('initialize')
    .map(({ body }) => JSON.stringify((body['params'] as { capabilities: unknown }).capabilities))
  assert.ok(declared.includes('{"elicitation":{}}') && declared.includes('{}'))
})

test('several messages in one array are several messages, in the revision that has them only', async (t) => {
  let version = '2025-03-26'
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, json }) {
      const { id, method } = seen.body
      if (method === 'initialize') {
        const result = { protocolVersion: version, capabilities: { tools: {} }, serverInfo: {} }
        json(200, { jsonrpc: '2.0', id, result })
        return true
      }
      if (method !== 'tools/call') return false
      const log = { jsonrpc: '2.0', method: 'notifications/message', params: {} }
      json(200, [log, { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'b' }] } }])
      return true
    },
  })
  assert.equal(textOf(await call(reach(t, server.url), 'put')), 'b')
  version = '2025-06-18'
  assert.equal((await call(reach(t, server.url), 'put')).kind, 'unknown')
})

test('an error to the very call is its answer whatever the status, and is not sent again', async (t) => {
  for (const status of [404, 400, 500]) {
    const server = await httpServer(t, {
      era: 'legacy',
      script({ seen, error }) {
        if (seen.body['method'] !== 'tools/call') return false
        error(status, -32002, 'the note was written, its folder was not found')
        return true
      },
    })
    const attempt = await call(reach(t, server.url), 'put')
    assert.equal(server.of('tools/call').length, 1, `${status}`)
    assert.ok(attempt.kind === 'answered' && attempt.answer.kind === 'error', `${status}`)
  }
})

test('a lost session may be told under the id of the call', async (t) => {
  let lost = true
  const server = await httpServer(t, {
    era: 'legacy',
    script({ seen, error }) {
      if (seen.body['method'] !== 'tools/call' || !lost) return false
      lost = false
      error(404, -32001, 'Session not found')
      return true
    },
  })
  assert.equal(textOf(await call(reach(t, server.url), 'put')), 'put')
  assert.equal(server.of('initialize').length, 2)
})
