// The hardest edge cases of the protocol in the headers of HTTP, by their numbers, and that none is left out.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'

import { startFar } from '../cases/far.ts'
import { startGate } from '../cases/harness.ts'
import { headerText, type Headers } from '../cases/http-wire.ts'
import { type Bag, META26, type Message, request, textOf } from '../cases/wire.ts'
import { httpServer } from '../servers/http-scripted.ts'

const VERSION = 'io.modelcontextprotocol/protocolVersion'
const MISMATCH = -32020

const call = (name: string, args: Bag = {}): string =>
  JSON.stringify(request('modern', 1, 'tools/call', { name, arguments: args }))
const code = ({ text }: { readonly text: string }): number | undefined =>
  (JSON.parse(text) as Message).error?.code

test('edge 1: a version in the header other than that of the body is refused, though both are served', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern' })
  const sent = async (header: string, version: string): Promise<readonly unknown[]> => {
    const params = { name: 'echo', arguments: {}, _meta: { ...META26, [VERSION]: version } }
    const answer = await gate.http.exchange({
      headers: { 'mcp-protocol-version': header },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    })
    return [answer.status, code(answer)]
  }
  assert.deepEqual(await sent('2025-11-25', '2026-07-28'), [400, MISMATCH])
  assert.deepEqual(await sent('2026-07-28', '2025-11-25'), [400, MISMATCH])
  assert.deepEqual(await sent('2026-07-28', '2026-07-28'), [200, undefined])
})

test('edge 2: an encoded name is decoded before it is compared, and what looks encoded must be encoded', async (t) => {
  const odd = '=?base64?ZWNobw==?='
  const server = await httpServer(t)
  server.tools = [{ name: odd, inputSchema: { type: 'object' } }, ...server.tools]
  const setup = { front: 'http', era: 'modern', allow: ['up/echo', `up/${odd}`] } as const
  const gate = await startFar(t, { up: server.url }, setup)
  const named = async (name: string, header: string): Promise<number> =>
    (await gate.http.exchange({ headers: { 'mcp-name': header }, body: call(name) })).status
  // To whoever reads the header this is `echo`: it may not stand for the tool with the odd name.
  assert.equal(await named(odd, odd), 400)
  assert.equal(await named('echo', odd), 200)
  assert.equal(await named(odd, headerText(odd)), 200)
  assert.equal(await named('echo', headerText(odd)), 400)
  assert.deepEqual(
    server.of('tools/call').map(({ headers }) => headers['mcp-name']),
    ['echo', headerText(odd)],
  )
})

const DEPLOY: Bag = {
  name: 'deploy',
  inputSchema: {
    type: 'object',
    properties: {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      count: { type: 'integer', 'x-mcp-header': 'Count' },
    },
  },
}
const far = { front: 'http', era: 'modern', allow: ['up/deploy'] } as const

test('edge 3: what a tool mirrors must stand in its header when it is given, and only then', async (t) => {
  const server = await httpServer(t)
  server.tools = [DEPLOY]
  const gate = await startFar(t, { up: server.url }, far)
  const sent = async (args: Bag, headers: Headers): Promise<readonly unknown[]> => {
    const answer = await gate.http.exchange({ headers, body: call('deploy', args) })
    return [answer.status, code(answer)]
  }
  const [bad, good] = [
    [400, MISMATCH],
    [200, undefined],
  ]
  assert.deepEqual(await sent({ region: 'eu' }, {}), bad)
  assert.deepEqual(await sent({ region: 'eu' }, { 'mcp-param-region': 'us' }), bad)
  assert.deepEqual(await sent({ region: null }, { 'mcp-param-region': 'eu' }), bad)
  assert.deepEqual(await sent({}, { 'mcp-param-region': 'eu' }), bad)
  assert.equal(server.of('tools/call').length, 0)
  assert.deepEqual(await sent({ region: 'eu' }, { 'mcp-param-region': 'eu' }), good)
  assert.deepEqual(
    await sent({ region: 'Évora' }, { 'mcp-param-region': headerText('Évora') }),
    good,
  )
  assert.deepEqual(await sent({ count: 7 }, { 'mcp-param-count': '7' }), good)
  assert.deepEqual(await sent({ region: null }, {}), good)
  assert.deepEqual(await sent({}, {}), good)
})

test('edge 4: an argument that policy sets is mirrored as it is sent, not as the client has it', async (t) => {
  const server = await httpServer(t)
  server.tools = [DEPLOY]
  const profile = { set: { 'up/deploy': { region: 'eu' } } }
  const gate = await startFar(t, { up: server.url }, { ...far, profile })
  const headers = { 'mcp-param-count': '1' }
  const answer = await gate.http.exchange({ headers, body: call('deploy', { count: 1 }) })
  assert.equal(answer.status, 200, answer.text)
  const [sent] = server.of('tools/call')
  assert.deepEqual((sent?.body['params'] as Bag)['arguments'], { count: 1, region: 'eu' })
  assert.equal(sent?.headers['mcp-param-region'], 'eu')
  assert.equal(sent?.headers['mcp-param-count'], '1')
})

test('edge 5: a tool whose mirrors nobody can send is left out, and the others stay', async (t) => {
  const mirrored = (name: string, inputSchema: Bag): Bag => ({
    name,
    inputSchema: { type: 'object', ...inputSchema },
  })
  const one = { type: 'string', 'x-mcp-header': 'One' }
  const bad = [
    mirrored('number', { properties: { a: { ...one, type: 'number' } } }),
    mirrored('items', { properties: { a: { type: 'array', items: one } } }),
    mirrored('choice', { properties: { a: { oneOf: [one] } } }),
    mirrored('elsewhere', { properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: one } }),
    mirrored('twice', { properties: { a: one, b: { ...one, 'x-mcp-header': 'ONE' } } }),
    mirrored('unnamed', { properties: { a: { ...one, 'x-mcp-header': 'a b' } } }),
  ]
  const server = await httpServer(t)
  server.tools = [...bad, DEPLOY]
  const allow = [...bad, DEPLOY].map(({ name }) => `up/${String(name)}`)
  const gate = await startFar(t, { up: server.url }, { ...far, allow })
  const listed = await gate.request('tools/list')
  assert.deepEqual(
    listed.result?.tools?.map(({ name }) => name),
    ['deploy'],
  )
  for (const { name } of bad) {
    assert.equal((await gate.call(String(name))).error?.code, -32602, String(name))
    assert.ok(
      gate.errors().includes(`its tool ${String(name)} `),
      `nobody hears of ${String(name)}`,
    )
  }
  assert.equal(textOf(await gate.call('deploy')), 'deploy')
})

test('every edge case from 1 to 30 has a test that bears its number', () => {
  const folder = new URL('./', import.meta.url)
  const named = new Set<number>()
  for (const file of readdirSync(folder).filter((one) => /^edges-.*\.test\.ts$/.test(one))) {
    const text = readFileSync(new URL(file, folder), 'utf8')
    for (const [, number] of text.matchAll(/^test\(\s*['"`]edge (\d+): /gm))
      named.add(Number(number))
  }
  const all = Array.from({ length: 30 }, (_, n) => n + 1)
  assert.deepEqual(
    all.filter((one) => !named.has(one)),
    [],
  )
})
