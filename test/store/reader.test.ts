// Reading a state directory beside its writers, from a copy, and approving pins.

import assert from 'node:assert/strict'
import { chmodSync, cpSync, readdirSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import { hmac256 } from '../../src/canonical.ts'
import type { Store } from '../../src/ports.ts'
import { approvePin, openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import {
  child,
  closing,
  draft,
  intent,
  optionsFor,
  POLICY,
  scratch,
  ticketOf,
  until,
  verified,
} from './scene.ts'

const TOOL = 'notes/write_note'
const definition = (hash: string) => ({
  name: 'write_note',
  value: { name: 'write_note', b: 1 },
  hash,
})

async function open(t: {
  after(work: () => unknown): void
}): Promise<{ dir: string; store: Store }> {
  const opened: Store[] = []
  t.after(() => Promise.all(opened.map((store) => store.stop().catch(() => undefined))))
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  opened.push(store)
  return { dir, store }
}

test('a reader sees entries, rows, policy, definitions and keys while a process writes', async (t) => {
  const { dir, store } = await open(t)
  await store.pin([{ tool: TOOL, definition: definition('h1'), state: 'approved' }], 'writer')
  await store.close(ticketOf(await store.open(intent(store, 'key-1'))), closing(store))
  const reader = openReader(dir)
  t.after(() => reader.close())
  assert.equal([...reader.entries(0)].length, reader.head().seq + 1)
  assert.equal([...reader.entries(2)].length, reader.head().seq - 1)
  assert.match(reader.entry(0) ?? '', /"kind":"genesis"/)
  assert.equal(reader.entry(1_000_000), null)
  assert.equal(reader.policyText(POLICY.digest), POLICY.text)
  assert.equal(reader.policyText('none'), null)
  assert.equal(reader.definitionText('h1'), '{"b":1,"name":"write_note"}')
  assert.deepEqual(reader.pins(), [{ tool: TOOL, hash: 'h1', waiting: null }])
  const [row] = [...reader.rows('operations')]
  assert.equal(row?.['key'], 'key-1')
  const { digest, segment } = store.digest('{"a":1}')
  assert.equal(hmac256(reader.segmentKey(segment), '{"a":1}'), digest)
})

test('in a snapshot entries and tables agree although a process goes on writing', async (t) => {
  const { dir, store } = await open(t)
  const reader = openReader(dir)
  t.after(() => reader.close())
  const ends: number[] = []
  const writing = (async () => {
    while (ends.length < 20) {
      await store.close(
        ticketOf(await store.open(intent(store, String(Math.random())))),
        closing(store),
      )
    }
  })()
  while (ends.length < 20) {
    reader.snapshot(() => {
      const lines = [...reader.entries(0)]
      const rows = [...reader.rows('operations')]
      const intents = lines.filter((line) => line.includes('"kind":"intent"')).length
      assert.equal(rows.length, intents)
      ends.push(lines.length)
    })
    await new Promise((resolve) => setImmediate(resolve))
  }
  await writing
})

test('a copy of a directory is read where nobody may write, and the original is not touched', async (t) => {
  const { dir, store } = await open(t)
  await store.append(draft({ name: 'copied' }))
  await store.stop()
  const before = readdirSync(dir)
  const copy = join(scratch(t), 'copy')
  cpSync(dir, copy, { recursive: true })
  chmodSync(copy, 0o500)
  const reader = openReader(copy)
  assert.ok([...reader.entries(0)].some((line) => line.includes('"name":"copied"')))
  reader.close()
  chmodSync(copy, 0o700)
  assert.deepEqual(readdirSync(dir), before)
})

test('a directory without a ledger is refused', (t) => {
  assert.throws(() => openReader(scratch(t)), { code: 'state_refused', message: /no ledger.db/ })
  assert.throws(() => approvePin(scratch(t), { tool: TOOL, hash: null }), { code: 'state_refused' })
})

test('an approval is recorded with the user and seen by running processes within a second', async (t) => {
  const { dir, store } = await open(t)
  const other = child(t, dir)
  await other.heard('ready')
  await store.pin([{ tool: TOOL, definition: definition('h1'), state: 'waits' }], 'writer')
  assert.deepEqual(approvePin(dir, { tool: 'notes/none', hash: null }), { kind: 'unknown_tool' })
  assert.deepEqual(approvePin(dir, { tool: TOOL, hash: 'h9' }), {
    kind: 'other_hash',
    waiting: 'h1',
  })
  assert.deepEqual(approvePin(dir, { tool: TOOL, hash: 'h1' }), {
    kind: 'approved',
    hash: 'h1',
    before: null,
  })
  assert.deepEqual(approvePin(dir, { tool: TOOL, hash: null }), { kind: 'nothing_waits' })
  await until('this process sees it', () => store.pins().get(TOOL)?.hash === 'h1', roomy(1_500))
  await until(
    'the other one sees it',
    () => {
      other.tell('pins')
      return other.lines.some((line) => line.includes('"hash":"h1"'))
    },
    1_500,
  )
  const pins = verified(dir).filter((entry) => entry['table'] === 'pins')
  assert.equal(pins.at(-1)?.['user'], userInfo().username)
  assert.equal(pins.at(-1)?.['state'], 'approved')
})

test('an approved change replaces the pin, and the old definition can still be read', async (t) => {
  const { dir, store } = await open(t)
  await store.pin([{ tool: TOOL, definition: definition('h1'), state: 'approved' }], 'writer')
  await store.pin([{ tool: TOOL, definition: definition('h2'), state: 'waits' }], 'writer')
  assert.deepEqual(approvePin(dir, { tool: TOOL, hash: null }), {
    kind: 'approved',
    hash: 'h2',
    before: 'h1',
  })
  const reader = openReader(dir)
  t.after(() => reader.close())
  assert.notEqual(reader.definitionText('h1'), null)
  assert.notEqual(reader.definitionText('h2'), null)
  verified(dir)
})

test('the digest of a row in the log cannot be guessed from its answer: each writing has a salt', async (t) => {
  const { dir, store } = await open(t)
  const reader = openReader(dir)
  t.after(() => reader.close())
  const salts = new Set<unknown>()
  const note = (): void => {
    for (const { salt } of reader.rows('operations')) salts.add(salt)
  }
  for (const key of ['key-1', 'key-2']) {
    const ticket = ticketOf(await store.open(intent(store, key)))
    note()
    await store.close(ticket, closing(store))
    note()
  }
  assert.equal(salts.size, 4)
  for (const salt of salts) assert.match(String(salt), /^[0-9a-f]{32}$/)
})
