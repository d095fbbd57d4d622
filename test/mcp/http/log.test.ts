// What is kept of streams for clients that come back: all of it, in order, and never more than so much.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { MAX_KEPT, REPLAY_MS, type Shelf, streamLog } from '../../../src/mcp/http/log.ts'
import type { EventLine } from '../../../src/mcp/http/sse-write.ts'

type Line = EventLine & { readonly sent: readonly string[]; readonly closed: () => void }

/** A connection that takes everything, or, once it is full, no notices. */
function line(closed: () => void, full = false): Line {
  const sent: string[] = []
  return {
    sent,
    closed,
    send(event, weight) {
      if (full && weight === 'notice') return false
      sent.push(event)
      return true
    },
    keepAlive: () => undefined,
    end: () => undefined,
  }
}

const opened = (
  log: ReturnType<typeof streamLog>,
  full = false,
): { stream: ReturnType<typeof log.begin>; line: Line } => {
  const stream = log.begin('answer')
  const lines: Line[] = []
  stream.attach((closed) => {
    const one = line(closed, full)
    lines.push(one)
    return one
  }, null)
  const [first] = lines
  assert.ok(first !== undefined)
  return { stream, line: first }
}

const made = (shelf: Shelf = { kept: 0 }, now = { ms: 0 }): ReturnType<typeof streamLog> =>
  streamLog({ shelf, primes: () => false, nowMs: () => now.ms })

const read = (log: ReturnType<typeof streamLog>, eventId: string): readonly string[] => {
  const found = log.find(eventId)
  assert.ok(found !== null)
  const lines: Line[] = []
  found.stream.attach((closed) => {
    const one = line(closed)
    lines.push(one)
    return one
  }, found.after)
  return lines[0]?.sent ?? []
}

test('a client that comes back hears what came after, once, and what is said from then on', () => {
  const log = made()
  const { stream, line: first } = opened(log)
  for (const text of ['"a"', '"b"']) stream.write(text, 'notice')
  first.closed()
  stream.write('"c"', 'response')
  assert.deepEqual(first.sent, ['id: 1-1\ndata: "a"\n\n', 'id: 1-2\ndata: "b"\n\n'])
  assert.deepEqual(read(log, '1-1'), ['id: 1-2\ndata: "b"\n\n', 'id: 1-3\ndata: "c"\n\n'])
})

test('an event id that was never given leads nowhere', () => {
  const log = made()
  opened(log)
  for (const id of ['2-1', '1', '1-', '-1', '1-1x', '01-1', '1-01', '', '1-1-1']) {
    assert.equal(log.find(id), null, id)
  }
})

test('a notice that a slow reader did not get has no event and is not said later', () => {
  const log = made()
  const { stream, line: slow } = opened(log, true)
  assert.equal(stream.write('"notice"', 'notice'), false)
  assert.equal(stream.write('"answer"', 'response'), true)
  assert.deepEqual(slow.sent, ['id: 1-1\ndata: "answer"\n\n'])
  slow.closed()
  assert.deepEqual(read(log, '1-0'), ['id: 1-1\ndata: "answer"\n\n'])
})

test('a session keeps so much and no more, the newest of it, and gives all of it back', () => {
  const shelf = { kept: 0 }
  const log = made(shelf)
  const { stream, line: first } = opened(log)
  first.closed()
  const text = JSON.stringify('x'.repeat(MAX_KEPT / 8))
  for (let at = 0; at < 20; at++) stream.write(text, 'response')
  assert.ok(shelf.kept <= MAX_KEPT, String(shelf.kept))
  assert.ok(shelf.kept > MAX_KEPT / 2)
  assert.equal(stream.write(JSON.stringify('x'.repeat(MAX_KEPT + 1)), 'response'), false)
  const kept = read(log, '1-0')
  assert.match(kept.at(-1) ?? '', /^id: 1-20\n/)
  log.close()
  assert.equal(shelf.kept, 0)
})

test('an ended stream can be read for a while, then it is forgotten', () => {
  const now = { ms: 0 }
  const shelf = { kept: 0 }
  const log = made(shelf, now)
  const { stream } = opened(log)
  stream.write('"a"', 'response')
  stream.end()
  assert.equal(stream.write('"b"', 'response'), false)
  now.ms = REPLAY_MS
  log.sweep(now.ms)
  assert.equal(read(log, '1-0').length, 1)
  now.ms = REPLAY_MS + 1
  log.sweep(now.ms)
  assert.equal(log.find('1-0'), null)
  assert.equal(shelf.kept, 0)
})

test('streams are counted: an ended one is forgotten for a new one', () => {
  const log = made()
  for (let at = 0; at < 300; at++) opened(log).stream.end()
  assert.equal(log.find('1-0'), null)
  assert.notEqual(log.find('300-0'), null)
})

test('a line break in a message is a field of its own, so that no message can end an event', () => {
  const log = made()
  const { stream, line: one } = opened(log)
  stream.write('{"a":\n\n"event: x"}', 'response')
  assert.deepEqual(one.sent, ['id: 1-1\ndata: {"a":\ndata: \ndata: "event: x"}\n\n'])
})
