// Expressions mean what CEL means, cost what they may cost, and are refused where they are unknown.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Environment, parse } from '@marcbachmann/cel-js'
import fc from 'fast-check'

import { roomy } from '../pace.ts'
import { object } from '../../src/json.ts'
import { CEL_LIMITS, type CelFault, compile, type Expression } from '../../src/policy/cel.ts'
import { jsonOf, type Value, whyOf } from '../../src/policy/cel-value.ts'
import { jsonObject } from './ground.ts'

const made = (text: string): Expression | CelFault => compile(text, (one) => parse(one).ast)

function run(text: string, args = '{}'): Value {
  const expression = made(text)
  if (!('run' in expression)) assert.fail(`${text}: ${expression.message}`)
  return expression.run({
    args: jsonObject(args),
    client: object({ name: 'ana', profile: 'p', attributes: object({ team: 'editors' }) }),
    facts: object({ definition: 'abc', pin: 'approved' }),
  })
}

const ARGS =
  '{"s":"naïve 😀","e":"","n":5,"f":2.5,"t":true,"z":null,"l":[1,2,3],"m":{"a":1,"b":[{"x":1},{"x":2}]},"big":7}'

const VALUES: readonly (readonly [string, unknown])[] = [
  ['1 + 2 * 3', 7],
  ['7 / 2', 3],
  ['-7 / 2', -3],
  ['-7 % 3', -1],
  ['7.0 / 2.0', 3.5],
  ['"a" + "b" == "ab"', true],
  ['[1] + [2] == [1, 2]', true],
  ['1 == 1.0', true],
  ['args.n < 5.5 && args.f > 2', true],
  ['args.n == "5"', false],
  ['args.z == null', true],
  ['args.s.size() == 7', true],
  ['size(args.l)', 3],
  ['size(args.m)', 2],
  ['args.s.startsWith("na") && args.s.endsWith("😀") && args.s.contains("ïve")', true],
  ['args.s.matches("^na.ve")', true],
  ['matches(args.s, "[0-9]")', false],
  ['has(args.m.a) && !has(args.m.c)', true],
  ['"a" in args.m && !("c" in args.m)', true],
  ['2 in args.l && !(9 in args.l)', true],
  ['args.l[1]', 2],
  ['args["n"]', 5],
  ['args.m.b.exists(b, b.x == 2)', true],
  ['args.m.b.all(b, b.x > 0)', true],
  ['args.l.exists_one(x, x > 2)', true],
  ['args.l.filter(x, x > 1)', [2, 3]],
  ['args.l.map(x, x * 2)', [2, 4, 6]],
  ['args.l.map(x, x > 1, x * 2)', [4, 6]],
  ['args.m.exists(k, k == "a")', true],
  ['args.l.all(x, args.l.exists(y, y == x))', true],
  ['args.t ? "yes" : "no"', 'yes'],
  ['{"a": [1, {"b": 2}]}.a[1].b', 2],
  ['!("team" in client.attributes) || client.attributes.team != "editors"', false],
  ['client.name + ":" + client.profile', 'ana:p'],
  ['facts.pin == "approved"', true],
  ['"a" < "b" && "Z" < "a"', true],
  ['"\\uffee" < "😀"', true],
  // Errors do not win over a value that settles it.
  ['args.nope == 1 || true', true],
  ['true || args.nope == 1', true],
  ['!(args.nope == 1 && false)', true],
  ['args.l.exists(x, x == 1 || args.nope)', true],
  ['!args.l.all(x, args.nope || x == 9) || true', true],
]

for (const [text, wanted] of VALUES) {
  test(`${text} is ${JSON.stringify(wanted)}`, () => {
    assert.deepEqual(JSON.parse(JSON.stringify(jsonOf(run(text, ARGS)))), wanted)
  })
}

const ERRORS: readonly string[] = [
  'args.nope',
  'args.n.a',
  'args.l[3]',
  'args.l[-1]',
  'args.l["0"]',
  '1 + 1.0',
  '1 + "a"',
  '1 / 0',
  '1 % 0',
  '9007199254740991 + 1',
  '-9007199254740991 - 1',
  '94906267 * 94906267',
  'args.s && true',
  '!args.n',
  'args.n ? 1 : 2',
  '"a" < 1',
  'args.l < args.l',
  '1 in "abc"',
  'size(args.n)',
  'args.n.startsWith("a")',
  'args.n.exists(x, true)',
  'args.l.all(x, x)',
  'args.nope || false',
  'args.l.exists(x, args.nope)',
  'has(args.n.a)',
  'args.constructor',
  'args.__proto__',
  'args.toString',
]

for (const text of ERRORS) {
  test(`${text} is an error and not a value`, () => {
    assert.notEqual(whyOf(run(text, ARGS)), null)
  })
}

const REFUSED: readonly (readonly [string, number, RegExp])[] = [
  ['foo', 0, /`foo` is not known/],
  ['args.a == observed.b', 10, /`observed`/],
  ['args.a.lower()', 0, /`lower`/],
  ['now()', 0, /`now`/],
  ['type(args)', 0, /`type`/],
  ['cel.bind(x, 1, x)', 0, /./],
  ['args.a.matches(args.b)', 15, /literal/],
  ['args.a.matches("(?=x)")', 15, /./],
  ['args.a.matches("(a)\\\\1")', 15, /./],
  ['9007199254740992 == args.a', 0, /2\^53/],
  ['1u == args.a', 0, /unsigned/],
  ['b"x" == args.a', 0, /bytes/],
  ['{args.a: 1}', 1, /literal string/],
  ['args.a ==', 9, /./],
  ['args.a = 1', 7, /./],
  ['args.l.exists(args, true)', 14, /taken/],
  ['args.l.exists(x, args.l.exists(x, true))', 31, /taken/],
  ['args.l.all(x, args.l.all(y, args.l.all(z, true)))', 28, /at most one/],
  ['has(args)', 0, /./],
]

for (const [text, offset, message] of REFUSED) {
  test(`${text} is refused at load, at column ${offset + 1}`, () => {
    const fault = made(text)
    assert.ok('message' in fault, 'it was compiled')
    assert.match(fault.message, message)
    assert.equal(fault.offset, offset)
  })
}

test('an expression that is too long, too deep or of too many signs is refused and does not crash', () => {
  for (const text of [
    'a'.repeat(CEL_LIMITS.characters + 1),
    `${'('.repeat(1_000)}1${')'.repeat(1_000)}`,
    `${'!'.repeat(3_900)}t`,
    `${'-'.repeat(3_900)}t`,
    `args${'.a'.repeat(1_900)}`,
    '['.repeat(3_000),
  ]) {
    assert.ok('message' in made(text), text.slice(0, 20))
  }
  assert.ok('run' in made(`1${' + 1'.repeat(900)}`), 'a long sum is no deep one')
})

test('work past the budget is an error, even where the value would be settled', () => {
  const list = JSON.stringify({ l: Array.from({ length: 1_000 }, (_, at) => at) })
  const started = performance.now()
  for (const text of [
    'args.l.all(x, args.l.all(y, x + y >= 0))',
    'args.l.all(x, args.l.all(y, x + y >= 0)) || true',
    'args.l.exists(x, args.l.exists(y, x + y < 0)) || true',
    'args.l.map(x, args.l.map(y, x)) == [] || true',
    'args.l.filter(x, args.l.filter(y, x == y) == []) == [] || true',
  ]) {
    assert.match(whyOf(run(text, list)) ?? '', /budget/, text)
  }
  assert.ok(performance.now() - started < roomy(2_000))
})

test('work past the budget in the very last operator is an error too', () => {
  const s = 'a'.repeat(3_500_000)
  assert.match(whyOf(run('args.s == args.t', JSON.stringify({ s, t: s }))) ?? '', /budget/)
})

test('a list past its limit of elements is an error', () => {
  const args = (length: number): string => JSON.stringify({ l: Array.from({ length }, () => 1) })
  assert.equal(run('args.l.all(x, true)', args(CEL_LIMITS.elements)), true)
  assert.match(whyOf(run('args.l.all(x, true)', args(CEL_LIMITS.elements + 1))) ?? '', /elements/)
})

test('reading long texts costs steps, so that no loop over them is cheap', () => {
  const args = JSON.stringify({ l: Array.from({ length: 5_000 }, () => 1), s: 'a'.repeat(200_000) })
  for (const text of [
    'args.l.all(x, args.s.size() > 0)',
    'args.l.all(x, args.s == args.s + "")',
    'args.l.all(x, !args.s.contains("b"))',
    'args.l.all(x, args.s.matches("a$"))',
    'args.l.all(x, args.s <= args.s)',
  ]) {
    const started = performance.now()
    assert.match(whyOf(run(text, args)) ?? '', /budget/, text)
    assert.ok(performance.now() - started < roomy(1_500), text)
  }
})

test('a pattern that would hold a backtracking engine for hours is matched in linear time', () => {
  const started = performance.now()
  assert.equal(
    run('args.s.matches("^(a+)+$")', JSON.stringify({ s: `${'a'.repeat(50_000)}b` })),
    false,
  )
  assert.equal(run('args.s.matches("^(a|a)*b$")', JSON.stringify({ s: 'a'.repeat(50_000) })), false)
  assert.ok(performance.now() - started < roomy(1_000))
})

test('the field that a rule is about is the first path below args', () => {
  const reads = (text: string): string | null => {
    const expression = made(text)
    return 'run' in expression ? expression.reads : null
  }
  assert.equal(reads('client.name == "x" || args.a.b.size() < 3'), '/a/b')
  assert.equal(reads('has(args.q)'), '/q')
  assert.equal(reads('client.name == "x"'), null)
  assert.equal(reads('args["a"] == 1'), '')
})

// The library's own evaluator is the oracle for what both know. It sees integers as bigint.
const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
})
const lifted = (value: unknown): unknown => {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? BigInt(value) : value
  if (Array.isArray(value)) return value.map(lifted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, lifted(one)]))
}
const lowered = (value: unknown): unknown => {
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(lowered)
  if (value instanceof Map) return lowered(Object.fromEntries(value))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, lowered(one)]))
}

const atom = fc.constantFrom(
  '1',
  '2',
  '0',
  '-3',
  '2.5',
  '1.0',
  '"a"',
  '"ab"',
  '""',
  'true',
  'false',
  'null',
  'args.n',
  'args.f',
  'args.s',
  'args.l',
  'args.m',
  'args.m.a',
  'args.nope',
  '[1, 2]',
  '{"a": 1}',
)
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    atom,
    fc
      .tuple(
        tie('expression'),
        fc.constantFrom(
          '+',
          '-',
          '*',
          '/',
          '%',
          '==',
          '!=',
          '<',
          '<=',
          '>',
          '>=',
          '&&',
          '||',
          'in',
        ),
        tie('expression'),
      )
      .map(([a, op, b]) => `(${a} ${op} ${b})`),
    tie('expression').map((a) => `!(${a})`),
    tie('expression').map((a) => `-(${a})`),
    fc
      .tuple(tie('expression'), tie('expression'), tie('expression'))
      .map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
    fc
      .tuple(
        fc.constantFrom('args.l', '[1, 2, 3]', 'args.m'),
        fc.constantFrom('all', 'exists', 'exists_one', 'filter', 'map'),
        fc.constantFrom('x == 1', 'x > 1', 'x == "a"', 'x + 1 > 2', 'args.n == x'),
        fc.constantFrom('', ''),
      )
      .map(([list, macro, body]) => `${list}.${macro}(x, ${body})`),
    tie('expression').map((a) => `size(${a})`),
    tie('expression').map((a) => `(${a})[0]`),
    fc.constantFrom(
      'has(args.m.a)',
      'has(args.nope)',
      'args.s.startsWith("a")',
      '"abc".contains(args.s)',
    ),
  ),
}))

test('10,000 generated expressions mean what the library says, but for what is documented', () => {
  const args = '{"n":5,"f":2.5,"s":"ab","l":[1,2,3],"m":{"a":1,"b":2}}'
  const context = { args: lifted(JSON.parse(args)), client: {}, facts: {} }
  let compared = 0
  let values = 0
  fc.assert(
    fc.property(expression, (text) => {
      const ours = made(text)
      let theirs: unknown
      let failed = false
      try {
        theirs = lowered(environment.evaluate(text, context))
      } catch {
        // The library also checks types before it runs; where it refuses there is nothing to compare.
        failed = true
      }
      if (!('run' in ours)) return
      const value = ours.run({ args: jsonObject(args), client: object({}), facts: object({}) })
      compared++
      if (failed) return
      values++
      // 0.0 and -0.0 are one number in JSON; infinities and NaN are none.
      const mine = jsonOf(value)
      if (typeof theirs === 'number' && !Number.isFinite(theirs)) return
      // Asking a map for a key that is no string is an error here, so that its negation allows nothing.
      if (mine === undefined && text.includes(' in ')) return
      if (mine === undefined) {
        assert.fail(`${text}: ours ${whyOf(value)}, the library ${JSON.stringify(theirs)}`)
      }
      assert.deepEqual(JSON.parse(JSON.stringify(mine)), JSON.parse(JSON.stringify(theirs)), text)
    }),
    { numRuns: process.env['ECLUSA_LONG'] === '1' ? 200_000 : 10_000 },
  )
  assert.ok(values > 1_000, `${values} of ${compared} had a value`)
})
