// What a server asks of a legacy client: what is sent, and which answers count.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Ask, Asks, Responses } from '../../../src/call.ts'
import { isObject, type JsonObject, parseText, REQUEST_LIMITS } from '../../../src/json.ts'
import { isAdmissible, forModern, shownAs } from '../../../src/mcp/front/ask-shapes.ts'
import { asking, type Asking, MAX_ASKS } from '../../../src/mcp/front/asks.ts'
import { capabilitiesOf } from '../../../src/mcp/wire/era.ts'

function admitted(value: unknown): JsonObject {
  const parsed = parseText(JSON.stringify(value), REQUEST_LIMITS)
  assert.ok(parsed.kind === 'json' && isObject(parsed.value))
  return parsed.value
}
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

const ask = (method: Ask['method'], params: object = {}): Ask => ({
  method,
  params: admitted(params),
})
const FORM = ask('elicitation/create', {
  message: 'Which one?',
  requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
})
const asksOf = (asks: Readonly<Record<string, Ask>>): Asks => ({ asks, state: null })

type Sent = { id?: string; method: string; params: Record<string, unknown> }

/** One round to a client of 2025-11-25 that is written to `sent`. */
function round(
  asks: Asks,
  options: { readonly one?: Asking; readonly version?: string } = {},
): {
  readonly one: Asking
  readonly sent: Sent[]
  readonly stop: AbortController
  readonly made: Promise<Responses | null>
  readonly say: (id: unknown, result: object | null) => boolean
} {
  const { one = asking(), version = '2025-11-25' } = options
  const sent: Sent[] = []
  const stop = new AbortController()
  const made = one.ask(asks, {
    version,
    signal: stop.signal,
    write: (message) => sent.push(JSON.parse(message) as Sent) > 0,
  })
  const say = (id: unknown, result: object | null): boolean =>
    one.answered({
      kind: 'response',
      id: id as string,
      result: result === null ? null : admitted(result),
    })
  return { one, sent, stop, made, say }
}

test('all of one round is asked at once and resolves with the answers by their keys', async () => {
  const { sent, made, say } = round(asksOf({ who: FORM, where: ask('roots/list') }))
  assert.deepEqual(
    sent.map(({ method }) => method),
    ['elicitation/create', 'roots/list'],
  )
  assert.ok(sent.every(({ id }) => id?.startsWith('eclusa-')))
  assert.notEqual(sent[0]?.id, sent[1]?.id)
  assert.ok(say(sent[1]?.id, { roots: [{ uri: 'file:///a' }] }))
  assert.ok(say(sent[0]?.id, { action: 'accept', content: { name: 'x', n: 1, all: ['a'] } }))
  assert.deepEqual(plain(await made), {
    who: { action: 'accept', content: { name: 'x', n: 1, all: ['a'] } },
    where: { roots: [{ uri: 'file:///a' }] },
  })
})

test('an answer counts once, for its own session and its own id only', async () => {
  const mine = round(asksOf({ a: FORM }))
  const other = round(asksOf({ a: FORM }))
  for (const id of ['eclusa-2', 'x', 1, null])
    assert.equal(mine.say(id, { action: 'accept' }), false)
  assert.ok(mine.say(mine.sent[0]?.id, { action: 'cancel' }))
  assert.equal(mine.say(mine.sent[0]?.id, { action: 'accept' }), false)
  assert.deepEqual(plain(await mine.made), { a: { action: 'cancel' } })
  other.stop.abort()
  assert.equal(await other.made, null)
})

test('an error, an inadmissible answer and a cancelled call end the round, and the rest is called off', async () => {
  const wrong: readonly (object | null)[] = [
    null,
    {},
    { action: 'yes' },
    { action: 'accept', content: { nested: {} } },
    { action: 'accept', content: [] },
  ]
  for (const answer of wrong) {
    const { sent, made, say } = round(asksOf({ a: FORM, b: FORM }))
    assert.ok(say(sent[0]?.id, answer))
    assert.equal(await made, null, JSON.stringify(answer))
    const [, , off] = sent
    assert.equal(off?.method, 'notifications/cancelled')
    assert.equal(off?.params['requestId'], sent[1]?.id)
    assert.equal(say(sent[1]?.id, { action: 'accept' }), false)
  }
  const { sent, made, stop } = round(asksOf({ a: FORM }))
  stop.abort()
  assert.equal(await made, null)
  assert.equal(sent[1]?.method, 'notifications/cancelled')
})

test('a client that does not answer in time, or that is gone, ends the round', async () => {
  assert.equal(await round(asksOf({ a: FORM }), { one: asking(20) }).made, null)
  const gone = round(asksOf({ a: FORM }))
  gone.one.stop()
  assert.equal(await gone.made, null)
  assert.equal(await round(asksOf({ a: FORM }), { one: gone.one }).made, null)
  const dropped = asking().ask(asksOf({ a: FORM }), {
    version: '2025-11-25',
    signal: new AbortController().signal,
    write: () => false,
  })
  assert.equal(await dropped, null)
})

test('more requests than a session may have open are not asked', async () => {
  const one = asking()
  const full = round(
    asksOf(Object.fromEntries(Array.from({ length: MAX_ASKS }, (_, n) => [`k${n}`, FORM]))),
    { one },
  )
  assert.equal(full.sent.length, MAX_ASKS)
  assert.equal(await round(asksOf({ a: FORM }), { one }).made, null)
  one.stop()
  assert.equal(await full.made, null)
  assert.deepEqual(plain(await round(asksOf({}), {}).made), {})
})

test('each revision is shown what it knows, and the rest is declined for it', async () => {
  const declined = { action: 'decline' }
  const shape = (one: Ask, version: string): unknown => {
    const shown = shownAs(one, version)
    return shown.kind === 'shown' ? plain(shown.ask.params) : plain(shown.response)
  }
  assert.deepEqual(shape(FORM, '2025-03-26'), declined)
  assert.deepEqual(shape(FORM, '2025-06-18'), plain(FORM.params))
  const url = ask('elicitation/create', { mode: 'url', message: 'm', url: 'https://a.example/x' })
  assert.deepEqual(shape(url, '2025-06-18'), declined)
  const named = shape(url, '2025-11-25') as Record<string, unknown>
  assert.match(String(named['elicitationId']), /^[0-9a-f]{32}$/)
  assert.deepEqual(
    { ...named, elicitationId: undefined },
    {
      mode: 'url',
      message: 'm',
      url: 'https://a.example/x',
      elicitationId: undefined,
    },
  )
  const old = ask('elicitation/create', {
    ...(plain(url.params) as object),
    elicitationId: 'theirs',
  })
  assert.equal((shape(old, '2025-11-25') as Record<string, unknown>)['elicitationId'], 'theirs')
  assert.equal(forModern(old).params['elicitationId'], undefined)
  const { made, sent } = round(asksOf({ a: url, b: FORM }), { version: '2025-03-26' })
  assert.deepEqual(plain(await made), { a: declined, b: declined })
  assert.equal(sent.length, 0)
})

test('choices of a form become those that 2025-06-18 knows; a choice of several is declined', () => {
  const form = (field: object): Ask =>
    ask('elicitation/create', {
      message: 'm',
      requestedSchema: { type: 'object', properties: { f: field }, required: ['f'] },
    })
  const field = (shown: ReturnType<typeof shownAs>): unknown => {
    if (shown.kind !== 'shown') return 'declined'
    const schema = shown.ask.params['requestedSchema']
    const properties = isObject(schema) ? schema['properties'] : undefined
    return plain(isObject(properties) ? properties['f'] : null)
  }
  const titled = form({
    type: 'string',
    title: 'T',
    oneOf: [
      { const: 'a', title: 'A' },
      { const: 'b', title: 'B' },
    ],
    default: 'a',
  })
  assert.deepEqual(field(shownAs(titled, '2025-06-18')), {
    type: 'string',
    title: 'T',
    enum: ['a', 'b'],
    enumNames: ['A', 'B'],
  })
  assert.deepEqual(field(shownAs(form({ type: 'boolean', default: true }), '2025-06-18')), {
    type: 'boolean',
    default: true,
  })
  const several = form({ type: 'array', items: { type: 'string', enum: ['a', 'b'] } })
  assert.equal(field(shownAs(several, '2025-06-18')), 'declined')
  assert.equal(
    field(shownAs(form({ type: 'string', oneOf: [{ const: 1 }] }), '2025-06-18')),
    'declined',
  )
  assert.notEqual(field(shownAs(several, '2025-11-25')), 'declined')
})

test('what belongs to the hop to the server is not shown to the client', () => {
  const sampling = ask('sampling/createMessage', {
    messages: [],
    maxTokens: 5,
    task: { ttl: 1 },
    _meta: {
      progressToken: 1,
      'eclusa/x': 1,
      'io.modelcontextprotocol/related-task': {},
      'v/x': 1,
    },
  })
  const shown = shownAs(sampling, '2025-11-25')
  assert.ok(shown.kind === 'shown')
  assert.deepEqual(plain(shown.ask.params), { messages: [], maxTokens: 5, _meta: { 'v/x': 1 } })
})

test('answers are admitted by the shapes of their method and revision', () => {
  const sampling = ask('sampling/createMessage', { messages: [], maxTokens: 5 })
  const text = { type: 'text', text: 'x' }
  const sampled = (more: object): JsonObject =>
    admitted({ role: 'assistant', model: 'm', content: text, ...more })
  const cases: readonly (readonly [Ask, JsonObject, string, boolean])[] = [
    [sampling, sampled({}), '2025-03-26', true],
    [sampling, sampled({ content: [text] }), '2025-11-25', true],
    [sampling, sampled({ content: [text] }), '2025-06-18', false],
    [sampling, sampled({ role: 'system' }), '2025-11-25', false],
    [sampling, sampled({ model: 1 }), '2025-11-25', false],
    [sampling, sampled({ content: 'x' }), '2025-11-25', false],
    [ask('roots/list'), admitted({ roots: [] }), '2025-11-25', true],
    [ask('roots/list'), admitted({ roots: [{ uri: 1 }] }), '2025-11-25', false],
    [ask('roots/list'), admitted({ roots: [{ uri: 'file:///a', name: 1 }] }), '2025-11-25', false],
    [ask('roots/list'), admitted({}), '2025-11-25', false],
  ]
  for (const [one, result, version, is] of cases) {
    assert.equal(isAdmissible(one, result, version), is, JSON.stringify([one.method, result]))
  }
})

test('a session declares no more to servers than its revision knows', () => {
  const all = admitted({
    roots: { listChanged: true },
    sampling: { tools: {}, context: {} },
    elicitation: { form: {}, url: {} },
    tasks: { list: {} },
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  })
  assert.deepEqual(plain(capabilitiesOf('2025-11-25', all)), {
    roots: {},
    sampling: { tools: {}, context: {} },
    elicitation: { form: {}, url: {} },
  })
  assert.deepEqual(plain(capabilitiesOf('2025-06-18', all)), {
    roots: {},
    sampling: {},
    elicitation: {},
  })
  assert.deepEqual(plain(capabilitiesOf('2025-03-26', all)), { roots: {}, sampling: {} })
  assert.deepEqual(plain(capabilitiesOf('2025-11-25', 'x')), {})
})
