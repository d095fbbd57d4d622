// audit.jsonl: the lines of the ledger, byte for byte, appended by whoever holds its lock.

import {
  closeSync,
  constants,
  fdatasync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'

import { Fault } from '../fault.ts'
import type { Book, Fresh } from './book.ts'
import { STORE_LIMITS } from './limits.ts'
import type { Lock } from './lock.ts'
import { createFile, look, parentOf, syncDirectory, type Place } from './place.ts'

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
  /** Puts a copy made from the ledger in place when the path leads elsewhere than to our file. */
  readonly watch: () => void
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
  let file = openFile(place.mirror)
  let dirty = false
  let syncing = false
  const replaced: number[] = []

  const write = (text: string, lines: number): void => {
    dirty = true
    appendAll(file, Buffer.from(text, 'latin1'))
    file.seq += lines
  }
  const copyFrom = (seq: number): void => {
    file.seq = seq - 1
    for (;;) {
      const lines = linesFrom(book, file.seq + 1)
      if (lines.length === 0) return
      write(`${lines.join('\n')}\n`, lines.length)
    }
  }
  const cut = (tail: Tail, found: Mended['found']): void => {
    const kept = tail.size > tail.good ? keepTail(place, file.fd, tail) : null
    if (kept !== null) {
      ftruncateSync(file.fd, tail.good)
      file.size = tail.good
    }
    copyFrom(tail.seq + 1)
    mended.push({ found: kept === null ? found : 'torn', kept })
  }
  const repair = (): void => {
    watch()
    const tail = compareTail(book, file.fd, file.size)
    file.seq = tail.seq
    if (tail.good < tail.size || tail.seq < book.end().seq) cut(tail, 'behind')
  }
  const rebuild = (found: Mended['found'], kept: string | null): void => {
    const before = file
    const made = `${place.mirror}.new`
    setAside(made)
    file = { fd: createFile(made), ino: 0, dev: 0, size: 0, seq: -1 }
    try {
      copyFrom(0)
      fsyncSync(file.fd)
      renameSync(made, place.mirror)
      syncDirectory(parentOf(place.mirror))
    } catch (error) {
      closeSync(file.fd)
      file = before
      rmSync(made, { force: true })
      throw error
    }
    // A sync of it may be under way in another thread: its number must not be given away before.
    if (syncing) replaced.push(before.fd)
    else closeSync(before.fd)
    const stats = look(place.mirror)
    file = { ...file, ino: stats?.ino ?? 0, dev: stats?.dev ?? 0 }
    mended.push({ found, kept })
  }
  const watch = (): void => {
    const stats = look(place.mirror)
    if (stats === null) return rebuild('absent', null)
    const ours = stats.ino === file.ino && stats.dev === file.dev && stats.nlink === 1
    if (ours) file.size = stats.size
    else rebuild('moved', setAside(place.mirror))
  }
  return {
    follow(fresh) {
      watch()
      const at = recordEndingAt(book, file.size, file.seq)
      if (at === null) return repair()
      file.seq = at
      if (fresh !== null && fresh.from === at + 1) write(fresh.text, fresh.lines)
      else copyFrom(at + 1)
    },
    repair,
    watch,
    mended: () => mended.splice(0),
    sync(done) {
      if (!dirty) return done(null)
      if (syncing) return
      dirty = false
      syncing = true
      fdatasync(file.fd, (error) => {
        syncing = false
        for (const fd of replaced.splice(0)) closeSync(fd)
        done(error)
      })
    },
    syncNow() {
      fsyncSync(file.fd)
      dirty = false
    },
    close: () => closeSync(file.fd),
  }
}

type Open = {
  readonly fd: number
  readonly ino: number
  readonly dev: number
  size: number
  seq: number
}

/** The end of the file as compared: `good` bytes are the log through record `seq`; of `size` in all. */
type Tail = { readonly good: number; readonly seq: number; readonly size: number }

function openFile(path: string): Open {
  const { O_RDWR, O_APPEND, O_NOFOLLOW } = constants
  const fd = openSync(path, O_RDWR | O_APPEND | O_NOFOLLOW)
  const stats = look(path)
  return { fd, ino: stats?.ino ?? 0, dev: stats?.dev ?? 0, size: 0, seq: -1 }
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

function linesFrom(book: Book, seq: number): readonly string[] {
  const lines: string[] = []
  let chars = 0
  for (const row of book.sql('SELECT line FROM entries WHERE seq >= ? ORDER BY seq').iterate(seq)) {
    const line = String(row['line'])
    lines.push(line)
    chars += line.length
    if (chars >= STORE_LIMITS.copyBytes) break
  }
  return lines
}

const endOf = (book: Book, seq: number): number =>
  seq < 0 ? 0 : Number(book.sql('SELECT ends FROM entries WHERE seq = ?').get(seq)?.['ends'] ?? -1)

/** The record whose line ends at byte `size` of the log, -1 for an empty log, null where none does. */
function recordEndingAt(book: Book, size: number, guess: number): number | null {
  if (endOf(book, guess) === size) return guess
  const at = lastWithin(book, size)
  return endOf(book, at) === size ? at : null
}

/** The last record that ends within the first `size` bytes; -1 for none. */
function lastWithin(book: Book, size: number): number {
  let low = -1
  let high = book.end().seq
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (endOf(book, middle) <= size) low = middle
    else high = middle - 1
  }
  return low
}

/** Compares the last part of the file with the ledger. A line that is whole and differs was changed by
 *  somebody; one without an end, or with the zero bytes that a power cut leaves, was never finished. */
function compareTail(book: Book, fd: number, size: number): Tail {
  const end = book.end()
  if (size > end.bytes) throw tampered('is longer than the ledger says')
  const from = lastWithin(book, Math.max(0, size - STORE_LIMITS.tailBytes))
  const start = endOf(book, from)
  const bytes = readAll(fd, start, size - start)
  let good = 0
  let seq = from
  while (good < bytes.length) {
    const line = Buffer.from(`${lineOf(book, seq + 1)}\n`, 'latin1')
    const have = bytes.subarray(good, good + line.length)
    if (!have.equals(line)) {
      const whole = bytes.indexOf(0x0a, good)
      const torn = whole < 0 || bytes.subarray(good, whole).includes(0)
      if (!torn) throw tampered(`differs from the ledger in line ${seq + 2}`)
      break
    }
    good += line.length
    seq++
  }
  return { good: start + good, seq, size }
}

const lineOf = (book: Book, seq: number): string =>
  String(book.sql('SELECT line FROM entries WHERE seq = ?').get(seq)?.['line'] ?? '')

function readAll(fd: number, from: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let done = 0; done < length;) {
    const count = readSync(fd, bytes, done, length - done, from + done)
    if (count === 0) return bytes.subarray(0, done)
    done += count
  }
  return bytes
}

const tampered = (how: string): Fault =>
  new Fault(
    'state_tampered',
    `audit.jsonl ${how}: it was changed by somebody else, or ledger.db was replaced by an older one; ` +
      'run eclusa audit verify on both, keep the evidence, and restore from a backup',
  )

/** Copies the bytes after the last good line to a side file, so that nothing is lost by the cut. */
function keepTail(place: Place, fd: number, tail: Tail): string {
  const name = asideName(place.mirror)
  const side = createFile(name)
  try {
    const bytes = readAll(fd, tail.good, tail.size - tail.good)
    for (let done = 0; done < bytes.length;) done += writeSync(side, bytes, done)
    fsyncSync(side)
  } finally {
    closeSync(side)
  }
  syncDirectory(place.dir)
  return name.slice(place.dir.length + 1)
}

/** Renames whatever has this name; null where nothing has. */
function setAside(path: string): string | null {
  if (look(path) === null) return null
  const name = asideName(path)
  renameSync(path, name)
  return name.slice(parentOf(path).length + 1)
}

const asideName = (path: string): string => {
  const now = Date.now()
  for (let n = 0; ; n++) {
    const name = `${path}.${now}-${n}.aside`
    if (look(name) === null) return name
  }
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
