// The canonical text of a value is one, whatever the order of keys, and another language writes the same.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash, createHmac } from 'node:crypto'
import { test } from 'node:test'

import fc from 'fast-check'

import { byCodePoint, canonical, hmac256, hmacOfPieces, pieces, sha256 } from '../src/canonical.ts'
import { isExact, isObject, type Json, object, parseText, REQUEST_LIMITS } from '../src/json.ts'
import { documents, plainDocuments } from './json/arbitrary.ts'

const RUNS = process.env['ECLUSA_LONG'] === '1' ? 20_000 : 1000

const admit = (text: string): Json => {
  const parsed = parseText(text, REQUEST_LIMITS)
  assert.ok(parsed.kind === 'json', text)
  return parsed.value
}

/** The same value with the members of every object in the opposite order. */
function turned(value: Json): Json {
  if (Array.isArray(value)) return value.map(turned)
  if (isExact(value) || !isObject(value)) return value
  const entries = Object.entries(value).flatMap(([key, one]): [string, Json][] =>
    one === undefined ? [] : [[key, turned(one)]],
  )
  return object(Object.fromEntries(entries.reverse()))
}

test('keys stand by code point, without spaces, at every depth', () => {
  const value = admit('{ "b": [ {"d":1, "c" : 2} ], "a" : {} , "A" :"x", "10":1, "9":2 }')
  assert.equal(canonical(value), '{"10":1,"9":2,"A":"x","a":{},"b":[{"c":2,"d":1}]}')
})

test('a key above U+FFFF stands after every key below it', () => {
  // UTF-16 units would put the rocket (first unit d83d) before U+FF5E.
  assert.equal(
    canonical(admit('{"🚀":1,"\uff5e":2,"\ue000":3,"z":4}')),
    '{"z":4,"\ue000":3,"\uff5e":2,"🚀":1}',
  )
})

test('characters stand as themselves; only what JSON demands is escaped', () => {
  assert.equal(
    canonical(admit(String.raw`"\u00e9\u2028\u007f\/\ud83d\ude80 \" \\ \b\f\n\r\t\u0000\u001F"`)),
    String.raw`"é${'\u2028'}${'\u007f'}/🚀 \" \\ \b\f\n\r\t\u0000\u001f"`,
  )
})

test('numbers that are kept as source stand as their source', () => {
  for (const source of ['1.0', '-0', '1e3', '9007199254740993', '0.10']) {
    assert.equal(canonical(admit(`[${source}]`)), `[${source}]`)
  }
})

test('a member that is undefined is not there', () => {
  assert.equal(canonical(object({ a: 1, b: undefined })), '{"a":1}')
})

test('the order of keys never shows in the canonical text', () => {
  fc.assert(
    fc.property(documents, (value) => {
      assert.equal(canonical(turned(value)), canonical(value))
    }),
    { numRuns: RUNS },
  )
})

test('different values never have one canonical text', () => {
  fc.assert(
    fc.property(documents, documents, (a, b) => {
      if (canonical(a) === canonical(b)) assert.deepEqual(a, b)
      assert.deepEqual(admit(canonical(a)), a)
    }),
    { numRuns: RUNS },
  )
})

test('byCodePoint orders as the bytes of UTF-8 do', () => {
  const strings = fc.string({ unit: 'binary', maxLength: 6 }).filter((text) => text.isWellFormed())
  fc.assert(
    fc.property(strings, strings, (a, b) => {
      assert.equal(Math.sign(byCodePoint(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }),
    { numRuns: RUNS * 2 },
  )
})

const PYTHON = [
  'import json, sys',
  'for line in sys.stdin.buffer:',
  '    value = json.loads(line.decode("utf-8"))',
  '    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)',
  '    sys.stdout.buffer.write(text.encode("utf-8") + b"\\n")',
].join('\n')

test('Python writes the same bytes for any document without fractions', (t) => {
  const values = fc.sample(plainDocuments, { numRuns: RUNS * 2 })
  const input = values.map((value) => JSON.stringify(value)).join('\n')
  const run = spawnSync('python3', ['-c', PYTHON], { input: `${input}\n`, maxBuffer: 1 << 28 })
  if (run.error !== undefined) return t.skip(`python3 does not start: ${run.error.message}`)
  assert.equal(run.status, 0, run.stderr.toString())
  const lines = run.stdout.toString().split('\n')
  for (const [at, value] of values.entries()) assert.equal(canonical(value), lines[at])
})

test('digests are over the bytes of UTF-8, in lower-case hex', () => {
  assert.equal(sha256(''), 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855')
  assert.equal(sha256('é'), createHash('sha256').update(Buffer.of(0xc3, 0xa9)).digest('hex'))
  const key = Buffer.alloc(32, 7)
  assert.equal(hmac256(key, 'é'), createHmac('sha256', key).update(Buffer.from('é')).digest('hex'))
  assert.notEqual(hmac256(key, ''), sha256(''))
})

test('a text in pieces is the text, each piece ends between characters, and its digest is the same', () => {
  const key = Buffer.alloc(32, 7)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 2, max: 9 }), (text, units) => {
      const all = [...pieces(text, units)]
      assert.equal(all.join(''), text)
      const digester = hmacOfPieces(key)
      for (const piece of all) {
        assert.ok(piece.isWellFormed() && piece.length > 0 && piece.length <= units)
        digester.add(piece)
      }
      const bytes = Buffer.byteLength(text)
      assert.deepEqual(digester.end(), { digest: hmac256(key, text), bytes })
    }),
    { numRuns: RUNS },
  )
})
