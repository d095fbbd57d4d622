// Checks a whole ledger: the chain, the tables against it, and the mirror against it; or a log file alone.

import { Buffer } from 'node:buffer'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { join } from 'node:path'

import { fileCheck, logCheck, type Expected, type Verified } from '../ledger/chain.ts'
import { CHAINED, stateFold, type Fold, type Row, type StateProblem } from '../ledger/state.ts'
import { openReader, type Reader } from '../store/reader.ts'

/** What was found. `state` and `mirror` are null when they were not looked at: for a file, and for a
 *  directory whose chain does not hold, since nothing can be compared with a broken log. */
export type Findings = {
  readonly chain: Verified
  readonly state: StateFinding | null
  readonly mirror: MirrorFinding | null
}

/** `rows`: how many rows of each chained table were compared. */
export type StateFinding = {
  readonly rows: { readonly [table: string]: number }
  readonly problems: readonly StateProblem[]
  readonly unknownTables: readonly string[]
}

/** same: byte for byte the log. behind: the beginning of the log, `records` short (a running process or
 *  the next start appends them). differs, ahead: `line` is the first that the ledger does not have so. */
export type MirrorFinding =
  | { readonly kind: 'same' | 'absent' }
  | { readonly kind: 'behind'; readonly records: number }
  | { readonly kind: 'differs' | 'ahead'; readonly line: number }

/** True when nothing was found that somebody else must have done. */
export const isGood = ({ chain, state, mirror }: Findings): boolean =>
  chain.kind === 'ok' &&
  (state === null || (state.problems.length === 0 && state.unknownTables.length === 0)) &&
  (mirror === null || mirror.kind === 'same' || mirror.kind === 'behind')

/** The findings over a state directory, also while processes are writing there.
 *  Errors: those of `openReader`. */
export function checkDirectory(dir: string, expected: Expected): Findings {
  // The mirror's length before the ledger's end: of a mirror that grows meanwhile only what the ledger
  // surely has is compared.
  const mirror = mirrorWalk(join(dir, 'audit.jsonl'))
  try {
    const reader = openReader(dir)
    try {
      return reader.snapshot(() => checkLedger(reader, mirror, expected))
    } finally {
      reader.close()
    }
  } finally {
    mirror.close()
  }
}

function checkLedger(reader: Reader, mirror: MirrorWalk, expected: Expected): Findings {
  const walk = logCheck(expected)
  const fold = stateFold()
  for (const line of reader.entries(0)) {
    if (!walk.push(line)) break
    const entry = walk.last()
    if (entry !== null) fold.push(entry)
    mirror.push(line)
  }
  const chain = walk.end()
  if (chain.kind !== 'ok') return { chain, state: null, mirror: null }
  const rows: Record<string, number> = {}
  const problems: StateProblem[] = []
  for (const table of Object.keys(CHAINED)) {
    rows[table] = 0
    problems.push(...compareTable(fold, table, counted(reader.rows(table), table, rows)))
  }
  const state = { rows, problems, unknownTables: fold.unknownTables() }
  return { chain, state, mirror: mirror.end() }
}

/** A number that no record could hold cannot be read from its row: the row was changed, whatever it says. */
function compareTable(fold: Fold, table: string, rows: Iterable<Row>): readonly StateProblem[] {
  try {
    return fold.compare(table, rows)
  } catch (error) {
    if (Reflect.get(Object(error), 'code') !== 'ERR_OUT_OF_RANGE') throw error
    return [{ kind: 'changed', table, row: '(with a number beyond 2^53-1)', seq: null }]
  }
}

/** The findings over a log file alone. Errors: those of the file system. */
export function checkFile(path: string, expected: Expected): Findings {
  const check = fileCheck(expected)
  const fd = openSync(path, constants.O_RDONLY)
  try {
    const piece = Buffer.alloc(PIECE_BYTES)
    for (;;) {
      const count = readSync(fd, piece)
      if (count === 0 || !check.push(piece.subarray(0, count))) break
    }
  } finally {
    closeSync(fd)
  }
  return { chain: check.end(), state: null, mirror: null }
}

/** A record is at most 64 KiB, so that a piece holds many. */
const PIECE_BYTES = 1024 * 1024

function* counted<T>(
  rows: Iterable<T>,
  table: string,
  counts: Record<string, number>,
): Iterable<T> {
  for (const row of rows) {
    counts[table] = (counts[table] ?? 0) + 1
    yield row
  }
}

type MirrorWalk = {
  /** Takes the next line of the log. */
  readonly push: (line: string) => void
  readonly end: () => MirrorFinding
  readonly close: () => void
}

function mirrorWalk(path: string): MirrorWalk {
  const bytes = boundedReader(path)
  if (bytes === null) return { push: nothing, end: () => ({ kind: 'absent' }), close: nothing }
  let lines = 0
  let missing = 0
  let bad: MirrorFinding | null = null
  return {
    push(line) {
      if (bad !== null) return
      const want = Buffer.from(`${line}\n`, 'latin1')
      const have = bytes.next(want.length)
      if (!want.subarray(0, have.length).equals(have)) bad = { kind: 'differs', line: lines + 1 }
      if (have.length < want.length) missing++
      else lines++
    },
    end() {
      if (bad !== null) return bad
      if (missing > 0) return { kind: 'behind', records: missing }
      return bytes.next(1).length > 0 ? { kind: 'ahead', line: lines + 1 } : { kind: 'same' }
    },
    close: bytes.close,
  }
}

const nothing = (): void => undefined

/** Reads a file as it was when it was opened: what is appended later is not seen. Null where there is no
 *  file of this name; a link is not followed and counts as none. */
function boundedReader(path: string): {
  readonly next: (count: number) => Buffer
  readonly close: () => void
} | null {
  const fd = openPlain(path)
  if (fd === null) return null
  let left = fstatSync(fd).size
  let buffer: Buffer = Buffer.alloc(0)
  return {
    next(count) {
      while (buffer.length < count && left > 0) {
        const piece = Buffer.alloc(Math.min(PIECE_BYTES, left))
        const got = readSync(fd, piece)
        if (got === 0) left = 0
        left -= got
        buffer = Buffer.concat([buffer, piece.subarray(0, got)])
      }
      const made = buffer.subarray(0, count)
      buffer = buffer.subarray(made.length)
      return made
    },
    close: () => closeSync(fd),
  }
}

function openPlain(path: string): number | null {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch (error) {
    if (error instanceof Error && 'code' in error) {
      if (error.code === 'ENOENT' || error.code === 'ELOOP') return null
    }
    throw error
  }
}
