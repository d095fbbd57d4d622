// State beside the log: digests of table rows, and whether tables are what the log says they are.

import { canonical, sha256 } from '../canonical.ts'
import { object } from '../json.ts'
import { rowName, type Entry } from './entry.ts'

/** One row as the database holds it: every column of its table by name. */
export type Row = { readonly [column: string]: string | number | null }

/** The tables whose every change has a record, and the column that is the key of a row. Limits and
 *  leases are not covered. */
export const CHAINED: { readonly [table: string]: string } = {
  clients: 'name',
  definitions: 'hash',
  operations: 'operation',
  pins: 'tool',
  policy: 'digest',
}

/** SHA-256 over the canonical text of `{"row":{...},"table":"..."}`; what a record carries as
 *  `row_sha256` for the row as it is after the change. Numbers are integers within 2^53-1. */
export const rowDigest = (table: string, row: Row): string =>
  sha256(canonical(object({ table, row: object(row) })))

/** A row that is not what the log says. changed: its last record has another digest; missing: the log
 *  has it, the table does not; extra: the table has it, the log does not. `seq` is the last record of
 *  that row, null for an extra one. `row` is its key as records name it. */
export type StateProblem = {
  readonly kind: 'changed' | 'missing' | 'extra'
  readonly table: string
  readonly row: string
  readonly seq: number | null
}

/** Follows the records of a log and then compares tables with them. */
export type Fold = {
  /** Takes the next record, in order. */
  readonly push: (entry: Entry) => void
  /** What differs between the table and the records so far, at most `STATE_PROBLEMS` findings. A row
   *  without the key column of its table is `extra` under an empty key. */
  readonly compare: (table: string, rows: Iterable<Row>) => readonly StateProblem[]
  /** Tables that records name but this build does not know; nothing can be said of them. */
  readonly unknownTables: () => readonly string[]
}

/** Findings that one comparison lists; more say nothing new. */
export const STATE_PROBLEMS: number = 100

/** A fold that has seen no record. */
export function stateFold(): Fold {
  const tables = new Map<string, Map<string, Last>>()
  return {
    push(entry) {
      const { seq, table, row, row_sha256: digest } = entry
      if (typeof table !== 'string' || typeof row !== 'string') return
      const rows = tables.get(table) ?? new Map<string, Last>()
      tables.set(table, rows)
      // A null digest records that the row was removed.
      if (typeof digest === 'string') rows.set(row, { seq, digest })
      else rows.delete(row)
    },
    compare: (table, rows) => compareRows(table, rows, tables.get(table) ?? new Map()),
    unknownTables: () => [...tables.keys()].filter((table) => !Object.hasOwn(CHAINED, table)),
  }
}

type Last = { readonly seq: number; readonly digest: string }

function compareRows(
  table: string,
  rows: Iterable<Row>,
  recorded: ReadonlyMap<string, Last>,
): readonly StateProblem[] {
  const found: StateProblem[] = []
  const left = new Map(recorded)
  const column = CHAINED[table] ?? ''
  for (const one of rows) {
    const row = rowName(String(one[column] ?? ''))
    const last = left.get(row)
    left.delete(row)
    if (last === undefined) found.push({ kind: 'extra', table, row, seq: null })
    else if (last.digest !== rowDigest(table, one)) {
      found.push({ kind: 'changed', table, row, seq: last.seq })
    }
    if (found.length >= STATE_PROBLEMS) return found
  }
  for (const [row, { seq }] of left) {
    if (found.length >= STATE_PROBLEMS) break
    found.push({ kind: 'missing', table, row, seq })
  }
  return found
}
