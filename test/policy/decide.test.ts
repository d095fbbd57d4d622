// Decisions: deny by default, deny wins, the first failure in the design's order is told and all are named.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Call, Client } from '../../src/call.ts'
import type { Facts } from '../../src/decision.ts'
import { jsonObject, policyOf, approved, client, codes, told, toolCall } from './ground.ts'
import { admits, decide, firstUse, tell } from '../../src/policy/decide.ts'
import type { PolicySet } from '../../src/policy/set.ts'

const text = (profiles: string, tools = '{}'): string => `version: 2
upstreams: { notes: { command: [x] }, other: { command: [y] } }
tools: ${tools}
profiles: ${profiles}
`

test('whoever is unknown is denied everything, whatever the list says', async () => {
  const set = await policyOf(text('{ p: { allow: ["*"] } }'))
  const unknown: Client = { ...client('p'), identity: 'unknown' }
  for (const who of [
    unknown,
    client('q'),
    client('constructor'),
    client('__proto__'),
    client(''),
  ]) {
    assert.deepEqual(told(decide(toolCall(who, 'x', '{}'), set, approved())), [
      'client_unknown client -',
    ])
  }
})

test('a profile that asks for a token is denied to whoever has shown none', async () => {
  const set = await policyOf(text('{ p: { allow: ["*"], token: required } }'))
  for (const [identity, wanted] of [
    ['token', 'allow'],
    ['declared', 'client_unknown'],
    ['anonymous', 'client_unknown'],
  ] as const) {
    const call = toolCall({ ...client('p'), identity }, 'x', '{}')
    assert.equal(codes(decide(call, set, approved())), wanted)
  }
})

test('a call whose target is of another kind than its method is denied', async () => {
  const set = await policyOf(
    text('{ p: { allow: ["*"], resources: ["r://a/*"], prompts: ["*"] } }'),
  )
  const kinds = { tool: 'x', resource: 'r://a/b', prompt: 'y' } as const
  const on = (method: Call['method'], kind: keyof typeof kinds): string =>
    codes(
      decide(
        {
          ...toolCall(client('p'), 'x', '{}'),
          method,
          target: { kind, upstream: 'notes', name: kinds[kind] },
        },
        set,
        approved(),
      ),
    )
  const all = ['tools/call', 'resources/read', 'prompts/get', 'completion/complete'] as const
  const table = all.map((method) =>
    (['tool', 'resource', 'prompt'] as const).map((kind) => on(method, kind)),
  )
  assert.deepEqual(table, [
    ['allow', 'tool_unknown', 'tool_unknown'],
    ['resource_denied', 'allow', 'resource_denied'],
    ['prompt_denied', 'prompt_denied', 'allow'],
    ['prompt_denied', 'allow', 'allow'],
  ])
})

const NAMES: readonly string[] = [
  'WIPE',
  'Wipe',
  ' wipe',
  'wipe\t',
  'wipe\u0000',
  'wi\u200bpe',
  'wipe\u202e',
  'srv__wipe ',
  'get_a\nwipe',
  'get_a,wipe',
  '*',
  '',
  'get_a ',
  'Get_a',
  'get-a',
  'get.a',
  'get_a/',
  'get_a/*',
  '/get_a',
  'ｇet_a',
  'get_a\u0301',
  '../get_a',
  'notes/get_a',
  'constructor',
  '__proto__',
  'toString',
]

for (const name of NAMES) {
  test(`the name ${JSON.stringify(name)} is not the listed name get_a`, async () => {
    const set = await policyOf(text('{ p: { allow: [notes/get_a] } }'))
    assert.equal(codes(decide(toolCall(client('p'), name, '{}'), set, approved())), 'tool_denied')
    assert.equal(firstUse(set, client('p'), `notes/${name}`), 'waits')
  })
}

test('names are their own: a-b, a_b, a.b, A_B, a/b and "a b" are six tools', async () => {
  const all = ['a-b', 'a_b', 'a.b', 'A_B', 'a/b', 'a b']
  for (const one of all) {
    const set = await policyOf(text(`{ p: { allow: ["notes/${one}"] } }`))
    const allowed = all.filter(
      (name) => codes(decide(toolCall(client('p'), name, '{}'), set, approved())) === 'allow',
    )
    assert.deepEqual(allowed, [one])
  }
})

test('a deny list wins over every way of allowing, and only for the exact name', async () => {
  const set = await policyOf(
    text('{ p: { allow: ["*", notes/wipe], deny: [notes/wipe, "other/*"] } }'),
  )
  const on = (upstream: string, name: string): string => {
    const call = toolCall(client('p'), name, '{}')
    return codes(decide({ ...call, target: { kind: 'tool', upstream, name } }, set, approved()))
  }
  assert.equal(on('notes', 'wipe'), 'tool_denied')
  assert.equal(on('notes', 'Wipe'), 'allow', 'another tool, if the server has it')
  assert.equal(on('other', 'get'), 'tool_denied')
  assert.equal(on('notes', 'get'), 'allow')
})

test('a pattern of one upstream does not reach another', async () => {
  const set = await policyOf(text('{ p: { allow: ["notes/*"] } }'))
  for (const upstream of ['other', 'note', 'notes2', '']) {
    const call: Call = {
      ...toolCall(client('p'), 'x', '{}'),
      target: { kind: 'tool', upstream, name: 'x' },
    }
    assert.equal(codes(decide(call, set, approved())), 'tool_denied')
  }
})

test('an unknown tool and a denied one differ in the record and not in what is told', async () => {
  const set = await policyOf(text('{ p: { allow: [notes/gone] } }'))
  const nowhere: Facts = { definition: null, pin: 'none' }
  const seen = [
    decide(toolCall(client('p'), 'hidden', '{}'), set, nowhere),
    decide(toolCall(client('p'), 'gone', '{}'), set, nowhere),
    decide(toolCall(client('p'), 'gone', '{}'), set, { ...approved(), pin: 'waits' }),
    decide(toolCall(client('p'), 'gone', '{}'), set, { ...approved(), pin: 'changed' }),
    decide({ ...toolCall(client('p'), 'gone', '{}'), target: null }, set, nowhere),
  ]
  assert.deepEqual(seen.map(codes), [
    'tool_denied',
    'tool_unknown',
    'definition_waits',
    'definition_changed',
    'tool_unknown',
  ])
  for (const one of seen) {
    assert.ok(one.effect === 'deny')
    assert.deepEqual(tell(set, one.failures[0]), { code: 'tool_denied' })
  }
})

test('a definition without a pin, or new where first use waits, is withheld', async () => {
  const set = await policyOf(text('{ p: { allow: [notes/a, "other/*"] } }'))
  const strict = await policyOf(`${text('{ p: { allow: [notes/a] } }')}pins: strict\n`)
  const on = (one: PolicySet, upstream: string, pin: Facts['pin']): string => {
    const call: Call = {
      ...toolCall(client('p'), 'a', '{}'),
      target: { kind: 'tool', upstream, name: 'a' },
    }
    return codes(decide(call, one, { ...approved(), pin }))
  }
  assert.equal(on(set, 'notes', 'new'), 'allow')
  assert.equal(on(set, 'other', 'new'), 'definition_waits', 'matched by a pattern')
  assert.equal(on(set, 'other', 'approved'), 'allow')
  assert.equal(on(strict, 'notes', 'new'), 'definition_waits')
  assert.equal(on(set, 'notes', 'none'), 'definition_waits')
  assert.equal(firstUse(set, client('p'), 'notes/a'), 'approved')
  assert.equal(firstUse(set, client('p'), 'other/a'), 'waits')
  assert.equal(firstUse(strict, client('p'), 'notes/a'), 'waits')
})

test('failures stand in the order args, set, schema, rules in file order, key', async () => {
  const set = await policyOf(
    text(
      `{ p: { allow: [notes/t], set: { notes/t: { vault: 1 } }, rules: [
        { tool: "*", require: has(args.r1), code: one },
        { tool: notes/t, when: "false", require: "false", code: two },
        { tool: notes/other, require: "false", code: three },
        { tool: "notes/*", require: args.r4 == 1, code: four } ] } }`,
      '{ notes/t: { effect: write, key: { at: /id }, args: { required: [a] } } }',
    ),
  )
  const facts = approved('{"type":"object","properties":{"vault":{},"n":{"type":"string"}}}')
  assert.deepEqual(told(decide(toolCall(client('p'), 't', '{"vault":2,"n":1}'), set, facts)), [
    'arguments_denied /tools/notes~1t/args /a',
    'arguments_denied /profiles/p/set/notes~1t/vault /vault',
    'arguments_invalid inputSchema /n',
    'arguments_denied /profiles/p/rules/0 /r1',
    'arguments_denied /profiles/p/rules/3 /r4',
    'key_missing /tools/notes~1t/key /id',
  ])
})

test("the told words are the rule's own, else those of `messages`, else none", async () => {
  const set = await policyOf(
    `${text('{ p: { allow: [notes/t], rules: [{ tool: "*", require: "false", code: meu, message: "não pode" }] } }')}messages:
  tool_denied: { code: FERRAMENTA_NAO_PERMITIDA, message: "não" }
  arguments_denied: geral
  busy: depois
`,
  )
  const first = (name: string): Parameters<typeof tell>[1] => {
    const made = decide(toolCall(client('p'), name, '{}'), set, approved())
    assert.ok(made.effect === 'deny')
    return made.failures[0]
  }
  assert.deepEqual(tell(set, first('t')), {
    code: 'arguments_denied',
    reason: 'meu',
    message: 'não pode',
  })
  assert.deepEqual(tell(set, first('x')), {
    code: 'tool_denied',
    reason: 'FERRAMENTA_NAO_PERMITIDA',
    message: 'não',
  })
  const unknown = {
    code: 'tool_unknown',
    rule: 'definition',
    field: null,
    reason: null,
    message: null,
  } as const
  assert.deepEqual(
    tell(set, unknown),
    tell(set, first('x')),
    'an unknown tool is told in the same words',
  )
  assert.deepEqual(tell(set, { ...unknown, code: 'busy' }), { code: 'busy', message: 'depois' })
})

test('a contract says what a tool does; annotations only take a claim of harmlessness away', async () => {
  const set = await policyOf(
    text(
      '{ p: { allow: ["*", notes/d], approve: { notes/d: none } } }',
      '{ notes/r: { effect: read }, notes/w: { effect: write }, notes/d: { effect: destructive } }',
    ),
  )
  const does = (name: string, annotations: string | null): string => {
    const made = decide(
      toolCall(client('p'), name, '{}'),
      set,
      approved('{"type":"object"}', annotations),
    )
    return made.effect === 'allow' ? made.does : 'denied'
  }
  assert.equal(does('r', null), 'read')
  assert.equal(does('r', '{"readOnlyHint":true}'), 'read')
  assert.equal(does('r', '{"readOnlyHint":false}'), 'undeclared')
  assert.equal(does('r', '{"destructiveHint":true}'), 'undeclared')
  assert.equal(does('r', '"x"'), 'read')
  assert.equal(does('w', '{"readOnlyHint":true}'), 'write')
  assert.equal(does('d', '{"readOnlyHint":true,"destructiveHint":false}'), 'destructive')
  assert.equal(does('x', '{"readOnlyHint":true}'), 'undeclared', 'annotations never earn read')
})

test('resources, prompts and completions are denied unless listed, and are reads', async () => {
  const set = await policyOf(
    text(
      '{ p: { allow: ["*"], resources: ["notes://public/*"], prompts: [notes/summarise] }, q: { allow: ["*"] } }',
    ),
  )
  const call = (
    who: string,
    method: Call['method'],
    kind: 'resource' | 'prompt',
    name: string,
  ): string => {
    const made = decide(
      { ...toolCall(client(who), name, '{}'), method, target: { kind, upstream: 'notes', name } },
      set,
      { definition: null, pin: 'none' },
    )
    return made.effect === 'allow' ? `${made.does} ${made.rule}` : codes(made)
  }
  assert.equal(
    call('p', 'resources/read', 'resource', 'notes://public/a'),
    'read /profiles/p/resources/0',
  )
  assert.equal(call('p', 'resources/read', 'resource', 'notes://private/a'), 'resource_denied')
  assert.equal(
    call('p', 'resources/read', 'resource', 'notes://public/../private/a'),
    'resource_denied',
  )
  assert.equal(call('p', 'prompts/get', 'prompt', 'summarise'), 'read /profiles/p/prompts/0')
  assert.equal(call('p', 'prompts/get', 'prompt', 'other'), 'prompt_denied')
  assert.equal(
    call('p', 'completion/complete', 'prompt', 'summarise'),
    'read /profiles/p/prompts/0',
  )
  assert.equal(
    call('p', 'completion/complete', 'resource', 'notes://public/{id}'),
    'read /profiles/p/resources/0',
  )
  assert.equal(call('p', 'completion/complete', 'resource', 'notes://{id}'), 'resource_denied')
  assert.equal(call('q', 'resources/read', 'resource', 'notes://public/a'), 'resource_denied')
  assert.equal(call('q', 'prompts/get', 'prompt', 'summarise'), 'prompt_denied')
  const nowhere = { ...toolCall(client('p'), 'x', '{}'), target: null }
  assert.equal(
    codes(decide({ ...nowhere, method: 'resources/read' }, set, approved())),
    'resource_denied',
  )
  assert.equal(
    codes(decide({ ...nowhere, method: 'prompts/get' }, set, approved())),
    'prompt_denied',
  )
  const ref = jsonObject('{"ref":{"type":"ref/resource","uri":"x"}}')
  assert.equal(
    codes(decide({ ...nowhere, method: 'completion/complete', params: ref }, set, approved())),
    'resource_denied',
  )
})

test('list and call come from one function: what admits refuses is denied, with the same failure', async () => {
  const set = await policyOf(
    text(
      '{ p: { allow: [notes/a, "other/*"], deny: [other/d] } }',
      '{ other/x: { effect: destructive } }',
    ),
  )
  for (const upstream of ['notes', 'other', 'third']) {
    for (const name of ['a', 'b', 'd', 'x', '*', '']) {
      const target = { kind: 'tool', upstream, name } as const
      const failure = admits(set, client('p'), target)
      const made = decide({ ...toolCall(client('p'), name, '{}'), target }, set, approved())
      assert.deepEqual(made.effect === 'deny' ? made.failures[0] : null, failure)
    }
  }
})
