// From a bearer token to the client that holds it. No token is kept, told or logged.

import { hash, randomBytes } from 'node:crypto'

import type { Client } from '../call.ts'
import type { ClientRow } from '../ports.ts'

/** A fresh token and its digest: `token` is shown once, `digest` is what the ledger keeps. */
export type Minted = { readonly token: string; readonly digest: string }

/** What an `Authorization` header says. none: there is none. bad: it is no token of a client that may come:
 *  malformed, unknown, revoked or past its expiry; which of them nobody is told. */
export type Identified = Client | 'none' | 'bad'

/** Every token begins so, that a scanner for leaked secrets can tell one. */
export const TOKEN_PREFIX = 'ecl_'
/** Random bytes of a token; in base64url they are 43 characters. */
const TOKEN_BYTES = 32
const TOKEN = /^ecl_[A-Za-z0-9_-]{43}$/
/** RFC 6750, section 2.1; the name of the scheme in any case (RFC 9110, section 11.1). */
const BEARER = /^bearer ([A-Za-z0-9._~+/-]{1,256}=*)$/i
/** Longer headers are not read. */
const MAX_HEADER = 512

/** A token that nobody can guess. */
export function mint(): Minted {
  const token = `${TOKEN_PREFIX}${randomBytes(TOKEN_BYTES).toString('base64url')}`
  return { token, digest: digestOf(token) }
}

/** The client of an `Authorization` header; `clients` by digest, `nowUs` microseconds since 1970. What is
 *  compared is a digest of what came, so that the time it takes tells nothing of a token. */
export function identify(
  authorization: string | undefined,
  clients: ReadonlyMap<string, ClientRow>,
  nowUs: number,
): Identified {
  if (authorization === undefined) return 'none'
  if (authorization.length > MAX_HEADER) return 'bad'
  const [, token] = BEARER.exec(authorization) ?? []
  return token === undefined ? 'bad' : (holder(token, clients, nowUs) ?? 'bad')
}

/** The client that holds `token`; null: none that may come. */
export function holder(
  token: string,
  clients: ReadonlyMap<string, ClientRow>,
  nowUs: number,
): Client | null {
  if (!TOKEN.test(token)) return null
  const row = clients.get(digestOf(token))
  if (row === undefined || row.revokedUs !== null) return null
  if (row.expiresUs !== null && row.expiresUs <= nowUs) return null
  const { name, profile, attributes } = row
  return { name, profile, identity: 'token', attributes }
}

const digestOf = (token: string): string => hash('sha256', token, 'hex')
