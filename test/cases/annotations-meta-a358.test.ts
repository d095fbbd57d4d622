// Metadata of requests and results crosses the gateway, but for the names that belong to one hop.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { callsOf, received, serving } from './menu.ts'
import { type Bag, type Era, type Message, WAYS } from './wire.ts'

const PROTOCOL = 'io.modelcontextprotocol/'
const TRACE = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01'
const META: Bag = {
  traceparent: TRACE,
  'com.example/k': { n: 1 },
  progressToken: 'p',
  'eclusa/forged': true,
}
const CONTENT = [
  {
    type: 'text',
    text: 'ok',
    annotations: { audience: ['user'], priority: 0.5 },
    _meta: { 'com.example/block': 1 },
  },
]
const FORGED = {
  'eclusa/refusal': { code: 'tool_denied' },
  [`${PROTOCOL}serverInfo`]: { name: 's' },
}
const RESULT = {
  content: CONTENT,
  unknownField: { kept: [1, 2] },
  _meta: { 'com.example/r': 2, ...FORGED },
}
const tools = [
  {
    definition: {
      name: 'meta',
      title: 'A title',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
      _meta: { 'com.example/tool': 1 },
      unknownField: 1,
    },
    result: RESULT,
  },
]

/** The `_meta` and the rest of the params of the one call that this server received. */
function arrived(lines: readonly string[]): { readonly meta: Bag; readonly rest: Bag } {
  assert.equal(lines.length, 1)
  const { params = {} } = JSON.parse(lines[0] ?? '') as Message
  const { _meta: meta, ...rest } = params
  return { meta: meta as Bag, rest }
}

function assertMeta(meta: Bag, client: Era, server: Era): void {
  assert.equal(meta['traceparent'], TRACE)
  assert.deepEqual(meta['com.example/k'], { n: 1 })
  assert.notEqual(meta['progressToken'], 'p', "the client's token is another hop's")
  const names = Object.keys(meta)
  assert.deepEqual(
    names.filter((name) => name.startsWith('eclusa/')),
    [],
  )
  const reserved = names.filter((name) => name.startsWith(PROTOCOL)).toSorted()
  if (server === 'legacy') return assert.deepEqual(reserved, [])
  // Per hop, but for the client's own name, which is passed on where it sent one (docs/decisions/0030).
  const wanted = ['clientCapabilities', 'clientInfo', 'protocolVersion'].map((n) => PROTOCOL + n)
  assert.deepEqual(reserved, wanted)
  assert.equal(meta[`${PROTOCOL}protocolVersion`], '2026-07-28')
  assert.deepEqual(meta[`${PROTOCOL}clientCapabilities`], {})
  const { name } = meta[`${PROTOCOL}clientInfo`] as Bag
  assert.equal(name, client === 'modern' ? 't' : 'eclusa')
}

for (const [front, client, server] of WAYS) {
  test(`${front}, ${client} client, ${server} server: what belongs to no hop crosses, both ways`, async (t) => {
    const gate = await startGate(t, {
      front,
      era: client,
      upstreams: { up: serving({ tools }, '--era', server) },
      allow: ['up/meta'],
      profile: { result: 'full' },
    })
    const [listed] = (await gate.request('tools/list')).result?.tools ?? []
    assert.deepEqual(listed, tools[0]?.definition)

    // What later revisions or extensions put beside the arguments is not ours to drop.
    const extra = { laterMember: { ttl: 1_000 }, 'com.example/other': ['s', null] }
    const params = { name: 'meta', arguments: { a: 1 }, ...extra }
    const answer = await gate.request('tools/call', params, { meta: META })
    const { meta, rest } = arrived(received(gate, 'tools/call'))
    assert.deepEqual(rest, params)
    assertMeta(meta, client, server)

    assert.deepEqual(answer.result?.content, CONTENT)
    assert.deepEqual(answer.result?.['unknownField'], RESULT.unknownField)
    const back = answer.result?.['_meta'] as Bag
    assert.equal(back['com.example/r'], 2)
    assert.equal(back['eclusa/refusal'], undefined, 'a server forged a refusal')
    if (client === 'legacy') assert.deepEqual(Object.keys(back), ['com.example/r'])
    assert.equal(answer.result?.['resultType'], client === 'modern' ? 'complete' : undefined)
    assert.equal(callsOf(gate, 'meta')[0]?.trace, TRACE)
  })
}
