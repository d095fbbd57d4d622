// Who may come with a token: the table of clients, each change with its record.

import { canonical } from '../canonical.ts'
import { emptyDraft } from '../ledger/entry.ts'
import type { ClientRow } from '../ports.ts'
import type { Book } from './book.ts'

/** A client to be added. `digest`: SHA-256 of its token, hex; the token itself is nowhere. */
export type NewClient = Omit<ClientRow, 'createdUs' | 'revokedUs'>

/** What became of an addition. `taken`: the name is or was somebody's, revoked ones too: a name in old
 *  records must never mean another client. `full`: there are as many as may be. */
export type Added = 'added' | 'taken' | 'full'

/** What became of a revocation. */
export type Revoked = 'revoked' | 'unknown' | 'already'

/** Clients in one ledger, revoked ones too: all are held in memory by every process. */
export const MAX_CLIENTS = 10_000

/** Adds a client, in the name of the operating-system user `by`. In a transaction. */
export function addClient(book: Book, wish: NewClient, by: string): Added {
  if (rowOf(book, wish.name) !== null) return 'taken'
  const count = Number(book.sql('SELECT count(*) AS n FROM clients').get()?.['n'])
  if (count >= MAX_CLIENTS) return 'full'
  write(book, { ...wish, createdUs: nowUs(), revokedUs: null }, { state: 'added', by })
  return 'added'
}

/** Revokes a client for good: the row stays as a tombstone. In a transaction. */
export function revokeClient(book: Book, name: string, by: string): Revoked {
  const row = rowOf(book, name)
  if (row === null) return 'unknown'
  if (row.revokedUs !== null) return 'already'
  write(book, { ...row, revokedUs: nowUs() }, { state: 'revoked', by })
  return 'revoked'
}

/** All clients, by name. */
export const readClients = (book: Pick<Book, 'sql'>): readonly ClientRow[] =>
  book.sql('SELECT * FROM clients ORDER BY name').all().map(asClient)

/** A row of the table as a client. */
export function asClient(row: { readonly [column: string]: unknown }): ClientRow {
  return {
    name: String(row['name']),
    profile: String(row['profile']),
    person: row['person'] === 1,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `write` made it from strings
    attributes: JSON.parse(String(row['attributes'])) as Readonly<Record<string, string>>,
    digest: String(row['digest']),
    limit: numberOrNull(row['call_limit']),
    createdUs: Number(row['created_us']),
    expiresUs: numberOrNull(row['expires_us']),
    revokedUs: numberOrNull(row['revoked_us']),
  }
}

function rowOf(book: Book, name: string): ClientRow | null {
  const row = book.sql('SELECT * FROM clients WHERE name = ?').get(name)
  return row === undefined ? null : asClient(row)
}

function write(
  book: Book,
  client: ClientRow,
  { state, by }: { readonly state: 'added' | 'revoked'; readonly by: string },
): void {
  const chained = book.put('clients', {
    name: client.name,
    profile: client.profile,
    person: client.person ? 1 : 0,
    attributes: canonical(client.attributes),
    digest: client.digest,
    call_limit: client.limit,
    created_us: client.createdUs,
    expires_us: client.expiresUs,
    revoked_us: client.revokedUs,
  })
  const draft = emptyDraft('client', nowUs())
  const { name, profile } = client
  book.append({ ...draft, client: name, profile }, { ...chained, state, user: by })
}

const numberOrNull = (value: unknown): number | null => (typeof value === 'number' ? value : null)
const nowUs = (): number => Date.now() * 1_000
