import assert from 'node:assert/strict'
import { test } from 'node:test'

import { roomy } from '../../pace.ts'
import { exposed } from '../../../src/mcp/front/names.ts'
import { fits } from '../../../src/mcp/front/routes.ts'
import { loadConfig } from '../../../src/policy/config.ts'
import { type Heard, open } from './desk.ts'

const names = ({ result }: Heard, member = 'tools'): string[] =>
  ((result ?? {})[member] as { name: string }[]).map(({ name }) => name)
const textOf = ({ result }: Heard): unknown =>
  (result?.['content'] as { text: string }[] | undefined)?.[0]?.text
const call = (name: string, args: object = {}): object => ({ name, arguments: args })

test('a single server keeps its names, several get a prefix within 64 characters', () => {
  assert.equal(exposed(['a'], 'a', 'x'.repeat(128)), 'x'.repeat(128))
  assert.equal(exposed(['a', 'b'], 'a', 'a.b/c'), 'a__a.b/c')
  assert.equal(exposed(['a', 'b'], 'a', 'x'.repeat(61)), `a__${'x'.repeat(61)}`)
  const cut = exposed(['a', 'b'], 'a', 'x'.repeat(62))
  assert.equal(cut.length, 64)
  assert.match(cut, /^a__x{52}_[0-9a-f]{8}$/)
  assert.notEqual(cut, exposed(['a', 'b'], 'a', 'x'.repeat(63)))
  assert.ok(exposed(['a', 'b'], 'a', `${'x'.repeat(51)}\u{1f600}${'y'.repeat(9)}`).isWellFormed())
})

test('a template fits what it could expand to and nothing else', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['a://{id}', 'a://77', true],
    ['a://{id}', 'a://7/7', false],
    ['a://{+path}', 'a://7/7', true],
    ['a://{id}/log', 'a://77/log', true],
    ['a://{id}/log', 'a://77/log/log', false],
    ['a://{x}-{y}', 'a://1-2', true],
    ['a://fixed', 'a://fixed', true],
    ['a://fixed', 'a://fixed2', false],
    ['a://{id}{?q}', 'a://77?q=1', true],
    ['{+all}', 'anything', true],
    ['a://{id', 'a://77', false],
  ]
  for (const [template, uri, expected] of cases)
    assert.equal(fits(template, uri), expected, template)
})

test('a hostile template costs no more than its length', () => {
  const template = `a://${'{a}x'.repeat(20_000)}`
  const uri = `a://${'x'.repeat(20_000)}y`
  const before = performance.now()
  assert.equal(fits(template, uri), false)
  assert.ok(performance.now() - before < roomy(1_000))
})

test('tools of several servers stand side by side, and calls arrive where they belong', async (t) => {
  const desk = await open(t, { upstreams: { s: ['--instructions', 'from s'], f: [] } })
  assert.deepEqual(names(await desk.modern('tools/list')), [
    ...['s__echo', 's__after', 's__meta'],
    ...['f__echo', 'f__after', 'f__meta'],
  ])
  assert.equal(textOf(await desk.modern('tools/call', call('f__echo', { text: 'F' }))), 'F')
  const closed = desk.audit().find(({ kind }) => kind === 'intent')
  assert.deepEqual(
    [closed?.['name'], closed?.['upstream'], closed?.['target']],
    ['f__echo', 'f', 'echo'],
  )
  for (const name of ['echo', 'x__echo', 'f__', '__echo', 'f__nosuch']) {
    const denied = await desk.modern('tools/call', call(name))
    assert.equal(denied.error?.message, `tool denied: ${name}`)
  }
  const found = await desk.modern('server/discover')
  assert.equal(found.result?.['instructions'], 's:\nfrom s')
})

test('one dead server does not kill the list, all dead is said', async (t) => {
  const desk = await open(t, { upstreams: { dead: ['--die-after', '0'], live: [] } })
  assert.deepEqual(names(await desk.modern('tools/list')), [
    'live__echo',
    'live__after',
    'live__meta',
  ])
  const none = await open(t, { upstreams: { dead: ['--die-after', '0'] } })
  const answer = await none.modern('tools/list')
  assert.equal(answer.error?.code, -32603)
  assert.deepEqual(answer.error?.data, { 'eclusa/refusal': { code: 'upstream_down' } })
})

const tool = (name: string): object => ({ name, inputSchema: { type: 'object' } })

test('no server may be named so that a name could be split twice', async () => {
  for (const name of ['acme_', 'acme__x', '_', '__']) {
    const text = JSON.stringify({
      version: 2,
      upstreams: { [name]: { command: ['x'] } },
      profiles: { agent: { allow: [] } },
    })
    const lookup = { env: () => undefined, file: () => undefined }
    assert.equal((await loadConfig({ file: 'f', text }, null, lookup)).kind, 'faults', name)
  }
})

test('a name is split at its first separator, whatever the tool is called', async (t) => {
  const allow = ['acme/change', 'acme/_status', 'acme/x__y', 'acme/___', 'x/y']
  const desk = await open(t, { upstreams: { acme: [], x: [] }, profile: { allow } })
  const tools = ['_status', 'x__y', '___'].map(tool)
  await desk.modern('tools/call', call('acme__change', { tools }))
  const shown = ['acme___status', 'acme__x__y', 'acme_____']
  assert.deepEqual(names(await desk.modern('tools/list')), ['acme__change', ...shown])
  for (const name of shown) {
    await desk.modern('tools/call', call(name))
    const entry = desk.audit().find((one) => one['kind'] === 'intent' && one['name'] === name)
    assert.deepEqual([entry?.['upstream'], entry?.['target']], ['acme', name.slice(6)])
  }
})

test('two tools whose names are cut alike reach nobody', async (t) => {
  const long = 'l'.repeat(100)
  const cut = exposed(['a', 'b'], 'a', long)
  const twin = cut.slice(3)
  const allow = [`a/${long}`, `a/${twin}`, 'a/change', 'a/echo', 'b/echo']
  const desk = await open(t, { upstreams: { a: [], b: [] }, profile: { allow } })
  await desk.modern('tools/call', call('a__change', { tools: [tool(twin), tool(long)] }))
  assert.deepEqual(names(await desk.modern('tools/list')), ['a__echo', 'a__change', 'b__echo'])
  const denied = await desk.modern('tools/call', call(cut))
  assert.equal(denied.error?.message, `tool denied: ${cut}`)
  assert.ok(desk.told().some((line) => line.includes(`two things share the name ${cut}`)))
  assert.equal(desk.audit().filter(({ kind }) => kind === 'intent').length, 1)
})

test('the operator is told of names of servers with nothing in them that steers a terminal', async (t) => {
  const bad = 'n\u001b[2J\n\u202e'
  const long = `${bad}${'l'.repeat(100)}`
  const twin = exposed(['a', 'b'], 'a', long).slice(3)
  const allow = ['a/change', `a/${long}`, `a/${twin}`]
  const desk = await open(t, { upstreams: { a: [], b: [] }, profile: { allow } })
  const tools = [tool(long), tool(twin)]
  await desk.modern('tools/call', call('a__change', { tools }))
  await desk.modern('tools/list')
  const shown = 'share the name a__n\\u{1b}[2J\\u{a}\\u{202e}'
  assert.ok(desk.told().some((line) => line.includes(shown)))
  for (const line of desk.told()) assert.doesNotMatch(line, /[\p{Cc}\p{Cf}]/u)
})

test('a name that was cut leads back to its tool', async (t) => {
  const long = 'l'.repeat(100)
  const allow = [`a/${long}`, 'a/change', 'b/echo']
  const desk = await open(t, { upstreams: { a: [], b: [] }, profile: { allow } })
  await desk.modern('tools/call', call('a__change', { tools: [tool(long)] }))
  const cut = names(await desk.modern('tools/list')).find((name) => name.startsWith('a__l')) ?? ''
  assert.equal(cut.length, 64)
  await desk.modern('tools/call', call(cut))
  const entry = desk.audit().find(({ name }) => name === cut)
  assert.deepEqual([entry?.['kind'], entry?.['target']], ['intent', long])
})

test('equal URIs of two servers are withheld, a server that may be read alone is read', async (t) => {
  const both = { profile: { allow: ['a/echo'], resources: ['notes://*'] } }
  const desk = await open(t, { upstreams: { a: [], b: [] }, ...both })
  const listed = await desk.modern('resources/list')
  assert.deepEqual(listed.result?.['resources'], [])
  const denied = await desk.modern('resources/read', { uri: 'notes://a' })
  assert.equal(denied.error?.message, 'resource denied: notes://a')
  const one = await open(t, { upstreams: { a: ['--serve', 'tools'], b: [] }, ...both })
  assert.match(JSON.stringify((await one.modern('resources/list')).result), /notes:\/\/a/)
  assert.ok((await one.modern('resources/read', { uri: 'notes://77' })).result !== undefined)
})
