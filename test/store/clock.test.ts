// The start-up table's row on the clock: a start before the ledger's time is refused until a person accepts it.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

import { clockAccept } from '../../src/cli/clock-accept.ts'
import { emptyDraft } from '../../src/ledger/entry.ts'
import { openBook } from '../../src/store/book.ts'
import { STORE_LIMITS } from '../../src/store/limits.ts'
import { acceptClock, addClientIn, openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { draft, nowUs, optionsFor, scratch, verified } from './scene.ts'

type Test = { after(work: () => void): void }

const HOUR_MS = 3_600_000
/** A module that sets the clock of the process that loads it first. */
const shifted = (ms: number): string =>
  `data:text/javascript,const now=Date.now;Date.now=()=>now()+${ms}`

/** A ledger whose last record was written by a process with its clock ahead by so much, and which was then
 *  killed, so that it wrote no end. */
async function ahead(t: Test, ms: number): Promise<string> {
  const dir = scratch(t)
  const made = spawn(
    process.execPath,
    ['--import', shifted(ms), join(import.meta.dirname, 'child.ts'), dir],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  )
  t.after(() => made.kill('SIGKILL'))
  const ended = new Promise((resolve) => made.once('close', resolve))
  made.stdin.write('append late\n')
  for await (const text of made.stdout.setEncoding('utf8')) {
    if (String(text).includes('appended late')) break
  }
  made.kill('SIGKILL')
  await ended
  const last = entries(dir).findLast(({ name }) => name === 'late')
  assert.ok(last !== undefined && Math.abs(last.ts / 1_000 - Date.now() - ms) < 30_000)
  return dir
}

type Line = { readonly ts: number; readonly name: string; readonly kind: string }
function entries(dir: string): readonly Line[] {
  const reader = openReader(dir)
  try {
    return [...reader.entries(0)].map((line) => JSON.parse(line) as Line)
  } finally {
    reader.close()
  }
}

const start = async (dir: string): Promise<void> => (await openSqlite(optionsFor(dir))).stop()

const REFUSED = {
  code: 'state_refused',
  message:
    /^the clock says \d{4}-\d\d-\d\dT[\d:]{8}Z, but the ledger in \S+ has records of \d{4}-\d\d-\d\dT[\d:]{8}Z; set the clock right and start again, or, if it is right now, run: eclusa clock accept --state \S+$/,
}

test('a start an hour before the ledger is refused with both times, and nothing is changed', async (t) => {
  const dir = await ahead(t, HOUR_MS)
  const before = entries(dir).length
  for (let again = 0; again < 3; again++) {
    await assert.rejects(openSqlite(optionsFor(dir)), REFUSED)
  }
  assert.equal(entries(dir).length, before)
})

test('once accepted it starts, as often as it likes, and the record says who and what', async (t) => {
  const dir = await ahead(t, HOUR_MS)
  const { behind } = acceptClock(dir)
  assert.ok(behind !== null && Math.abs(behind.ledgerUs - behind.nowUs) > 59 * 60 * 1e6)
  await start(dir)
  await start(dir)
  const [record, ...more] = verified(dir).filter((entry) => entry['found'] === 'clock_behind')
  assert.equal(more.length, 0)
  assert.equal(record?.kind, 'recovery')
  assert.equal(record?.['ledger_ts'], behind.ledgerUs)
  assert.equal(typeof record?.['user'], 'string')
  assert.equal(record?.ts, behind.nowUs)
  const count = verified(dir).length
  assert.equal(acceptClock(dir).behind, null, 'there is nothing to accept any more')
  assert.equal(verified(dir).length, count)
})

test('a clock that is behind by less than the tolerance is let pass, and one beyond it is not', async (t) => {
  await start(await ahead(t, STORE_LIMITS.clockBackMs - 30_000))
  await assert.rejects(
    openSqlite(optionsFor(await ahead(t, STORE_LIMITS.clockBackMs + 30_000))),
    REFUSED,
  )
})

test('a command under a wrong clock is done and recorded, and accepts no clock', async (t) => {
  const dir = await ahead(t, HOUR_MS)
  const wish = {
    name: 'ana',
    profile: 'writer',
    person: false,
    attributes: {},
    digest: 'c'.repeat(64),
    limit: null,
    expiresUs: null,
  }
  assert.equal(addClientIn(dir, wish), 'added')
  assert.equal(entries(dir).at(-1)?.kind, 'client')
  await assert.rejects(openSqlite(optionsFor(dir)), REFUSED)
})

test('the mending of a mirror by a command accepts no clock', async (t) => {
  const dir = await ahead(t, HOUR_MS)
  const book = openBook(join(dir, 'ledger.db'))
  assert.ok(book.begin())
  book.append(emptyDraft('recovery', nowUs()), { found: 'behind' })
  book.commit()
  book.close()
  await assert.rejects(openSqlite(optionsFor(dir)), REFUSED)
})

test('a process that runs goes on when the clock is set back, and another may start beside it', async (t) => {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  // What the running process records after the step is the ledger's time.
  await store.append(draft({ ts: nowUs() + HOUR_MS * 1_000 }))
  await assert.rejects(openSqlite(optionsFor(dir)), REFUSED)
  await store.append(draft())
  await start(dir)
  await store.append(draft())
  assert.equal(store.health(), true)
  await store.stop()
  verified(dir)
})

test('clock accept: its exit status and words', async (t) => {
  const dir = await ahead(t, HOUR_MS)
  const err: string[] = []
  const io = { out: () => undefined, err: (line: string) => void err.push(line), env: {}, cwd: dir }
  assert.equal(await clockAccept(['--state', dir], io), 0)
  assert.match(err.join('\n'), /the clock is accepted: .*Z, after records of .*Z; it is recorded/)
  assert.equal(await clockAccept(['--state', dir], io), 1)
  assert.match(err.join('\n'), /nothing to accept/)
  await assert.rejects(clockAccept(['--state', scratch(t)], io), { code: 'state_refused' })
})
