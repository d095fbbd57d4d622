// The tables of ledger.db and their versions: made at once, or taken over from the version before.

import { readFileSync } from 'node:fs'

import type { Book } from './book.ts'

/** The number in `PRAGMA user_version` of the tables in sqlite.sql and sqlite-2.sql together. */
export const SCHEMA_VERSION = 2

/** True for the tables of this build, and for those that `upgrade` takes over. */
export const isKnownSchema = (version: unknown): boolean =>
  version === SCHEMA_VERSION || version === FIRST

const FIRST = 1

/** Makes every table of an empty database. */
export function createTables(book: Pick<Book, 'exec'>): void {
  book.exec(
    `BEGIN; ${text('./sqlite.sql')}; ${text('./sqlite-2.sql')}; ${version(SCHEMA_VERSION)}; COMMIT`,
  )
}

/** Adds what version 1 lacks; no row is changed, so that every digest in the log still holds. In a
 *  transaction, which must be the first of its process. */
export function upgrade(book: Pick<Book, 'exec' | 'sql'>): void {
  if (book.sql('PRAGMA user_version').get()?.['user_version'] !== FIRST) return
  book.exec(`${text('./sqlite-2.sql')}; ${version(SCHEMA_VERSION)}`)
}

const version = (number: number): string => `PRAGMA user_version=${number}`

const text = (name: string): string => readFileSync(new URL(name, import.meta.url), 'utf8')
