// `eclusa client`: tokens shown once, clients in the ledger, tombstones, and what an auditor sees of it.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'

import { sha256 } from '../../src/canonical.ts'
import { openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { optionsFor, until } from '../store/scene.ts'
import { shell, type Shell } from './explain-shell.ts'

const FILE = `version: 2
upstreams: { notes: { command: [node, server.js] } }
profiles:
  reader: { allow: [notes/read] }
  writer: { extends: reader, allow: [notes/write] }
`

function desk(t: Parameters<typeof shell>[0]): Shell {
  const one = shell(t)
  one.file('eclusa.yaml', FILE)
  return one
}

test('a client gets a token that is shown once and kept nowhere', (t) => {
  const one = desk(t)
  const added = one.run('eclusa client add ana --profile writer --set team=editors --expires 30d')
  assert.equal(added.status, 0, added.err)
  const token = added.out.trim()
  assert.match(token, /^ecl_[A-Za-z0-9_-]{43}$/)
  assert.match(added.err, /state directory .*\.eclusa/)
  for (const file of ['ledger.db', 'audit.jsonl']) {
    const bytes = readFileSync(join(one.beside, file))
    assert.equal(bytes.includes(token), false, file)
    assert.equal(bytes.includes(token.slice(4)), false, file)
  }
  const reader = openReader(one.beside)
  t.after(() => reader.close())
  const [row] = reader.clients()
  assert.equal(row?.digest, sha256(token))
  assert.deepEqual(row?.attributes, { team: 'editors' })
  const line = reader.entry(reader.head().seq) ?? ''
  assert.match(line, /"kind":"client"/)
  assert.match(line, /"client":"ana"/)
  assert.match(line, /"state":"added"/)
  assert.equal(line.includes('editors'), false, 'attributes are not in the log')
})

test('a list names each client and its state, and no digest', (t) => {
  const one = desk(t)
  one.run('eclusa client add ana --profile writer --person ana')
  one.run('eclusa client add bot --profile reader --limit 0')
  assert.equal(one.run('eclusa client revoke bot').status, 0)
  const listed = one.run('eclusa client list')
  assert.match(listed.out, /^active {3}ana {2}writer {2}- {2}person=ana\nrevoked {2}bot {2}reader/)
  const rows = one
    .run('eclusa client list --json')
    .out.trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.deepEqual(
    rows.map(({ name, state, person, limit }) => ({ name, state, person, limit })),
    [
      { name: 'ana', state: 'active', person: true, limit: null },
      { name: 'bot', state: 'revoked', person: false, limit: 0 },
    ],
  )
  assert.doesNotMatch(listed.out + JSON.stringify(rows), /[0-9a-f]{64}|ecl_/)
})

test('a name is never given twice, and a revoked client stays revoked', (t) => {
  const one = desk(t)
  one.run('eclusa client add ana --profile writer')
  assert.equal(one.run('eclusa client add ana --profile reader').status, 1)
  assert.equal(one.run('eclusa client revoke ana').status, 0)
  assert.equal(one.run('eclusa client revoke ana').status, 1)
  const again = one.run('eclusa client add ana --profile writer')
  assert.equal(again.status, 1)
  assert.equal(again.out, '')
  assert.match(again.err, /choose another/)
  assert.equal(one.run('eclusa client revoke bob').status, 1)
})

test('what cannot be is refused with the next step and changes nothing', (t) => {
  const one = desk(t)
  for (const [line, told] of [
    ['eclusa client add ana', /--profile/],
    ['eclusa client add --profile writer', /name one client/],
    ['eclusa client add Ana --profile writer', /client name/],
    ['eclusa client add ana --profile boss', /profiles: reader, writer/],
    ['eclusa client add ana --profile writer --set team', /KEY=VALUE/],
    ['eclusa client add ana --profile writer --set a=1 --set a=2', /KEY=VALUE/],
    ['eclusa client add ana --profile writer --limit many', /--limit/],
    ['eclusa client add ana --profile writer --expires soon', /--expires/],
    ['eclusa client add ana --profile writer --state /nowhere/at/all', /--config/],
  ] as const) {
    const ran = one.run(line)
    assert.equal(ran.status, 2, `${line}: ${ran.err}`)
    assert.match(ran.err, told)
    assert.equal(ran.out, '')
  }
})

test('a gateway that runs knows of a new client and of its end without a restart', async (t) => {
  const one = desk(t)
  const store = await openSqlite(optionsFor(one.beside))
  t.after(() => store.stop())
  const added = one.run('eclusa client add ana --profile writer')
  const digest = sha256(added.out.trim())
  await until('it is known', () => store.clients().get(digest)?.name === 'ana')
  assert.equal(one.run('eclusa client revoke ana').status, 0)
  await until('it is ended', () => typeof store.clients().get(digest)?.revokedUs === 'number')
})

test('every edit of the table of clients is found by audit verify', (t) => {
  const one = desk(t)
  one.run('eclusa client add ana --profile writer --set team=editors --expires 30d --limit 5')
  one.run('eclusa client add bot --profile reader')
  one.run('eclusa client revoke bot')
  const verify = (): number | null => one.run(`eclusa audit verify ${one.beside}`).status
  assert.equal(verify(), 0)
  const db = new DatabaseSync(join(one.beside, 'ledger.db'))
  t.after(() => db.close())
  for (const edit of [
    "name = 'eve'",
    "profile = 'boss'",
    'person = 1',
    "attributes = '{}'",
    "digest = 'd'",
    'call_limit = 0',
    'created_us = 1',
    'expires_us = NULL',
    'revoked_us = 7',
  ]) {
    db.exec(`BEGIN; CREATE TEMP TABLE kept AS SELECT * FROM clients`)
    db.exec(`UPDATE clients SET ${edit} WHERE name = 'ana'; COMMIT`)
    assert.equal(verify(), 1, edit)
    db.exec(
      'BEGIN; DELETE FROM clients; INSERT INTO clients SELECT * FROM kept; DROP TABLE kept; COMMIT',
    )
    assert.equal(verify(), 0, `${edit} undone`)
  }
  db.exec("UPDATE clients SET revoked_us = NULL WHERE name = 'bot'")
  assert.equal(verify(), 1, 'a revocation taken back')
  db.exec("DELETE FROM clients WHERE name = 'bot'")
  assert.equal(verify(), 1, 'a client removed')
})
