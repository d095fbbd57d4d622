// Records as people read them: nothing hidden, nothing that a terminal obeys.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import fc from 'fast-check'

import { details, summary, visible } from '../../src/cli/record.ts'
import { emptyDraft, toEntry, type Draft, type Entry, type More } from '../../src/ledger/entry.ts'
import { parseEntry } from '../../src/ledger/parse.ts'
import { draft, extras } from './drafts.ts'

function entryOf(one: Draft, more?: More): Entry {
  const parsed = parseEntry(toEntry(one, { seq: 3, prev: 'ab'.repeat(32) }, more).line)
  assert.ok(parsed.kind !== 'problem')
  return parsed
}

test('controls, bidirectional marks, invisible and odd space characters are written as codes', () => {
  assert.equal(visible('\u001b[2J\r\n\u0000'), '\\u{1b}[2J\\u{d}\\u{a}\\u{0}')
  assert.equal(visible('\u202egnp.exe\u2066\u200f'), '\\u{202e}gnp.exe\\u{2066}\\u{200f}')
  assert.equal(visible('a\u200bb\ufeff\u00ad\u2060'), 'a\\u{200b}b\\u{feff}\\u{ad}\\u{2060}')
  assert.equal(visible('\u{e0041}\u{e0061}\ufe0f'), '\\u{e0041}\\u{e0061}\\u{fe0f}')
  assert.equal(visible('\u2028\u2029\u00a0\u3000'), '\\u{2028}\\u{2029}\\u{a0}\\u{3000}')
  assert.equal(visible('\u009b31m\u007f'), '\\u{9b}31m\\u{7f}')
})

test('letters of every script stay, and a backslash cannot imitate a code', () => {
  assert.equal(visible('ação 日本語 עברית 😀'), 'ação 日本語 עברית 😀')
  assert.notEqual(visible('\\u{1b}'), visible('\u001b'))
})

test('no view of any record holds a character that a terminal obeys', () => {
  fc.assert(
    fc.property(draft, extras, (one, more) => {
      const entry = entryOf(one, more)
      for (const line of [summary(entry), ...details(entry)]) {
        assert.doesNotMatch(line, /[\p{C}\p{Zl}\p{Zp}]/u)
      }
    }),
    { numRuns: 500 },
  )
})

test('a page shows what was encoded and that it was cut, and leaves out only what says nothing', () => {
  const entry = entryOf(
    {
      ...emptyDraft('call', 1_764_000_000_123_456),
      name: `ação${'x'.repeat(200)}`,
      failures: [{ rule: '/a', field: 'ö' }],
    },
    { upstream: 'notes', gone: null, on: false },
  )
  const page = details(entry)
  assert.ok(page.includes(`name: ação${'x'.repeat(122)}...`))
  assert.ok(page.includes('failures: field ö, rule /a'))
  assert.ok(page.includes('ts: 1764000000123456 (2025-11-24T16:00:00.123456Z)'))
  assert.ok(page.includes('upstream: notes'))
  assert.ok(page.includes('on: false'))
  assert.ok(page.every((line) => !line.startsWith('gone') && !line.startsWith('client')))
})

test('the first and the last time that a record may hold are dates', () => {
  assert.match(summary(entryOf(emptyDraft('start', 2 ** 53 - 1))), /^3 {2}2255-06-05T/)
  assert.match(summary(entryOf(emptyDraft('start', -(2 ** 53 - 1)))), /^3 {2}1684-07-28T/)
})
