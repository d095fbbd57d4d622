// Rows beside the log: what is changed, missing or extra is told, and nothing else.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import { parseEntry } from '../../src/ledger/parse.ts'
import {
  rowDigest,
  STATE_PROBLEMS,
  stateFold,
  type Fold,
  type Row,
} from '../../src/ledger/state.ts'
import { emptyDraft, type Draft, type More } from '../../src/ledger/entry.ts'
import { chain } from './logs.ts'

const pin = (tool: string, hash: string | null): Row => ({ tool, hash, waiting: null, since_us: 7 })

/** The record of a change of a row. */
const change = (table: string, row: string, made: Row | null): readonly [Draft, More] => [
  emptyDraft('pin', 1),
  { table, row, row_sha256: made === null ? null : rowDigest(table, made) },
]

function folded(...changes: readonly (readonly [Draft, More])[]): Fold {
  const fold = stateFold()
  for (const line of chain(changes).lines) {
    const entry: Entry | { readonly kind: 'problem' } = parseEntry(line)
    assert.ok(entry.kind !== 'problem')
    fold.push(entry)
  }
  return fold
}

test('the digest of a row is what docs/ledger.md says', () => {
  const text = '{"row":{"hash":null,"since_us":7,"tool":"n/ação","waiting":null},"table":"pins"}'
  const right = createHash('sha256').update(text, 'utf8').digest('hex')
  assert.equal(rowDigest('pins', pin('n/ação', null)), right)
})

test('the order of columns does not change the digest and every value does', () => {
  const row = pin('n/t', 'a')
  const turned = Object.fromEntries(Object.entries(row).reverse())
  assert.equal(rowDigest('pins', turned), rowDigest('pins', row))
  const others: readonly Row[] = [
    { ...row, hash: 'b' },
    { ...row, hash: null },
    { ...row, since_us: 8 },
    { ...row, since_us: '7' },
    { ...row, more: null },
  ]
  for (const other of others) assert.notEqual(rowDigest('pins', other), rowDigest('pins', row))
  assert.notEqual(rowDigest('policy', row), rowDigest('pins', row))
})

test('tables that are as the last records left them have no problem', () => {
  const fold = folded(
    change('pins', 'n/a', pin('n/a', null)),
    change('pins', 'n/b', pin('n/b', 'h')),
    change('pins', 'n/a', pin('n/a', 'h2')),
    change('pins', 'n/c', pin('n/c', 'h')),
    change('pins', 'n/c', null),
  )
  assert.deepEqual(fold.compare('pins', [pin('n/b', 'h'), pin('n/a', 'h2')]), [])
  assert.deepEqual(fold.compare('operations', []), [])
  assert.deepEqual(fold.unknownTables(), [])
})

test('a changed, a missing and an extra row are each named', () => {
  const fold = folded(
    change('pins', 'n/a', pin('n/a', 'h')),
    change('pins', 'n/b', pin('n/b', 'h')),
    change('pins', 'n/gone', pin('n/gone', 'h')),
    change('pins', 'n/gone', null),
  )
  const rows = [pin('n/a', 'forged'), pin('n/new', 'h'), pin('n/gone', 'h')]
  assert.deepEqual(fold.compare('pins', rows), [
    { kind: 'changed', table: 'pins', row: 'n/a', seq: 1 },
    { kind: 'extra', table: 'pins', row: 'n/new', seq: null },
    { kind: 'extra', table: 'pins', row: 'n/gone', seq: null },
    { kind: 'missing', table: 'pins', row: 'n/b', seq: 2 },
  ])
})

test('a row put back to an earlier state is found', () => {
  const fold = folded(
    change('pins', 'n/a', pin('n/a', 'old')),
    change('pins', 'n/a', pin('n/a', 'new')),
  )
  assert.equal(fold.compare('pins', [pin('n/a', 'old')])[0]?.kind, 'changed')
})

test('a row that stands twice is found', () => {
  const fold = folded(change('pins', 'n/a', pin('n/a', 'h')))
  const twice = [pin('n/a', 'h'), pin('n/a', 'h')]
  assert.equal(fold.compare('pins', twice)[0]?.kind, 'extra')
})

test('a row whose key is long or not ASCII is followed by its hash', () => {
  const tool = `n/${'ç'.repeat(300)}`
  const fold = folded(change('pins', tool, pin(tool, 'h')))
  assert.deepEqual(fold.compare('pins', [pin(tool, 'h')]), [])
  assert.equal(fold.compare('pins', [pin(`${tool}x`, 'h')]).length, 2)
})

test('a table that this build does not know is told and the list of findings is bounded', () => {
  const fold = folded(change('lanes', 'x', { lane: 'x' }))
  assert.deepEqual(fold.unknownTables(), ['lanes'])
  const many = Array.from({ length: 500 }, (_, at) => pin(`n/${at}`, 'h'))
  assert.equal(fold.compare('pins', many).length, STATE_PROBLEMS)
})
