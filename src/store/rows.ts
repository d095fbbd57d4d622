// At a start: whether the small tables beside the log are what the log says they are.

import { Fault } from '../fault.ts'
import { parseEntry } from '../ledger/parse.ts'
import { type Row, stateFold, type StateProblem } from '../ledger/state.ts'
import type { Book } from './book.ts'
import type { Place } from './place.ts'

/** What decides who may come, what a tool was approved as, and under which text a record was decided. The table
 *  of operations has as many records as there were calls: `audit verify` alone looks at it. */
const TABLES = ['clients', 'pins', 'definitions', 'policy'] as const
/** Records that are looked at; a ledger with more is left to `audit verify`. */
const MAX_RECORDS = 50_000

// An index of the few records that are about these tables: without it each start would read the whole log.
const FEW = `substr(line, instr(line, '"kind":"') + 8, 3) IN ('cli', 'pin', 'pol')`
const INDEX = `CREATE INDEX IF NOT EXISTS entries_few ON entries (seq) WHERE ${FEW}`
const LINES = `SELECT line FROM entries WHERE ${FEW} ORDER BY seq LIMIT ?`

/** Compares each row with its last record. In a transaction. Gives what the operator should read of it, or null.
 *  Errors: `Fault('state_tampered')` naming a row that differs. What is edited together with its records is
 *  found by `audit verify` alone, which checks the chain. */
export function checkRows(book: Book, { dir, ledger }: Place): string | null {
  book.exec(INDEX)
  const fold = stateFold()
  const lines = book.sql(LINES).all(MAX_RECORDS + 1)
  if (lines.length > MAX_RECORDS) {
    return `clients and pins have too many records to be looked at by each start; run: eclusa audit verify ${dir}`
  }
  for (const { line } of lines) {
    const entry = parseEntry(String(line))
    if (entry.kind === 'problem')
      throw tampered(ledger, dir, `a record cannot be read: ${entry.why}`)
    fold.push(entry)
  }
  for (const table of TABLES) {
    const [first] = fold.compare(table, book.sql(`SELECT * FROM ${table}`).all().map(asRow))
    if (first !== undefined) throw tampered(ledger, dir, wordsOf(first))
  }
  return null
}

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- STRICT tables of text and integers
const asRow = (row: object): Row => row as Row

const KINDS = {
  changed: 'is not as its last record says',
  missing: 'is gone, and no record says so',
  extra: 'is there, and no record says so',
} as const satisfies Record<StateProblem['kind'], string>

const wordsOf = ({ kind, table, row }: StateProblem): string =>
  `the row ${row} of the table ${table} ${KINDS[kind]}`

const tampered = (ledger: string, dir: string, why: string): Fault =>
  new Fault(
    'state_tampered',
    `${ledger} was edited: ${why}; run: eclusa audit verify ${dir}, then put back a backup (a client's row is settled by: eclusa client revoke)`,
  )
