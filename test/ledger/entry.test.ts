// The text of a record: canonical byte for byte, printable, bounded, and refused rather than bent.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import fc from 'fast-check'

import { canonical } from '../../src/canonical.ts'
import { isObject, parseText, REQUEST_LIMITS, type JsonObject } from '../../src/json.ts'
import {
  emptyDraft,
  GENESIS_PREV,
  MEMBERS,
  rowName,
  toEntry,
  type Draft,
} from '../../src/ledger/entry.ts'
import { parseEntry } from '../../src/ledger/parse.ts'
import { draft, extras } from './drafts.ts'
import { text } from './logs.ts'

const PLACE = { seq: 7, prev: 'ab'.repeat(32) }

/** The record as an object, read by the strict reader and not by the room under test. */
function read(line: string): JsonObject {
  const parsed = parseText(line, REQUEST_LIMITS)
  assert.equal(parsed.kind, 'json')
  assert.ok(parsed.kind === 'json' && isObject(parsed.value))
  return parsed.value
}

const named = (name: string): JsonObject =>
  read(toEntry({ ...emptyDraft('call', 1), name }, PLACE).line)

test('a line is the canonical text of its record and its hash covers all but itself', () => {
  fc.assert(
    fc.property(draft, extras, (one, more) => {
      const { line, sha256 } = toEntry(one, PLACE, more)
      const value = read(line)
      assert.equal(canonical(value), line)
      const { sha256: stated, ...rest } = value
      const right = createHash('sha256').update(PLACE.prev).update(canonical(rest)).digest('hex')
      assert.equal(sha256, right)
      assert.equal(stated, right)
      assert.match(line, /^[\x20-\x7e]+$/)
      assert.equal(parseEntry(line).kind, one.kind)
    }),
    { numRuns: 2_000 },
  )
})

test('every record has every member of the format', () => {
  const value = read(toEntry(emptyDraft('start', 1), PLACE).line)
  const names = [...MEMBERS.keys(), 'kind', 'v'].sort()
  assert.deepEqual(Object.keys(value), names)
})

test('a name of 128 bytes stays whole and one of 129 is cut and says how long it was', () => {
  assert.equal(named('x'.repeat(128))['name_cut'], undefined)
  const long = named('x'.repeat(129))
  assert.equal(long['name'], 'x'.repeat(128))
  assert.equal(long['name_cut'], 129)
})

test('a cut never divides a code point', () => {
  for (let lead = 0; lead < 5; lead++) {
    const value = named('x'.repeat(lead) + '\u{1f600}'.repeat(40))
    const kept = Buffer.from(text(value['name']), 'base64')
    assert.ok(kept.length <= 128 && kept.length > 124)
    const whole = new TextDecoder('utf-8', { fatal: true }).decode(kept)
    assert.ok(('x'.repeat(lead) + '\u{1f600}'.repeat(40)).startsWith(whole))
    assert.equal(value['name_b64'], true)
    assert.equal(value['name_cut'], lead + 160)
  }
})

test('a name that is not printable ASCII is base64 with a mark, so it cannot forge a line', () => {
  for (const odd of ['x\n{"seq":1}', 'x\u2028y', '\u202egnp', '\u001b[2J', 'ação', '\u007f']) {
    const value = named(odd)
    assert.equal(Buffer.from(text(value['name']), 'base64').toString(), odd)
    assert.equal(value['name_b64'], true)
  }
  assert.equal(named('a"b\\c')['name'], 'a"b\\c')
  assert.equal(named('a"b\\c')['name_b64'], undefined)
})

test('a lone surrogate is recorded as the replacement character', () => {
  const value = named('a\ud800')
  assert.equal(Buffer.from(text(value['name']), 'base64').toString(), 'a\ufffd')
})

test('at most twenty failed checks are named and the number of all is told', () => {
  const failures = Array.from({ length: 25 }, (_, at) => ({ rule: `/rules/${at}`, field: null }))
  const value = read(toEntry({ ...emptyDraft('call', 1), failures }, PLACE).line)
  assert.ok(Array.isArray(value['failures']) && value['failures'].length === 20)
  assert.equal(value['failures_cut'], 25)
})

test('a number that is no exact integer is never recorded', () => {
  for (const bad of [0.5, 2 ** 53, NaN, Infinity, -(2 ** 53)]) {
    const fault = { name: 'Fault', code: 'internal' }
    assert.throws(() => toEntry({ ...emptyDraft('call', 1), duration_us: bad }, PLACE), fault)
    assert.throws(() => toEntry(emptyDraft('call', 1), PLACE, { items: bad }), fault)
  }
})

test('a further member cannot take the place of a member of the format or of its marks', () => {
  const bad = [
    'v',
    'kind',
    'seq',
    'sha256',
    'name',
    'name_b64',
    'failures_cut',
    'x_b64',
    'Name',
    'é',
    '',
  ]
  for (const key of bad) {
    assert.throws(() => toEntry(emptyDraft('call', 1), PLACE, { [key]: 1 }), { code: 'internal' })
  }
})

test('the members of the draft give way to those of the store', () => {
  const one: Draft = { ...emptyDraft('call', 1), more: { segment: 'a', upstream: 'notes', x: 1 } }
  const value = read(toEntry(one, PLACE, { segment: 'b', round: 2, x: null }).line)
  assert.equal(value['segment'], 'b')
  assert.equal(value['round'], 2)
  assert.equal(value['x'], null)
  assert.equal(value['upstream'], 'notes')
})

test('rows that differ never share a name in the log', () => {
  const long = 'k'.repeat(200)
  assert.equal(rowName('notes/write_note'), 'notes/write_note')
  assert.notEqual(rowName(long), rowName(`${long}k`))
  assert.notEqual(rowName(rowName(long)), rowName(long))
  assert.match(rowName('ação'), /^sha256:[0-9a-f]{64}$/)
})

test('a record of a newer version or of an unknown kind is told apart from a bad one', () => {
  const { line } = toEntry(emptyDraft('start', 1), { seq: 0, prev: GENESIS_PREV })
  const code = (one: string): unknown => {
    const parsed = parseEntry(one)
    return 'code' in parsed ? parsed.code : null
  }
  assert.equal(code(line), null)
  assert.equal(code(line.replace('"v":1', '"v":2')), 'version')
  assert.equal(code(line.replace('"start"', '"dance"')), 'kind')
  assert.equal(code(line.replace('"start"', '"problem"')), 'kind')
  assert.equal(code(line.replace('"ts":1', '"ts":"1"')), 'member')
  assert.equal(code(line.replace('"ts":1', '"ts":1.5')), 'form')
  assert.equal(code(line.replace('"ts":1', '"ts":1.0')), 'form')
  assert.equal(code(line.replace('"ts":1', '"ts":9007199254740992')), 'form')
  assert.equal(code(line.replace('{', '{ ')), 'form')
  assert.equal(code(`${line} `), 'form')
  assert.equal(code(line.replace('start', 'st\\u0061rt')), 'bytes')
  assert.equal(code(''), 'json')
  assert.equal(code('"x"'), 'json')
  assert.equal(code('x'.repeat(65_537)), 'bytes')
})
