// Laws of the strict reader over generated documents; a failing run prints its seed.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'

import fc from 'fast-check'

import { canonical } from '../../src/canonical.ts'
import {
  isExact,
  isObject,
  type Json,
  parseJson,
  REQUEST_LIMITS,
  writeJson,
} from '../../src/json.ts'
import { NUMBERS } from './admitted.ts'
import { documents, texts } from './arbitrary.ts'

const RUNS = process.env['ECLUSA_LONG'] === '1' ? 20_000 : 1000

const read = (bytes: Uint8Array): ReturnType<typeof parseJson> => parseJson(bytes, REQUEST_LIMITS)

const admit = (text: string): Json => {
  const parsed = read(Buffer.from(text))
  assert.ok(parsed.kind === 'json', text)
  return parsed.value
}

/** The value as JSON.parse would give it. */
function plain(value: Json | undefined): unknown {
  if (isExact(value)) return Number(value.rawJSON)
  if (Array.isArray(value)) return value.map(plain)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}

test('what is written is read back as the same value', () => {
  fc.assert(
    fc.property(documents, (value) => {
      assert.deepEqual(admit(writeJson(value)), value)
      assert.deepEqual(admit(canonical(value)), value)
    }),
    { numRuns: RUNS },
  )
})

test('spaces and escapes change the text, never the value', () => {
  fc.assert(
    fc.property(documents, texts, (value, spell) => {
      assert.deepEqual(admit(spell(value)), value)
    }),
    { numRuns: RUNS },
  )
})

test('each proper beginning of a document that closes itself is refused', () => {
  const closed = documents.filter(
    (value) => typeof value === 'object' && value !== null && !isExact(value),
  )
  fc.assert(
    fc.property(closed, (value) => {
      const bytes = Buffer.from(writeJson(value))
      for (let end = 0; end < bytes.length; end++) {
        assert.equal(read(bytes.subarray(0, end)).kind, 'refused', `${end} of ${bytes.toString()}`)
      }
    }),
    { numRuns: RUNS / 5 },
  )
})

const BEYOND = new Set(['duplicate_key', 'proto_key', 'surrogate', 'number_range', 'utf8'])

/** What the platform's own reader makes of it: the value, or nothing. */
function native(text: string): { readonly value: unknown } | null {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

// V8 of Node 24 and 26 takes an escaped key for the key of one backslash once it has seen that one in an
// object of the same shape, so it is no judge of documents that hold it; vectors.test.ts is.
const MISJUDGED = /"(?:\\\\|\\u005[cC])"/

function agrees(bytes: Buffer): void {
  const ours = read(bytes)
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  if (MISJUDGED.test(text)) return
  const theirs = native(text)
  const shown = JSON.stringify(bytes.toString('latin1'))
  if (ours.kind === 'json') assert.deepEqual({ value: plain(ours.value) }, theirs, shown)
  else if (theirs !== null) assert.ok(BEYOND.has(ours.problem), `${ours.problem} ${shown}`)
}

test('one changed, lost or added byte is judged as JSON.parse judges it, or more strictly', () => {
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    kind: fc.constantFrom('change', 'drop', 'insert'),
    byte: fc.oneof(
      fc.constantFrom(...Buffer.from('"\\,:[]{}0-.eEtu \n')),
      fc.integer({ min: 0, max: 255 }),
    ),
  })
  fc.assert(
    fc.property(documents, fc.array(edit, { minLength: 1, maxLength: 3 }), (value, edits) => {
      const bytes = [...Buffer.from(writeJson(value))]
      for (const { at, kind, byte } of edits) {
        const place = Math.floor(at * bytes.length)
        bytes.splice(place, kind === 'insert' ? 0 : 1, ...(kind === 'drop' ? [] : [byte]))
      }
      agrees(Buffer.from(bytes))
    }),
    { numRuns: RUNS * 5 },
  )
})

test('any row of tokens is judged as JSON.parse judges it, or more strictly', () => {
  const token = fc.oneof(
    fc.constantFrom(
      ...'{ } [ ] , : " \\ - + . e 0 1 true false null "a" "b" "\\u0061"'.split(' '),
      ' ',
      '\n',
    ),
    fc.constantFrom(...NUMBERS),
    fc.string({ unit: 'binary', maxLength: 2 }),
  )
  fc.assert(
    fc.property(fc.array(token, { maxLength: 8 }), (tokens) =>
      agrees(Buffer.from(tokens.join(''))),
    ),
    { numRuns: RUNS * 10 },
  )
})

test('any bytes at all are admitted or refused, never an exception', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      assert.ok(['json', 'refused'].includes(read(bytes).kind))
    }),
    { numRuns: RUNS * 2 },
  )
})
