// The start of one process on a state directory: made, checked, mended, or refused.

import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, rmSync } from 'node:fs'

import { Fault } from '../fault.ts'
import { emptyDraft, FORMAT_VERSION } from '../ledger/entry.ts'
import { segmentKey } from '../ledger/segment.ts'
import { closeAfter, openBook, transact, type Book } from './book.ts'
import { refuseClock } from './clock.ts'
import { createMaster, readMaster } from './keys.ts'
import { openLease, register, type Lease } from './lease.ts'
import { STORE_LIMITS } from './limits.ts'
import { lockOn, type Lock } from './lock.ts'
import { openMirror, type Mended, type Mirror } from './mirror.ts'
import {
  checkFile,
  checkInner,
  claimDirectory,
  createFile,
  look,
  placeOf,
  refused,
  syncDirectory,
  type Place,
} from './place.ts'
import { checkRows } from './rows.ts'
import { createTables, isKnownSchema, upgrade } from './schema.ts'
import { sealKey } from './seal.ts'
import { turnAt, type Turn } from './turn.ts'
import type { Setup } from './wire.ts'

/** Everything that one running process has of its state directory. */
export type Room = {
  readonly place: Place
  readonly book: Book
  readonly mirror: Mirror
  readonly mirrorLock: Lock
  readonly turn: Turn
  readonly lease: Lease
  readonly segment: string
  readonly key: Uint8Array
  readonly sealKey: Uint8Array
  /** What the operator should read of the start, one line each. */
  readonly said: readonly string[]
}

/** Opens the state directory as the start-up table says, records what was mended, the policy and the
 *  start, and takes a lease.
 *  Errors: `Fault('state_refused')` and `Fault('state_tampered')`, with nothing changed. */
export function openRoom(setup: Setup): Room {
  const place = placeOf(setup.dir)
  const said: string[] = []
  if (isEmpty(place) && !setup.create) {
    throw refused(
      `there is no state in ${setup.dir}, and state.create is false; name the directory that has it`,
    )
  }
  claimDirectory(place)
  const mirrorLock = lockOn(place.mirrorLock)
  if (!mirrorLock.takeWithin(STORE_LIMITS.startWaitMs)) {
    throw refused(`another process is busy starting in ${setup.dir}; see that it is not stopped`)
  }
  try {
    // Asked again under the lock: another start may have made everything by now.
    const half = isEmpty(place) || look(place.marker) !== null
    const begun = half && make(place, setup.policy.digest)
    if (begun) said.push(`made a new ledger in ${setup.dir}`)
    return openUnderLock({ place, mirrorLock, said, begun }, setup)
  } finally {
    mirrorLock.free()
  }
}

type Opening = {
  readonly place: Place
  readonly mirrorLock: Lock
  readonly said: string[]
  readonly begun: boolean
}

function openUnderLock({ place, mirrorLock, said, begun }: Opening, setup: Setup): Room {
  checkAll(place)
  const master = readMaster(place)
  const book = openBook(place.ledger)
  let turn: Turn | null = null
  let mirror: Mirror | null = null
  let lease: Lease | null = null
  try {
    book.renewLog()
    const { origin, segment } = readMeta(book, place)
    refuseClock(book, place)
    turn = turnAt(place.turn)
    mirror = openMirror(place, book)
    mirror.repair()
    // A new mirror is behind by the first record: nothing was mended.
    const mended = begun ? mirror.mended().slice(1) : mirror.mended()
    for (const one of mended) said.push(sentence(one))
    const taken = openLease(place, book)
    lease = taken
    const { fresh, made: unread } = transact(book, turn.take, STORE_LIMITS.lockWaitMs, () => {
      upgrade(book)
      const left = checkRows(book, place)
      recordStart({ book, lease: taken, mended, setup })
      return left
    })
    if (unread !== null) said.push(unread)
    lease.sweep()
    mirror.follow(fresh)
    const key = segmentKey(master, { origin, segment })
    const seal = sealKey(master, origin)
    return { place, book, mirror, mirrorLock, turn, lease, segment, key, sealKey: seal, said }
  } catch (error) {
    lease?.close()
    mirror?.close()
    turn?.close()
    closeAfter(book, error)
    throw error
  }
}

type Beginning = {
  readonly book: Book
  readonly lease: Lease
  readonly mended: readonly Mended[]
  readonly setup: Setup
}

function recordStart({ book, lease, mended, setup }: Beginning): void {
  register(book, lease)
  recordMended(book, mended)
  const { digest, text } = setup.policy
  if (book.sql('SELECT 1 FROM policy WHERE digest = ?').get(digest) === undefined) {
    const chained = book.put('policy', { digest, text })
    book.append({ ...emptyDraft('policy', nowUs()), policy: digest }, { ...chained })
  }
  const draft = { ...emptyDraft('start', nowUs()), policy: digest }
  book.append(draft, { lease: lease.nonce(), pid: process.pid })
  lease.renew()
}

/** One record for each thing that was mended. In a transaction. */
export function recordMended(book: Book, mended: readonly Mended[]): void {
  for (const { found, kept } of mended) {
    const aside = kept === null ? {} : { kept }
    book.append(emptyDraft('recovery', nowUs()), { found, ...aside })
  }
}

/** What is told of a mending on stderr. */
export function sentence({ found, kept }: Mended): string {
  const aside = kept === null ? '' : `; what was there is kept in ${kept}`
  return `audit.jsonl was ${found} and has been written again from the ledger${aside}`
}

const isEmpty = ({ ledger, mirror, master, marker }: Place): boolean =>
  [ledger, mirror, master, marker].every((path) => look(path) === null)

/** Makes every file of a new ledger, or goes on where a start was killed while it made them. Only a
 *  marker that is taken away last tells such a start from files that somebody lost.
 *  True when a new ledger was begun. */
function make(place: Place, policy: string): boolean {
  if (look(place.marker) === null) closeSync(createFile(place.marker))
  for (const path of [place.keys, place.leases]) mkdirSync(path, { recursive: true, mode: 0o700 })
  const begun = hasGenesis(place)
  if (!begun) {
    for (const path of [place.master, place.ledger]) rmSync(path, { force: true })
    for (const tail of ['-wal', '-shm', '-journal']) rmSync(place.ledger + tail, { force: true })
    createMaster(place)
    createLedger(place, policy)
  }
  if (look(place.mirror) === null) {
    const fd = createFile(place.mirror)
    fsyncSync(fd)
    closeSync(fd)
  }
  syncDirectory(place.dir)
  rmSync(place.marker)
  syncDirectory(place.dir)
  return !begun
}

function hasGenesis(place: Place): boolean {
  if (look(place.ledger) === null) return false
  const book = openBook(place.ledger)
  try {
    const tables = book.sql("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'entries'").get()
    return tables?.['n'] === 1 && book.end().seq >= 0
  } finally {
    book.close()
  }
}

function createLedger(place: Place, policy: string): void {
  closeSync(createFile(place.ledger))
  const book = openBook(place.ledger)
  const origin = randomBytes(16).toString('hex')
  try {
    createTables(book)
    book.begin()
    const meta = book.sql('INSERT INTO meta VALUES (?, ?)')
    meta.run('origin', origin)
    meta.run('format', String(FORMAT_VERSION))
    meta.run('segment', FIRST_SEGMENT)
    const nonce = randomBytes(16).toString('hex')
    const draft = { ...emptyDraft('genesis', nowUs()), policy }
    book.append(draft, { origin, nonce, segment: FIRST_SEGMENT })
    book.commit()
    book.checkpoint()
  } catch (error) {
    closeAfter(book, error)
    throw error
  }
  book.close()
}

const FIRST_SEGMENT = '000001'

function checkAll(place: Place): void {
  for (const path of [place.keys, place.leases]) checkInner(path)
  const { ledger, mirror, master, mirrorLock, mirrorNumber, turn } = place
  const files = [
    ledger,
    `${ledger}-wal`,
    `${ledger}-shm`,
    mirror,
    master,
    mirrorLock,
    mirrorNumber,
    turn,
  ]
  for (const path of files) checkFile(path)
  const lost = [ledger, mirror, master].filter((path) => look(path) === null)
  if (lost.length > 0)
    throw refused(`${lost.join(' and ')} ${lost.length > 1 ? 'are' : 'is'} missing; ${WAY_OUT}`)
  mkdirSync(place.leases, { recursive: true, mode: 0o700 })
}

const WAY_OUT = 'put back the whole directory from a backup, or move it away to begin a new ledger'

function readMeta(book: Book, place: Place): { readonly origin: string; readonly segment: string } {
  const version = book.sql('PRAGMA user_version').get()?.['user_version']
  if (!isKnownSchema(version)) {
    throw refused(
      version === 0
        ? `${place.ledger} holds no ledger; ${WAY_OUT}`
        : `${place.ledger} was written by another version of eclusa; start that version, or migrate`,
    )
  }
  const rows = book.sql('SELECT name, value FROM meta').all()
  const meta = new Map(rows.map((row) => [row['name'], String(row['value'])]))
  const origin = meta.get('origin')
  const segment = meta.get('segment')
  const genesis = String(book.sql('SELECT line FROM entries WHERE seq = 0').get()?.['line'])
  if (origin === undefined || segment === undefined || !genesis.includes(`"origin":"${origin}"`)) {
    throw new Fault(
      'state_tampered',
      `${place.ledger} does not agree with its first record; ${WAY_OUT}`,
    )
  }
  return { origin, segment }
}

const nowUs = (): number => Date.now() * 1_000
