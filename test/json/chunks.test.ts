// Where a pipe cuts the bytes changes nothing of what is admitted.

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'

import fc from 'fast-check'

import { type Parsed, parseJson, REQUEST_LIMITS, writeJson } from '../../src/json.ts'
import { lines } from '../../src/mcp/wire/lines.ts'
import { documents } from './arbitrary.ts'

const RUNS = process.env['ECLUSA_LONG'] === '1' ? 20_000 : 500
const MOST = 4096

/** What comes of the bytes when they arrive cut at these places. */
function arrive(bytes: Buffer, cuts: readonly number[]): (Parsed | number)[] {
  const seen: (Parsed | number)[] = []
  const splitter = lines(
    MOST,
    (line) => seen.push(parseJson(line, REQUEST_LIMITS)),
    (count) => seen.push(count),
  )
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length]
  places.sort((a, b) => a - b)
  for (const [at, from] of places.entries()) {
    splitter.push(bytes.subarray(from, places[at + 1] ?? bytes.length))
  }
  splitter.end()
  return seen
}

const message = fc.oneof(
  { weight: 6, arbitrary: documents.map((value) => Buffer.from(writeJson(value))) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', 'garbage', '{"a":', '\ufeff{}').map((text) => Buffer.from(text)),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: MOST - 3, max: MOST + 3 }).map((size) => Buffer.alloc(size, 0x31)),
  },
)

const stream = fc
  .array(message, { maxLength: 8 })
  .map((messages) => Buffer.concat(messages.flatMap((one) => [one, Buffer.from('\n')])))

test('any cutting of a stream gives the messages that one piece gives', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 20 }), (bytes, cuts) => {
      assert.deepEqual(arrive(bytes, cuts), arrive(bytes, []))
    }),
    { numRuns: RUNS },
  )
})

test('byte by byte gives the messages that one piece gives', () => {
  fc.assert(
    fc.property(stream, (bytes) => {
      const each = Array.from({ length: bytes.length }, (_, at) => at)
      assert.deepEqual(arrive(bytes, each), arrive(bytes, []))
    }),
    { numRuns: RUNS / 5 },
  )
})
