// The connection to ledger.db, one write transaction at a time, and the end of the chain inside it.

import { closeSync } from 'node:fs'
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'

import { GENESIS_PREV, toEntry, type Draft, type More } from '../ledger/entry.ts'
import { rowDigest, type Row } from '../ledger/state.ts'
import { Fault } from '../fault.ts'
import { createFile, look, parentOf, syncDirectory } from './place.ts'
import { troubleOf } from './trouble.ts'

/** The last record: its number (-1 before genesis), its hash, and the bytes of the log through it. */
export type End = { readonly seq: number; readonly sha256: string; readonly bytes: number }

/** Lines that one transaction added: `text` is each with its LF, the first being record `from`. */
export type Fresh = { readonly from: number; readonly lines: number; readonly text: string }

/** ledger.db. `append`, `put` and `remove` only inside a transaction. */
export type Book = {
  /** A prepared statement, kept. */
  readonly sql: (text: string) => StatementSync
  /** Takes the write lock without waiting: false while somebody else holds it. */
  readonly begin: () => boolean
  /** Durable when it returns; gives what was added. Throws, with nothing done, if it could not. */
  readonly commit: () => Fresh | null
  readonly rollback: () => void
  /** Statements without values: the schema. */
  readonly exec: (text: string) => void
  /** Runs `work`; if it throws, its writes alone are undone and the error goes on. */
  readonly apart: <T>(work: () => T) => T
  /** The next record of the chain. */
  readonly append: (draft: Draft, more?: More) => End
  /** Writes a whole row of a chained table; gives the members that its record must carry. */
  readonly put: (table: Table, row: Row) => Chained
  readonly remove: (table: Table, key: string) => Chained
  /** The committed end of the chain; inside a transaction, its end so far. */
  readonly end: () => End
  /** Copies the write-ahead log into the database as far as readers allow; gives the pages that the log
   *  holds now. Throws if a sync fails. */
  readonly checkpoint: () => number
  /** As `checkpoint`, and has the log begin anew; false where others use it. After a process that died of
   *  a failed sync the kernel shows records that it may not have written: copied, they are written again. */
  readonly renewLog: () => boolean
  /** Commits so far by this connection that await a checkpoint, in pages, roughly. */
  readonly pages: () => number
  readonly close: () => void
}

/** Closes the book after `error`, unless a sync has failed: closing would sync again, and seem to succeed. */
export function closeAfter(book: { close(): void }, error: unknown): void {
  if (troubleOf(error).kind !== 'sync') book.close()
}

/** The tables whose every change has a record, and their key columns. */
export type Table = 'operations' | 'pins' | 'definitions' | 'policy' | 'clients'
const KEY: Readonly<Record<Table, string>> = {
  operations: 'operation',
  pins: 'tool',
  definitions: 'hash',
  policy: 'digest',
  clients: 'name',
}

/** What the record of a changed row carries; a null digest: the row was removed. */
export type Chained = {
  readonly table: Table
  readonly row: string
  readonly row_sha256: string | null
}

/** Opens ledger.db with full durability. */
export function openBook(file: string): Book {
  nameLog(`${file}-wal`)
  const db = new DatabaseSync(file, { timeout: 0 })
  try {
    db.exec(SETTINGS)
  } catch (error) {
    closeAfter(db, error)
    throw error
  }
  return bookOn(db)
}

// SQLite drops the error of syncing the directory in which it made its write-ahead log, and a log without
// a name is lost in a power cut: it is named here, where the error counts.
function nameLog(log: string): void {
  if (look(log) !== null) return
  try {
    closeSync(createFile(log))
  } catch (error) {
    // Another process has just made it; the directory is synced all the same.
    if (look(log) === null) throw error
  }
  syncDirectory(parentOf(log))
}

// Checkpoints are made by hand: SQLite drops the errors of the ones it makes by itself, and with them a
// failed sync of the database file.
const SETTINGS =
  'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA wal_autocheckpoint=0; PRAGMA trusted_schema=OFF'
const PAGE_BYTES = 4096

type State = {
  readonly db: DatabaseSync
  readonly sql: Book['sql']
  open: boolean
  end: End
  lines: string[]
  pages: number
}

function bookOn(db: DatabaseSync): Book {
  const kept = new Map<string, StatementSync>()
  const sql = (text: string): StatementSync => {
    const found = kept.get(text)
    if (found !== undefined) return found
    const made = db.prepare(text)
    kept.set(text, made)
    return made
  }
  const state: State = { db, sql, open: false, end: NOTHING, lines: [], pages: 0 }
  return {
    sql,
    begin: () => begin(state),
    commit: () => commit(state),
    rollback: () => rollback(state),
    exec: (text) => db.exec(text),
    apart: (work) => apart(state, work),
    append: (draft, more) => append(state, draft, more),
    put(table, row) {
      const columns = Object.keys(row)
      const values: SQLInputValue[] = Object.values(row)
      const marks = columns.map(() => '?').join(', ')
      const insert = `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${marks})`
      sql(insert).run(...values)
      return { table, row: String(row[KEY[table]]), row_sha256: rowDigest(table, row) }
    },
    remove(table, key) {
      sql(`DELETE FROM ${table} WHERE ${KEY[table]} = ?`).run(key)
      return { table, row: key, row_sha256: null }
    },
    end: () => (state.open ? state.end : readEnd(sql)),
    checkpoint() {
      state.pages = 0
      return Number(sql('PRAGMA wal_checkpoint(PASSIVE)').get()?.['log'])
    },
    renewLog: () => sql('PRAGMA wal_checkpoint(RESTART)').get()?.['busy'] === 0,
    pages: () => state.pages,
    close: () => db.close(),
  }
}

function begin(state: State): boolean {
  try {
    state.sql('BEGIN IMMEDIATE').run()
  } catch (error) {
    if (troubleOf(error).kind === 'busy') return false
    throw error
  }
  state.open = true
  state.lines = []
  state.end = readEnd(state.sql)
  return true
}

function commit(state: State): Fresh | null {
  state.sql('COMMIT').run()
  state.open = false
  const { end, lines } = state
  if (lines.length === 0) return null
  const text = `${lines.join('\n')}\n`
  state.pages += 4 + Math.ceil((2 * text.length) / PAGE_BYTES)
  return { from: end.seq - lines.length + 1, lines: lines.length, text }
}

function rollback(state: State): void {
  state.open = false
  state.lines = []
  // SQLite has already rolled back by itself after some errors.
  if (state.db.isTransaction) state.db.exec('ROLLBACK')
}

function apart<T>(state: State, work: () => T): T {
  const before = { end: state.end, lines: state.lines.length }
  state.sql('SAVEPOINT one').run()
  try {
    const made = work()
    state.sql('RELEASE one').run()
    return made
  } catch (error) {
    state.end = before.end
    state.lines.length = before.lines
    if (state.db.isTransaction) state.db.exec('ROLLBACK TO one; RELEASE one')
    throw error
  }
}

function append(state: State, draft: Draft, more?: More): End {
  const { end } = state
  const seq = end.seq + 1
  const { line, sha256 } = toEntry(draft, { seq, prev: end.sha256 }, more)
  const bytes = end.bytes + line.length + 1
  state.sql('INSERT INTO entries VALUES (?, ?, ?, ?)').run(seq, line, sha256, bytes)
  state.end = { seq, sha256, bytes }
  state.lines.push(line)
  return state.end
}

const NOTHING: End = { seq: -1, sha256: GENESIS_PREV, bytes: 0 }

function readEnd(sql: Book['sql']): End {
  const row = sql('SELECT seq, sha256, ends FROM entries ORDER BY seq DESC LIMIT 1').get()
  if (row === undefined) return NOTHING
  return { seq: Number(row['seq']), sha256: String(row['sha256']), bytes: Number(row['ends']) }
}

/** Runs `work` in one write transaction, for start-up and commands: waits for the lock up to `waitMs`.
 *  Errors: `Fault('state_refused')` when the lock could not be had; what `work` throws, with nothing done. */
export function transact<T>(
  book: Book,
  take: (begin: () => boolean, giveUp: () => boolean) => boolean,
  waitMs: number,
  work: () => T,
): { readonly made: T; readonly fresh: Fresh | null } {
  const start = performance.now()
  if (!take(book.begin, () => performance.now() - start > waitMs)) {
    throw new Fault(
      'state_refused',
      `another process has held the ledger for ${waitMs / 1000} s; see that it is not stopped, then try again`,
    )
  }
  try {
    const made = work()
    return { made, fresh: book.commit() }
  } catch (error) {
    book.rollback()
    throw error
  }
}
