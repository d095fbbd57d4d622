// Reads a state directory for the audit verbs, and changes what an operator may: no lease, no thread.

import { userInfo } from 'node:os'
import { resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

import { segmentKey } from '../ledger/segment.ts'
import type { Row } from '../ledger/state.ts'
import type { ClientRow, Pin } from '../ports.ts'
import { type Book, openBook, transact } from './book.ts'
import {
  type Added,
  addClient,
  asClient,
  type NewClient,
  revokeClient,
  type Revoked,
} from './clients.ts'
import { acceptNow, type ClockAccepted } from './clock.ts'
import { readMaster } from './keys.ts'
import { STORE_LIMITS } from './limits.ts'
import { lockOn } from './lock.ts'
import { openMirror, underLock } from './mirror.ts'
import { approve, type Approved } from './pins.ts'
import { isKnownSchema, upgrade } from './schema.ts'
import { recordMended } from './start.ts'
import { checkFile, look, placeOf, refused, type Place } from './place.ts'
import { sleep, turnAt } from './turn.ts'
import { startFault } from './batch.ts'

export type { Added, NewClient, Revoked } from './clients.ts'
export type { Approved } from './pins.ts'

/** A state directory as it is read: while processes write to it, or as a copy. Errors of all methods:
 *  `Fault('state_refused')`. */
export type Reader = {
  /** `audit.jsonl`'s path; the file may be missing. */
  readonly mirror: string
  /** Lines without LF, from record `from` on, in order. What is committed meanwhile is included. */
  readonly entries: (from: number) => Iterable<string>
  /** One line, or null. */
  readonly entry: (seq: number) => string | null
  /** Number and hash of the last record; seq -1 for none. */
  readonly head: () => { readonly seq: number; readonly sha256: string }
  /** All rows of a table of the ledger, every column, in the order of its key. */
  readonly rows: (table: string) => Iterable<Row>
  readonly policyText: (digest: string) => string | null
  /** The canonical JSON of a definition that was once seen, by its hash. */
  readonly definitionText: (hash: string) => string | null
  readonly pins: () => readonly Pin[]
  /** All clients by name, revoked ones too. */
  readonly clients: () => readonly ClientRow[]
  /** The key of a segment's digests. Whoever has it can test guesses of that segment's arguments. */
  readonly segmentKey: (segment: string) => Buffer
  /** Runs `work` on one unchanging view: entries and tables agree in it. */
  readonly snapshot: <T>(work: () => T) => T
  readonly close: () => void
}

/** Opens `dir` for reading. Errors: `Fault('state_refused')` where there is no ledger that this build
 *  can read. */
export function openReader(dir: string): Reader {
  const place = placeOf(resolve(dir))
  checkReadable(place)
  const db = guard(() => connect(place.ledger))
  const get = (sql: string, value: string | number): Row | null =>
    guard(() => asRow(db.prepare(sql).get(value)))
  const text = (sql: string, value: string | number): string | null => {
    const found = get(sql, value)?.['text']
    return typeof found === 'string' ? found : null
  }
  return {
    mirror: place.mirror,
    entries: (from) => entriesOf(db, from),
    entry: (seq) => text('SELECT line AS text FROM entries WHERE seq = ?', seq),
    head() {
      const row = get('SELECT seq, sha256 FROM entries WHERE seq >= ? ORDER BY seq DESC LIMIT 1', 0)
      return { seq: Number(row?.['seq'] ?? -1), sha256: String(row?.['sha256'] ?? '0'.repeat(64)) }
    },
    rows: (table) => rowsOf(db, table),
    policyText: (digest) => text('SELECT text FROM policy WHERE digest = ?', digest),
    definitionText: (hash) => text('SELECT text FROM definitions WHERE hash = ?', hash),
    pins: () => [...rowsOf(db, 'pins')].map(asPin),
    clients: () => [...rowsOf(db, 'clients')].map(asClient),
    segmentKey(segment) {
      const origin = text("SELECT value AS text FROM meta WHERE name = 'origin' AND '' = ?", '')
      if (origin === null) throw refused(`${place.ledger} has no origin`)
      return Buffer.from(
        segmentKey(
          guard(() => readMaster(place)),
          { origin, segment },
        ),
      )
    },
    snapshot(work) {
      guard(() => db.exec('BEGIN'))
      try {
        return work()
      } finally {
        db.exec('COMMIT')
      }
    },
    close: () => db.close(),
  }
}

/** Approves what waits for `tool` (`upstream/tool`), in the name of the operating-system user; running
 *  processes use it within a second. `hash`: approve only this one, or null for whatever waits.
 *  Errors: `Fault('state_refused')`; nothing was changed then. */
export const approvePin = (
  dir: string,
  wish: { readonly tool: string; readonly hash: string | null },
): Approved => change(dir, (book, user) => approve(book, wish, { user }))

/** Adds a client; running processes know it within a second. Errors: as `approvePin`. */
export const addClientIn = (dir: string, wish: NewClient): Added =>
  change(dir, (book, user) => addClient(book, wish, user))

/** Revokes a client for good; running processes refuse it within a second. Errors: as `approvePin`. */
export const revokeClientIn = (dir: string, name: string): Revoked =>
  change(dir, (book, user) => revokeClient(book, name, user))

/** Accepts a clock that is behind the ledger's time, in the name of the operating-system user: the next start
 *  is not refused for it. Errors: as `approvePin`. */
export const acceptClock = (dir: string): ClockAccepted =>
  change(dir, (book, user) => acceptNow(book, user))

/** True where there is a ledger that verbs can work on. */
export const hasLedger = (dir: string): boolean => look(placeOf(resolve(dir)).ledger) !== null

function change<T>(dir: string, work: (book: Book, user: string) => T): T {
  const place = placeOf(resolve(dir))
  checkReadable(place)
  checkFile(place.ledger)
  checkFile(place.mirror)
  return guard(() => changeIn(place, work))
}

function changeIn<T>(place: Place, work: (book: Book, user: string) => T): T {
  const book = openBook(place.ledger)
  const turn = turnAt(place.turn)
  const mirror = openMirror(place, book)
  const lock = lockOn(place.mirrorLock)
  try {
    book.renewLog()
    const { made, fresh } = transact(book, turn.take, STORE_LIMITS.lockWaitMs, () => {
      upgrade(book)
      return work(book, userInfo().username)
    })
    // Where another holds the lock, the mirror follows with its next record.
    underLock(lock, STORE_LIMITS.mirrorWaitMs, () => {
      mirror.follow(fresh)
      const mended = mirror.mended()
      if (mended.length === 0) return
      const record = (): void => recordMended(book, mended)
      mirror.follow(transact(book, turn.take, STORE_LIMITS.lockWaitMs, record).fresh)
    })
    mirror.syncNow()
    return made
  } finally {
    lock.close()
    mirror.close()
    turn.close()
    book.close()
  }
}

function checkReadable({ dir, ledger }: Place): void {
  if (look(ledger) === null)
    throw refused(`there is no ledger.db in ${dir}; name a state directory`)
}

/** A copy on a read-only medium has no place for SQLite's shared memory; then nobody can be writing. */
function connect(file: string): DatabaseSync {
  const url = pathToFileURL(file)
  try {
    return checked(new DatabaseSync(file, { readOnly: true, timeout: 0 }), file)
  } catch (error) {
    if (Reflect.get(Object(error), 'errcode') !== CANTOPEN || look(`${file}-wal`) !== null)
      throw error
    url.search = '?immutable=1'
    return checked(new DatabaseSync(url, { readOnly: true, timeout: 0 }), file)
  }
}
const CANTOPEN = 14

function checked(db: DatabaseSync, file: string): DatabaseSync {
  try {
    const version = patient(() => db.prepare('PRAGMA user_version').get())?.['user_version']
    if (isKnownSchema(version)) return db
  } catch (error) {
    db.close()
    throw error
  }
  db.close()
  throw refused(`${file} is no ledger of this version of eclusa; use the version that wrote it`)
}

/** A reader meets a lock only while another process opens or closes the ledger. */
function patient<T>(work: () => T): T {
  const end = performance.now() + STORE_LIMITS.lockWaitMs
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (Reflect.get(Object(error), 'errcode') !== BUSY || performance.now() > end) throw error
      sleep(1)
    }
  }
}
const BUSY = 5

/** Many short reads: a long one would keep the write-ahead log from being reset. */
function* entriesOf(db: DatabaseSync, from: number): Iterable<string> {
  const page = db.prepare('SELECT line FROM entries WHERE seq >= ? ORDER BY seq LIMIT 1000')
  for (let next = from; ;) {
    const rows = guard(() => page.all(next))
    for (const row of rows) yield String(row['line'])
    if (rows.length === 0) return
    next += rows.length
  }
}

const HAS_TABLE = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"

function* rowsOf(db: DatabaseSync, table: string): Iterable<Row> {
  if (!/^[a-z]+$/.test(table)) throw refused(`there is no table ${table}`)
  // A ledger of version 1 that no process has opened since has no table of clients.
  if (guard(() => db.prepare(HAS_TABLE).get(table)) === undefined) return
  const rows = guard(() => db.prepare(`SELECT * FROM ${table}`).iterate())
  for (const row of rows) yield asRow(row) ?? {}
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- STRICT tables of text and integers
const asRow = (row: object | undefined): Row | null => (row === undefined ? null : (row as Row))

const asPin = (row: Row): Pin => ({
  tool: String(row['tool']),
  hash: typeof row['hash'] === 'string' ? row['hash'] : null,
  waiting: typeof row['waiting'] === 'string' ? row['waiting'] : null,
})

function guard<T>(work: () => T): T {
  try {
    return patient(work)
  } catch (error) {
    throw startFault(error)
  }
}
