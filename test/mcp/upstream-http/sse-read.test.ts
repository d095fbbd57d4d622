import assert from 'node:assert/strict'
import { test } from 'node:test'
import v8 from 'node:v8'
import vm from 'node:vm'

import fc from 'fast-check'

import { type SseEvent, sseReader } from '../../../src/mcp/upstream-http/sse-read.ts'

type Heard = { events: string[]; ids: (string | null)[]; retries: number[]; tooLong: number }

function read(chunks: readonly Buffer[], limit = 1000): Heard {
  const heard: Heard = { events: [], ids: [], retries: [], tooLong: 0 }
  const reader = sseReader(limit, {
    event({ event, data, id }: SseEvent) {
      heard.events.push(`${event}|${data.toString('utf8')}`)
      heard.ids.push(id)
    },
    retry: (ms) => heard.retries.push(ms),
    tooLong: () => heard.tooLong++,
  })
  for (const chunk of chunks) reader.push(chunk)
  return heard
}
const whole = (text: string, limit?: number): Heard => read([Buffer.from(text)], limit)

for (const [name, text, events] of [
  ['one event', 'data: a\n\n', ['|a']],
  ['no space after the colon', 'data:a\n\n', ['|a']],
  ['only one space is taken', 'data:  a\n\n', ['| a']],
  ['lines are joined', 'data: a\ndata: b\ndata:\n\n', ['|a\nb\n']],
  ['CR alone ends a line', 'data: a\r\rdata: b\r\r', ['|a', '|b']],
  ['CRLF ends one line', 'data: a\r\ndata: b\r\n\r\n', ['|a\nb']],
  ['mixed ends', 'data: a\r\n\ndata: b\r\r\ndata: c\n\r', ['|a', '|b', '|c']],
  ['a byte-order mark', '\u{feff}data: a\n\n', ['|a']],
  ['a second byte-order mark is part of a name', 'data: a\n\n\u{feff}data: b\n\n', ['|a', '|']],
  ['comments and unknown fields', ': c\n:\nfoo: x\nbar\ndata: a\n\n', ['|a']],
  ['a name without a colon', 'data\n\n', ['|']],
  ['an event name', 'event: ping\ndata: a\n\ndata: b\n\n', ['ping|a', '|b']],
  ['a name of another case', 'Data: a\nDATA: b\n\n', ['|']],
  ['a colon in the value', 'data: {"a":1}\n\n', ['|{"a":1}']],
  ['the last event without its empty line', 'data: a\n\ndata: b\n', ['|a']],
  ['fields inside of data', 'data: event: x\ndata: id: 4\n\n', ['|event: x\nid: 4']],
] as const) {
  test(`an event stream with ${name} is read as the standard says`, () => {
    assert.deepEqual(whole(text).events, events)
  })
}

test('the id stays until another comes, also from an event without data; NUL makes it none', () => {
  const heard = whole('id: 1\n\ndata: a\n\nid: 2\u0000\ndata: b\n\nid\ndata: c\n\n')
  assert.deepEqual(heard.events, ['|', '|a', '|b', '|c'])
  assert.deepEqual(heard.ids, ['1', '1', '1', ''])
})

test('a wait is digits only', () => {
  assert.deepEqual(
    whole('retry: 10\nretry: 1.5\nretry: -1\nretry:\nretry: 99999999999\n').retries,
    [10],
  )
})

test('the borders of chunks mean nothing', () => {
  const text =
    '\u{feff}: hi\r\nid: é1\r\ndata: {"a":"ü€😀"}\r\n\r\nevent: x\rdata: 1\rdata: 2\r\rdata: z\n\n'
  const bytes = Buffer.from(text)
  const expected = whole(text)
  assert.deepEqual(expected.events, ['|{"a":"ü€😀"}', 'x|1\n2', '|z'])
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const at = [0, ...cuts.sort((a, b) => a - b), bytes.length]
      const chunks = at.slice(1).map((end, i) => bytes.subarray(at[i], end))
      assert.deepEqual(read(chunks), expected)
    }),
  )
  assert.deepEqual(read([...bytes].map((byte) => Buffer.from([byte]))), expected)
})

test('an event past the limit is told once and nothing after it is heard', () => {
  const line = 'x'.repeat(1000)
  assert.deepEqual(whole(`data: ${line}\n\n`).events, [`|${line}`])
  const heard = whole(`data: ${line}${line}\n\ndata: a\n\n`)
  assert.deepEqual([heard.events, heard.tooLong], [[], 1])
  const many = read(Array.from({ length: 20 }, () => Buffer.from(`data: ${'x'.repeat(100)}\n`)))
  assert.equal(many.tooLong, 1)
  assert.equal(read(Array.from({ length: 200 }, () => Buffer.from('0123456789'))).tooLong, 1)
})

test('empty data lines have a limit, and a line that comes byte by byte is one line', () => {
  assert.equal(whole('data\n'.repeat(200_000), 16_000_000).tooLong, 1)
  const text = `data: ${'x'.repeat(100_000)}\n\n`
  const heard = read(
    [...Buffer.from(text)].map((byte) => Buffer.from([byte])),
    100_000,
  )
  assert.deepEqual(heard.events, [`|${'x'.repeat(100_000)}`])
})

test('reading takes time linear in the bytes', () => {
  const line = Buffer.from(`data: ${'x'.repeat(8)}\n\n`.repeat(8_000))
  const time = (ending: Buffer): number => {
    const start = performance.now()
    for (let at = 0; at < 20; at++) read([ending], 1_000_000)
    return performance.now() - start
  }
  time(line)
  const [lf, cr] = [time(line), time(Buffer.from(line.toString().replaceAll('\n', '\r')))]
  assert.ok(cr < 8 * lf + 50 && lf < 8 * cr + 50, `${lf} ${cr}`)
})

test('an event that does not end keeps its lines, not all that came between them', async () => {
  v8.setFlagsFromString('--expose-gc')
  const collect = vm.runInNewContext('gc') as () => void
  const reader = sseReader(1_000_000, { event: () => {}, retry: () => {}, tooLong: () => {} })
  const chunk = Buffer.from(`data: x\n:${'-'.repeat(65_000)}\n`)
  const before = process.memoryUsage().arrayBuffers
  for (let at = 0; at < 1_000; at++) reader.push(Buffer.concat([chunk]))
  let grown = Number.POSITIVE_INFINITY
  // What is free is given back a little later.
  for (let at = 0; at < 100 && grown > 8_000_000; at++) {
    collect()
    await new Promise(setImmediate)
    grown = process.memoryUsage().arrayBuffers - before
  }
  reader.push(Buffer.from('\n'))
  assert.ok(grown < 8_000_000, `${grown} bytes`)
})
