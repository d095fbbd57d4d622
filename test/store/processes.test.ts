// Several processes on one state directory: safe, fair, and never in doubt about who is alive.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'

import { openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { roomy, tried } from '../pace.ts'
import { child, draft, intent, optionsFor, recorded, scratch, until, verified } from './scene.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'

test('four processes that start at once on an empty directory make one ledger', async (t) => {
  const dir = scratch(t)
  const all = Array.from({ length: 4 }, () => child(t, dir))
  await Promise.all(all.map((one) => one.heard('ready')))
  assert.equal(
    all.flatMap(({ lines }) => lines).filter((line) => /made a new/.test(line)).length,
    1,
  )
  for (const one of all) one.tell('stop')
  await Promise.all(all.map((one) => one.heard('stopped')))
  const entries = verified(dir)
  assert.equal(entries.filter(({ kind }) => kind === 'genesis').length, 1)
  assert.equal(entries.filter(({ kind }) => kind === 'start').length, 4)
  assert.deepEqual(readdirSync(join(dir, 'leases')), [])
})

/** What each of the processes wrote, and its longest wait in ms. */
type Shares = { readonly counts: readonly number[]; readonly waits: readonly number[] }

/** Lets all of them write for `ms`, `abreast` calls in flight each. */
async function flatOut(
  all: readonly ReturnType<typeof child>[],
  ms: number,
  abreast: number,
): Promise<Shares> {
  const from = all.map((one) => one.lines.length)
  for (const one of all) one.tell(`flat ${ms} ${abreast}`)
  const said = (at: number): string | undefined =>
    all[at]?.lines.slice(from[at]).find((line) => line.startsWith('flat'))
  await until('all have written', () => all.every((_one, at) => said(at) !== undefined))
  const heard = all.map((_one, at) => said(at)?.split(' ') ?? [])
  return { counts: heard.map((one) => Number(one[1])), waits: heard.map((one) => Number(one[2])) }
}

const isFair = ({ counts, waits }: Shares): boolean =>
  Math.max(...waits) <= 1_000 && Math.max(...counts) <= 4 * Math.min(...counts)

test('four processes writing flat out share fairly: no wait above 1 s, shares within 4 to 1', async (t) => {
  const dir = scratch(t)
  const ms = LONG ? 15_000 : 4_000
  const all = Array.from({ length: 4 }, () => child(t, dir))
  await Promise.all(all.map((one) => one.heard('ready')))
  let total = 0
  const { counts, waits } = await tried(async () => {
    const shares = await flatOut(all, ms, 1)
    total += shares.counts.reduce((sum, count) => sum + count, 0)
    return shares
  }, isFair)
  t.diagnostic(`commits ${counts.join(', ')} in ${ms} ms; longest waits ${waits.join(', ')} ms`)
  assert.ok(Math.max(...waits) <= 1_000, `waits ${waits.join(', ')}`)
  assert.ok(Math.max(...counts) <= 4 * Math.min(...counts), `shares ${counts.join(', ')}`)
  for (const one of all) one.tell('stop')
  await Promise.all(all.map((one) => one.heard('stopped')))
  const calls = verified(dir).filter(({ kind }) => kind === 'call').length
  assert.equal(calls, total)
})

test('four processes with sixteen calls in flight each share fairly', async (t) => {
  const dir = scratch(t)
  const all = Array.from({ length: 4 }, () => child(t, dir))
  await Promise.all(all.map((one) => one.heard('ready')))
  const { counts, waits } = await tried(() => flatOut(all, LONG ? 15_000 : 3_000, 16), isFair)
  const log = statSync(join(dir, 'ledger.db-wal')).size
  t.diagnostic(
    `records ${counts.join(', ')}; longest waits ${waits.join(', ')} ms; log ${log} bytes`,
  )
  assert.ok(log < 128 * 1024 * 1024, `the write-ahead log has ${log} bytes`)
  assert.ok(Math.max(...waits) <= 1_000, `waits ${waits.join(', ')}`)
  assert.ok(Math.max(...counts) <= 4 * Math.min(...counts), `shares ${counts.join(', ')}`)
})

test('of two processes that claim one key at once exactly one gets the ticket, every time', async (t) => {
  const dir = scratch(t)
  const pair = [child(t, dir), child(t, dir)] as const
  await Promise.all(pair.map((one) => one.heard('ready')))
  const rounds = LONG ? 2_000 : 200
  for (let round = 0; round < rounds; round++) {
    for (const [n, one] of pair.entries()) one.tell(`open key-${round} text-${n}`)
  }
  for (let round = 0; round < rounds; round++) {
    const kinds = await Promise.all(
      pair.map(async (one) => (await one.heard(`opened key-${round} `)).split(' ')[2]),
    )
    assert.deepEqual(kinds.sort(), ['conflict', 'ticket'], `round ${round}`)
  }
})

test('the open sends of a killed process are unknown at the next start, each with its record', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  one.tell('open key-1 a')
  one.tell('open key-2 a')
  one.tell('open key-3 a')
  await one.heard('opened key-3 ticket')
  one.tell('close key-3')
  await one.heard('closed key-3')
  one.process.kill('SIGKILL')
  await one.exited
  const two = child(t, dir)
  two.tell('open key-1 a')
  two.tell('open key-3 a')
  await two.heard('opened key-1 unknown')
  await two.heard('opened key-3 replayed')
  const entries = await recorded(dir, (entry) => entry['why'] === 'dead')
  const unknown = entries.filter(({ outcome }) => outcome === 'unknown')
  assert.deepEqual(unknown.map((entry) => entry.request_id).sort(), ['key-1', 'key-2'])
  assert.equal(entries.filter((entry) => entry['why'] === 'dead').length, 1)
})

test('a running process ends the lease of a killed one when its key is asked for', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  const two = child(t, dir)
  one.tell('open key-1 a')
  await one.heard('opened key-1 ticket')
  two.tell('open key-1 a')
  await two.heard('opened key-1 busy')
  one.process.kill('SIGKILL')
  await one.exited
  two.lines.length = 0
  two.tell('open key-1 a')
  await two.heard('opened key-1 unknown')
})

test('a running process notices a killed one by itself', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  const two = child(t, dir)
  one.tell('open key-1 a')
  await one.heard('opened key-1 ticket')
  await two.heard('ready')
  one.process.kill('SIGKILL')
  await recorded(dir, ({ outcome }) => outcome === 'unknown')
})

test('a process that was stopped beyond its lease takes a new one, and its answers are late', async (t) => {
  const dir = scratch(t)
  const one = child(t, dir)
  const two = child(t, dir)
  one.tell('open key-1 a')
  await one.heard('opened key-1 ticket')
  await two.heard('ready')
  one.process.kill('SIGSTOP')
  await recorded(dir, (entry) => entry['why'] === 'silent')
  one.process.kill('SIGCONT')
  one.tell('close key-1')
  await one.heard('closed key-1')
  const entries = await recorded(dir, (entry) => entry['why'] === 'retaken')
  const late = entries.filter(({ outcome }) => outcome === 'late')
  assert.equal(late.length, 1)
  assert.equal(late[0]?.request_id, 'key-1')
  two.tell('open key-1 a')
  await two.heard('opened key-1 replayed')
})

test('while a stopped process holds the ledger the others refuse after 5 s, and go on when it goes on', async (t) => {
  const dir = scratch(t)
  const holder = child(t, dir)
  await holder.heard('ready')
  const store = await openSqlite(optionsFor(dir))
  t.after(() => store.stop().catch(() => undefined))
  // Stopped while it writes flat out, until it is caught inside a transaction.
  holder.tell('flat 60000 64')
  let rejected: { code?: string; ms: number } | null = null
  for (let round = 0; round < 200 && rejected === null; round++) {
    holder.process.kill('SIGSTOP')
    const start = performance.now()
    try {
      await store.append(draft({ name: 'while stopped' }))
    } catch (error) {
      rejected = { code: (error as { code?: string }).code ?? '', ms: performance.now() - start }
    }
    if (rejected === null) holder.process.kill('SIGCONT')
  }
  assert.equal(rejected?.code, 'not_recorded')
  assert.ok(rejected.ms >= 4_900 && rejected.ms < roomy(8_000), `${rejected.ms}`)
  assert.match(String(store.health()), /stopped/)
  await assert.rejects(store.open(intent(store, 'key-1', { does: 'read' })), {
    code: 'not_recorded',
  })
  holder.process.kill('SIGCONT')
  await until('health is good again', () => store.health() === true)
  await store.append(draft({ name: 'after' }))
  holder.process.kill('SIGKILL')
  await holder.exited
  await recorded(dir, ({ name }) => name === 'after')
})

test('killed at random while it writes, a process leaves every acknowledged record and no doubt', async (t) => {
  const dir = scratch(t)
  const acknowledged = new Set<string>()
  const kills = LONG ? 200 : 12
  for (let round = 0; round < kills; round++) {
    const one = child(t, dir)
    await one.heard('ready')
    const started = one.lines.length
    one.tell('effects')
    const goal = started + 1 + Math.floor(Math.random() * 60)
    await until('it has written', () => one.lines.length >= goal)
    one.process.kill('SIGKILL')
    await one.exited
    for (const line of one.lines) if (/^(?:intent|outcome) /.test(line)) acknowledged.add(line)
  }
  const store = await openSqlite(optionsFor(dir))
  await store.stop()
  const entries = verified(dir)
  const inLog = new Set(
    entries.flatMap(({ kind, request_id: key, outcome }) =>
      kind === 'intent' ? [`intent ${key}`] : outcome === 'committed' ? [`outcome ${key}`] : [],
    ),
  )
  for (const line of acknowledged) assert.ok(inLog.has(line), line)
  const intents = entries.filter(({ kind }) => kind === 'intent').length
  assert.equal(entries.filter(({ kind }) => kind === 'outcome').length, intents)
})

test(
  'a claim that a hanging disk commits after its caller was refused is given back',
  { skip: !LONG && 'takes 20 s: ECLUSA_LONG=1' },
  async (t) => {
    const dir = scratch(t)
    const one = child(t, dir)
    await one.heard('ready')
    const args = ['-f', '-p', String(one.process.pid), '-e', 'trace=fsync']
    const hang = spawn('/usr/bin/strace', [...args, '-e', 'inject=fsync:delay_enter=18s:when=1'])
    t.after(() => hang.kill())
    let said = ''
    hang.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until('strace is attached', () => said.includes('attached'))
    one.tell('open key-1 a')
    await one.heard('rejected not_recorded open key-1 a')
    one.tell('health')
    await one.heard('health the ledger does not answer')
    await until('the claim is given back', () => {
      const reader = openReader(dir)
      const lines = [...reader.entries(0)]
      reader.close()
      return lines.some((line) => line.includes('"outcome":"unsent"'))
    })
    one.tell('open key-1 b')
    await one.heard('opened key-1 ticket')
  },
)

test('a record that arrives while the thread waits for the lock on its own account is not forgotten', async (t) => {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  t.after(() => store.stop().catch(() => undefined))
  const other = new DatabaseSync(join(dir, 'ledger.db'), { timeout: 0 })
  t.after(() => other.close())
  for (let round = 0; round < 3; round++) {
    const sign = (): number => statSync(join(dir, 'turn')).mtimeMs
    const before = sign()
    other.exec('BEGIN IMMEDIATE')
    // Nothing has been asked: it is the renewal of the lease that now leaves its sign and waits.
    await until('the thread waits for the lock', () => sign() > before)
    const start = performance.now()
    const appended = store.append(draft())
    await new Promise((resolve) => setTimeout(resolve, 60))
    other.exec('ROLLBACK')
    await appended
    assert.ok(performance.now() - start < roomy(4_000))
  }
})
