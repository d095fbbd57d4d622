// What an error of SQLite or of the file system means for what waits.

import { Fault } from '../fault.ts'

/** busy: somebody holds the lock, try again. refuse: nothing was written, try again when it is mended.
 *  sync: a sync failed, and no later sync proves anything. broken: the database is not what it was.
 *  ours: a mistake of this program in one request. `why` is one sentence for the operator. */
export type Trouble = {
  readonly kind: 'busy' | 'refuse' | 'sync' | 'broken' | 'ours'
  readonly why: string
}

/** The meaning of an error that SQLite or `node:fs` threw. */
export function troubleOf(error: unknown): Trouble {
  if (error instanceof Fault) return faultTrouble(error)
  if (!(error instanceof Error))
    return { kind: 'ours', why: 'something that is no error was thrown' }
  const errcode: unknown = Reflect.get(error, 'errcode')
  if (typeof errcode === 'number') return sqliteTrouble(errcode, error.message)
  const code: unknown = Reflect.get(error, 'code')
  const syscall: unknown = Reflect.get(error, 'syscall')
  return typeof syscall === 'string' && typeof code === 'string'
    ? fileTrouble(code, syscall)
    : { kind: 'ours', why: error.message }
}

function faultTrouble(fault: Fault): Trouble {
  if (fault.code === 'sync_failed') return { kind: 'sync', why: fault.message }
  if (fault.code === 'state_tampered') return { kind: 'broken', why: fault.message }
  return { kind: 'ours', why: fault.message }
}

const BUSY = 5
const LOCKED = 6
const NOMEM = 7
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26
const IOERR_FSYNC = 1034
const IOERR_DIR_FSYNC = 1290

/** What the health sentence says when space has run out; it names the way out. */
export const FULL_WHY = 'the disk of the state directory is full; free some space'

const SQLITE_MEANS: ReadonlyMap<number, Trouble> = new Map<number, Trouble>([
  [BUSY, { kind: 'busy', why: 'another process holds the ledger' }],
  [LOCKED, { kind: 'busy', why: 'another connection holds the ledger' }],
  [NOMEM, { kind: 'refuse', why: 'there is no memory for a commit' }],
  [READONLY, { kind: 'refuse', why: 'the state directory is read-only; make it writable' }],
  [IOERR, { kind: 'refuse', why: 'the disk of the state directory fails to read or write' }],
  [FULL, { kind: 'refuse', why: FULL_WHY }],
  [CANTOPEN, { kind: 'refuse', why: 'files of the state directory cannot be opened' }],
  [CORRUPT, { kind: 'broken', why: 'ledger.db is damaged; restore it from a backup' }],
  [NOTADB, { kind: 'broken', why: 'ledger.db is no ledger; restore it from a backup' }],
])

function sqliteTrouble(errcode: number, message: string): Trouble {
  if (errcode === IOERR_FSYNC || errcode === IOERR_DIR_FSYNC) {
    return { kind: 'sync', why: 'a sync of ledger.db failed; check the disk, then start again' }
  }
  return SQLITE_MEANS.get(errcode & 0xff) ?? { kind: 'ours', why: message }
}

function fileTrouble(code: string, syscall: string): Trouble {
  if (syscall === 'fsync' || syscall === 'fdatasync') {
    return { kind: 'sync', why: `a sync failed (${code}); check the disk, then start again` }
  }
  if (code === 'ENOSPC' || code === 'EDQUOT') return { kind: 'refuse', why: FULL_WHY }
  if (code === 'EROFS') {
    return { kind: 'refuse', why: 'the state directory is read-only; make it writable' }
  }
  return { kind: 'refuse', why: `a ${syscall} in the state directory failed (${code})` }
}
