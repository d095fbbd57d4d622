// Every ceiling of a document holds at its edge: the last that fits is admitted, the next is refused.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'

import {
  type JsonLimits,
  type JsonProblem,
  parseJson,
  parseText,
  REQUEST_LIMITS,
  UPSTREAM_LIMITS,
} from '../../src/json.ts'

const verdict = (text: string, limits: JsonLimits = REQUEST_LIMITS): JsonProblem | 'admitted' => {
  const parsed = parseJson(Buffer.from(text), limits)
  return parsed.kind === 'refused' ? parsed.problem : 'admitted'
}

const nested = (open: string, close: string, depth: number): string =>
  `${open.repeat(depth)}1${close.repeat(depth)}`

test('the ceilings are the published ones', () => {
  const shared = { depth: 64, keys: 10_000, nodes: 200_000 }
  assert.deepEqual(REQUEST_LIMITS, { bytes: 4_194_304, ...shared })
  assert.deepEqual(UPSTREAM_LIMITS, { bytes: 16_777_216, ...shared })
})

test('64 open brackets are admitted, 65 are not, of either kind and mixed', () => {
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
  ] as const) {
    assert.equal(verdict(nested(open, close, 64)), 'admitted')
    assert.equal(verdict(nested(open, close, 65)), 'too_deep')
  }
  assert.equal(verdict(nested('[{"a":', '}]', 32)), 'admitted')
  assert.equal(verdict(nested('[{"a":', '}]', 33)), 'too_deep')
})

test('depth counts what is open, not what has been', () => {
  assert.equal(verdict(`[${Array.from({ length: 500 }, () => '[[]]').join(',')}]`), 'admitted')
})

test('10,000 keys of one object are admitted, 10,001 are not; of two objects they are', () => {
  const members = (count: number): string =>
    Array.from({ length: count }, (_, at) => `"k${at}":0`).join(',')
  assert.equal(verdict(`{${members(10_000)}}`), 'admitted')
  assert.equal(verdict(`{${members(10_001)}}`), 'too_many_keys')
  assert.equal(verdict(`[{${members(9000)}},{${members(9000)}}]`), 'admitted')
})

test('200,000 values of one document are admitted, one more is not', () => {
  const zeros = (count: number): string => `[${'0,'.repeat(count - 2)}0]`
  assert.equal(verdict(zeros(200_000)), 'admitted')
  assert.equal(verdict(zeros(200_001)), 'too_many_nodes')
  assert.equal(verdict(`[${'[],'.repeat(199_999)}[]]`), 'too_many_nodes')
})

test('4 MiB are admitted, one byte more is not, and bytes are counted, not characters', () => {
  const size = REQUEST_LIMITS.bytes
  assert.equal(verdict(`"${'a'.repeat(size - 2)}"`), 'admitted')
  assert.equal(verdict(`"${'a'.repeat(size - 1)}"`), 'too_long')
  assert.equal(verdict(`"${'é'.repeat(size / 2 - 1)}"`), 'admitted')
  assert.equal(verdict(`"${'é'.repeat(size / 2)}"`), 'too_long')
  assert.equal(verdict(' '.repeat(size + 1)), 'too_long')
})

test('what is too long is refused before it is decoded', () => {
  const bad = Buffer.alloc(101, 0xff)
  const parsed = parseJson(bad, { ...REQUEST_LIMITS, bytes: 100 })
  assert.deepEqual(parsed, { kind: 'refused', problem: 'too_long', at: 100 })
})

test('a ceiling that is reached by a text with another fault is told first where it comes first', () => {
  const tight = { bytes: 1000, depth: 2, keys: 2, nodes: 4 }
  assert.equal(verdict('[[[x', tight), 'too_deep')
  assert.equal(verdict('[x,[[', tight), 'syntax')
  assert.equal(verdict('{"a":1,"b":2,"a":3}', tight), 'too_many_keys')
  assert.equal(verdict('[1,2,3,4', tight), 'too_many_nodes')
})

test('a number of a million digits is read in no time, a string of a million escapes too', () => {
  assert.equal(verdict(`[0.${'1'.repeat(1_000_000)}]`), 'admitted')
  assert.equal(verdict(`[${'1'.repeat(1_000_000)}]`), 'number_range')
  assert.equal(verdict(`["${String.raw`\u0041`.repeat(600_000)}"]`), 'admitted')
})

test('text that was decoded elsewhere is held to the same rules', () => {
  assert.equal(parseText('"\ud800"', REQUEST_LIMITS).kind, 'refused')
  assert.equal(parseText('["\udc00\ud800"]', REQUEST_LIMITS).kind, 'refused')
  assert.equal(parseText('"\ud83d\ude80"', REQUEST_LIMITS).kind, 'json')
})
