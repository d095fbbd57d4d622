// What a server answers to the probe decides its era, whatever the code; once, and again after it changed.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, type Script, type Turn } from '../servers/http-scripted.ts'
import { startFar, succeeds } from './far.ts'
import { startGate } from './harness.ts'
import { SIDES, refusalCode, textOf } from './wire.ts'

const onProbe =
  (act: (turn: Turn) => boolean | void): Script =>
  (turn) =>
    turn.seen.body['method'] === 'server/discover' ? act(turn) !== false : false

/** Lets only the first probe be answered so. */
const once = (act: (turn: Turn) => void): ((turn: Turn) => boolean) => {
  let done = false
  return (turn) => {
    if (done) return false
    done = true
    act(turn)
    return true
  }
}

type Case = readonly [string, 'modern' | 'legacy', (turn: Turn) => boolean | void]
/** Anew for each test: some do it only once. */
const cases = (): readonly Case[] => [
  ['-32601', 'legacy', (turn) => turn.error(404, -32601, 'no')],
  ['-32602', 'legacy', (turn) => turn.error(400, -32602, 'no')],
  ['-32000', 'legacy', (turn) => turn.error(400, -32000, 'no')],
  [
    'plain text',
    'legacy',
    ({ reply }) => void reply.writeHead(200, { 'content-type': 'text/plain' }).end('hi'),
  ],
  [
    '404 with a page',
    'legacy',
    ({ reply }) => void reply.writeHead(404, { 'content-type': 'text/html' }).end('<html>'),
  ],
  [
    'a result without resultType',
    'modern',
    (turn) => turn.result({ supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }),
  ],
  ['one 500', 'modern', once(({ reply }) => reply.writeHead(500).end())],
  [
    '-32022 once',
    'modern',
    once((turn) => turn.error(400, -32022, 'no', { supported: ['2026-07-28'] })),
  ],
]

for (const [front, era] of SIDES) {
  test(`${front}: a ${era} client reaches servers that answer the probe in eight ways, each probed for itself`, async (t) => {
    const all = cases()
    const servers = await Promise.all(
      all.map(([, speaks, act]) => httpServer(t, { era: speaks, script: onProbe(act) })),
    )
    const urls = Object.fromEntries(servers.map(({ url }, at) => [`u${at}`, url]))
    const gate = await startFar(t, urls, { front, era })
    for (const [at, [name, speaks]] of all.entries()) {
      const server = servers[at]
      assert.ok(server !== undefined)
      for (let call = 0; call < 21; call++) {
        assert.equal(textOf(await gate.call(`u${at}__echo`, { text: name })), name)
      }
      const probes = server.of('server/discover').length
      assert.equal(probes, name.includes('once') || name.includes('one') ? 2 : 1, name)
      assert.equal(server.of('initialize').length > 0, speaks === 'legacy', name)
    }
  })

  test(`${front}: a ${era} client reaches a server that came back in another era`, async (t) => {
    const server = await httpServer(t, { era: 'legacy' })
    const gate = await startFar(t, { up: server.url }, { front, era })
    assert.equal(textOf(await gate.call('echo', { text: 'a' })), 'a')
    await server.close()
    server.era = 'modern'
    await server.listen()
    assert.equal(await succeeds(gate, 'get', 60_000), 'get')
    assert.equal(server.of('tools/call').at(-1)?.headers['mcp-protocol-version'], '2026-07-28')
  })
}

/** How long the probe of a server that says nothing may take. */
const PROBE_MS = 1_500

for (const [front, era] of SIDES) {
  test(`${front}: a ${era} client reaches servers over stdio that meet the probe with silence, nonsense and an end`, async (t) => {
    const kinds = ['silent', 'garbage', 'exits', 'picky'] as const
    const upstreams = Object.fromEntries(
      kinds.map((kind) => {
        const probe = kind === 'silent' ? { probe: `${PROBE_MS}ms` } : {}
        return [kind, { flags: ['--era', kind], more: { share: true, ...probe } }] as const
      }),
    )
    const gate = await startGate(t, { front, era, servers: 'modern', upstreams })
    for (const kind of kinds) {
      for (let call = 0; call < 5; call++) {
        assert.equal(await succeeds(gate, `${kind}__recall`, 60_000), 'nothing')
      }
      const trace = gate.trace(kind)
      const probed = trace.filter(({ method }) => method === 'server/discover')
      assert.equal(probed.length, 1, kind)
      assert.ok(
        trace.some(({ method }) => method === 'initialize'),
        kind,
      )
    }
    // A server that names only revisions that nobody here speaks is told so, and never initialised.
    const odd = { future: { flags: ['--era', 'future'], more: { share: true } } }
    const other = await startGate(t, { front, era, servers: 'modern', upstreams: odd })
    const refused = await other.call('echo', {})
    assert.equal(refusalCode(refused), 'upstream_down', JSON.stringify(refused))
    assert.ok(!other.trace('future').some(({ method }) => method === 'initialize'))
  })
}
