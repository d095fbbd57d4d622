// The start-up table: what a start does with each state of the directory, and what it refuses.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
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
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'

import { openSqlite, type SqliteOptions } from '../../src/store/sqlite.ts'
import { draft, optionsFor, scratch, verified } from './scene.ts'

type Test = { after(work: () => void): void }

/** A directory with a ledger of a few records, and nobody in it. */
async function settled(t: Test): Promise<string> {
  const dir = scratch(t)
  await run(dir)
  return dir
}

/** Starts, records one call, stops; gives what was said. */
async function run(dir: string, other: Partial<SqliteOptions> = {}): Promise<readonly string[]> {
  const said: string[] = []
  const store = await openSqlite(optionsFor(dir, { say: (line) => said.push(line), ...other }))
  await store.append(draft())
  await store.stop()
  return said
}

const refusal = (dir: string, message: RegExp, code = 'state_refused', other = {}): Promise<void> =>
  assert.rejects(openSqlite(optionsFor(dir, other)), { code, message })

const recoveries = (dir: string): readonly unknown[] =>
  verified(dir).flatMap((entry) => (entry.kind === 'recovery' ? [entry['found']] : []))

test('nothing there: a ledger is made, owner-only, and one line says so', async (t) => {
  const dir = join(scratch(t), 'deep', 'state')
  const umask = process.umask(0)
  t.after(() => process.umask(umask))
  const said = await run(dir)
  assert.deepEqual(said, [`made a new ledger in ${dir}`])
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    assert.equal(statSync(join(dir, name)).mode & 0o077, 0, name)
  }
  assert.equal(statSync(dir).mode & 0o777, 0o700)
  const [genesis, ...rest] = verified(dir)
  assert.equal(genesis?.kind, 'genesis')
  assert.equal(genesis?.policy, 'a'.repeat(64))
  assert.deepEqual(
    rest.map(({ kind }) => kind),
    ['policy', 'start', 'call', 'lease', 'stop'],
  )
})

test('nothing there and create is false: refused, and nothing is made', async (t) => {
  const dir = join(scratch(t), 'state')
  await refusal(dir, /state\.create is false/, 'state_refused', { create: false })
  assert.equal(existsSync(dir), false)
})

test('an empty directory of ours with a loose mode is tightened', async (t) => {
  const dir = join(scratch(t), 'state')
  mkdirSync(dir, { mode: 0o755 })
  await run(dir)
  assert.equal(statSync(dir).mode & 0o777, 0o700)
})

test('ledger and mirror agree: it goes on, and nothing is said', async (t) => {
  const dir = await settled(t)
  assert.deepEqual(await run(dir), [])
  assert.deepEqual(recoveries(dir), [])
})

test('the policy is recorded once under its digest, and again when it changes', async (t) => {
  const dir = await settled(t)
  await run(dir)
  await run(dir, { policy: { digest: 'b'.repeat(64), text: 'other' } })
  const entries = verified(dir)
  assert.equal(entries.filter(({ kind }) => kind === 'policy').length, 2)
  const starts = entries.filter(({ kind }) => kind === 'start').map(({ policy }) => policy)
  assert.deepEqual(starts, ['a'.repeat(64), 'a'.repeat(64), 'b'.repeat(64)])
})

test('mirror behind by whole lines: written again from the ledger, recorded', async (t) => {
  const dir = await settled(t)
  const mirror = join(dir, 'audit.jsonl')
  const lines = readFileSync(mirror, 'utf8').split('\n')
  writeFileSync(mirror, `${lines.slice(0, 2).join('\n')}\n`)
  const said = await run(dir)
  assert.match(said.join(), /was behind/)
  assert.deepEqual(recoveries(dir), ['behind'])
})

test('mirror empty: written again from the ledger, recorded', async (t) => {
  const dir = await settled(t)
  truncateSync(join(dir, 'audit.jsonl'), 0)
  await run(dir)
  assert.deepEqual(recoveries(dir), ['behind'])
})

test('mirror torn at any byte of its last lines: cut, the torn bytes kept, recorded', async (t) => {
  for (const missing of [1, 2, 100, 500, 900, 1500]) {
    const copy = await settled(t)
    const size = statSync(join(copy, 'audit.jsonl')).size
    truncateSync(join(copy, 'audit.jsonl'), size - missing)
    const torn = readFileSync(join(copy, 'audit.jsonl'), 'utf8').split('\n').at(-1)
    await run(copy)
    assert.deepEqual(recoveries(copy), ['torn'], `${missing}`)
    const aside = readdirSync(copy).filter((name) => name.endsWith('.aside'))
    assert.equal(aside.length, 1)
    assert.equal(readFileSync(join(copy, aside[0] ?? ''), 'utf8'), torn)
  }
})

test('a tail of zero bytes, as a power cut leaves it, is torn', async (t) => {
  const dir = await settled(t)
  const mirror = join(dir, 'audit.jsonl')
  const bytes = readFileSync(mirror)
  bytes.fill(0, bytes.length - 900, bytes.length - 100)
  writeFileSync(mirror, bytes)
  await run(dir)
  assert.deepEqual(recoveries(dir), ['torn'])
})

test('a whole line that differs: refused as tampered, and the file is left as it is', async (t) => {
  const dir = await settled(t)
  const mirror = join(dir, 'audit.jsonl')
  const forged = readFileSync(mirror, 'utf8').replace('write_note', 'read_notes')
  writeFileSync(mirror, forged)
  await refusal(dir, /differs from the ledger in line 4/, 'state_tampered')
  assert.equal(readFileSync(mirror, 'utf8'), forged)
})

test('a mirror ahead of the ledger: refused as tampered', async (t) => {
  const dir = await settled(t)
  copyFileSync(join(dir, 'ledger.db'), join(dir, 'old.db'))
  await run(dir)
  renameSync(join(dir, 'old.db'), join(dir, 'ledger.db'))
  await refusal(dir, /longer than the ledger says/, 'state_tampered')
})

test('bytes after the last line: refused as tampered', async (t) => {
  const dir = await settled(t)
  appendFileSync(join(dir, 'audit.jsonl'), '{"seq":')
  await refusal(dir, /longer than the ledger says/, 'state_tampered')
})

for (const name of ['ledger.db', 'audit.jsonl', join('keys', 'master')]) {
  test(`${name} missing beside the others: refused with the way out`, async (t) => {
    const dir = await settled(t)
    rmSync(join(dir, name))
    await refusal(dir, new RegExp(`${name} is missing; put back the whole directory`))
    assert.equal(existsSync(join(dir, name)), false)
  })
}

test('a start killed while it made the ledger is finished by the next one', async (t) => {
  const whole = await settled(t)
  const stages: readonly (readonly string[])[] = [
    [],
    ['keys/master'],
    ['keys/master', 'ledger.db'],
    ['keys/master', 'ledger.db', 'audit.jsonl'],
  ]
  for (const files of stages) {
    const dir = scratch(t)
    mkdirSync(join(dir, 'keys'), { mode: 0o700 })
    writeFileSync(join(dir, 'creating'), '', { mode: 0o600 })
    for (const name of files) {
      if (name === 'ledger.db') writeFileSync(join(dir, name), '', { mode: 0o600 })
      else if (name === 'audit.jsonl') writeFileSync(join(dir, name), '', { mode: 0o600 })
      else copyFileSync(join(whole, name), join(dir, name))
    }
    await run(dir)
    assert.equal(verified(dir)[0]?.kind, 'genesis', files.join())
    assert.equal(existsSync(join(dir, 'creating')), false)
  }
})

test('a marker beside a whole ledger costs no record', async (t) => {
  const dir = await settled(t)
  const before = verified(dir).length
  writeFileSync(join(dir, 'creating'), '', { mode: 0o600 })
  await run(dir)
  assert.ok(verified(dir).length > before)
})

test('files that are open to others are refused with the command that mends it', async (t) => {
  for (const name of ['ledger.db', 'audit.jsonl', join('keys', 'master')]) {
    const dir = await settled(t)
    chmodSync(join(dir, name), 0o640)
    await refusal(dir, new RegExp(`${name} is open to other users; run: chmod 600`))
  }
  const dir = await settled(t)
  chmodSync(dir, 0o750)
  await refusal(dir, /run: chmod 700/)
  chmodSync(dir, 0o700)
  chmodSync(join(dir, 'keys'), 0o711)
  await refusal(dir, /keys is open to other users; run: chmod 700/)
})

test('links in place of state files are refused', async (t) => {
  for (const name of ['ledger.db', 'audit.jsonl', join('keys', 'master')]) {
    const dir = await settled(t)
    renameSync(join(dir, name), join(dir, 'elsewhere'))
    symlinkSync(join(dir, 'elsewhere'), join(dir, name))
    await refusal(dir, /is not a plain file/)
    rmSync(join(dir, name))
    linkSync(join(dir, 'elsewhere'), join(dir, name))
    await refusal(dir, /has a second name/)
  }
  const dir = await settled(t)
  const link = join(scratch(t), 'link')
  symlinkSync(dir, link)
  await refusal(link, /not a directory of its own/)
})

test(
  'files of another user are refused',
  { skip: process.getuid?.() !== 0 && 'needs root' },
  async (t) => {
    const dir = await settled(t)
    const { chownSync } = await import('node:fs')
    chownSync(join(dir, 'audit.jsonl'), 12_345, 12_345)
    await refusal(dir, /belongs to another user/)
  },
)

test(
  'a directory that can never be made is refused, and not tried for ever',
  { skip: !existsSync('/proc/self') && 'needs /proc' },
  () => {
    const child = join(import.meta.dirname, 'child.ts')
    const ran = spawnSync(process.execPath, [child, '/proc/eclusa/state'], {
      encoding: 'utf8',
      env: { ...process.env, ECLUSA_SCRIPT: 'health' },
      timeout: 60_000,
      killSignal: 'SIGKILL',
    })
    assert.match(ran.stdout, /^refused state_refused .*\(ENOENT\)/)
    assert.equal(ran.status, 73)
  },
)

test('a ledger of another version, and a file that is no ledger, are refused', async (t) => {
  const dir = await settled(t)
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  db.exec('PRAGMA user_version=99')
  db.close()
  await refusal(dir, /another version/)
  const other = await settled(t)
  writeFileSync(join(other, 'ledger.db'), 'not a database, whatever it is called'.repeat(100))
  for (const tail of ['-wal', '-shm']) rmSync(join(other, `ledger.db${tail}`), { force: true })
  await refusal(other, /no ledger/)
})

test('a damaged master secret is refused', async (t) => {
  const dir = await settled(t)
  writeFileSync(join(dir, 'keys', 'master'), 'short\n')
  await refusal(dir, /master is damaged/)
})

test('entries cannot be changed or removed by SQL', async (t) => {
  const dir = await settled(t)
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  t.after(() => db.close())
  assert.throws(() => db.exec("UPDATE entries SET line = ''"), /never changed/)
  assert.throws(() => db.exec('DELETE FROM entries'), /never removed/)
})
