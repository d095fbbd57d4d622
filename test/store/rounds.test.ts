// Operations that wait, over the death of processes, in old ledgers, and for clients that are revoked.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import { addClientIn, openReader, revokeClientIn } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import {
  type Child,
  child,
  closing,
  draft,
  intent,
  nowUs,
  optionsFor,
  scratch,
  ticketOf,
  until,
  verified,
} from './scene.ts'

const WAITS = { outcome: 'awaiting', answer: null, store: null } as const

/** The operation of a call under the key `k` that waits now. */
async function askedBy(one: Child, awaits: 'input' | 'parked'): Promise<string> {
  one.tell('open k x')
  await one.heard('opened k ticket')
  one.tell(`ask k ${awaits}`)
  return (await one.heard('asked k')).split(' ')[2] ?? ''
}

test('what waits for its client outlives the process that asked, token and all', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  await one.heard('ready')
  const operation = await askedBy(one, 'input')
  one.tell('seal')
  const token = (await one.heard('sealed')).split(' ')[1] ?? ''
  one.process.kill('SIGKILL')
  await one.exited
  const two = child(t, dir)
  await two.heard('ready')
  two.tell(`unseal ${token}`)
  assert.equal(await two.heard('unsealed'), 'unsealed secret')
  two.tell(`next k ${operation} 2`)
  assert.equal(await two.heard('next k'), 'next k ticket')
  two.tell('close k')
  await two.heard('closed k')
  two.tell('stop')
  await two.heard('stopped')
  const outcomes = verified(dir).filter(({ kind }) => kind === 'outcome')
  assert.deepEqual(
    outcomes.map(({ outcome, round }) => `${outcome} ${String(round)}`),
    ['awaiting 1', 'committed 2'],
  )
})

test('what was parked in a process that is killed is unknown, at once, and never sent again', async (t) => {
  const dir = scratch(t)
  const [one, two] = [child(t, dir), child(t, dir)]
  await Promise.all([one.heard('ready'), two.heard('ready')])
  const operation = await askedBy(one, 'parked')
  // While its process lives, another can neither go on with it nor begin anew.
  two.tell(`next k ${operation} 2`)
  assert.equal(await two.heard('next k'), 'next k ended')
  two.tell('open k x')
  assert.equal(await two.heard('opened k'), 'opened k busy')
  one.process.kill('SIGKILL')
  await one.exited
  two.lines.length = 0
  two.tell('open k x')
  assert.equal(await two.heard('opened k'), 'opened k unknown')
  two.lines.length = 0
  two.tell(`next k ${operation} 2`)
  assert.equal(await two.heard('next k'), 'next k ended')
  two.tell('stop')
  await two.heard('stopped')
  const last = verified(dir).findLast(({ kind }) => kind === 'outcome')
  assert.deepEqual([last?.outcome, last?.code, last?.round], ['unknown', 'outcome_unknown', 1])
})

test('a round that is killed after its answers left is unknown', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  await one.heard('ready')
  const operation = await askedBy(one, 'input')
  one.tell(`next k ${operation} 2`)
  await one.heard('next k ticket')
  one.process.kill('SIGKILL')
  await one.exited
  const two = child(t, dir)
  await two.heard('ready')
  two.tell('open k x')
  assert.equal(await two.heard('opened k'), 'opened k unknown')
  const last = verified(dir).findLast(({ kind }) => kind === 'outcome')
  assert.deepEqual([last?.outcome, last?.round], ['unknown', 2])
})

test('without a key, what nobody comes back for ends in the ledger and leaves no row', async (t) => {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  t.after(() => store.stop())
  const ago = (minutes: number) => nowUs() - minutes * 60_000_000
  const wait = async (
    key: string | null,
    minutes: number,
    awaits: 'input' | 'task',
  ): Promise<string> => {
    const ticket = ticketOf(await store.open(intent(store, key)))
    await store.close(ticket, closing(store, { ...WAITS, awaits, nowUs: ago(minutes) }))
    return ticket.operation
  }
  const forgotten = await wait(null, 21, 'input')
  const fresh = await wait(null, 9, 'input')
  const keyed = await wait('key-1', 21, 'input')
  const task = await wait(null, 60, 'task')
  const old = await wait(null, 31 * 24 * 60, 'task')
  const rows = (): string[] => {
    const reader = openReader(dir)
    try {
      return [...reader.rows('operations')].map((row) => String(row['operation'])).sort()
    } finally {
      reader.close()
    }
  }
  await until('what is forgotten has gone', () => rows().length === 3)
  assert.deepEqual(rows(), [fresh, keyed, task].sort())
  const ends = verified(dir).filter(
    ({ kind, outcome }) => kind === 'outcome' && outcome !== 'awaiting',
  )
  assert.deepEqual(
    ends.map((entry) => [entry['operation'], entry.outcome, entry.code]),
    [
      [forgotten, 'not_executed', 'state_invalid'],
      [old, 'unknown', 'outcome_unknown'],
    ],
  )
})

test('a revoked or expired client gets no ticket, for a write at once and for a read within a second', async (t) => {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  t.after(() => store.stop())
  const client = { profile: 'writer', person: false, attributes: {}, limit: null }
  const add = (name: string, digest: string, expiresUs: number | null): void => {
    addClientIn(dir, { ...client, name, digest: digest.repeat(64), expiresUs })
  }
  add('ana', 'a', null)
  add('bob', 'b', nowUs() - 1_000_000)
  await until('the clients are known', () => store.clients().size === 2)
  const wish = (name: string, does: 'write' | 'read') => {
    const made = draft({ client: name, identity: 'token', decision: 'allow', outcome: 'pending' })
    return intent(store, null, { client: name, does, draft: made })
  }
  for (const does of ['write', 'read'] as const) {
    ticketOf(await store.open(wish('ana', does)))
    assert.deepEqual(await store.open(wish('bob', does)), { kind: 'revoked' })
    assert.deepEqual(await store.open(wish('nobody', does)), { kind: 'revoked' })
  }
  revokeClientIn(dir, 'ana')
  assert.deepEqual(await store.open(wish('ana', 'write')), { kind: 'revoked' })
  const start = performance.now()
  await until('reads end too', () => store.clients().get('a'.repeat(64))?.revokedUs !== null)
  assert.ok(performance.now() - start < roomy(1_500))
  assert.deepEqual(await store.open(wish('ana', 'read')), { kind: 'revoked' })
  const denied = verified(dir).filter(({ code }) => code === 'client_revoked')
  assert.equal(denied.length, 6)
  assert.ok(
    denied.every(({ decision, outcome }) => decision === 'deny' && outcome === 'not_executed'),
  )
})

test('a ledger of version 1 is read as it is, and taken over by the first start', async (t) => {
  const dir = scratch(t)
  const first = await openSqlite(optionsFor(dir))
  await first.close(ticketOf(await first.open(intent(first, 'key-1'))), closing(first))
  await first.stop()
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  for (const name of ['parked', 'input', 'task']) db.exec(`DROP INDEX operations_${name}`)
  db.exec('DROP TABLE clients; PRAGMA user_version=1')
  db.close()
  verified(dir)

  const store = await openSqlite(optionsFor(dir))
  t.after(() => store.stop())
  assert.equal((await store.open(intent(store, 'key-1'))).kind, 'replayed')
  const ticket = ticketOf(await store.open(intent(store, 'key-2')))
  await store.close(ticket, closing(store, { ...WAITS, awaits: 'input' }))
  addClientIn(dir, {
    name: 'ana',
    profile: 'writer',
    person: false,
    attributes: {},
    digest: 'a'.repeat(64),
    limit: null,
    expiresUs: null,
  })
  await until('the client is known', () => store.clients().size === 1)
  verified(dir)
})
