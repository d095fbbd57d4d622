// What a policy file means as a whole: extends, must_deny, destructive tools, declared clients.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { decide, declared } from '../../src/policy/decide.ts'
import { approved, client, codes, faultsOf, policyOf, toolCall } from './ground.ts'

const UP = 'upstreams: { notes: { command: [node, s.js] } }'
const base = (rest: string): string => `version: 2\n${UP}\n${rest}\n`

test('extends joins allow, deny and rules and replaces the rest', async () => {
  const set = await policyOf(
    base(`profiles:
  a:
    allow: [notes/x]
    deny: [notes/d]
    rules: [{ tool: notes/x, require: has(args.a), code: from_a }]
    resources: ["r://a/*"]
    set: { notes/x: { one: 1 } }
    token: required
  b:
    extends: a
    allow: [notes/*]
    rules: [{ tool: notes/x, require: has(args.b), code: from_b }]
  c:
    extends: b
    token: optional
    resources: ["r://c/*"]
    set: { notes/x: { two: 2 } }`),
  )
  const b = set.profiles.get('b')
  const c = set.profiles.get('c')
  assert.deepEqual(
    b?.rules.map((rule) => rule.code),
    ['from_a', 'from_b'],
  )
  assert.deepEqual(
    c?.rules.map((rule) => rule.path),
    ['/profiles/a/rules/0', '/profiles/b/rules/0'],
  )
  assert.deepEqual([b?.token, c?.token], ['required', 'optional'])
  assert.deepEqual(
    b?.resources.map((one) => one.source),
    ['r://a/*'],
  )
  assert.deepEqual(
    c?.resources.map((one) => one.source),
    ['r://c/*'],
  )
  assert.deepEqual(
    c?.set.get('notes/x')?.map((one) => one.name),
    ['two'],
  )
  assert.equal(codes(decide(toolCall(client('c'), 'd', '{}'), set, approved())), 'tool_denied')
  assert.equal(
    codes(decide(toolCall(client('c'), 'x', '{}'), set, approved())),
    'arguments_denied arguments_denied',
  )
  assert.equal(codes(decide(toolCall(client('c'), 'x', '{"a":1,"b":1}'), set, approved())), 'allow')
})

test('extends in a circle is a fault of each profile in it', async () => {
  const lines = await faultsOf(
    base('profiles: { a: { extends: b }, b: { extends: c }, c: { extends: a } }'),
  )
  assert.equal(lines.filter((line) => /leads back/.test(line)).length, 3)
})

test('must_deny stops the start when a call of it would pass', async () => {
  const rules = 'rules: [{ tool: notes/pay, require: args.amount <= 100 }]'
  const text = (entry: string): string =>
    base(`tools: { notes/pay: { effect: write, key: { at: /id } } }
profiles: { p: { allow: [notes/pay], ${rules} } }
must_deny: [ ${entry} ]`)
  assert.deepEqual(
    await faultsOf(text('{ profile: p, tool: notes/pay, args: { amount: 101 } }')),
    [],
  )
  const lines = await faultsOf(text('{ profile: p, tool: notes/pay, args: { amount: 100 } }'))
  assert.match(
    lines[0] ?? '',
    /^e\.yaml:5:14: error: profile `p` may call notes\/pay/,
    'a missing key is no protection',
  )
  assert.match(
    (await faultsOf(text('{ profile: q, tool: notes/pay }')))[0] ?? '',
    /no profile is called `q`/,
  )
  assert.match(
    (await faultsOf(text('{ profile: p, tool: x/pay }')))[0] ?? '',
    /no upstream is called `x`/,
  )
})

test('a destructive tool needs its exact name and `approve: none`, and a pattern does not reach it', async () => {
  const text = (profile: string): string =>
    base(
      `tools: { notes/wipe: { effect: destructive, key: { at: /id } } }\nprofiles: { p: { ${profile} } }`,
    )
  assert.match(
    (await faultsOf(text('allow: [notes/wipe]')))[0] ?? '',
    /^e\.yaml:4:26: error: notes\/wipe is destructive/,
  )
  assert.match(
    (await faultsOf(text('allow: ["*"]')))[0] ?? '',
    /^e\.yaml:4:26: warning: .*a pattern does not allow it/,
  )
  assert.deepEqual(await faultsOf(text('allow: [notes/wipe], approve: { notes/wipe: none }')), [])
  const call = toolCall(client('p'), 'wipe', '{"id":"1"}')
  const byPattern = await policyOf(text('allow: ["*"], approve: { notes/wipe: none }'))
  assert.equal(codes(decide(call, byPattern, approved())), 'tool_denied')
  const byName = await policyOf(text('allow: [notes/wipe], approve: { notes/wipe: none }'))
  assert.equal(codes(decide(call, byName, approved())), 'allow')
})

test('a write without key is warned of at its effect', async () => {
  const lines = await faultsOf(
    base(
      'tools: { notes/w: { effect: write }, notes/d: { effect: destructive }, notes/k: { effect: write, key: {} } }\nprofiles: { p: {} }',
    ),
  )
  assert.deepEqual(
    lines.map((line) => line.split(':').slice(0, 4).join(':')),
    ['e.yaml:3:29: warning', 'e.yaml:3:57: warning'],
  )
})

test('a declared client has the only profile, one of several by name, or none', async () => {
  const one = await policyOf(base('profiles: { p: {} }'))
  assert.deepEqual(declared(one, null, { a: 'b' }), {
    name: 'p',
    profile: 'p',
    identity: 'declared',
    attributes: { a: 'b' },
  })
  const two = await policyOf(base('profiles: { p: {}, q: { token: required } }'))
  assert.deepEqual(declared(two, null, {}), { kind: 'choose', profiles: ['p', 'q'] })
  const identity = (name: string): unknown => {
    const made = declared(two, name, {})
    return 'identity' in made ? made.identity : null
  }
  assert.equal(identity('p'), 'declared')
  assert.equal(identity('q'), 'unknown', 'a profile that asks for a token is not declared')
  assert.equal(identity('nobody'), 'unknown')
  assert.equal(identity('constructor'), 'unknown')
})
