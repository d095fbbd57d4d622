// The tap: a gate's place in an SDK server, before everything that the SDK itself does with a request.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

import { tapOf } from '../../src/sdk/tap.ts'
import { peerOf } from './wire.ts'

const register = (server: McpServer, ran: string[]): void => {
  server.registerTool('add', { inputSchema: z.object({ n: z.number() }) }, ({ n }) => {
    ran.push(`add ${n}`)
    return { content: [{ type: 'text', text: String(n + 1) }] }
  })
}

const made = (options?: ConstructorParameters<typeof McpServer>[1]): McpServer =>
  new McpServer({ name: 'tapped', version: '1' }, options)

for (const era of ['modern', 'legacy'] as const) {
  test(`${era}: a tapped server answers as an untapped one does`, async () => {
    const plain = await peerOf(() => {
      const server = made()
      register(server, [])
      return server
    }, era)
    const tapped = await peerOf(() => {
      const server = made()
      tapOf(server)
      register(server, [])
      return server
    }, era)
    const calls: readonly [string, Record<string, unknown>?][] = [
      ['tools/list'],
      ['tools/call', { name: 'add', arguments: { n: 1 } }],
      ['tools/call', { name: 'add', arguments: { n: 'x' } }],
      ['tools/call', { name: 'nothing', arguments: {} }],
      ['tools/call', { arguments: {} }],
      ['tools/call', { name: 'add', arguments: [] }],
      ['prompts/list'],
      ['resources/read', { uri: 'x:y' }],
      ['no/such/method'],
    ]
    for (const [method, params] of calls) {
      const [a, b] = await Promise.all([plain.ask(method, params), tapped.ask(method, params)])
      assert.deepEqual(b, a, `${method} ${JSON.stringify(params)}`)
    }
    await plain.close()
    await tapped.close()
  })
}

test('what stands before a method sees params that the SDK would refuse', async () => {
  const seen: unknown[] = []
  const ran: string[] = []
  const peer = await peerOf(() => {
    const server = made()
    register(server, ran)
    tapOf(server).before('tools/call', (request) => {
      seen.push(request.params?.['arguments'])
      return Promise.resolve({ content: [] })
    })
    return server
  })
  const answer = await peer.ask('tools/call', { name: 7, arguments: [null] })
  assert.equal(answer.error, undefined)
  assert.deepEqual(seen, [[null]])
  assert.deepEqual(ran, [])
  await peer.close()
})

test('handlers registered before and after the tap are both behind it', async () => {
  const before = made({ capabilities: { tools: {} } })
  const early = tapOf(before)
  assert.notEqual(early.own('tools/call'), undefined)
  const later = made()
  const late = tapOf(later)
  assert.equal(late.own('tools/call'), undefined)
  register(later, [])
  assert.notEqual(late.own('tools/call'), undefined)
})

test('an own fallback of the server still gets the methods that nobody gates', async () => {
  const peer = await peerOf(() => {
    const server = made()
    tapOf(server)
    server.server.fallbackRequestHandler = (request) =>
      Promise.resolve({ content: [], was: request.method })
    register(server, [])
    return server
  })
  assert.equal((await peer.ask('acme/thing')).result?.['was'], 'acme/thing')
  assert.equal(
    (await peer.ask('tools/call', { name: 'add', arguments: { n: 1 } })).error,
    undefined,
  )
  await peer.close()
})

test('a second registration of a tapped method is refused as the SDK refuses it', () => {
  const server = made({ capabilities: { tools: {} } })
  tapOf(server)
  assert.throws(() => server.server.assertCanSetRequestHandler('tools/call'), /already exists/)
})

test('the version of the tools moves with every registration and update', () => {
  const server = made()
  const tap = tapOf(server)
  const versions = [tap.version()]
  const tool = server.registerTool('one', {}, () => ({ content: [] }))
  versions.push(tap.version())
  tool.update({ description: 'other' })
  versions.push(tap.version())
  tool.disable()
  versions.push(tap.version())
  assert.equal(new Set(versions).size, 4)
  assert.equal(tapOf(new McpServer({ name: 'raw', version: '1' }).server).version(), null)
})
