// What is looked at before anybody is known, and how those are slowed down who are not.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { acceptsOf, isJson, isLoopback } from '../../../src/mcp/http/guard.ts'
import { flood, KNOCKS_A_MINUTE } from '../../../src/mcp/http/flood.ts'
import { readHeaders } from '../../../src/mcp/http/headers.ts'

test('what a client accepts is read, and what it refuses with q=0 is refused', () => {
  const both = { json: true, stream: true }
  assert.deepEqual(acceptsOf(undefined), both)
  assert.deepEqual(acceptsOf('application/json, text/event-stream'), both)
  assert.deepEqual(acceptsOf('*/*'), both)
  assert.deepEqual(acceptsOf('application/json'), { json: true, stream: false })
  assert.deepEqual(acceptsOf('Text/Event-Stream;q=0.5'), { json: false, stream: true })
  assert.deepEqual(acceptsOf('text/html'), { json: false, stream: false })
  assert.deepEqual(acceptsOf('application/json, text/event-stream;q=0'), {
    json: true,
    stream: false,
  })
})

test('a body is JSON in UTF-8 or it is not taken', () => {
  const is = (...raw: string[]): boolean => isJson(readHeaders(raw))
  assert.equal(is('Content-Type', 'application/json'), true)
  assert.equal(is('Content-Type', 'application/json; charset=UTF-8'), true)
  assert.equal(is('Content-Type', 'application/json; charset=utf-16'), false)
  assert.equal(is('Content-Type', 'application/jsonp'), false)
  assert.equal(is('Content-Type', 'text/plain'), false)
  assert.equal(is(), false)
  assert.equal(is('Content-Type', 'application/json', 'Content-Encoding', 'gzip'), false)
  assert.equal(is('Content-Type', 'application/json', 'Content-Encoding', 'identity'), true)
})

test('addresses of this machine are known as such', () => {
  for (const one of ['127.0.0.1', '127.8.8.8', '::1', '::ffff:127.0.0.1']) {
    assert.equal(isLoopback(one), true, one)
  }
  for (const one of ['10.0.0.1', '::2', '1127.0.0.1', undefined]) {
    assert.equal(isLoopback(one), false, String(one))
  }
})

test('knocks of one address are answered up to a rate, those of another are not slowed down', async () => {
  let now = 0
  const records: Readonly<Record<string, number>>[] = []
  const one = flood({
    record: async (counts) => void records.push(counts),
    failed: () => assert.fail('a record failed'),
    nowMs: () => now,
  })
  for (let at = 0; at < KNOCKS_A_MINUTE; at++) assert.equal(one.knock('host', '10.0.0.1'), 0)
  assert.ok(one.knock('token_bad', '10.0.0.1') > 0)
  assert.equal(one.knock('host', '10.0.0.2'), 0)
  // One network of IPv6 is one place.
  for (let at = 0; at < KNOCKS_A_MINUTE; at++) one.knock('path', `2001:db8:1:2::${at}`)
  assert.ok(one.knock('path', '2001:db8:1:2:ffff::1') > 0)
  assert.equal(one.knock('path', '2001:db8:1:3::1'), 0)
  now += 60_000
  assert.equal(one.knock('host', '10.0.0.1'), 0)
  await one.flush()
  assert.deepEqual(records, [
    {
      refused_host: KNOCKS_A_MINUTE + 2,
      refused_token_bad: 1,
      refused_path: KNOCKS_A_MINUTE + 2,
    },
  ])
})

test('counts whose record failed go into the next one', async () => {
  const records: Readonly<Record<string, number>>[] = []
  let fails = 0
  const one = flood({
    async record(counts) {
      if (fails === 0) throw new Error('full')
      records.push(counts)
    },
    failed: () => void fails++,
    nowMs: () => 0,
  })
  one.knock('origin', undefined)
  await one.flush()
  one.knock('origin', undefined)
  await one.flush()
  assert.equal(fails, 1)
  assert.deepEqual(records, [{ refused_origin: 2 }])
})
