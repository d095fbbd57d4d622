// An operating-system lock on a file of its own: a SQLite transaction that may write and never does.

import { closeSync, constants, openSync } from 'node:fs'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'

import { troubleOf } from './trouble.ts'
import { sleep } from './turn.ts'

/** A lock that can be taken and freed many times. It ends with the process, however that ends.
 *  Nobody may open the file by other means while it is held: closing any descriptor of it drops the lock. */
export type Lock = {
  /** True when it is now held; false while somebody else holds it. */
  readonly take: () => boolean
  /** As `take`, but tries for up to `waitMs`. Blocks the thread. */
  readonly takeWithin: (waitMs: number) => boolean
  readonly free: () => void
  /** Frees it and forgets the file. */
  readonly close: () => void
}

/** A lock on `file`, created with mode 0600 where it is missing. Not yet taken. */
export function lockOn(file: string): Lock {
  create(file)
  return existingLock(file)
}

/** A lock on a file that is there; throws where it is not. */
export function existingLock(file: string): Lock {
  let db: DatabaseSync | null = null
  let begin: StatementSync | null = null
  let rollback: StatementSync | null = null
  const connect = (): StatementSync => {
    if (begin !== null) return begin
    const url = pathToFileURL(file)
    url.search = '?mode=rw'
    const made = new DatabaseSync(url, { timeout: 0 })
    try {
      // In memory: a lock must not need disk space, and must leave no journal when its owner is killed.
      made.exec('PRAGMA journal_mode=MEMORY')
    } catch (error) {
      made.close()
      throw error
    }
    db = made
    rollback = made.prepare('ROLLBACK')
    begin = made.prepare('BEGIN IMMEDIATE')
    return begin
  }
  const take = (): boolean => {
    try {
      connect().run()
      return true
    } catch (error) {
      if (troubleOf(error).kind === 'busy') return false
      throw error
    }
  }
  return {
    take,
    takeWithin(waitMs) {
      const end = performance.now() + waitMs
      while (!take()) {
        if (performance.now() >= end) return false
        sleep(0.2 + Math.random() * 0.8)
      }
      return true
    },
    free: () => void rollback?.run(),
    close() {
      db?.close()
      db = null
      begin = null
      rollback = null
    },
  }
}

function create(file: string): void {
  const { O_CREAT, O_EXCL, O_WRONLY, O_NOFOLLOW } = constants
  try {
    closeSync(openSync(file, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0o600))
  } catch (error) {
    // There already: opening and closing it here would drop a lock that this process may hold on it.
    if (!(error instanceof Error && Reflect.get(error, 'code') === 'EEXIST')) throw error
  }
}
