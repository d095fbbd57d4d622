// One unusable schema affects one tool only, and references outside a schema are never fetched.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'

import { roomy } from '../pace.ts'
import { type Gate, says, startGate } from './harness.ts'
import { assertDenied, ran, serving } from './menu.ts'
import { type Bag, SIDES, refusalCode } from './wire.ts'

/** Ceiling of one list or check; what is measured also waits for a busy machine. */
const MAX_MS = roomy(1_000)

const nested = (levels: number): Bag =>
  levels === 0 ? { required: ['a'] } : { allOf: [nested(levels - 1)] }
const object = (properties: Bag, more: Bag = {}): Bag => ({ type: 'object', properties, ...more })
const ID = 'https://schemas.example/one'

const schemas = (port: number): readonly (readonly [string, unknown])[] => [
  ['good1', object({ a: { type: 'string' } })],
  ['dangling', object({ a: { $ref: '#/$defs/missing' } })],
  ['none', null],
  ['foreign', object({ a: { type: 'string' } }, { $schema: 'https://dialects.example/v9' })],
  ['same1', object({ a: { type: 'string' } }, { $id: ID })],
  ['same2', object({ a: { type: 'integer' } }, { $id: ID })],
  ['remote', object({ a: { $ref: `http://127.0.0.1:${port}/s.json` } })],
  ['deep', object({ a: { type: 'string' } }, { allOf: [nested(200)] })],
  ['half', object({ a: { description: 'half a character: \ud800' } })],
  ['slow', object({ a: { type: 'string', pattern: '^(a+)+$' } })],
  ['good2', object({ a: { type: 'string' } })],
]
/** Their schemas cannot be checked, so with rules nothing fits them. */
const UNCHECKED = ['dangling', 'foreign', 'remote']
const HOSTILE = `${'a'.repeat(60_000)}!`

/** A port that counts who connects to it. */
async function canary(
  t: TestContext,
): Promise<{ readonly port: number; readonly met: () => number }> {
  let met = 0
  const server = createServer((socket) => {
    met++
    socket.destroy()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return { port: (server.address() as AddressInfo).port, met: () => met }
}

async function timed<T>(what: string, run: () => Promise<T>): Promise<T> {
  const begun = performance.now()
  const value = await run()
  const ms = performance.now() - begun
  assert.ok(ms < MAX_MS, `${what} took ${Math.round(ms)} ms`)
  return value
}

const isListed = async (gate: Gate): Promise<ReadonlySet<string>> => {
  const listed = await timed('the list', () => gate.request('tools/list'))
  return new Set(listed.result?.tools?.map(({ name }) => name))
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: with rules, a tool whose schema cannot be checked fails closed, and alone`, async (t) => {
    const { port, met } = await canary(t)
    const all = schemas(port)
    const tools = all.map(([name, inputSchema]) => ({ definition: { name, inputSchema } }))
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: serving({ tools }) },
      allow: all.map(([name]) => `up/${name}`),
      profile: { rules: [{ tool: 'up/*', require: 'true' }] },
    })
    const listed = await isListed(gate)
    for (const name of ['good1', 'good2', 'same1', 'same2', 'slow'])
      assert.ok(listed.has(name), name)
    await says(gate, /an item of its tools is no object that can be admitted/)
    const call = (name: string, a: unknown) =>
      timed(`a call of ${name}`, () => gate.call(name, { a }))
    for (const name of ['good1', 'good2', 'same1']) {
      assert.equal((await call(name, 'x')).result?.isError, undefined, name)
      assert.equal(refusalCode(await call(name, 7)), 'arguments_invalid', name)
    }
    // Each is judged by its own content, whatever id both claim.
    assert.equal((await call('same2', 7)).result?.isError, undefined)
    assert.equal(refusalCode(await call('same2', 'x')), 'arguments_invalid')
    assert.equal((await call('slow', 'aaa')).result?.isError, undefined)
    assert.equal(refusalCode(await call('slow', HOSTILE)), 'arguments_invalid')
    for (const name of UNCHECKED) {
      for (const a of ['x', 7, HOSTILE]) {
        assert.equal(refusalCode(await call(name, a)), 'arguments_invalid', name)
      }
    }
    // What is inside no limit of ours is left out of the list, and its neighbours stay.
    for (const name of ['none', 'deep', 'half']) {
      assert.ok(!listed.has(name), name)
      assertDenied(await call(name, 'x'), name)
    }
    assert.deepEqual([...new Set(ran(gate))].toSorted(), [
      'good1',
      'good2',
      'same1',
      'same2',
      'slow',
    ])
    assert.equal(met(), 0, 'a reference was fetched')
  })

  test(`${front} ${era}: without rules, arguments pass unchecked as they would directly`, async (t) => {
    const { port, met } = await canary(t)
    const all = schemas(port)
    const tools = all.map(([name, inputSchema]) => ({ definition: { name, inputSchema } }))
    const allow = all.map(([name]) => `up/${name}`)
    const gate = await startGate(t, { front, era, upstreams: { up: serving({ tools }) }, allow })
    const listed = await isListed(gate)
    for (const name of ['good1', ...UNCHECKED, 'good2']) {
      assert.ok(listed.has(name), name)
      assert.equal((await gate.call(name, { a: 7 })).result?.isError, undefined, name)
    }
    assert.equal(met(), 0, 'a reference was fetched')
  })
}
