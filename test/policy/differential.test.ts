// The decision agrees with its slow reference on 10,000 generated pairs of policy and call.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import type { Call } from '../../src/call.ts'
import { canonical } from '../../src/canonical.ts'
import type { Decision, Facts } from '../../src/decision.ts'
import { decide } from '../../src/policy/decide.ts'
import { client, json, jsonObject, policyOf, toolCall } from './ground.ts'
import { referenceDecide, type Verdict } from './reference.ts'

const TOOLS = ['notes/a', 'notes/b', 'other/a', 'notes/c'] as const
const tool = fc.constantFrom(...TOOLS)
const pattern = fc.oneof(
  { weight: 4, arbitrary: tool },
  { weight: 1, arbitrary: fc.constantFrom('notes/*', 'other/*', '*') },
)

const leaf = fc.oneof(
  fc.record({ type: fc.constantFrom('string', 'integer', 'number', 'boolean', 'array', 'object') }),
  fc.record({ type: fc.constant('string'), minLength: fc.nat(4), maxLength: fc.nat(6) }),
  fc.record({ type: fc.constant('number'), maximum: fc.constantFrom(-1, 0, 5, 100) }),
  fc.record({ enum: fc.uniqueArray(fc.constantFrom(1, 2, 'ab', null, true), { minLength: 1 }) }),
  fc.record({
    type: fc.constant('array'),
    items: fc.record({ type: fc.constantFrom('integer', 'string') }),
  }),
  fc.constant({}),
)
const properties = fc.dictionary(fc.constantFrom('a', 'b', 's', 'n', 'l', 'o', 'id'), leaf, {
  minKeys: 0,
})
const schema = fc
  .record({
    properties: fc.oneof(
      properties,
      properties.map((inner) => ({ ...inner, o: { type: 'object', properties: inner } })),
    ),
    required: fc.oneof(fc.constant([] as string[]), fc.subarray(['a', 's', 'id'])),
    rest: fc.constantFrom('none', 'none', true, false),
  })
  .map(({ rest, ...one }) => ({
    type: 'object',
    ...one,
    ...(rest === 'none' ? {} : { additionalProperties: rest }),
  }))

const condition = fc.constantFrom(
  'true',
  'false',
  'args.s.size() < 3',
  'args.n <= 5',
  'args.n == 5 || args.s == "ab"',
  'args.n > 1 && args.n < 100',
  'has(args.b) && args.b',
  'args.l.all(x, x > 0)',
  'args.l.exists(x, x == 2)',
  'size(args.l) > 1',
  'args.o.a == 1',
  '!("team" in client.attributes) || client.attributes.team != "editors"',
  'client.name == "p0"',
  'facts.pin == "approved"',
  'args.a',
  'args.n',
  'args.nope',
  'args.s.startsWith("a") ? args.n == 1 : args.n == 2',
)
const rule = fc
  .record({ tool: pattern, when: fc.option(condition), require: condition })
  .map(({ when, ...one }) => (when === null ? one : { ...one, when }))

const profile = (at: number) =>
  fc
    .record({
      parent: at === 0 ? fc.constant(null) : fc.option(fc.nat(at - 1)),
      allow: fc.uniqueArray(pattern, { maxLength: 4 }),
      deny: fc.oneof(
        { weight: 3, arbitrary: fc.constant([] as string[]) },
        { weight: 1, arbitrary: fc.uniqueArray(pattern, { maxLength: 2 }) },
      ),
      rules: fc.array(rule, { maxLength: 3 }),
      set: fc.option(
        fc.dictionary(
          tool,
          fc.dictionary(fc.constantFrom('a', 's', 'v'), fc.constantFrom(1, 'ab', true), {
            minKeys: 1,
          }),
          { maxKeys: 2 },
        ),
      ),
    })
    .map(({ parent, set, ...one }) => ({
      ...one,
      approve: Object.fromEntries(TOOLS.map((name) => [name, 'none'])),
      ...(parent === null ? {} : { extends: `p${parent}` }),
      ...(set === null ? {} : { set }),
    }))

const contract = fc
  .record({
    effect: fc.constantFrom('read', 'write', 'destructive'),
    key: fc.option(fc.constantFrom({ at: '/id' }, { at: '/id', honoured: true }, { at: '/n' }, {})),
    args: fc.option(schema),
  })
  .map(({ key, args, ...one }) => ({
    ...one,
    ...(key === null ? {} : { key }),
    ...(args === null ? {} : { args }),
  }))

const policy = fc
  .record({
    profiles: fc.tuple(profile(0), profile(1), profile(2)),
    tools: fc.dictionary(tool, contract, { maxKeys: 3 }),
    pins: fc.constantFrom('first_use', 'first_use', 'strict'),
  })
  .map(({ profiles, ...one }) => ({
    version: 2,
    upstreams: { notes: { command: ['x'] }, other: { command: ['y'] } },
    ...one,
    profiles: Object.fromEntries(profiles.map((each, at) => [`p${at}`, each])),
  }))

/** JSON text of a value: numbers as a sender may write them. */
const source = fc.constantFrom(
  '0',
  '1',
  '2',
  '5',
  '-1',
  '2.5',
  '5.0',
  '1e0',
  '100.0',
  '5e0',
  '-0',
  '0.10',
  '9007199254740991',
  '9007199254740993',
  '5.00000000000000000001',
  'true',
  'false',
  'null',
  '""',
  '"a"',
  '"ab"',
  '"abcdef"',
  '"😀😀"',
  '"5"',
  '[]',
  '[1,2]',
  '[1,"x"]',
  '[2.0]',
  '{}',
  '{"a":1}',
  '{"a":1,"z":2}',
)
const args = fc
  .dictionary(fc.constantFrom('a', 'b', 's', 'n', 'l', 'o', 'id', 'z'), source, { maxKeys: 6 })
  .map(
    (one) =>
      `{${Object.entries(one)
        .map(([key, text]) => `${JSON.stringify(key)}:${text}`)
        .join(',')}}`,
  )

const wish = fc.record({
  profile: fc.constantFrom('p0', 'p0', 'p1', 'p1', 'p2', 'p2', 'p3'),
  identity: fc.constantFrom('declared', 'declared', 'declared', 'token', 'unknown'),
  team: fc.option(fc.constantFrom('editors', 'others')),
  tool: fc.oneof(
    { weight: 9, arbitrary: tool },
    { weight: 1, arbitrary: fc.constantFrom('notes/d', 'notes/A', 'third/a') },
  ),
  args,
  key: fc.option(fc.constantFrom('k1', '', 'naïve', 'x'.repeat(201)), { freq: 3 }),
  schema: fc.nat(2),
  annotations: fc.constantFrom(
    undefined,
    undefined,
    { readOnlyHint: true },
    { readOnlyHint: false },
    { destructiveHint: true },
  ),
  pin: fc.constantFrom('approved', 'approved', 'approved', 'new', 'waits', 'changed', 'none'),
  known: fc.nat(9),
})

const CALLS = 20
const POLICIES = process.env['ECLUSA_LONG'] === '1' ? 5_000 : 500

type Wish = typeof wish extends fc.Arbitrary<infer T> ? T : never

function callOf(one: Wish): Call {
  const [upstream = '', name = ''] = one.tool.split('/')
  const who = client(one.profile, one.team === null ? {} : { team: one.team })
  return {
    ...toolCall({ ...who, identity: one.identity }, name, one.args, one.key),
    target: { kind: 'tool', upstream, name },
  }
}

function factsOf(one: Wish, schemas: readonly object[]): Facts {
  if (one.known === 0) return { definition: null, pin: 'none' }
  const value = { inputSchema: schemas[one.schema], annotations: one.annotations }
  return {
    definition: { hash: `h${one.schema}`, value: jsonObject(JSON.stringify(value)) },
    pin: one.pin,
  }
}

/** Fails unless both say the same; the kinds of what was decided. */
function compare(ours: Decision, theirs: Verdict, shown: string): readonly string[] {
  assert.equal(ours.effect, theirs.effect, shown)
  if (ours.effect === 'allow') {
    assert.deepEqual({ ...ours, args: canonical(ours.args) }, theirs, shown)
    return ['allow']
  }
  assert.ok(theirs.effect === 'deny')
  assert.deepEqual(
    ours.failures.map((each) => each.rule),
    theirs.failures.map((each) => each.rule),
    shown,
  )
  for (const [at, { code }] of ours.failures.entries()) {
    assert.ok(theirs.failures[at]?.codes.includes(code), shown)
  }
  return ours.failures.map((each) => each.code)
}

const KINDS: readonly string[] = [
  'allow',
  'client_unknown',
  'tool_denied',
  'tool_unknown',
  'definition_waits',
  'definition_changed',
  'arguments_denied',
  'arguments_invalid',
  'number_not_exact',
  'key_missing',
  'key_invalid',
]

test(`decide agrees with the reference on ${POLICIES * CALLS} pairs`, async (context) => {
  const counts = new Map<string, number>()
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  context.diagnostic(`seed ${seed}`)
  await fc.assert(
    fc.asyncProperty(
      policy,
      fc.tuple(schema, schema, schema),
      fc.array(wish, { minLength: CALLS, maxLength: CALLS }),
      async (document, schemas, wishes) => {
        const text = JSON.stringify(document)
        const set = await policyOf(text)
        for (const one of wishes) {
          const [call, facts] = [callOf(one), factsOf(one, schemas)]
          const ours = decide(call, set, facts)
          const theirs = referenceDecide(json(text), call, facts)
          const shown = [one, ours, theirs].map((each) => JSON.stringify(each)).join('\n')
          for (const kind of compare(ours, theirs, shown)) {
            counts.set(kind, (counts.get(kind) ?? 0) + 1)
          }
        }
      },
    ),
    { seed, numRuns: POLICIES },
  )
  // A generator that never reaches a kind of decision proves nothing about it.
  for (const kind of KINDS) assert.ok((counts.get(kind) ?? 0) >= 20, `${kind}: ${counts.get(kind)}`)
})
