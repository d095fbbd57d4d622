// Compares the end of audit.jsonl with the ledger: what is good, what is torn, what was forged.

import { closeSync, fsyncSync, readSync, writeSync } from 'node:fs'

import { Fault } from '../fault.ts'
import type { Book } from './book.ts'
import { STORE_LIMITS } from './limits.ts'
import { asideName, createFile, syncDirectory, type Place } from './place.ts'

/** The end of the file as compared: `good` bytes are the log through record `seq`; of `size` in all. */
export type Tail = { readonly good: number; readonly seq: number; readonly size: number }

/** Lines from record `seq` on, at most about `copyBytes` of them; none at the end. */
export function linesFrom(book: Book, seq: number): readonly string[] {
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
export function recordEndingAt(book: Book, size: number, guess: number): number | null {
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
export function compareTail(book: Book, fd: number, size: number): Tail {
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
export function keepTail(place: Place, fd: number, tail: Tail): string {
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
