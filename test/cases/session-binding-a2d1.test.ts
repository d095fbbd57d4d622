// A session is good for its own client at its own endpoint, and what a server keeps is kept apart by client.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, greet, startGate } from './harness.ts'
import { admitted } from './people.ts'
import { type Bag, type Era, ERAS, type Message, request, textOf } from './wire.ts'

const TWO = { x: {}, y: {} }
const STEP: Bag = { name: 'x__echo', arguments: { text: 't' } }

/** The status of a request of this kind in the session of another. */
async function tried(
  gate: Gate,
  at: { readonly session: string; readonly path: string; readonly as?: object },
): Promise<readonly number[]> {
  const headers = { 'mcp-session-id': at.session, ...at.as }
  const client = gate.client({ era: 'legacy', path: at.path })
  const post = (method: string, params: Bag): Promise<{ readonly status: number }> =>
    client.exchange({ headers, body: JSON.stringify(request('legacy', 1, method, params)) })
  const accept = 'text/event-stream'
  return [
    (await post('tools/list', {})).status,
    (await post('tools/call', STEP)).status,
    (await post('tools/call', { ...STEP, name: 'y__echo' })).status,
    (await client.exchange({ verb: 'GET', headers: { ...headers, accept } })).status,
    (await client.exchange({ verb: 'DELETE', headers })).status,
  ]
}

const reached = (gate: Gate, upstream: string): number =>
  gate.trace(upstream).filter(({ method }) => method === 'tools/call').length

test('a session of one endpoint does not exist at another, nor for another client', async (t) => {
  const gate = await startGate(t, {
    front: 'http',
    era: 'legacy',
    upstreams: TWO,
    handshake: false,
    config: {
      profiles: {
        agent: { allow: ['x/echo', 'y/echo'] },
        shut: { allow: [] },
      },
      endpoints: { '/a': { profiles: ['agent', 'shut'] }, '/b': { profiles: ['agent'] } },
    },
  })
  const headers = await admitted(gate, { ana: 'agent', rui: 'agent', eva: 'shut' }, '/b')
  const ana = gate.client({ era: 'legacy', path: '/a', headers: headers['ana'] ?? {} })
  await greet(ana)
  const session = ana.session() ?? assert.fail('there is no session')
  const gone = [404, 404, 404, 404, 404]
  assert.deepEqual(await tried(gate, { session, path: '/b', as: headers['ana'] ?? {} }), gone)
  assert.deepEqual(await tried(gate, { session, path: '/a', as: headers['rui'] ?? {} }), gone)
  assert.deepEqual(await tried(gate, { session, path: '/a', as: headers['eva'] ?? {} }), gone)
  // Whoever sends no token is a client of its own.
  assert.deepEqual(await tried(gate, { session, path: '/a' }), gone)
  const foreign = await tried(gate, { session, path: '/b', as: headers['eva'] ?? {} })
  assert.deepEqual(foreign, [403, 403, 403, 403, 403])
  assert.deepEqual([reached(gate, 'x'), reached(gate, 'y')], [0, 0])
  // It is still there for its own.
  assert.equal(textOf(await ana.call('x__echo', { text: 'mine' })), 'mine')
})

/** Calls a tool as a client of this era. */
async function asker(
  gate: Gate,
  era: Era,
  headers: object | undefined,
): Promise<(name: string, args?: Bag) => Promise<Message>> {
  const client = gate.client({ era, headers: { ...headers } })
  await greet(client)
  return (name, args) => client.call(name, args)
}

for (const era of ERAS) {
  for (const share of [false, true]) {
    const what = share ? 'is shared where the file says so' : 'is not shared'
    test(`${era}: what a server with sessions keeps of one client ${what}`, async (t) => {
      const gate = await startGate(t, {
        front: 'http',
        era,
        servers: 'legacy',
        upstreams: { up: { more: { share } } },
      })
      const headers = await admitted(gate, { ana: 'agent', rui: 'agent' })
      const ana = await asker(gate, era, headers['ana'])
      const rui = await asker(gate, era, headers['rui'])
      assert.equal(textOf(await ana('remember', { value: 'of ana' })), 'remembered')
      assert.equal(textOf(await rui('recall')), share ? 'of ana' : 'nothing')
      assert.equal(textOf(await ana('recall')), 'of ana')
      const again = await asker(gate, era, headers['ana'])
      assert.equal(textOf(await again('recall')), 'of ana')
    })
  }
}
