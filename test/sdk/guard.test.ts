// The three layers of a gate in an SDK server: each holds with the other two gone.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

import { createGate, Fault } from '../../src/index.ts'
import { guard, guardCalls, guardHandlers, guardLists } from '../../src/sdk/guard.ts'
import { bench, type Bench, register, short, textOf, until } from './bench.ts'

const ERAS = ['modern', 'legacy'] as const

const names = async ({ peer }: Bench): Promise<unknown[]> => {
  const { result } = await peer.ask('tools/list')
  return (result?.tools ?? []).map((tool) => tool.name)
}

for (const era of ERAS) {
  test(`${era}: the list layer alone hides what may not be called, and stops nothing`, async () => {
    const place = await bench(guardLists, { era })
    assert.deepEqual(await names(place), ['write_note', 'read_ledger', 'slow'])
    await place.call('rm_rf', { path: '/x' })
    assert.deepEqual(place.ran, ['rm_rf /x'])
  })

  test(`${era}: the call layer alone refuses before any validation and any callback`, async () => {
    const place = await bench(guardCalls, { era })
    assert.ok((await names(place)).includes('rm_rf'))
    for (const args of [{ path: '/x' }, { path: 5 }, {}]) {
      const { error } = await place.call('rm_rf', args)
      assert.equal(error?.code, -32602)
      assert.equal(error?.message, 'tool denied: rm_rf')
      assert.deepEqual(error?.data, { 'eclusa/refusal': { code: 'tool_denied' } })
    }
    assert.deepEqual(place.ran, [])
    assert.deepEqual(
      short(place.records()),
      Array.from({ length: 3 }, () => 'call rm_rf deny not_executed'),
    )
  })

  test(`${era}: the callback layer alone keeps the callback from running`, async () => {
    const place = await bench(guardHandlers, { era })
    assert.ok((await names(place)).includes('rm_rf'))
    const denied = await place.call('rm_rf', { path: '/x' })
    assert.equal(denied.result?.isError, true)
    assert.equal(textOf(denied), 'tool denied: rm_rf')
    const allowed = await place.call('write_note', { request_id: 'req-00000001', text: 'a' })
    assert.equal(textOf(allowed), 'wrote a')
    assert.deepEqual(place.ran, ['write_note a'])
    assert.deepEqual(short(place.records()), [
      'call rm_rf deny not_executed',
      'intent write_note allow pending',
      'outcome write_note allow committed',
    ])
  })

  test(`${era}: with all three a call is decided and recorded once`, async () => {
    const place = await bench(guard, { era })
    assert.deepEqual(await names(place), ['write_note', 'read_ledger', 'slow'])
    const note = { request_id: 'req-00000001', text: 'a' }
    const first = await place.call('write_note', note)
    assert.equal(textOf(first), 'wrote a')
    assert.equal(first.result?.resultType, era === 'modern' ? 'complete' : undefined)
    assert.equal(textOf(await place.call('write_note', note)), 'wrote a')
    const conflict = await place.call('write_note', { ...note, text: 'b' })
    assert.equal(conflict.result?.isError, true)
    assert.deepEqual(conflict.result?.['_meta'], {
      ...(era === 'modern' ? conflict.result?.['_meta'] : {}),
      'eclusa/refusal': { code: 'key_conflict' },
    })
    await place.call('read_ledger', {})
    assert.deepEqual(place.ran, ['write_note a', 'read_ledger'])
    assert.deepEqual(short(place.records()), [
      'intent write_note allow pending',
      'outcome write_note allow committed',
      'call write_note allow replay',
      'call write_note deny not_executed',
      'call read_ledger allow observed',
    ])
  })
}

test('a hidden tool and an unknown one are refused in the same words and recorded alike', async () => {
  const place = await bench(guard)
  const [hidden, unknown] = [await place.call('rm_rf', {}), await place.call('nothing', {})]
  assert.deepEqual(hidden.error?.data, unknown.error?.data)
  assert.equal(unknown.error?.message, 'tool denied: nothing')
  assert.equal(place.records().length, 2)
})

test('arguments that break a rule are refused before the schema of the tool sees them', async () => {
  const place = await bench(guard)
  const { error } = await place.call('write_note', { request_id: 'short', text: 1 })
  assert.equal(error?.message, 'arguments denied: write_note')
  assert.deepEqual(place.ran, [])
})

test('arguments that pass the gate and break the schema are a recorded failure', async () => {
  const place = await bench(guard, {
    options: { policy: { text: '{"version":1,"allow":["write_note"]}' } },
  })
  const { result } = await place.call('write_note', { request_id: 'req-00000001', text: 5 })
  assert.equal(result?.isError, true)
  assert.deepEqual(place.ran, [])
  assert.deepEqual(short(place.records()), [
    'intent write_note allow pending',
    'outcome write_note allow failed',
  ])
})

test('params that say no name are refused and recorded as malformed', async () => {
  const place = await bench(guard)
  for (const params of [{ arguments: {} }, { name: 7 }, { name: 'write_note', arguments: [] }]) {
    const { error } = await place.peer.ask('tools/call', params)
    assert.equal(error?.code, -32602)
  }
  assert.deepEqual(
    place.records().map(({ kind, code }) => [kind, code]),
    Array.from({ length: 3 }, () => ['malformed', 'malformed']),
  )
})

test('a callback that reaches another callback takes its pass nowhere', async () => {
  let reach: ((args: { path: string }, ctx: never) => unknown) | undefined
  const place = await bench(
    (server, gate) => {
      guard(server, gate)
      const registered = server.registerTool(
        'inner',
        { inputSchema: z.object({ path: z.string() }) },
        ({ path }) => ({ content: [{ type: 'text', text: `inner ${path}` }] }),
      )
      reach = registered.handler as typeof reach
      registered.update({
        callback: () => ({ content: [{ type: 'text', text: 'updated' }] }),
      })
      server.registerTool('outer', { inputSchema: z.object({}) }, async (_args, ctx) => {
        const told = await reach?.({ path: '/x' }, ctx as never)
        return { content: [{ type: 'text', text: JSON.stringify(told) }] }
      })
    },
    { options: { policy: { text: '{"version":1,"allow":["outer"]}' }, tools: {} } },
  )
  assert.match(textOf(await place.call('outer', {})), /tool denied: inner/)
  assert.equal((await place.call('inner', { path: '/x' })).error?.message, 'tool denied: inner')
})

test('a callback put in later is behind the gate too', async () => {
  const place = await bench((server, gate) => {
    guardHandlers(server, gate)
    const registered = server.registerTool('late', {}, () => ({ content: [] }))
    registered.update({ callback: () => ({ content: [{ type: 'text', text: 'ran' }] }) })
  })
  const told = await place.call('late', {})
  assert.equal(textOf(told), 'tool denied: late')
})

test('resources and prompts that the profile does not name are neither listed nor read', async () => {
  const place = await bench((server, gate) => {
    guard(server, gate)
    server.registerResource('secret', 'mem://secret', {}, () => ({
      contents: [{ uri: 'mem://secret', text: 'secret' }],
    }))
    server.registerPrompt('ask', {}, () => ({ messages: [] }))
  })
  const { peer } = place
  assert.deepEqual((await peer.ask('resources/list')).result?.['resources'], [])
  assert.deepEqual((await peer.ask('prompts/list')).result?.['prompts'], [])
  const read = await peer.ask('resources/read', { uri: 'mem://secret' })
  assert.equal(read.error?.message, 'resource denied: mem://secret')
  const got = await peer.ask('prompts/get', { name: 'ask' })
  assert.equal(got.error?.message, 'prompt denied: ask')
})

test('a cancelled call is told to its callback, answered with nothing and recorded', async () => {
  const place = await bench(guard)
  void place.peer.ask('tools/call', { name: 'slow', arguments: {} })
  await until(() => place.ran.includes('slow'))
  const requestId = 1
  place.peer.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } })
  await until(() => place.records().some(({ kind }) => kind === 'outcome'))
  assert.deepEqual(place.ran, ['slow', 'slow ended'])
  await place.call('read_ledger', {})
  assert.deepEqual(
    place.peer.heard.map(({ id }) => id),
    [2],
  )
})

test('arguments that a profile sets are not advertised and reach the callback', async () => {
  const policy = `
version: 2
profiles:
  writer:
    allow: [notes/write_note]
    set: { notes/write_note: { text: pinned } }
`
  const place = await bench(guard, { options: { policy: { text: policy } } })
  const { result } = await place.peer.ask('tools/list')
  const [tool] = result?.tools ?? []
  assert.deepEqual(Object.keys(tool?.inputSchema.properties ?? {}), ['request_id'])
  const note = { request_id: 'req-00000001' }
  assert.equal(textOf(await place.call('write_note', note)), 'wrote pinned')
  const sent = await place.call('write_note', { ...note, text: 'mine' })
  assert.equal(sent.error?.message, 'arguments denied: write_note')
})

test('a gate that has stopped lets nothing through', async () => {
  const place = await bench(guard)
  await Promise.all([place.gate.stop(), place.gate.stop()])
  const { error } = await place.call('write_note', { request_id: 'req-00000001', text: 'a' })
  assert.equal(error?.code, -32603)
  assert.deepEqual(place.ran, [])
})

test('a guard that comes after a tool is refused', async () => {
  const { gate } = await bench(guard)
  const server = new McpServer({ name: 'late', version: '1' })
  register(server, [])
  assert.throws(
    () => guard(server, gate),
    (error) => error instanceof Fault && error.code === 'usage',
  )
})

test('a policy with a fault opens no gate and is told with file, line and column', async () => {
  const options = {
    policy: { text: '{"version":1,\n"alow":[]}' },
    tools: {},
    state: '/nonexistent/x',
  }
  await assert.rejects(createGate(options), (error) => {
    assert.ok(error instanceof Fault)
    assert.equal(error.code, 'config_invalid')
    assert.match(error.message, /policy:2:\d+/)
    return true
  })
})
