// From an Authorization header to the client that holds the token.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { holder, identify, mint } from '../../src/identity/tokens.ts'
import type { ClientRow } from '../../src/ports.ts'

const NOW = 1_000_000

function known(more: Partial<ClientRow> = {}): {
  readonly token: string
  readonly clients: ReadonlyMap<string, ClientRow>
} {
  const { token, digest } = mint()
  const row: ClientRow = {
    name: 'ana-laptop',
    profile: 'writer',
    person: false,
    attributes: { team: 'editors' },
    digest,
    limit: null,
    createdUs: 0,
    expiresUs: null,
    revokedUs: null,
    ...more,
  }
  return { token, clients: new Map([[digest, row]]) }
}

test('the holder of a token is its client, whatever the case of the scheme', () => {
  const { token, clients } = known()
  const client = {
    name: 'ana-laptop',
    profile: 'writer',
    identity: 'token',
    attributes: { team: 'editors' },
  }
  assert.deepEqual(identify(`Bearer ${token}`, clients, NOW), client)
  assert.deepEqual(identify(`bEARER ${token}`, clients, NOW), client)
})

test('no header is none, and everything else that is no token of a client is bad', () => {
  const { token, clients } = known()
  assert.equal(identify(undefined, clients, NOW), 'none')
  const other = mint().token
  for (const header of [
    '',
    token,
    'Bearer',
    'Bearer ',
    `Bearer  ${token}`,
    `Bearer ${token} `,
    `Bearer ${token},Bearer ${token}`,
    `Basic ${token}`,
    `Bearer ${other}`,
    `Bearer ${token.toUpperCase()}`,
    `Bearer ${token}=`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${'a'.repeat(100_000)}`,
  ]) {
    assert.equal(identify(header, clients, NOW), 'bad', header.slice(0, 60))
  }
})

test('a revoked client and one past its expiry are as unknown', () => {
  const revoked = known({ revokedUs: 1 })
  assert.equal(holder(revoked.token, revoked.clients, NOW), null)
  const expired = known({ expiresUs: NOW })
  assert.equal(holder(expired.token, expired.clients, NOW), null)
  assert.notEqual(holder(expired.token, expired.clients, NOW - 1), null)
})

test('tokens are long, random and easy to find in a leak', () => {
  const tokens = new Set(Array.from({ length: 100 }, () => mint().token))
  assert.equal(tokens.size, 100)
  for (const token of tokens) assert.match(token, /^ecl_[A-Za-z0-9_-]{43}$/)
})
