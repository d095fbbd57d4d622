// Decisions about arguments: what policy sets, what rules read, numbers, keys.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Facts } from '../../src/decision.ts'
import { canonical } from '../../src/canonical.ts'
import {
  json,
  jsonObject,
  policyOf,
  approved,
  client,
  codes,
  judged,
  told,
  toolCall,
} from './ground.ts'
import { advertise, decide, firstUse, keyOf } from '../../src/policy/decide.ts'

const text = (profiles: string, tools = '{}'): string => `version: 2
upstreams: { notes: { command: [x] }, other: { command: [y] } }
tools: ${tools}
profiles: ${profiles}
`

test('arguments that policy sets are sent, judged, hidden and refused when the agent sends them', async () => {
  const set = await policyOf(
    text(
      `{ p: { allow: [notes/t], set: { notes/t: { vault: { cel: client.attributes.vault }, folder: public, deep: { a: [1] } } },
        rules: [{ tool: notes/t, require: args.vault == "family" }] } }`,
    ),
  )
  const facts = approved(
    '{"type":"object","properties":{"text":{},"vault":{"type":"string"},"folder":{},"deep":{}},"required":["vault","text"]}',
  )
  const who = client('p', { vault: 'family' })
  const made = decide(toolCall(who, 't', '{"text":"x"}'), set, facts)
  assert.ok(made.effect === 'allow')
  assert.equal(
    canonical(made.args),
    '{"deep":{"a":[1]},"folder":"public","text":"x","vault":"family"}',
  )
  assert.equal(
    codes(decide(toolCall(who, 't', '{"text":"x","vault":"family"}'), set, facts)),
    'arguments_denied',
    'sent, even if equal',
  )
  assert.equal(
    codes(decide(toolCall(who, 't', '{"text":"x","folder":null}'), set, facts)),
    'arguments_denied',
  )
  assert.equal(
    codes(decide(toolCall(client('p', { vault: 'work' }), 't', '{"text":"x"}'), set, facts)),
    'arguments_denied',
  )
  assert.equal(
    codes(decide(toolCall(client('p'), 't', '{"text":"x"}'), set, facts)),
    'arguments_denied arguments_invalid arguments_denied',
    'an attribute that is missing denies',
  )
  const definition = { name: 't', hash: 'h', value: facts.definition?.value ?? jsonObject('{}') }
  assert.equal(
    canonical(advertise(set, who, 'notes', definition)),
    '{"inputSchema":{"properties":{"text":{}},"required":["text"],"type":"object"}}',
  )
  assert.equal(
    advertise(set, who, 'other', definition),
    definition.value,
    'unchanged is the same value',
  )
})

test('a rule that cannot be decided denies: in when, in require, of another type, over budget', async () => {
  const list = JSON.stringify({ l: Array.from({ length: 2_000 }, () => 1) })
  for (const [rule, args] of [
    ['{ tool: notes/t, when: args.nope == 1, require: "true" }', '{}'],
    ['{ tool: notes/t, when: "1", require: "true" }', '{}'],
    ['{ tool: notes/t, require: args.nope }', '{}'],
    ['{ tool: notes/t, require: "1" }', '{}'],
    ['{ tool: notes/t, require: args.s }', '{"s":"true"}'],
    ['{ tool: notes/t, require: "args.l.all(x, args.l.all(y, x == y))" }', list],
    ['{ tool: notes/t, when: "args.l.all(x, args.l.all(y, x == y))", require: "true" }', list],
  ] as const) {
    assert.equal(codes(await judged({ rules: rule }, args)), 'arguments_denied', rule)
  }
})

const NUMBERS: readonly (readonly [string, string])[] = [
  ['9007199254740991', 'allow'],
  ['9007199254740991.0', 'allow'],
  ['9007199254740992', 'number_not_exact'],
  ['9007199254740993', 'number_not_exact'],
  ['9.007199254740992e15', 'number_not_exact'],
  ['9007199254740990', 'arguments_denied'],
  ['"9007199254740991"', 'arguments_denied'],
  ['9007199254740991.00000001', 'number_not_exact'],
]

for (const [source, wanted] of NUMBERS) {
  test(`id ${source} against an id of 2^53-1: ${wanted}`, async () => {
    for (const parts of [
      { rules: '{ tool: notes/t, require: args.id == 9007199254740991 }' },
      { contract: 'args: { required: [id], properties: { id: { enum: [9007199254740991] } } }' },
    ]) {
      assert.equal(codes(await judged(parts, `{"id":${source}}`)), wanted)
    }
  })
}

for (const [amount, wanted] of [
  ['100', 'allow'],
  ['100.0', 'allow'],
  ['1e2', 'allow'],
  ['-0', 'allow'],
  ['-0.0', 'allow'],
  ['1000', 'deny'],
  ['1e3', 'deny'],
  ['100.0000000000000001', 'deny'],
  ['"1000"', 'deny'],
  ['"1e3"', 'deny'],
  ['"100"', 'deny'],
  ['"0x3E8"', 'deny'],
  ['" 1000"', 'deny'],
  ['"100\\u0000"', 'deny'],
  ['true', 'deny'],
  ['null', 'deny'],
  ['["100"]', 'deny'],
  ['[100]', 'deny'],
  ['{"a":1}', 'deny'],
] as const) {
  test(`amount ${amount} against amount <= 100: ${wanted}`, async () => {
    const schema =
      '{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}'
    const made = await judged(
      { rules: '{ tool: notes/t, require: args.amount <= 100 }', schema },
      `{"amount":${amount}}`,
    )
    assert.equal(made.effect, wanted)
    const alone = await judged(
      { rules: '{ tool: notes/t, require: args.amount <= 100 }' },
      `{"amount":${amount}}`,
    )
    assert.equal(alone.effect, wanted, "without the server's schema")
  })
}

for (const args of [
  '{}',
  '{"scope":null}',
  '{"Scope":"test"}',
  '{"scope":""}',
  '{"scope":"all"}',
  '{"scope":["test"]}',
  '{"scope":"test","extra":1}',
]) {
  test(`purge with ${args} does not satisfy scope == "test"`, async () => {
    const schema = '{"type":"object","properties":{"scope":{"type":"string","default":"all"}}}'
    for (const parts of [
      { schema, rules: '{ tool: notes/t, require: args.scope == "test" }' },
      { schema, contract: 'args: { required: [scope], properties: { scope: { const: test } } }' },
    ]) {
      assert.equal((await judged(parts, args)).effect, 'deny')
      assert.equal((await judged(parts, '{"scope":"test"}')).effect, 'allow')
    }
  })
}

test('a number that nothing reads passes as it was written', async () => {
  const made = await judged(
    { rules: '{ tool: notes/t, require: args.a == 1 }' },
    '{"a":1.0,"id":12345678901234567890,"f":1.50}',
  )
  assert.ok(made.effect === 'allow')
  assert.equal(JSON.stringify(made.args), '{"a":1.0,"id":12345678901234567890,"f":1.50}')
})

const KEYS: readonly (readonly [string, string, string | null, string])[] = [
  ['key: { at: /id, honoured: true }', '{"id":"k-1"}', null, 'k-1 honoured'],
  ['key: { at: /id, honoured: true }', '{"id":"k-1"}', 'other', 'k-1 honoured'],
  ['key: { at: /id, honoured: true }', '{}', 'sent', 'sent'],
  ['key: { at: /id }', '{"id":null}', null, 'key_missing'],
  ['key: { at: /id }', '{"id":7}', null, '7'],
  ['key: { at: /id }', '{"id":7.0}', null, '7'],
  ['key: { at: /id }', '{"id":7.5}', null, 'key_invalid'],
  ['key: { at: /id }', '{"id":9007199254740993}', null, 'number_not_exact'],
  ['key: { at: /id }', '{"id":""}', null, 'key_invalid'],
  ['key: { at: /id }', '{"id":"naïve"}', null, 'key_invalid'],
  ['key: { at: /id }', '{"id":"a\\nb"}', null, 'key_invalid'],
  ['key: { at: /id }', `{"id":"${'k'.repeat(200)}"}`, null, 'k'.repeat(200)],
  ['key: { at: /id }', `{"id":"${'k'.repeat(201)}"}`, null, 'key_invalid'],
  ['key: { at: /id }', '{"id":["k"]}', null, 'key_invalid'],
  ['key: { at: /id }', '{"id":true}', null, 'key_invalid'],
  ['key: { at: /a/1/b }', '{"a":[1,{"b":"x"}]}', null, 'x'],
  ['key: { at: /a~1b }', '{"a/b":"x"}', null, 'x'],
  ['key: { at: /constructor }', '{}', null, 'key_missing'],
  ['key: {}', '{}', null, 'key_missing'],
  ['key: {}', '{}', 'sent', 'sent'],
  ['', '{}', 'sent', 'sent'],
  ['', '{}', 'bad\u0007', 'key_invalid'],
  ['', '{}', null, 'no key'],
]

for (const [contract, args, sent, wanted] of KEYS) {
  test(`the key of ${contract || 'no contract'} in ${args.slice(0, 30)} with ${sent ?? 'none'} beside it: ${wanted.slice(0, 20)}`, async () => {
    const set = await policyOf(
      text('{ p: { allow: [notes/t] } }', `{ notes/t: { effect: write, ${contract} } }`),
    )
    const call = toolCall(client('p'), 't', args, sent)
    const made = decide(call, set, approved())
    const found =
      made.effect === 'deny'
        ? codes(made)
        : made.key === null
          ? 'no key'
          : `${made.key}${made.honoured ? ' honoured' : ''}`
    assert.equal(found, wanted)
    assert.equal(keyOf(set, call), made.effect === 'allow' ? made.key : null)
  })
}

test('version 1: lists of exact names, fields that must be strings of a length in code points', async () => {
  const set = await policyOf(
    '{"version":1,"allow":["w","r","*"],"deny":["d"],"arg_rules":{"w":{"id":{"min_len":3},"t":{"max_len":2}}}}',
  )
  const on = (name: string, args: string): string =>
    codes(decide(toolCall(client('default'), name, args), set, approved()))
  assert.equal(on('w', '{"id":"abc","t":"😀😀"}'), 'allow')
  assert.equal(on('w', '{"id":"😀😀","t":""}'), 'arguments_denied')
  assert.equal(on('w', '{"id":"abc","t":"abc"}'), 'arguments_denied')
  assert.equal(on('w', '{"id":"abc"}'), 'arguments_denied', 'a field that is absent')
  assert.equal(on('w', '{"id":123,"t":["a","b","c"]}'), 'arguments_denied arguments_denied')
  assert.equal(on('w', '{"id":"abc","t":null}'), 'arguments_denied')
  assert.equal(on('w', '{"id":12345678901234567890,"t":"a"}'), 'number_not_exact')
  assert.equal(on('r', '{"anything":1}'), 'allow')
  assert.equal(on('d', '{}'), 'tool_denied')
  assert.equal(on('x', '{}'), 'tool_denied', '* is a name here, not a pattern')
  assert.equal(on('*', '{}'), 'allow')
  assert.equal(firstUse(set, client('default'), 'notes/w'), 'approved')
})

test('version 1 and 2 in one configuration: the contract of a tool counts beside its length rules', async () => {
  const set = await policyOf(
    'version: 2\nupstreams: { notes: { command: [x] } }\npolicy: p.json\ntools: { notes/w: { effect: write, key: { at: /id } } }\n',
    '{"version":1,"allow":["w"],"arg_rules":{"w":{"id":{"min_len":3}}}}',
  )
  const made = decide(toolCall(client('default'), 'w', '{"id":"abc"}'), set, approved())
  assert.ok(made.effect === 'allow')
  assert.deepEqual([made.does, made.key], ['write', 'abc'])
  assert.deepEqual(told(decide(toolCall(client('default'), 'w', '{"id":"a"}'), set, approved())), [
    'arguments_denied /arg_rules/w/id /id',
  ])
  assert.equal(set.place('/arg_rules/w/id').file, 'p.json')
  assert.equal(set.place('/tools/notes~1w/key').file, 'e.yaml')
})

test('decide never throws, whatever the server says its tool is', async () => {
  const set = await policyOf(
    text('{ p: { allow: [notes/t], rules: [{ tool: "*", require: "true" }] } }'),
  )
  for (const schema of [
    'null',
    '5',
    '[]',
    '"x"',
    '{"properties":5}',
    '{"$ref":"#"}',
    '{"type":[]}',
    '{"allOf":{}}',
    '{"items":[5]}',
    '{"enum":{}}',
  ]) {
    assert.equal(
      codes(decide(toolCall(client('p'), 't', '{"a":1}'), set, approved(schema))),
      'arguments_invalid',
      schema,
    )
  }
  const none: Facts = { definition: { hash: 'none', value: jsonObject('{}') }, pin: 'approved' }
  assert.equal(codes(decide(toolCall(client('p'), 't', '{}'), set, none)), 'arguments_invalid')
  let deep = '1'
  for (let at = 0; at < 60; at++) deep = `[${deep}]`
  assert.equal(codes(decide(toolCall(client('p'), 't', `{"a":${deep}}`), set, approved())), 'allow')
  assert.equal(json('1'), 1)
})
