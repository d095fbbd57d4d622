// Mistakes that were seen in programs of this kind, where they concern policy: each must not be here.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Call } from '../../src/call.ts'
import { canonical } from '../../src/canonical.ts'
import { object } from '../../src/json.ts'
import { admits, advertise, decide, tell } from '../../src/policy/decide.ts'
import { approved, client, codes, faultsOf, jsonObject, policyOf, toolCall } from './ground.ts'

const text = (profile: string, tools = '{}'): string => `version: 2
upstreams: { notes: { command: [x] }, other: { command: [y] } }
tools: ${tools}
profiles: { p: { ${profile} } }
`

test('a rule that errors is not skipped', async () => {
  const set = await policyOf(
    text('allow: [notes/t], rules: [{ tool: notes/t, when: args.owner == "x", require: "false" }]'),
  )
  assert.equal(codes(decide(toolCall(client('p'), 't', '{}'), set, approved())), 'arguments_denied')
})

test('a type error in a rule does not make it silently not apply', async () => {
  const set = await policyOf(
    text('allow: [notes/t], rules: [{ tool: notes/t, when: args.amount > 100, require: "false" }]'),
  )
  for (const amount of ['"1000"', 'true', '[1000]', 'null', '{}']) {
    const made = decide(toolCall(client('p'), 't', `{"amount":${amount}}`), set, approved())
    assert.equal(codes(made), 'arguments_denied', amount)
  }
})

test('one rule that holds does not switch off the checks of another', async () => {
  const rules = [
    '{ tool: notes/t, require: "true", code: wide }',
    '{ tool: "notes/*", require: args.a < 5, code: narrow }',
    '{ tool: "*", require: args.b < 5, code: wider }',
  ]
  for (const order of [rules, rules.toReversed()]) {
    const set = await policyOf(text(`allow: [notes/t], rules: [${order.join(', ')}]`))
    assert.equal(
      codes(decide(toolCall(client('p'), 't', '{"a":1,"b":1}'), set, approved())),
      'allow',
    )
    assert.equal(
      codes(decide(toolCall(client('p'), 't', '{"a":9,"b":1}'), set, approved())),
      'arguments_denied',
    )
    assert.equal(
      codes(decide(toolCall(client('p'), 't', '{"a":1,"b":9}'), set, approved())),
      'arguments_denied',
    )
  }
})

test('a rule allows nothing: a tool that no list names stays denied', async () => {
  const set = await policyOf(text('rules: [{ tool: notes/t, require: "true" }]'))
  assert.equal(codes(decide(toolCall(client('p'), 't', '{}'), set, approved())), 'tool_denied')
})

test('what was judged is what is sent: pinned arguments are in place before any check', async () => {
  const set = await policyOf(
    text(
      'allow: [notes/t], set: { notes/t: { folder: secret } }, rules: [{ tool: notes/t, require: args.folder != "secret" }]',
    ),
  )
  assert.equal(codes(decide(toolCall(client('p'), 't', '{}'), set, approved())), 'arguments_denied')
})

test('the decision is on the admitted call and on nothing that stands beside it', async () => {
  const set = await policyOf(text('allow: [notes/get]'))
  const params = jsonObject(
    '{"name":"get","arguments":{},"_meta":{"name":"get","Mcp-Name":"get","eclusa/allow":true}}',
  )
  const call: Call = { ...toolCall(client('p'), 'wipe', '{}'), params }
  assert.equal(codes(decide(call, set, approved())), 'tool_denied')
  const claims = jsonObject('{"clientInfo":{"name":"p"},"profile":"p","identity":"token"}')
  const unknown: Call = {
    ...toolCall({ ...client('p'), identity: 'unknown' }, 'get', '{}'),
    params: claims,
  }
  assert.equal(codes(decide(unknown, set, approved())), 'client_unknown')
})

test('a filtered list changes nothing else of a definition', async () => {
  const set = await policyOf(text('allow: [notes/t], set: { notes/t: { a: 1 } }'))
  const value = jsonObject(
    '{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","$defs":{"x":{}},"properties":{"a":{},"b":{}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"x":{"ttl":1.0}},"unknown":12345678901234567890}',
  )
  const shown = advertise(set, client('p'), 'notes', { name: 't', value, hash: 'h' })
  assert.equal(canonical(shown), canonical(value).replace('"a":{},"b":{}', '"b":{}'))
  const plain = await policyOf(text('allow: [notes/t]'))
  assert.equal(advertise(plain, client('p'), 'notes', { name: 't', value, hash: 'h' }), value)
})

test('a second surface does not escape policy: completion follows its reference', async () => {
  const set = await policyOf(text('prompts: [notes/shown], resources: ["n://shown/*"]'))
  const call = (kind: 'prompt' | 'resource', name: string): string =>
    codes(
      decide(
        {
          ...toolCall(client('p'), name, '{}'),
          method: 'completion/complete',
          target: { kind, upstream: 'notes', name },
        },
        set,
        { definition: null, pin: 'none' },
      ),
    )
  assert.equal(call('prompt', 'shown'), 'allow')
  assert.equal(call('prompt', 'hidden'), 'prompt_denied')
  assert.equal(call('resource', 'n://shown/{x}'), 'allow')
  assert.equal(call('resource', 'n://hidden/{x}'), 'resource_denied')
})

test('a refusal gives the agent nothing with which it could approve itself', async () => {
  const set = await policyOf(text('allow: [notes/t], rules: [{ tool: notes/t, require: "false" }]'))
  for (const [name, pin] of [
    ['t', 'approved'],
    ['t', 'waits'],
    ['t', 'changed'],
    ['x', 'approved'],
  ] as const) {
    const made = decide(toolCall(client('p'), name, '{}'), set, { ...approved(), pin })
    assert.ok(made.effect === 'deny')
    assert.deepEqual(Object.keys(tell(set, made.failures[0])), ['code'])
  }
})

test('unsafe settings are refused at start, not at the first call', async () => {
  const lines = await faultsOf(
    text('allow: [notes/wipe]', '{ notes/wipe: { effect: destructive, key: {} } }'),
  )
  assert.ok(
    lines.some((line) => line.includes('error') && line.includes('destructive')),
    lines.join('\n'),
  )
})

test('a pin covers the whole definition: whatever of it changed, a changed pin withholds it', async () => {
  const set = await policyOf(text('allow: [notes/t]'))
  const call = toolCall(client('p'), 't', '{}')
  assert.equal(codes(decide(call, set, { ...approved(), pin: 'changed' })), 'definition_changed')
  assert.equal(codes(decide(call, set, { ...approved(), pin: 'new' })), 'allow')
})

test('names of the language itself are names like any other', async () => {
  const set = await policyOf(
    text(
      'allow: [notes/constructor, notes/toString], rules: [{ tool: notes/toString, require: has(args.valueOf) && args.valueOf == 1 }]',
    ),
  )
  const on = (name: string, args: string): string =>
    codes(decide(toolCall(client('p'), name, args), set, approved()))
  assert.equal(on('constructor', '{}'), 'allow')
  assert.equal(on('hasOwnProperty', '{}'), 'tool_denied')
  assert.equal(on('toString', '{"valueOf":1}'), 'allow')
  assert.equal(on('toString', '{}'), 'arguments_denied')
  assert.notEqual(
    admits(set, client('p'), { kind: 'tool', upstream: 'notes', name: 'valueOf' }),
    null,
  )
  assert.equal(
    codes(
      decide(toolCall(client('p'), 'constructor', '{}'), set, {
        ...approved(),
        definition: { hash: 'x', value: object({}) },
      }),
    ),
    'allow',
  )
})
