import assert from 'node:assert/strict'
import { test } from 'node:test'

import {
  call,
  config,
  dataOf,
  fresh,
  linesOf,
  one,
  scripted,
  start,
  textOf,
  traced,
  until,
} from './rig.ts'

const methods = (path: string): unknown[] => traced(path).map((message) => message['method'])

const ERAS: readonly (readonly [string, 'modern' | 'legacy'])[] = [
  ['dual', 'modern'],
  ['modern', 'modern'],
  ['legacy', 'legacy'],
  ['garbage', 'legacy'],
  ['picky', 'legacy'],
  ['exits', 'legacy'],
]
for (const [server, era] of ERAS) {
  test(`a server that is ${server} on the probe is spoken to in the ${era} era`, async (t) => {
    const rig = one(t, '--era', server, '--instructions', 'be kind')
    const hello = await rig.hello('s')
    assert.equal(hello?.era, era)
    assert.equal(hello.version, era === 'modern' ? '2026-07-28' : '2025-11-25')
    assert.equal(hello.info?.['name'], 'scripted')
    assert.equal(hello.instructions, 'be kind')
    assert.notEqual(hello.capabilities['tools'], undefined)
    assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
    assert.deepEqual(rig.said, [])
  })
}

test('a server that does not answer the probe is legacy once the probe is over', async (t) => {
  const rig = start(t, [config('s', { command: scripted('--era', 'silent'), probeMs: 500 })])
  assert.equal((await rig.hello('s'))?.era, 'legacy')
})

test('a server that exits on the probe is started twice, and later starts do not probe', async (t) => {
  const [starts, trace] = [fresh('starts'), fresh('trace')]
  const rig = one(t, '--era', 'exits', '--starts', starts, '--trace', trace)
  assert.equal((await rig.hello('s'))?.era, 'legacy')
  assert.equal(linesOf(starts).length, 2)
  await call(rig, 'crash')
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  assert.equal(linesOf(starts).length, 3)
  assert.equal(methods(trace).filter((method) => method === 'server/discover').length, 1)
})

test('what a server speaks is asked once, not at each of its starts', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'legacy', '--trace', trace)
  await call(rig, 'crash')
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  assert.equal(methods(trace).filter((method) => method === 'initialize').length, 2)
  assert.equal(methods(trace).filter((method) => method === 'server/discover').length, 1)
})

test('a modern server of another revision only is never initialized, and says so', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'future', '--trace', trace)
  assert.equal(await rig.hello('s'), null)
  assert.match(rig.explain('s') ?? '', /speaks 2099-01-01 only/)
  assert.ok(!methods(trace).includes('initialize'))
})

test('the configured era is not probed', async (t) => {
  const [old, young] = [fresh('old'), fresh('young')]
  const rig = start(t, [
    config('old', { command: scripted('--trace', old), era: 'legacy' }),
    config('young', { command: scripted('--trace', young), era: 'modern' }),
  ])
  assert.equal((await rig.hello('old'))?.era, 'legacy')
  assert.equal((await rig.hello('young'))?.era, 'modern')
  await until(() => methods(old).length === 2)
  assert.deepEqual(methods(old), ['initialize', 'notifications/initialized'])
  assert.ok(!methods(young).includes('initialize'))
})

test('each legacy revision is taken as answered, an unknown one is refused', async (t) => {
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05']) {
    const rig = one(t, '--era', 'legacy', '--version', version)
    assert.equal((await rig.hello('s'))?.version, version)
  }
  const rig = one(t, '--era', 'legacy', '--version', '1999-01-01')
  assert.equal(await rig.hello('s'), null)
  assert.match(rig.explain('s') ?? '', /1999-01-01/)
})

test('a batch is several messages from a server of 2025-03-26 and none from a later one', async (t) => {
  const text = '[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":$ID,"result":{"content":[]}}]'
  const old = one(t, '--era', 'legacy', '--version', '2025-03-26')
  assert.equal((await call(old, 'line', { text })).kind, 'answered')
  const late = start(t, [config('s', { command: scripted('--era', 'legacy'), callMs: 300 })])
  await late.hello('s')
  assert.equal((await call(late, 'line', { text })).kind, 'unknown')
})

const META = 'io.modelcontextprotocol/'
const GIVEN = {
  [`${META}protocolVersion`]: '1999-01-01',
  [`${META}clientCapabilities`]: { sampling: {} },
  [`${META}clientInfo`]: { name: 'agent', version: '7' },
  [`${META}logLevel`]: 'warning',
  'eclusa/key': 'k',
  'eclusa/refusal': {},
  progressToken: 'mine',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'com.example/unknown': [1, { two: null }],
}

test('a modern server gets our envelope, the client\u2019s name and level, and nothing of eclusa', async (t) => {
  const rig = one(t, '--era', 'modern')
  const { meta } = dataOf(await call(rig, 'meta', {}, { meta: GIVEN })) as {
    meta: Record<string, unknown>
  }
  assert.equal(typeof meta['progressToken'], 'number')
  assert.deepEqual(meta, {
    traceparent: GIVEN.traceparent,
    'com.example/unknown': GIVEN['com.example/unknown'],
    progressToken: meta['progressToken'],
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientInfo`]: { name: 'agent', version: '7' },
    [`${META}clientCapabilities`]: {},
    [`${META}logLevel`]: 'warning',
  })
  const bare = dataOf(await call(rig, 'meta')) as { meta: Record<string, unknown> }
  assert.deepEqual(bare.meta[`${META}clientInfo`], { name: 'eclusa', version: '0.0.0' })
  assert.ok(!(`${META}logLevel` in bare.meta))
})

test('a legacy server gets no envelope at all', async (t) => {
  const rig = one(t, '--era', 'legacy')
  const { meta } = dataOf(await call(rig, 'meta', {}, { meta: GIVEN })) as {
    meta: Record<string, unknown>
  }
  assert.deepEqual(Object.keys(meta).sort(), [
    'com.example/unknown',
    'progressToken',
    'traceparent',
  ])
})
