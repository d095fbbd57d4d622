// audit.jsonl: the lines of the ledger, byte for byte, appended by whoever holds its lock.

import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs'

import type { Book, Fresh } from './book.ts'
import type { Lock } from './lock.ts'
import { asideName, createFile, look, parentOf, syncDirectory, type Place } from './place.ts'
import { compareTail, keepTail, linesFrom, recordEndingAt } from './tail.ts'

/** What was found and mended; each becomes a `recovery` record. `kept`: the name of the side file with
 *  what was set aside, beside the mirror. */
export type Mended = {
  readonly found: 'behind' | 'torn' | 'moved' | 'absent'
  readonly kept: string | null
}

/** The mirror of one process. Every method but `sync` and `close` needs the lock, taken by the caller. */
export type Mirror = {
  /** The file is the log through the ledger's committed end; `fresh` saves reading those lines again.
   *  Errors: `Fault('state_tampered')` for a file that says what the ledger does not; file errors. */
  readonly follow: (fresh: Fresh | null) => void
  /** Compares the end of the file with the ledger, cuts a torn tail, appends what is missing. */
  readonly repair: () => void
  /** What was mended since the last call. */
  readonly mended: () => readonly Mended[]
  /** Syncs what this process appended, off the thread; `done` gets the error of a failed sync. */
  readonly sync: (done: (error: Error | null) => void) => void
  /** Syncs now. */
  readonly syncNow: () => void
  readonly close: () => void
}

/** Opens the mirror, which must be there. Nothing is read or written yet. */
export function openMirror(place: Place, book: Book): Mirror {
  const mended: Mended[] = []
  const file = openFile(place.mirror)
  const state: State = { place, book, file, mended, dirty: false, syncing: false, replaced: [] }
  return {
    follow: (fresh) => follow(state, fresh),
    repair: () => repair(state),
    mended: () => mended.splice(0),
    sync: (done) => sync(state, done),
    syncNow() {
      fsyncSync(state.file.fd)
      state.dirty = false
    },
    close: () => closeSync(state.file.fd),
  }
}

type State = {
  readonly place: Place
  readonly book: Book
  readonly mended: Mended[]
  file: Open
  dirty: boolean
  syncing: boolean
  /** Descriptors of files that were replaced while a sync of them was under way. */
  readonly replaced: number[]
}

function follow(state: State, fresh: Fresh | null): void {
  watch(state)
  const { book, file } = state
  // As long as we left it: nobody has appended since, and the ledger need not be asked.
  if (file.size !== file.left) {
    const at = recordEndingAt(book, file.size, file.seq)
    if (at === null) return repair(state)
    file.seq = at
    file.left = file.size
  }
  if (fresh !== null && fresh.from === file.seq + 1) write(state, fresh.text, fresh.lines)
  else copyFrom(state, file.seq + 1)
}

function write(state: State, text: string, lines: number): void {
  state.dirty = true
  appendAll(state.file, Buffer.from(text, 'latin1'))
  state.file.seq += lines
  state.file.left = state.file.size
}

function copyFrom(state: State, seq: number): void {
  state.file.seq = seq - 1
  for (;;) {
    const lines = linesFrom(state.book, state.file.seq + 1)
    if (lines.length === 0) return
    write(state, `${lines.join('\n')}\n`, lines.length)
  }
}

function repair(state: State): void {
  watch(state)
  const { book, file, place, mended } = state
  const tail = compareTail(book, file.fd, file.size)
  file.seq = tail.seq
  file.left = -1
  if (tail.good === tail.size && tail.seq === book.end().seq) return
  const kept = tail.size > tail.good ? keepTail(place, file.fd, tail) : null
  if (kept !== null) {
    ftruncateSync(file.fd, tail.good)
    file.size = tail.good
  }
  copyFrom(state, tail.seq + 1)
  mended.push({ found: kept === null ? 'behind' : 'torn', kept })
}

/** Sees whether the path still leads to our file. Another process may have put a copy there, and then
 *  it has left its number: that file is taken over. Anybody else's is set aside. */
function watch(state: State): void {
  const { place, file } = state
  const stats = look(place.mirror)
  if (stats === null) return rebuild(state, 'absent', null)
  const plain = stats.isFile() && stats.nlink === 1
  if (plain && stats.ino === file.ino && stats.dev === file.dev) {
    file.size = stats.size
  } else if (plain && readNumber(place) === numberOf(stats)) {
    forget(state)
    state.file = { ...openFile(place.mirror), size: stats.size }
  } else rebuild(state, 'moved', setAside(place.mirror))
}

function rebuild(state: State, found: Mended['found'], kept: string | null): void {
  const { place, file: before } = state
  const made = `${place.mirror}.new`
  setAside(made)
  state.file = { fd: createFile(made), ino: 0, dev: 0, size: 0, seq: -1, left: -1 }
  try {
    copyFrom(state, 0)
    fsyncSync(state.file.fd)
    renameSync(made, place.mirror)
    syncDirectory(place.dir)
  } catch (error) {
    closeSync(state.file.fd)
    state.file = before
    rmSync(made, { force: true })
    throw error
  }
  const after = state.file
  state.file = before
  forget(state)
  const stats = look(place.mirror)
  state.file = { ...after, ino: stats?.ino ?? 0, dev: stats?.dev ?? 0 }
  if (stats !== null) writeNumber(place, numberOf(stats))
  state.mended.push({ found, kept })
}

/** Closes our file; later, when a sync of it is under way in another thread: its descriptor must not be
 *  given away before. */
function forget({ file, syncing, replaced }: State): void {
  if (syncing) replaced.push(file.fd)
  else closeSync(file.fd)
}

function sync(state: State, done: (error: Error | null) => void): void {
  if (state.syncing) return
  if (!state.dirty) return done(null)
  state.dirty = false
  state.syncing = true
  fdatasync(state.file.fd, (error) => {
    state.syncing = false
    for (const fd of state.replaced.splice(0)) closeSync(fd)
    done(error)
  })
}

const numberOf = ({ dev, ino }: Stats): string => `${dev}:${ino}\n`

function writeNumber({ mirrorNumber }: Place, number: string): void {
  // Made anew each time: an open file, or a link in its place, is never written through.
  rmSync(mirrorNumber, { force: true })
  const fd = createFile(mirrorNumber)
  try {
    writeSync(fd, number)
  } finally {
    closeSync(fd)
  }
}

/** The number of the file that was last put in place by a process of ours. */
function readNumber({ mirrorNumber }: Place): string {
  const stats = look(mirrorNumber)
  return stats?.isFile() ? readFileSync(mirrorNumber, 'latin1') : ''
}

type Open = {
  readonly fd: number
  readonly ino: number
  readonly dev: number
  size: number
  seq: number
  /** The size at which it was known to end with record `seq`; -1 when that is not known. */
  left: number
}

function openFile(path: string): Open {
  const { O_RDWR, O_APPEND, O_NOFOLLOW } = constants
  const fd = openSync(path, O_RDWR | O_APPEND | O_NOFOLLOW)
  const stats = look(path)
  return { fd, ino: stats?.ino ?? 0, dev: stats?.dev ?? 0, size: 0, seq: -1, left: -1 }
}

/** A short write is no error to the kernel: what counts is the count. */
function appendAll(file: Open, bytes: Buffer): void {
  const before = file.size
  try {
    for (let done = 0; done < bytes.length;) done += writeSync(file.fd, bytes, done)
  } catch (error) {
    // Half a line of ours is no evidence: away with it, so that the file still ends in a record.
    ftruncateSync(file.fd, before)
    throw error
  }
  file.size += bytes.length
}

/** Renames whatever has this name; null where nothing has. */
function setAside(path: string): string | null {
  if (look(path) === null) return null
  const name = asideName(path)
  renameSync(path, name)
  return name.slice(parentOf(path).length + 1)
}

/** Runs `work` under the mirror's lock, or gives false when it stayed busy for `waitMs`. */
export function underLock(lock: Lock, waitMs: number, work: () => void): boolean {
  if (!lock.takeWithin(waitMs)) return false
  try {
    work()
  } finally {
    lock.free()
  }
  return true
}
