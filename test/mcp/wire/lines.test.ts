import assert from 'node:assert/strict'
import { test } from 'node:test'

import { array, assert as check, constantFrom, nat, property } from 'fast-check'

import { lines } from '../../../src/mcp/wire/lines.ts'

/** What a splitter with this limit says about these chunks. */
function split(limit: number, chunks: readonly Buffer[], end = true): string[] {
  const seen: string[] = []
  const splitter = lines(
    limit,
    (line) => seen.push(line.toString('utf8')),
    (bytes) => seen.push(`too long: ${bytes}`),
  )
  for (const chunk of chunks) splitter.push(chunk)
  if (end) splitter.end()
  return seen
}

const each = (bytes: Buffer): Buffer[] => Array.from(bytes, (byte) => Buffer.from([byte]))

test('a line is found however its bytes arrive', () => {
  const input = Buffer.from('{"a":1}\n{"b":"\u00e9\u{1f600}"}\r\n\n\r\n{"c":3}\n')
  const expected = ['{"a":1}', '{"b":"\u00e9\u{1f600}"}', '{"c":3}']
  assert.deepEqual(split(100, [input]), expected)
  assert.deepEqual(split(100, each(input)), expected)
  for (let at = 0; at <= input.length; at++) {
    assert.deepEqual(split(100, [input.subarray(0, at), input.subarray(at)]), expected)
  }
})

test('no chunking changes what is found, limits included', () => {
  const piece = constantFrom('a', '\n', '\r', '\u{1f600}', 'bcdefgh', '\r\n')
  check(
    property(array(piece, { maxLength: 60 }), array(nat(9)), (pieces, cuts) => {
      const input = Buffer.from(pieces.join(''))
      const chunks: Buffer[] = []
      let from = 0
      for (const cut of cuts) {
        chunks.push(input.subarray(from, from + cut))
        from += cut
      }
      chunks.push(input.subarray(from))
      const expected = input
        .toString('latin1')
        .split('\n')
        .map((line) => Buffer.from(line.replace(/\r$/, ''), 'latin1'))
        .filter((line) => line.length > 0)
        .map((line) => (line.length > 12 ? `too long: ${line.length}` : line.toString('utf8')))
      assert.deepEqual(split(12, chunks), expected)
    }),
  )
})

test('a line of exactly the limit passes with either line end, one byte more does not', () => {
  for (const end of ['\n', '\r\n', '']) {
    for (const feed of [(bytes: Buffer) => [bytes], each]) {
      assert.deepEqual(split(5, feed(Buffer.from(`12345${end}`))), ['12345'])
      assert.deepEqual(split(5, feed(Buffer.from(`123456${end}`))), ['too long: 6'])
    }
  }
})

test('what stands after the last line end is no line before the stream ends', () => {
  assert.deepEqual(split(100, [Buffer.from('a\nb')], false), ['a'])
  assert.deepEqual(split(100, [Buffer.from('a\nb')]), ['a', 'b'])
})

test('a thousand messages in one chunk are a thousand lines, in order', () => {
  const wanted = Array.from({ length: 1000 }, (_, n) => `{"n":${n}}`)
  assert.deepEqual(split(100, [Buffer.from(`${wanted.join('\n')}\n`)]), wanted)
})

test('a line that was given stays as it was when more comes in', () => {
  const kept: Buffer[] = []
  const splitter = lines(
    100,
    (line) => kept.push(line),
    () => assert.fail('nothing is too long'),
  )
  for (let n = 0; n < 50; n++) {
    splitter.push(Buffer.from(`first half ${n},`))
    splitter.push(Buffer.from(` second half ${n}\nno`))
    splitter.push(Buffer.from('ise\n'))
  }
  assert.equal(kept[0]?.toString(), 'first half 0, second half 0')
  assert.equal(kept[98]?.toString(), 'first half 49, second half 49')
})

test('a line of 700 MB is reported once, by its edges, without holding it', () => {
  const chunk = Buffer.alloc(64 * 1024, 'x')
  const before = process.memoryUsage()
  let peak = 0
  const told: string[] = []
  const seen: string[] = []
  const splitter = lines(
    16 * 1024 * 1024,
    (line) => seen.push(line.toString()),
    (bytes, { head, tail }) => {
      told.push(`${bytes} ${head.toString()} ${tail.toString()}`)
    },
  )
  splitter.push(Buffer.from('{"id":7,'))
  for (let sent = 0; sent < 700 * 1024 * 1024; sent += chunk.length) {
    splitter.push(chunk)
    if (sent % (64 * 1024 * 1024) === 0) peak = Math.max(peak, process.memoryUsage().rss)
  }
  assert.deepEqual(told, [])
  splitter.push(Buffer.from('"end":1}\nnext\n'))
  assert.equal(told.length, 1)
  assert.match(told[0] ?? '', /^734003216 \{"id":7,x{1016} x{1016}"end":1\}$/)
  assert.deepEqual(seen, ['next'])
  assert.ok(peak - before.rss < 100 * 1024 * 1024, `grew by ${peak - before.rss} bytes`)
})

test('16 MB one byte at a time is linear', () => {
  const splitter = lines(
    16 * 1024 * 1024,
    (line) => assert.equal(line.length, 16 * 1024 * 1024),
    () => assert.fail('nothing is too long'),
  )
  const one = Buffer.from('x')
  const started = process.hrtime.bigint()
  for (let n = 0; n < 16 * 1024 * 1024; n++) splitter.push(one)
  splitter.push(Buffer.from('\n'))
  // Quadratic work would take hours; the bound is wide for a loaded machine.
  assert.ok(process.hrtime.bigint() - started < 30_000_000_000n)
})
