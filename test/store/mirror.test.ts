// audit.jsonl while a process runs: moved, replaced, cut, hidden, behind a busy lock.

import assert from 'node:assert/strict'
import {
  appendFileSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { roomy } from '../pace.ts'
import type { Fault } from '../../src/fault.ts'
import type { Store } from '../../src/ports.ts'
import { lockOn } from '../../src/store/lock.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { child, draft, optionsFor, scratch, until, verified } from './scene.ts'

type Scene = {
  readonly dir: string
  readonly mirror: string
  readonly store: Store
  readonly said: string[]
  readonly fatal: Fault[]
}

async function open(t: { after(work: () => unknown): void }): Promise<Scene> {
  const opened: Store[] = []
  t.after(() => Promise.all(opened.map((store) => store.stop().catch(() => undefined))))
  const dir = scratch(t)
  const said: string[] = []
  const fatal: Fault[] = []
  const store = await openSqlite(
    optionsFor(dir, { say: (line) => said.push(line), onFatal: (fault) => fatal.push(fault) }),
  )
  opened.push(store)
  await store.append(draft())
  return { dir, mirror: join(dir, 'audit.jsonl'), store, said, fatal }
}

const recoveries = (dir: string): readonly unknown[] =>
  verified(dir).flatMap((entry) => (entry.kind === 'recovery' ? [entry['found']] : []))

/** The whole check passes, which needs the mirror to have followed. */
const mended = (dir: string, found: string): boolean => {
  try {
    return recoveries(dir).includes(found)
  } catch {
    return false
  }
}

test('the mirror holds a record before its append resolves', async (t) => {
  const { mirror, store } = await open(t)
  await store.append(draft({ name: 'seen' }))
  assert.match(readFileSync(mirror, 'utf8').trimEnd().split('\n').at(-1) ?? '', /"name":"seen"/)
})

test('a mirror that was moved away is noticed within a second, written again and recorded', async (t) => {
  const { dir, mirror, said } = await open(t)
  const before = readFileSync(mirror)
  renameSync(mirror, `${mirror}.1`)
  await until('it is mended', () => mended(dir, 'absent'), roomy(1_500))
  assert.deepEqual(readFileSync(mirror).subarray(0, before.length), before)
  assert.equal(statSync(mirror).mode & 0o777, 0o600)
  assert.match(said.join(), /audit.jsonl was absent/)
})

test('a mirror that was replaced is set aside, written again and recorded', async (t) => {
  const { dir, mirror } = await open(t)
  const copy = readFileSync(mirror)
  rmSync(mirror)
  writeFileSync(mirror, copy, { mode: 0o600 })
  await until('it is mended', () => mended(dir, 'moved'), roomy(1_500))
  const aside = readdirSync(dir).filter((name) => name.endsWith('.aside'))
  assert.equal(aside.length, 1)
  assert.deepEqual(readFileSync(join(dir, aside[0] ?? '')), copy)
})

test('a link planted in the place of the mirror is never written through', async (t) => {
  const { dir, mirror, store } = await open(t)
  const target = join(scratch(t), 'target')
  writeFileSync(target, 'precious')
  rmSync(mirror)
  symlinkSync(target, mirror)
  await store.append(draft())
  await until('it is mended', () => mended(dir, 'moved'), roomy(1_500))
  assert.equal(readFileSync(target, 'utf8'), 'precious')
})

test('a mirror that was given a second name is left to it and written again', async (t) => {
  const { dir, mirror } = await open(t)
  linkSync(mirror, join(dir, 'other-name'))
  await until('it is mended', () => mended(dir, 'moved'), roomy(1_500))
  assert.notEqual(statSync(mirror).ino, statSync(join(dir, 'other-name')).ino)
})

test('a mirror that was cut is completed and recorded', async (t) => {
  const { dir, mirror, store } = await open(t)
  truncateSync(mirror, statSync(mirror).size - 10)
  await store.append(draft())
  await until('it is mended', () => mended(dir, 'torn'), roomy(1_500))
})

test('a line that somebody appended ends all writing: tampered', async (t) => {
  const { mirror, store, fatal } = await open(t)
  appendFileSync(mirror, '{"seq":99}\n')
  await until('it is fatal', () => fatal.length > 0, roomy(1_500))
  assert.equal(fatal[0]?.code, 'state_tampered')
  await assert.rejects(store.append(draft()), { code: 'not_recorded' })
  assert.match(String(store.health()), /changed by somebody else/)
})

test('a ledger that was moved away ends all writing within a second', async (t) => {
  const { dir, store, fatal } = await open(t)
  renameSync(join(dir, 'ledger.db'), join(dir, 'elsewhere'))
  await until('it is fatal', () => fatal.length > 0, roomy(1_500))
  assert.equal(fatal[0]?.code, 'state_tampered')
  await assert.rejects(store.append(draft()), { code: 'not_recorded' })
})

test('while the mirror lock is busy records are answered, and the mirror follows', async (t) => {
  const { dir, mirror, store } = await open(t)
  const lock = lockOn(join(dir, 'mirror.lock'))
  t.after(() => lock.close())
  await until('the lock is free', lock.take)
  const before = statSync(mirror).size
  for (let n = 0; n < 20; n++) await store.append(draft({ name: `n${n}` }))
  assert.equal(statSync(mirror).size, before)
  assert.equal(store.health(), true)
  lock.free()
  await until('it has followed', () => mended2(dir), roomy(2_000))
})

test('of several processes one writes a lost mirror again and the others take it over', async (t) => {
  const { dir, mirror, store } = await open(t)
  const others = [child(t, dir), child(t, dir)]
  await Promise.all(others.map((one) => one.heard('ready')))
  for (const [round, lose] of [
    () => renameSync(mirror, `${mirror}.1`),
    () => rmSync(mirror),
  ].entries()) {
    lose()
    await until('it is mended', () => mended(dir, 'absent'), roomy(1_500))
    for (const one of others) one.tell(`append r${round}`)
    await Promise.all(others.map((one) => one.heard(`appended r${round}`)))
    await store.append(draft())
    const { ino } = statSync(mirror)
    for (const one of others) one.tell(`append again${round}`)
    await Promise.all(others.map((one) => one.heard(`appended again${round}`)))
    await store.append(draft())
    assert.equal(statSync(mirror).ino, ino)
    await until('one record says so', () => {
      try {
        return recoveries(dir).length === round + 1
      } catch {
        return false
      }
    })
  }
  assert.deepEqual(
    readdirSync(dir).filter((name) => name.endsWith('.aside')),
    [],
  )
})

const mended2 = (dir: string): boolean => {
  try {
    return verified(dir).some(({ name }) => name === 'n19')
  } catch {
    return false
  }
}

test('a lock taken by one connection is not dropped when another of the process closes its own', async (t) => {
  const dir = scratch(t)
  const file = join(dir, 'one.lock')
  const first = lockOn(file)
  assert.equal(first.take(), true)
  const second = lockOn(file)
  assert.equal(second.take(), false)
  second.close()
  const third = lockOn(file)
  assert.equal(third.take(), false)
  third.close()
  first.free()
  const fourth = lockOn(file)
  assert.equal(fourth.take(), true)
  fourth.close()
  first.close()
  assert.equal(existsSync(`${file}-journal`), false)
})
