// The ledger's write lock, shared fairly: random retries, and a pause after a commit that others waited for.

import { closeSync, constants, fstatSync, futimesSync, openSync } from 'node:fs'

/** Blocks the thread for `ms`. Only for the writer's thread and for short-lived commands. */
export function sleep(ms: number): void {
  Atomics.wait(NEVER, 0, 0, ms)
}
const NEVER = new Int32Array(new SharedArrayBuffer(4))

/** One process's place at the write lock. SQLite's own waiting starves all but one of several busy
 *  writers; here whoever waits leaves a sign, and whoever sees it after a commit lets others pass. */
export type Turn = {
  /** True once `begin` gave true; false when `giveUp` did. Blocks the thread between tries. */
  readonly take: (begin: () => boolean, giveUp: () => boolean) => boolean
  /** To be told of each end of a transaction. */
  readonly ended: () => void
  readonly close: () => void
}

/** A place at the lock whose waiters leave their sign on `file`: its modification time. */
export function turnAt(file: string): Turn {
  const { O_CREAT, O_RDWR, O_NOFOLLOW } = constants
  const sign = openSync(file, O_CREAT | O_RDWR | O_NOFOLLOW, 0o600)
  let lastEnd = Number.NEGATIVE_INFINITY

  const pause = (): void => {
    if (performance.now() - lastEnd > YIELD_MAX_MS) return
    if (Date.now() - fstatSync(sign).mtimeMs > SIGN_LASTS_MS) return
    sleep(YIELD_MIN_MS + Math.random() * (YIELD_MAX_MS - YIELD_MIN_MS))
  }
  return {
    take(begin, giveUp) {
      pause()
      const start = performance.now()
      for (let signed = Number.NEGATIVE_INFINITY; !begin();) {
        if (giveUp()) return false
        const now = performance.now()
        if (now - signed > SIGN_EVERY_MS) {
          const seconds = Date.now() / 1000
          futimesSync(sign, seconds, seconds)
          signed = now
        }
        const most = now - start > PATIENT_MS ? SLOW_RETRY_MS : RETRY_MS
        sleep(RETRY_MIN_MS + Math.random() * most)
      }
      return true
    },
    ended: () => {
      lastEnd = performance.now()
    },
    close: () => closeSync(sign),
  }
}

// A commit takes 0.1 to 1 ms here: the pause is longer than a waiter's longest sleep, so that a waiter
// gets in during each one.
const YIELD_MIN_MS = 0.6
const YIELD_MAX_MS = 2
const RETRY_MIN_MS = 0.05
const RETRY_MS = 0.45
/** A holder that keeps the lock for this long is stopped or on a slow disk: no need to hurry. */
const PATIENT_MS = 500
const SLOW_RETRY_MS = 10
const SIGN_EVERY_MS = 5
const SIGN_LASTS_MS = 20
