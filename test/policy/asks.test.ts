// What servers may ask of a client: granted by the profile, declared by the client, narrowed to the roots.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Ask } from '../../src/call.ts'
import type { JsonObject } from '../../src/json.ts'
import { admitsAsk, grants, MAX_ROOTS, narrow, requiredBy } from '../../src/policy/asks.ts'
import type { PolicySet } from '../../src/policy/set.ts'
import { client, faultsOf, jsonObject, policyOf } from './ground.ts'

const TASKS = 'io.modelcontextprotocol/tasks'

/** A policy whose profile `p` has this `client:`; `child` extends it. */
const withClient = (granted: string): Promise<PolicySet> =>
  policyOf(`version: 2
upstreams: { notes: { command: [x] } }
profiles:
  p: { allow: [notes/t], client: ${granted} }
  child: { extends: p, allow: [notes/u] }
  other: { extends: p, client: { sampling: true } }
`)

const ask = (method: Ask['method'], params = '{}'): Ask => ({ method, params: jsonObject(params) })
const FORM = ask('elicitation/create', '{"message":"?","requestedSchema":{"type":"object"}}')
const EVERYTHING = jsonObject(
  '{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true}}',
)
const p = client('p')
/** Equal as JSON: admitted values have no prototype. */
const same = (made: JsonObject, wanted: object): void =>
  assert.deepEqual(JSON.parse(JSON.stringify(made)), wanted)

test('a profile that says nothing of client grants nothing', async () => {
  const set = await policyOf(
    'version: 2\nupstreams: { notes: { command: [x] } }\nprofiles: { p: { allow: [notes/t] } }\n',
  )
  same(grants(set, p, EVERYTHING), {})
  assert.equal(admitsAsk(set, p, EVERYTHING, FORM)?.code, 'ask_denied')
  assert.equal(admitsAsk(set, p, EVERYTHING, ask('roots/list'))?.rule, '/profiles/p/client')
})

test('what is declared to servers is what the client declared and the profile grants, in one form', async () => {
  const set = await withClient('{ elicitation: true, roots: [/proj] }')
  same(grants(set, p, EVERYTHING), {
    elicitation: { form: {}, url: {} },
    roots: {},
  })
  same(grants(set, p, jsonObject('{"elicitation":{}}')), { elicitation: { form: {} } })
  same(grants(set, p, jsonObject('{"elicitation":true,"roots":1}')), {})
  same(grants(set, p, jsonObject('{"elicitation":{"later":{}}}')), {})
})

test('of extensions only tasks is passed, whatever the client adds to it', async () => {
  const set = await withClient('{}')
  const declared = jsonObject(`{"extensions":{"${TASKS}":{"x":1},"other/ui":{}}}`)
  same(grants(set, p, declared), { extensions: { [TASKS]: {} } })
  same(grants(set, p, jsonObject(`{"extensions":{"${TASKS}":true}}`)), {})
})

test('extending takes client over, and saying it replaces it whole', async () => {
  const set = await withClient('{ elicitation: true }')
  assert.deepEqual(Object.keys(grants(set, client('child'), EVERYTHING)), ['elicitation'])
  assert.deepEqual(Object.keys(grants(set, client('other'), EVERYTHING)), ['sampling'])
})

test('a client that is not known is asked nothing', async () => {
  const set = await withClient('{ elicitation: true }')
  const unknown = { ...p, identity: 'unknown' as const }
  same(grants(set, unknown, EVERYTHING), {})
  assert.equal(admitsAsk(set, unknown, EVERYTHING, FORM)?.code, 'ask_denied')
  assert.equal(admitsAsk(set, client('nobody'), EVERYTHING, FORM)?.code, 'ask_denied')
})

test('what the client did not declare is not asked of it', async () => {
  const set = await withClient('{ elicitation: true, sampling: true, roots: true }')
  const forms = jsonObject('{"elicitation":{},"sampling":{}}')
  const url = ask('elicitation/create', '{"mode":"url","url":"https://a.example/x","message":"?"}')
  const tools = ask('sampling/createMessage', '{"messages":[],"maxTokens":1,"tools":[]}')
  assert.equal(admitsAsk(set, p, forms, FORM), null)
  assert.equal(admitsAsk(set, p, forms, url)?.code, 'capability_missing')
  assert.equal(admitsAsk(set, p, forms, ask('roots/list'))?.code, 'capability_missing')
  assert.equal(admitsAsk(set, p, forms, tools)?.code, 'capability_missing')
  assert.equal(admitsAsk(set, p, EVERYTHING, url), null)
  assert.equal(admitsAsk(set, p, EVERYTHING, tools), null)
  same(requiredBy(url), { elicitation: { url: {} } })
  same(requiredBy(tools), { sampling: { tools: {} } })
})

test('a page to open must be one of the web', async () => {
  const set = await withClient('{ elicitation: true }')
  const page = (url: string) =>
    ask('elicitation/create', JSON.stringify({ mode: 'url', url, message: '?' }))
  for (const url of [
    'javascript:alert(1)',
    'file:///etc/passwd',
    'vscode://x',
    'https:// a.example/',
    'https://a.example/\u202Ex',
    'https:///x',
    'http://[',
    '',
    `https://a.example/${'x'.repeat(9_000)}`,
  ]) {
    assert.equal(admitsAsk(set, p, EVERYTHING, page(url))?.code, 'ask_denied', url)
  }
  assert.equal(admitsAsk(set, p, EVERYTHING, page('https://a.example/x?y=1')), null)
  const odd = ask('elicitation/create', '{"mode":"later","message":"?"}')
  assert.equal(admitsAsk(set, p, EVERYTHING, odd)?.code, 'ask_denied')
})

const rootsOf = (value: unknown): readonly string[] =>
  (value as { roots: { uri: string }[] }).roots.map(({ uri }) => uri)
const roots = (...uris: readonly string[]) =>
  jsonObject(JSON.stringify({ roots: uris.map((uri) => ({ uri, name: 'n' })) }))

test('roots outside those of the profile are left out, the others pass byte for byte', async () => {
  const set = await withClient('{ roots: [/proj, "/my docs/", "file:///C:/work", "x://h/r"] }')
  const kept = [
    'file:///proj',
    'file:///proj/',
    'file:///proj/a%20b',
    'file:///my%20docs/x',
    'file:///C:/work/a',
    'x://h/r/1',
  ]
  const dropped = [
    'file:///project',
    'file:///',
    'file:///proj/../etc',
    'file:///proj/%2e%2e/etc',
    'file:///proj/%252e%252e/etc',
    'file:///proj%2fetc',
    'file:///proj/..%2fetc',
    'file:///proj/a%5c..%5cb',
    'file:///proj/%00',
    'file:///proj/%ff',
    'file:///proj/x?y',
    'file:///proj#x',
    'file:///Proj',
    'FILE:///proj',
    'file:/proj',
    'file://host/proj',
    'file://localhost/proj',
    '/proj',
    'file:///proj/%E2%80%AE',
    'file:///C:/workshop',
    'x://h/r2',
    'https://a.example/proj',
    '',
  ]
  const narrowed = narrow(set, p, { method: 'roots/list' }, roots(...dropped, ...kept))
  assert.deepEqual(rootsOf(narrowed), kept)
  const whole = roots(...kept)
  assert.equal(narrow(set, p, { method: 'roots/list' }, whole), whole)
})

test('entries that are no roots are left out and a list is never longer than its limit', async () => {
  const set = await withClient('{ roots: true }')
  const many = roots(...Array.from({ length: MAX_ROOTS + 7 }, (_, at) => `file:///${at}`))
  const cut = narrow(set, p, { method: 'roots/list' }, many)
  assert.equal(rootsOf(cut).length, MAX_ROOTS)
  const odd = jsonObject('{"roots":[{"uri":1},{},null,"file:///x",{"uri":"file:///x"}]}')
  assert.deepEqual(rootsOf(narrow(set, p, { method: 'roots/list' }, odd)), ['file:///x'])
})

test('an answer without the form that its method demands is none', async () => {
  const set = await withClient('{ elicitation: true, sampling: true, roots: true }')
  const answer = (method: Ask['method'], text: string) =>
    narrow(set, p, { method }, jsonObject(text)) !== null
  assert.ok(answer('elicitation/create', '{"action":"accept","content":{"a":1}}'))
  assert.ok(answer('elicitation/create', '{"action":"cancel"}'))
  assert.ok(!answer('elicitation/create', '{"action":"yes"}'))
  assert.ok(!answer('elicitation/create', '{"action":"accept","content":[]}'))
  assert.ok(answer('sampling/createMessage', '{"role":"assistant","model":"m","content":{}}'))
  assert.ok(!answer('sampling/createMessage', '{"role":"assistant","content":{}}'))
  assert.ok(!answer('roots/list', '{}'))
})

test('a root that is none is a fault with its place', async () => {
  const text = (root: string): string =>
    `version: 2\nupstreams: { n: { command: [x] } }\nprofiles:\n  p:\n    client: { roots: [${root}] }\n`
  const fault = async (root: string): Promise<string> => (await faultsOf(text(root))).join('\n')
  assert.match(await fault('proj'), /e\.yaml:5:23: .*begins with `\/`/)
  assert.match(await fault('/a/../b'), /empty or dot segments/)
  assert.match(await fault('"file:///a/%2e%2e/b"'), /dot segment/)
  assert.match(await fault('"file:///a/*"'), /no query, fragment or pattern/)
  assert.equal(await fault('/proj'), '')
  assert.match(
    (await faultsOf(text('/x').replace('roots: [/x]', 'roots: 7'))).join('\n'),
    /5:22.*true or false or a list/,
  )
})
