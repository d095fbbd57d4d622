// The files of a state directory, and whether they are ours alone.

import {
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'

import { Fault } from '../fault.ts'

/** Where everything is. */
export type Place = {
  readonly dir: string
  readonly ledger: string
  readonly mirror: string
  readonly keys: string
  readonly master: string
  readonly leases: string
  /** Locked by whoever starts, repairs or appends to the mirror. */
  readonly mirrorLock: string
  /** Names the file that is the mirror, once it has been put in place anew. */
  readonly mirrorNumber: string
  /** Its modification time is the sign of waiting writers. */
  readonly turn: string
  /** There while the directory is being made for the first time. */
  readonly marker: string
}

/** The layout of the state directory `dir`, an absolute path. */
export const placeOf = (dir: string): Place => ({
  dir,
  ledger: join(dir, 'ledger.db'),
  mirror: join(dir, 'audit.jsonl'),
  keys: join(dir, 'keys'),
  master: join(dir, 'keys', 'master'),
  leases: join(dir, 'leases'),
  mirrorLock: join(dir, 'mirror.lock'),
  mirrorNumber: join(dir, 'mirror.number'),
  turn: join(dir, 'turn'),
  marker: join(dir, 'creating'),
})

/** The status of a path itself, never of what a link leads to; null where there is nothing. */
export function look(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null
}

/** Makes `dir` and what is missing above it. Node's own `recursive` never ends where a file system has a
 *  folder and yet takes no new one in it. */
function makeDirectory(dir: string): void {
  if (look(dir) !== null) return
  makeDirectory(dirname(dir))
  try {
    mkdirSync(dir, { mode: 0o700 })
  } catch (error) {
    // Another process may make it at the same time.
    if (look(dir) === null) throw error
  }
}

/** The directory is there, ours, 0700. Made where it is missing; an empty one of ours is tightened, one
 *  with other people's things in it is not.
 *  Errors: `Fault('state_refused')`. */
export function claimDirectory({ dir, ledger, mirror }: Place): void {
  makeDirectory(dir)
  const stats = look(dir)
  if (stats === null || stats.isSymbolicLink() || !stats.isDirectory()) {
    throw refused(`${dir} is not a directory of its own; name the directory itself`)
  }
  checkOwner(dir, stats)
  if ((stats.mode & 0o077) === 0) return
  const empty = readdirSync(dir).length === 0
  if (empty) chmodSync(dir, 0o700)
  else if (look(ledger) !== null || look(mirror) !== null || (stats.mode & 0o022) !== 0) {
    throw refused(`${dir} is open to other users; run: chmod 700 ${dir}`)
  } else chmodSync(dir, 0o700)
}

/** Refuses a state file that is a link, has a second name, is another user's or is open to others.
 *  Errors: `Fault('state_refused')`. */
export function checkFile(path: string): void {
  const stats = look(path)
  if (stats === null) return
  if (!stats.isFile()) throw refused(`${path} is not a plain file; put the real file in its place`)
  if (stats.nlink !== 1)
    throw refused(`${path} has a second name (hard link); remove the other one`)
  checkOwner(path, stats)
  if ((stats.mode & 0o077) !== 0) {
    throw refused(`${path} is open to other users; run: chmod 600 ${path}`)
  }
}

/** As `checkFile`, for the directories inside. */
export function checkInner(path: string): void {
  const stats = look(path)
  if (stats === null) return
  if (!stats.isDirectory()) throw refused(`${path} is not a directory; remove it, then start again`)
  checkOwner(path, stats)
  if ((stats.mode & 0o077) !== 0) {
    throw refused(`${path} is open to other users; run: chmod 700 ${path}`)
  }
}

function checkOwner(path: string, stats: Stats): void {
  const me = process.geteuid?.()
  if (me !== undefined && stats.uid !== me) {
    throw refused(`${path} belongs to another user; run as that user or name another directory`)
  }
}

/** A new file, 0600 whatever the umask; the descriptor is the caller's. Throws where one is there. */
export function createFile(path: string): number {
  const { O_CREAT, O_EXCL, O_RDWR, O_APPEND, O_NOFOLLOW } = constants
  return openSync(path, O_CREAT | O_EXCL | O_RDWR | O_APPEND | O_NOFOLLOW, 0o600)
}

/** Names in `dir` are durable after it. */
export function syncDirectory(dir: string): void {
  const fd = openSync(dir, constants.O_RDONLY | constants.O_DIRECTORY)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

/** The directory in which `path` has its name. */
export const parentOf = (path: string): string => dirname(path)

/** A refusal of the state directory as it stands. */
export const refused = (sentence: string): Fault => new Fault('state_refused', sentence)

/** A name beside `path` that nothing has yet. */
export function asideName(path: string): string {
  const now = Date.now()
  for (let n = 0; ; n++) {
    const name = `${path}.${now}-${n}.aside`
    if (look(name) === null) return name
  }
}
