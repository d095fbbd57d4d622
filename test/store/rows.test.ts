// A start notices that somebody edited who may come, what was approved and what was kept of it.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'

import { addClientIn, revokeClientIn } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { optionsFor, scratch } from './scene.ts'

const TOOL = 'notes/write_note'
const client = (name: string): Parameters<typeof addClientIn>[1] => ({
  name,
  profile: 'writer',
  person: false,
  attributes: { team: 'editors' },
  digest: name.repeat(8),
  limit: null,
  expiresUs: null,
})

/** A ledger with two clients, one revoked, and a pin; nobody is in it. */
async function settled(t: TestContext): Promise<string> {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  const value = { name: 'write_note' }
  await store.pin(
    [{ tool: TOOL, definition: { name: 'write_note', value, hash: 'h1' }, state: 'approved' }],
    null,
  )
  await store.stop()
  assert.equal(addClientIn(dir, client('ana')), 'added')
  assert.equal(addClientIn(dir, client('bot')), 'added')
  assert.equal(revokeClientIn(dir, 'bot'), 'revoked')
  return dir
}

async function starts(dir: string): Promise<void> {
  await (await openSqlite(optionsFor(dir))).stop()
}

function edit(dir: string, sql: string): void {
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  db.exec(sql)
  db.close()
}

test('a start in front of tables that nobody touched goes on, as often as it comes', async (t) => {
  const dir = await settled(t)
  await starts(dir)
  await starts(dir)
})

for (const [what, sql, told] of [
  [
    'a profile changed',
    "UPDATE clients SET profile = 'boss' WHERE name = 'ana'",
    /ana of the table clients/,
  ],
  ['a revocation taken back', "UPDATE clients SET revoked_us = NULL WHERE name = 'bot'", /bot/],
  ['a client removed', "DELETE FROM clients WHERE name = 'bot'", /bot/],
  [
    'a client added past the log',
    "INSERT INTO clients SELECT 'eve', profile, person, attributes, 'x', call_limit, created_us, expires_us, NULL FROM clients WHERE name = 'ana'",
    /eve/,
  ],
  ['an approval given past the log', "UPDATE pins SET hash = 'h2'", /write_note of the table pins/],
  ['a definition rewritten', "UPDATE definitions SET text = '{}'", /definitions/],
] as const) {
  test(`${what}: the start is refused, says which row, and changes nothing`, async (t) => {
    const dir = await settled(t)
    edit(dir, sql)
    const before = readFileSync(join(dir, 'audit.jsonl'), 'utf8')
    await assert.rejects(starts(dir), { code: 'state_tampered', message: told })
    assert.equal(readFileSync(join(dir, 'audit.jsonl'), 'utf8'), before)
  })
}

test('a client whose row was edited can be revoked, and then a start goes on', async (t) => {
  const dir = await settled(t)
  edit(dir, "UPDATE clients SET profile = 'boss' WHERE name = 'ana'")
  assert.equal(revokeClientIn(dir, 'ana'), 'revoked')
  await starts(dir)
})

test('a ledger that was made before starts looked at rows is looked at too', async (t) => {
  const dir = await settled(t)
  edit(dir, 'DROP INDEX entries_few')
  await starts(dir)
  edit(dir, "DROP INDEX entries_few; UPDATE clients SET profile = 'boss' WHERE name = 'ana'")
  await assert.rejects(starts(dir), { code: 'state_tampered' })
})
