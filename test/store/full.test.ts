// A disk that is full, on a real small file system: refused, said, and taken up again when there is room.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, truncateSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Store } from '../../src/ports.ts'
import { openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import {
  closing,
  draft,
  intent,
  optionsFor,
  random,
  scratch,
  ticketOf,
  until,
  verified,
} from './scene.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'

type Test = { after(work: () => unknown): void }

/** A file system of its own, of `size`; null where mounting is not permitted. */
function disk(t: Test, size: string): string | null {
  const dir = scratch(t)
  const made = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size},mode=700`, 'tmpfs', dir])
  if (made.status !== 0) return null
  return dir
}

const unmount = (dir: string): void => {
  spawnSync('umount', ['-l', dir])
}

const canMount = ((): boolean => {
  const made: (() => unknown)[] = []
  const dir = disk({ after: (work) => made.push(work) }, '1m')
  if (dir !== null) unmount(dir)
  for (const work of made) work()
  return dir !== null
})()
const skip = canMount ? false : 'mounting a small file system is not permitted here'

/** Takes all the space there is, but for `left` bytes. */
function fill(dir: string, left: number): string {
  const file = join(dir, 'filler')
  const fd = openSync(file, 'w')
  let size = 0
  try {
    for (;;) size += writeSync(fd, Buffer.alloc(4096))
  } catch (error) {
    assert.equal((error as { code?: string }).code, 'ENOSPC')
  } finally {
    closeSync(fd)
  }
  truncateSync(file, Math.max(0, size - left))
  return file
}

async function open(
  t: Test,
  size: string,
  minFreeBytes = 0,
): Promise<{ dir: string; store: Store; said: readonly string[] }> {
  const said: string[] = []
  const opened: Store[] = []
  const dirs: string[] = []
  t.after(async () => {
    await Promise.all(opened.map((store) => store.stop().catch(() => undefined)))
    for (const dir of dirs) unmount(dir)
  })
  const dir = disk(t, size)
  if (dir === null) assert.fail('no disk')
  dirs.push(dir)
  const say = (line: string): number => said.push(line)
  const store = await openSqlite(optionsFor(dir, { minFreeBytes, say }))
  opened.push(store)
  return { dir, store, said }
}

/** Appends until one is refused; gives the names of those that were not. */
async function appendUntilRefused(store: Store): Promise<readonly string[]> {
  const done: string[] = []
  for (let n = 0; n < 20_000; n++) {
    const name = `n-${random()}`
    try {
      await store.append(draft({ name }))
    } catch (error) {
      assert.equal((error as { code?: string }).code, 'not_recorded')
      return done
    }
    done.push(name)
  }
  assert.fail('never refused')
}

test(
  'on a full disk records are refused and health says so, at every level; with room again it goes on',
  { skip },
  async (t) => {
    const { dir, store, said } = await open(t, '4m')
    const acknowledged = new Set<string>()
    for (let level = 0; level < (LONG ? 20 : 6); level++) {
      const filler = fill(dir, level * (LONG ? 1_777 : 6_000))
      for (const name of await appendUntilRefused(store)) acknowledged.add(name)
      assert.match(String(store.health()), /full; free some space/)
      rmSync(filler)
      await until(`health is good again at level ${level}`, () => store.health() === true)
      await store.append(draft({ name: `after-${level}` }))
      acknowledged.add(`after-${level}`)
    }
    const names = new Set(verified(dir).map(({ name }) => name))
    for (const name of acknowledged) assert.ok(names.has(name), name)
    // The operator hears of each turn, and of nothing in between.
    const turns = said.filter((line) => line.startsWith('the ledger is '))
    assert.match(turns[0] ?? '', /^the ledger is in trouble: .*full; free some space$/)
    assert.equal(turns[1], 'the ledger is well again')
    for (const [at, line] of turns.entries())
      assert.notEqual(line.slice(0, 20), turns[at + 1]?.slice(0, 20))
  },
)

test(
  'a disk that fills while the log is copied is told and left behind like any other',
  { skip },
  async (t) => {
    const { dir, store } = await open(t, '24m')
    const filler = fill(dir, 18 * 1024 * 1024)
    await appendUntilRefused(store)
    rmSync(filler)
    await until('health is good again', () => store.health() === true)
    await store.append(draft({ name: 'after' }))
    assert.ok(verified(dir).some(({ name }) => name === 'after'))
  },
)

test(
  'an outcome that could not be recorded is recorded when there is room again, and its key replays',
  { skip },
  async (t) => {
    const { dir, store } = await open(t, '4m')
    const ticket = ticketOf(await store.open(intent(store, 'key-1')))
    const filler = fill(dir, 0)
    await appendUntilRefused(store)
    const answer = `{"result":{"text":"${'x'.repeat(200_000)}"}}`
    const end = closing(store, { store: answer, answer: store.digest(answer) })
    await assert.rejects(store.close(ticket, end), { code: 'outcome_not_recorded' })
    await assert.rejects(store.open(intent(store, 'key-2')), { code: 'not_recorded' })
    rmSync(filler)
    await until('the outcome is recorded', () => {
      const reader = openReader(dir)
      const lines = [...reader.entries(0)]
      reader.close()
      return lines.some((line) => line.includes('"outcome":"committed"'))
    })
    assert.equal((await store.open(intent(store, 'key-1'))).kind, 'replayed')
    verified(dir)
  },
)

test(
  'less free space than asked for turns health red while records still go in',
  { skip },
  async (t) => {
    const { store } = await open(t, '4m', 64 * 1024 * 1024)
    await until('health is red', () => /bytes are free/.test(String(store.health())))
    await store.append(draft())
    const read = intent(store, null, { does: 'read' })
    const opened = await store.open(read)
    assert.equal(opened.kind, 'ticket')
    await store.close(ticketOf(opened), closing(store))
  },
)
