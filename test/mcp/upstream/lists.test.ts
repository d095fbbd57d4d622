import assert from 'node:assert/strict'
import { test } from 'node:test'

import { definitionHash } from '../../../src/mcp/upstream/pages.ts'
import { call, config, fresh, json, one, scripted, start, traced, until } from './rig.ts'
import type { Rig } from './rig.ts'

const asked = (path: string, method = 'tools/list'): number =>
  traced(path).filter((message) => message['method'] === method).length
const names = async (rig: Rig, upstream = 's'): Promise<string[]> =>
  (await rig.list(upstream, 'tools')).items.map((item) => item.name)
/** Counts what a rig announces; a server that starts announces every kind of list once. */
async function announcements(rig: Rig): Promise<{ tools: number }> {
  const heard = { tools: 0, all: 0 }
  rig.onChange((_upstream, kind) => {
    heard.all++
    if (kind === 'tools') heard.tools++
  })
  await until(() => heard.all === 4)
  heard.tools = 0
  return heard
}
const tool = (name: string, description = ''): unknown => ({
  name,
  description,
  inputSchema: { type: 'object' },
})

for (const era of ['modern', 'legacy']) {
  test(`every kind of list of a ${era} server is read through all its pages, in order`, async (t) => {
    const trace = fresh('trace')
    const rig = one(t, '--era', era, '--tools', '120', '--page', '7', '--trace', trace)
    const { items, complete } = await rig.list('s', 'tools')
    assert.equal(complete, true)
    const found = items.map((item) => item.name).filter((name) => /^t[0-9]+$/.test(name))
    assert.deepEqual(found, found.toSorted())
    assert.equal(found.length, 120)
    assert.equal(new Set(found).size, 120)
    assert.deepEqual(
      (await rig.list('s', 'prompts')).items.map((item) => item.name),
      ['greet'],
    )
    assert.deepEqual(
      (await rig.list('s', 'resources')).items.map((item) => item.name),
      ['notes://a', 'notes://public/1'],
    )
    assert.deepEqual(
      (await rig.list('s', 'templates')).items.map((item) => item.name),
      ['notes://{id}'],
    )
  })
}

test('a list is asked for once while it is true, and by several askers together', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'legacy', '--trace', trace)
  await Promise.all([rig.list('s', 'tools'), rig.list('s', 'tools'), rig.definition('s', 'echo')])
  await rig.list('s', 'tools')
  await rig.definition('s', 'echo')
  assert.equal(asked(trace), 1)
})

test('what a server does not declare it is not asked for', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--serve', 'tools', '--trace', trace)
  for (const kind of ['prompts', 'resources', 'templates'] as const) {
    assert.deepEqual(await rig.list('s', kind), { items: [], complete: true })
  }
  assert.equal(asked(trace, 'prompts/list') + asked(trace, 'resources/list'), 0)
})

test('a server that declares a list and does not know the method has an empty one', async (t) => {
  const trace = fresh('trace')
  const command = [process.execPath, '-e', LIAR, trace]
  const rig = start(t, [config('s', { command })])
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(await rig.list('s', 'prompts'), { items: [], complete: true })
  }
  assert.equal(asked(trace, 'prompts/list'), 1)
})

/** A server that declares prompts and knows nothing but discover. */
const LIAR = `
const { appendFileSync } = require('node:fs')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync(process.argv[1], line + '\\n')
  const { id, method } = JSON.parse(line)
  const result = { resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { prompts: {} } }
  const said = method === 'server/discover' ? { result } : { error: { code: -32601, message: 'no' } }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...said }) + '\\n')
})
`

test('one bad item costs itself, and a name that comes twice is one item', async (t) => {
  const rig = one(t)
  const heard = await announcements(rig)
  await call(rig, 'change', {
    tools: [
      tool('twice', 'first'),
      tool('twice', 'second'),
      { name: 'bare' },
      { name: '' },
      7,
      tool('good'),
    ],
  })
  await until(() => heard.tools === 1)
  const found = await names(rig)
  assert.equal(found.filter((name) => name === 'twice').length, 1)
  assert.ok(found.includes('good'))
  assert.ok(!found.includes('bare'))
  assert.match(rig.said.join('\n'), /s: an item of its tools has no inputSchema \(bare\)/)
  const twice = await rig.definition('s', 'twice')
  assert.ok(typeof twice === 'object' && twice.value['description'] === 'first')
})

test('a server that lists without end is cut at the ceiling', async (t) => {
  const rig = start(t, [config('s', { command: scripted('--tools', '200', '--page', '10') })], {
    limits: { listItems: 100 },
  })
  const { items, complete } = await rig.list('s', 'tools')
  assert.equal(items.length, 100)
  assert.equal(complete, false)
})

test('a definition\u2019s hash moves with what a model is told and with nothing else', () => {
  const hash = (more: object): string =>
    definitionHash(json({ name: 'x', inputSchema: { type: 'object', a: 1, b: 2 }, ...more }))
  const plain = hash({})
  assert.match(plain, /^[0-9a-f]{64}$/)
  assert.equal(hash({ icons: [], execution: {} }), plain)
  assert.equal(hash({ inputSchema: { b: 2, a: 1, type: 'object' } }), plain)
  const others = [
    { name: 'y' },
    { description: 'y' },
    { title: 't' },
    { annotations: { readOnlyHint: true } },
    { outputSchema: { type: 'object' } },
    { inputSchema: { type: 'object' } },
    { _meta: { a: 1 } },
  ]
  assert.equal(new Set([plain, ...others.map(hash)]).size, 1 + others.length)
})

test('a change is seen, and the names it took away are gone', async (t) => {
  for (const era of ['modern', 'legacy']) {
    const rig = one(t, '--era', era, '--tools', '1')
    const heard = await announcements(rig)
    assert.notEqual(await rig.definition('s', 't000'), 'absent')
    await call(rig, 'change', { tools: [tool('fresh')], hide: ['pid'] })
    await until(() => heard.tools === 1)
    assert.equal(await rig.definition('s', 't000'), 'absent')
    assert.equal(await rig.definition('s', 'pid'), 'absent')
    assert.equal(typeof (await rig.definition('s', 'fresh')), 'object')
  }
})

test('a storm of 500 changes in 2 s costs at most 5 lists and few notices', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--era', 'legacy', '--trace', trace)
  const heard = await announcements(rig)
  await names(rig)
  const before = asked(trace)
  rig.onChange((_upstream, kind) => void rig.list('s', kind))
  const begun = performance.now()
  await call(rig, 'change', { tools: [tool('calm')], times: 500, ms: 2000 })
  const last = performance.now() + 2500
  while (performance.now() < last) {
    await rig.definition('s', 'echo')
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.ok((await names(rig)).includes('calm'))
  // On a slow machine the storm lasts longer; at no time is it more than one list in 700 ms.
  const most = Math.max(5, 1 + (performance.now() - begun) / 700)
  assert.ok(asked(trace) - before <= most, `${asked(trace) - before} lists`)
  assert.ok(heard.tools >= 1 && heard.tools <= most, `${heard.tools} notices`)
})

for (const ttl of ['0', '3600000']) {
  test(`an empty list is not believed for long, whatever its server says (ttl ${ttl})`, async (t) => {
    const rig = one(t, '--empty-for', '2000', '--ttl', ttl, '--no-list-changed')
    assert.deepEqual((await rig.list('s', 'tools')).items, [])
    assert.equal(await rig.definition('s', 'echo'), 'absent')
    const last = performance.now() + 60_000
    while ((await names(rig)).length === 0) {
      assert.ok(performance.now() < last)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })
}

test('names that the list lacks make us ask once, not for each call and not for each name', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--trace', trace, '--era', 'legacy')
  await names(rig)
  await call(rig, 'change', { tools: [tool('quiet')], times: 0 })
  assert.equal(typeof (await rig.definition('s', 'quiet')), 'object')
  assert.equal(asked(trace), 2)
  const begun = performance.now()
  for (let n = 0; n < 20; n++) assert.equal(await rig.definition('s', 'nowhere'), 'absent')
  for (let n = 0; n < 50; n++) assert.equal(await rig.definition('s', `nowhere${n}`), 'absent')
  // Once a second, however long this took.
  assert.ok(asked(trace) <= 3 + (performance.now() - begun) / 1000, `${asked(trace)} lists`)
})

test('a list that failed is incomplete and heals; what was had before is still given', async (t) => {
  const rig = one(t, '--list-fails', '1', '--era', 'legacy')
  assert.deepEqual(await rig.list('s', 'tools'), { items: [], complete: false })
  const last = performance.now() + 60_000
  while (!(await rig.list('s', 'tools')).complete) {
    assert.ok(performance.now() < last)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await call(rig, 'crash')
  const { items, complete } = await rig.list('s', 'tools')
  assert.ok(items.length > 10 || complete)
})

test('after an announced change that cannot be looked up, no tool is known', async (t) => {
  const rig = start(t, [config('s', { command: [process.execPath, '-e', FORGETFUL] })])
  const heard = await announcements(rig)
  assert.equal(typeof (await rig.definition('s', 'once')), 'object')
  assert.equal(await rig.definition('s', 'never'), 'down')
  await call(rig, 'once')
  await until(() => heard.tools === 1)
  assert.equal(await rig.definition('s', 'once'), 'down')
  const { items, complete } = await rig.list('s', 'tools')
  assert.deepEqual([items.map((item) => item.name), complete], [['once'], false])
})

/** A server that lists one tool, once; a call makes it announce a change. */
const FORGETFUL = `
let lists = 0
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'server/discover') say({ id, error: { code: -32601, message: 'no' } })
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } } })
  }
  if (method === 'tools/list' && lists++ > 0) say({ id, error: { code: -32000, message: 'forgot' } })
  else if (method === 'tools/list') say({ id, result: { tools: [{ name: 'once', inputSchema: {} }] } })
  if (method === 'tools/call') {
    say({ id, result: { content: [] } })
    say({ method: 'notifications/tools/list_changed' })
  }
})
`

test('a change that is announced while a list is on its way makes that list old', async (t) => {
  const rig = start(t, [config('s', { command: [process.execPath, '-e', OVERTAKEN] })])
  const heard = await announcements(rig)
  const old = rig.list('s', 'tools')
  await until(() => heard.tools === 1)
  assert.equal(typeof (await rig.definition('s', 'v1')), 'object')
  assert.equal(await rig.definition('s', 'v0'), 'absent')
  assert.deepEqual(
    (await old).items.map((item) => item.name),
    ['v0'],
  )
})

test('while a changed list is on its way, nobody is given the one before', async (t) => {
  const rig = start(t, [config('s', { command: [process.execPath, '-e', SLOW] })])
  const heard = await announcements(rig)
  assert.deepEqual(await names(rig), ['v0'])
  await call(rig, 'v0', {})
  await until(() => heard.tools === 1)
  const askers = [names(rig)]
  const definitions = [rig.definition('s', 'v0')]
  let over = false
  void askers[0]?.then(() => (over = true))
  await until(() => {
    askers.push(names(rig))
    definitions.push(rig.definition('s', 'v0'))
    return over
  })
  for (const had of await Promise.all(askers)) assert.deepEqual(had, ['v1'])
  for (const had of await Promise.all(definitions)) assert.equal(had, 'absent')
})

/** A server whose every call announces another tool, and whose lists take their time. */
const SLOW = `
let version = 0
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'server/discover') say({ id, error: { code: -32601, message: 'no' } })
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } } })
  }
  if (method === 'tools/call') {
    version++
    say({ method: 'notifications/tools/list_changed' })
    say({ id, result: { content: [] } })
  }
  const result = { tools: [{ name: 'v' + version, inputSchema: {} }] }
  if (method === 'tools/list') setTimeout(() => say({ id, result }), 300)
})
`

/** A server whose first list is overtaken by the announcement of the next. */
const OVERTAKEN = `
let version = 0
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line)
  if (method === 'server/discover') say({ id, error: { code: -32601, message: 'no' } })
  if (method === 'initialize') {
    say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: { listChanged: true } } } })
  }
  if (method !== 'tools/list') return
  const result = { tools: [{ name: 'v' + version, inputSchema: {} }] }
  if (version === 0) say({ method: 'notifications/tools/list_changed' })
  setTimeout(() => say({ id, result }), version === 0 ? 1500 : 0)
  version = 1
})
`

test('a server that turns in circles with its cursors is asked once for each', async (t) => {
  const trace = fresh('trace')
  const rig = start(t, [config('s', { command: [process.execPath, '-e', CIRCLE, trace] })])
  const { items, complete } = await rig.list('s', 'tools')
  assert.deepEqual([items.length, complete], [1, false])
  assert.equal(asked(trace), 3)
})

/** A server whose second page points to the second page, by the empty cursor. */
const CIRCLE = `
const { appendFileSync } = require('node:fs')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  appendFileSync(process.argv[1], line + '\\n')
  const { id, method, params } = JSON.parse(line)
  const discover = { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }
  const tools = { tools: [{ name: 'x', inputSchema: {} }], nextCursor: params.cursor === undefined ? '' : 'b' }
  const result = { resultType: 'complete', ...(method === 'tools/list' ? tools : discover) }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
})
`

test('a server that cannot be asked is down, not without the tool', async (t) => {
  const rig = start(t, [config('s', { command: ['/does/not/exist'] })])
  assert.equal(await rig.definition('s', 'echo'), 'down')
  assert.deepEqual(await rig.list('s', 'tools'), { items: [], complete: false })
  assert.equal(await rig.hello('s'), null)
})

test('definitions are not asked for before each call where the server calls its list stale', async (t) => {
  const trace = fresh('trace')
  const rig = one(t, '--ttl', '0', '--trace', trace)
  for (let n = 0; n < 20; n++) assert.equal(typeof (await rig.definition('s', 'echo')), 'object')
  assert.equal(asked(trace), 1)
})

test('a long list of 300 KiB in one line arrives whole', async (t) => {
  const rig = one(t, '--tools', '500')
  assert.ok((await names(rig)).filter((name) => name.startsWith('t')).length >= 500)
})
