// The strict reader admits what the grammar allows, and refuses all else with the right problem.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'

import {
  isExact,
  isObject,
  type Json,
  parseJson,
  REQUEST_LIMITS,
  writeJson,
} from '../../src/json.ts'
import { ADMITTED, NUMBERS } from './admitted.ts'
import { REFUSED } from './refused.ts'

const read = (text: string | Uint8Array): ReturnType<typeof parseJson> =>
  parseJson(typeof text === 'string' ? Buffer.from(text) : text, REQUEST_LIMITS)

const show = (text: string | Uint8Array): string =>
  JSON.stringify(Buffer.from(text).toString('latin1')).slice(0, 120)

/** The value as JSON.parse would give it: prototypes set, source-kept numbers rounded. */
function plain(value: Json | undefined): unknown {
  if (isExact(value)) return Number(value.rawJSON)
  if (isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
  return Array.isArray(value) ? value.map(plain) : value
}

for (const { name, texts } of ADMITTED) {
  test(`admitted, with the value that JSON.parse gives: ${name}`, () => {
    assert.ok(texts.length > 0)
    for (const text of texts) {
      const parsed = read(text)
      assert.equal(parsed.kind, 'json', show(text))
      if (parsed.kind !== 'json') return
      assert.deepEqual(plain(parsed.value), JSON.parse(Buffer.from(text).toString()), show(text))
      const again = read(writeJson(parsed.value))
      assert.deepEqual(again.kind === 'json' && again.value, parsed.value, show(text))
    }
  })
}

for (const { name, problem, texts } of REFUSED) {
  test(`refused as ${problem}: ${name}`, () => {
    assert.ok(texts.length > 0)
    for (const text of texts) {
      const parsed = read(text)
      assert.equal(parsed.kind === 'refused' ? parsed.problem : 'admitted', problem, show(text))
      if (parsed.kind === 'refused') assert.ok(parsed.at >= 0 && parsed.at <= text.length + 1)
    }
  })
}

test('every number is written as it came, digit for digit', () => {
  for (const source of [...NUMBERS, '9007199254740993', '1e-400', '-0', '100.0', '1E5']) {
    const parsed = read(`[${source}]`)
    assert.ok(parsed.kind === 'json')
    assert.equal(writeJson(parsed.value), `[${source}]`)
  }
})

test('a number is a number only when its digits say no more than the double does', () => {
  const kinds: readonly (readonly [source: string, exact: boolean])[] = [
    ['1', false],
    ['-7', false],
    ['0.5', false],
    ['9007199254740991', false],
    ['9007199254740992', true],
    ['-9007199254740993', true],
    ['1.0', true],
    ['-0', true],
    ['1e3', true],
    ['0.10', true],
    ['100.0000000000000001', true],
  ]
  for (const [source, exact] of kinds) {
    const parsed = read(source)
    assert.equal(parsed.kind === 'json' && isExact(parsed.value), exact, source)
  }
})

test('an admitted object inherits nothing and has only the keys that were sent', () => {
  const parsed = read('{"constructor":{"name":1},"a":{}}')
  assert.ok(parsed.kind === 'json' && isObject(parsed.value))
  const above: unknown = Object.getPrototypeOf(parsed.value)
  assert.ok(Object.isFrozen(above))
  assert.deepEqual(Reflect.ownKeys(Object(above)), [])
  assert.equal(Object.getPrototypeOf(above), null)
  assert.deepEqual(Object.keys(parsed.value), ['constructor', 'a'])
  assert.equal(parsed.value['toString'], undefined)
  assert.equal('__proto__' in parsed.value, false)
})

test('a string is judged alike however long it is before its escape, its fault or its end', () => {
  for (let length = 0; length < 80; length++) {
    for (const unit of ['a', 'é', '漢', '🚀']) {
      const start = unit.repeat(length)
      for (const end of [
        '',
        String.raw`\\`,
        String.raw`\"`,
        String.raw`\\\"`,
        String.raw`\u00e9`,
        'z"]',
        '\u2028',
      ]) {
        const text = `["${start}${end}"]`
        const parsed = read(text)
        const theirs = end === 'z"]' ? null : JSON.parse(text)
        assert.deepEqual(parsed.kind === 'json' ? plain(parsed.value) : null, theirs, text)
      }
      for (const wrong of ['\u0000', '\u001f', '\n', '\\x', '\\', '\\\\\\']) {
        assert.equal(read(`["${start}${wrong}"]`).kind, 'refused', `${length} ${wrong}`)
        assert.equal(read(`["${start}${wrong}${start}"]`).kind, 'refused', `${length} ${wrong}`)
      }
      assert.equal(read(`["${start}`).kind, 'refused')
    }
  }
})

test('a row of digits is read to its last one, whatever follows it', () => {
  for (let length = 1; length < 20; length++) {
    for (const digit of ['0', '1', '9']) {
      for (const end of ['', '.5', '.', 'e1', 'E+2', 'e', 'a', ' 1', '-', '0']) {
        const source = digit.repeat(length) + end
        const parsed = read(`[${source}]`)
        const fits = /^(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$/.test(source)
        assert.equal(parsed.kind === 'json' && writeJson(parsed.value), fits && `[${source}]`)
      }
    }
  }
})

test('a key of one quote is not taken for a key of one backslash, whatever was read before', () => {
  // JSON.parse of Node 24 and 26 takes it so: a scanner in front of it would not be enough.
  const texts = [String.raw`{"/":0,"\\":0,"":null}`, String.raw`{"/":0,"\"":0,"":null}`]
  for (const text of [...texts, ...texts]) {
    const parsed = read(text)
    assert.ok(parsed.kind === 'json' && isObject(parsed.value))
    assert.equal(Object.keys(parsed.value)[1], text === texts[0] ? '\\' : '"')
    assert.equal(writeJson(parsed.value), text)
  }
})

test('the span of the result is the text of its value, and of none beneath', () => {
  const spanned = (text: string): string | null => {
    const parsed = read(text)
    assert.ok(parsed.kind === 'json')
    return parsed.result === null ? null : text.slice(...parsed.result)
  }
  assert.equal(
    spanned('{ "id" : 1.0 , "result" : {"a":[1, "}"], "result":2} , "m" : 3 }'),
    '{"a":[1, "}"], "result":2}',
  )
  assert.equal(spanned('{"id":1,"\\u0072esult":"x\\n"}'), '"x\\n"')
  assert.equal(spanned('{"error":{"result":1}}'), null)
  assert.equal(spanned('[{"result":1}]'), null)
})
