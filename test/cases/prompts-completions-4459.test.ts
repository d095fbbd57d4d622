// Only what some server really offers, and the client may use, is advertised and served.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import { type Gate, startGate, type Upstream } from './harness.ts'
import { plainTool, received, serving } from './menu.ts'
import { type Bag, SIDES, refusalCode } from './wire.ts'

const T = serving({ tools: [plainTool('do')] }, '--serve', 'tools')
const P = { flags: ['--serve', 'tools,prompts,completions'] }
const LIAR = serving(
  { tools: [plainTool('lie')], fails: ['resources/list', 'resources/templates/list'] },
  '--serve',
  'tools,resources',
)

async function advertised(gate: Gate): Promise<readonly string[]> {
  const asked =
    gate.era === 'modern'
      ? await gate.request('server/discover')
      : await gate.request('initialize', {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 't', version: '1' },
        })
  return Object.keys(asked.result?.['capabilities'] as Bag).toSorted()
}

const start = (
  t: Parameters<typeof startGate>[0],
  [front, era]: (typeof SIDES)[number],
  upstreams: Readonly<Record<string, Upstream>>,
): Promise<Gate> =>
  startGate(t, { front, era, upstreams, allow: ['*'], config: { pins: 'first_use' } })

const COMPLETION = {
  ref: { type: 'ref/prompt', name: 'greet' },
  argument: { name: 'name', value: 'A' },
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: a server with tools only`, async (t) => {
    const gate = await start(t, [front, era], { up: T })
    assert.deepEqual(await advertised(gate), ['tools'])
    for (const [method, params] of [
      ['prompts/list', {}],
      ['prompts/get', { name: 'greet' }],
      ['resources/list', {}],
      ['resources/templates/list', {}],
      ['resources/read', { uri: 'notes://a' }],
      ['completion/complete', COMPLETION],
      ['logging/setLevel', { level: 'info' }],
      ['resources/subscribe', { uri: 'notes://a' }],
    ] as const) {
      const answer = await gate.request(method, params)
      assert.equal(answer.error?.code, -32601, method)
      assert.equal(refusalCode(answer), 'method_unknown', method)
      assert.equal(received(gate, method).length, 0, method)
    }
  })

  test(`${front} ${era}: a server with prompts and completions`, async (t) => {
    const gate = await start(t, [front, era], { up: P })
    assert.deepEqual(await advertised(gate), ['completions', 'prompts', 'tools'])
    const listed = await gate.request('prompts/list')
    const [prompt] = listed.result?.['prompts'] as Bag[]
    assert.equal(prompt?.['name'], 'greet')
    const got = await gate.request('prompts/get', { name: 'greet', arguments: { name: 'Ana' } })
    assert.match(JSON.stringify(got.result?.['messages']), /Hello Ana/)
    const completed = await gate.request('completion/complete', COMPLETION)
    assert.deepEqual((completed.result?.['completion'] as Bag)['values'], ['A1', 'A2'])
    assert.equal((await gate.request('resources/list')).error?.code, -32601)
    const records = gate.audit().filter(({ kind }) => kind === 'call')
    assert.deepEqual(
      records.map(({ method, decision }) => `${method} ${decision}`),
      ['prompts/get allow', 'completion/complete allow', 'resources/list deny'],
    )
  })

  test(`${front} ${era}: one that advertises more than it serves neither breaks nor delays the others`, async (t) => {
    const gate = await start(t, [front, era], { tools: T, prompts: P, liar: LIAR })
    await gate.request('tools/list')
    const begun = performance.now()
    for (let n = 0; n < 3; n++) {
      assert.deepEqual((await gate.request('resources/list')).result?.['resources'], [])
      const templates = await gate.request('resources/templates/list')
      assert.deepEqual(templates.result?.['resourceTemplates'], [])
      const prompts = (await gate.request('prompts/list')).result?.['prompts'] as Bag[]
      assert.deepEqual(
        prompts.map(({ name }) => name),
        ['prompts__greet'],
      )
    }
    const mean = (performance.now() - begun) / 9
    assert.ok(mean < roomy(1_000), `a list took ${Math.round(mean)} ms`)
    // What was answered once with "method not found" is not asked again, what was not declared never.
    assert.equal(received(gate, 'resources/list', 'liar').length, 1)
    assert.equal(received(gate, 'resources/templates/list', 'liar').length, 1)
    for (const name of ['tools', 'prompts']) {
      assert.equal(received(gate, 'resources/list', name).length, 0)
    }
    assert.equal(received(gate, 'prompts/list', 'tools').length, 0)
    assert.equal(received(gate, 'prompts/list', 'liar').length, 0)
    const got = await gate.request('prompts/get', {
      name: 'prompts__greet',
      arguments: { name: 'B' },
    })
    assert.match(JSON.stringify(got.result?.['messages']), /Hello B/)
    const ref = { type: 'ref/prompt', name: 'prompts__greet' }
    const completed = await gate.request('completion/complete', { ...COMPLETION, ref })
    assert.deepEqual((completed.result?.['completion'] as Bag)['values'], ['A1', 'A2'])
  })

  test(`${front} ${era}: what the profile does not list is not advertised and not served`, async (t) => {
    const profile = { prompts: [], resources: [] }
    const gate = await startGate(t, { front, era, upstreams: { up: {} }, profile })
    assert.deepEqual(await advertised(gate), ['logging', 'tools'])
    assert.deepEqual((await gate.request('prompts/list')).result?.['prompts'], [])
    assert.deepEqual((await gate.request('resources/list')).result?.['resources'], [])
    for (const name of ['greet', 'nothing']) {
      const denied = await gate.request('prompts/get', { name })
      assert.deepEqual(
        [denied.error?.code, denied.error?.message],
        [-32602, `prompt denied: ${name}`],
      )
    }
    // A completion follows what it completes.
    const completed = await gate.request('completion/complete', COMPLETION)
    assert.equal(refusalCode(completed), 'prompt_denied')
    assert.equal(received(gate, 'completion/complete').length, 0)
    assert.equal(received(gate, 'prompts/get').length, 0)
  })
}
