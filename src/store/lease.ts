// Who is alive: a row that beats, and an operating-system lock that nobody can keep after his death.

import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { emptyDraft } from '../ledger/entry.ts'
import type { Book } from './book.ts'
import { STORE_LIMITS } from './limits.ts'
import { existingLock, lockOn, type Lock } from './lock.ts'
import { endOpen } from './operations.ts'
import { look, type Place } from './place.ts'
import { troubleOf } from './trouble.ts'

/** The lease of one process, and its watch over the others. All but `close` inside a transaction. */
export type Lease = {
  /** The nonce in force. */
  readonly nonce: () => string
  /** True when it is still ours; else a new one is taken, with its record, and false is given: what was
   *  open under the old one has been ended by somebody else. */
  readonly hold: () => boolean
  /** Beats, and ends the leases of the dead. */
  readonly renew: () => void
  /** True when the owner of `nonce` is known to be dead; its lease is then ended. */
  readonly endIfDead: (nonce: string) => boolean
  /** Ends our own. */
  readonly end: () => void
  /** Removes the lock files of leases that ended in a transaction that is now committed. */
  readonly sweep: () => void
  readonly close: () => void
}

/** Takes the operating-system lock of a new lease; its row is written by `hold` in the first transaction. */
export function openLease(place: Place, book: Book): Lease {
  let mine = newLock(place)
  const others = new Map<string, Watched>()
  const ended: string[] = []

  const insert = (): void => {
    book.sql('INSERT INTO leases VALUES (?, 0, ?)').run(mine.nonce, nowUs())
  }
  const endLease = (nonce: string, why: EndWhy): void => {
    book.sql('DELETE FROM leases WHERE nonce = ?').run(nonce)
    const open = endOpen(book, nonce, nowUs())
    const draft = emptyDraft('lease', nowUs())
    book.append({ ...draft, more: { lease: nonce, why, open } })
    others.delete(nonce)
    ended.push(nonce)
  }
  const isRow = (nonce: string): boolean =>
    book.sql('SELECT 1 FROM leases WHERE nonce = ?').get(nonce) !== undefined

  return {
    nonce: () => mine.nonce,
    hold() {
      if (isRow(mine.nonce)) return true
      const lost = mine
      mine = newLock(place)
      insert()
      const draft = emptyDraft('lease', nowUs())
      book.append({ ...draft, more: { lease: mine.nonce, why: 'retaken', instead_of: lost.nonce } })
      lost.lock.close()
      ended.push(lost.nonce)
      return false
    },
    renew() {
      const beat = book.sql('UPDATE leases SET beats = beats + 1 WHERE nonce = ?')
      if (beat.run(mine.nonce).changes === 0) return
      for (const row of book
        .sql('SELECT nonce, beats FROM leases WHERE nonce <> ?')
        .all(mine.nonce)) {
        const nonce = String(row['nonce'])
        const seen = watched(others.get(nonce), Number(row['beats']))
        others.set(nonce, seen)
        if (isDead(place, nonce)) endLease(nonce, 'dead')
        else if (seen.missed >= STORE_LIMITS.missedBeats) endLease(nonce, 'silent')
      }
    },
    endIfDead(nonce) {
      if (nonce === mine.nonce) return false
      if (!isRow(nonce)) return true
      if (!isDead(place, nonce)) return false
      endLease(nonce, 'dead')
      return true
    },
    end: () => endLease(mine.nonce, 'stopped'),
    sweep: () => sweep(place, book, ended.splice(0)),
    close() {
      mine.lock.close()
      sweep(place, book, [...ended, mine.nonce])
    },
  }
}

function sweep(place: Place, book: Book, ended: readonly string[]): void {
  try {
    for (const nonce of ended) removeFree(lockFile(place, nonce))
    removeOrphans(place, book)
  } catch (error) {
    // A lock file that stays costs a few bytes; it is an orphan then, and looked at again.
    if (troubleOf(error).kind === 'ours') throw error
  }
}

/** The row of our first lease is written; inside the transaction of a start. */
export function register(book: Book, lease: Lease): void {
  book.sql('INSERT INTO leases VALUES (?, 0, ?)').run(lease.nonce(), nowUs())
}

type EndWhy = 'dead' | 'silent' | 'stopped'
type Mine = { readonly nonce: string; readonly lock: Lock }
// A lease is silent by the count of our own renewals, not by a clock: whoever was stopped together with
// it, or had its clock set, does not end it.
type Watched = { readonly beats: number; readonly missed: number }

const watched = (before: Watched | undefined, beats: number): Watched =>
  before?.beats === beats ? { beats, missed: before.missed + 1 } : { beats, missed: 0 }

const nowUs = (): number => Date.now() * 1_000

const lockFile = (place: Place, nonce: string): string => join(place.leases, `${nonce}.lock`)

function newLock(place: Place): Mine {
  const nonce = randomBytes(16).toString('hex')
  const lock = lockOn(lockFile(place, nonce))
  if (!lock.take()) throw new TypeError('a fresh lock file is locked')
  return { nonce, lock }
}

/** True when nobody holds the lock file, or it is gone. */
function isDead(place: Place, nonce: string): boolean {
  const file = lockFile(place, nonce)
  if (look(file) === null) return true
  const lock = existingLock(file)
  try {
    return lock.take()
  } catch (error) {
    // Removed since by another who found it free.
    if (look(file) === null) return true
    throw error
  } finally {
    lock.close()
  }
}

function removeFree(file: string): void {
  if (look(file) === null) return
  const lock = existingLock(file)
  try {
    if (lock.take()) rmSync(file, { force: true })
  } finally {
    lock.close()
  }
}

const LOCK_NAME = /^[0-9a-f]{32}\.lock$/

/** A process killed between its lock and its row leaves a file that no row names. */
function removeOrphans(place: Place, book: Book): void {
  for (const name of readdirSync(place.leases)) {
    if (!LOCK_NAME.test(name)) continue
    const file = join(place.leases, name)
    const stats = look(file)
    if (stats === null || Date.now() - stats.mtimeMs < STORE_LIMITS.orphanMs) continue
    const nonce = name.slice(0, -'.lock'.length)
    if (book.sql('SELECT 1 FROM leases WHERE nonce = ?').get(nonce) === undefined) removeFree(file)
  }
}
