// The clients of the ledger as the HTTP server sees them.

import type { Client } from '../call.ts'
import { identify } from '../identity/tokens.ts'
import type { HttpOptions } from '../mcp/http/gate.ts'
import type { Store } from '../ports.ts'
import { wallClock } from './clock.ts'

/** How long what was read of the table of clients is believed, ms. */
const BELIEVED_MS = 250

/** Who sends a request, and whether it may still come. Without a token everybody is `anonymous`, or nobody. */
export function knownClients(
  store: Pick<Store, 'clients'>,
  anonymous: Client | null,
): Pick<HttpOptions, 'identify' | 'isValid'> {
  const clock = wallClock()
  let valid: ReadonlySet<string> = new Set()
  let readMs = Number.NEGATIVE_INFINITY
  const names = (): ReadonlySet<string> => {
    const nowMs = performance.now()
    if (nowMs - readMs < BELIEVED_MS) return valid
    readMs = nowMs
    const nowUs = clock.nowUs()
    const rows = [...store.clients().values()].filter(
      ({ revokedUs, expiresUs }) => revokedUs === null && (expiresUs === null || expiresUs > nowUs),
    )
    valid = new Set(rows.map(({ name }) => name))
    return valid
  }
  return {
    identify(authorization) {
      const found = identify(authorization, store.clients(), clock.nowUs())
      return found === 'none' && anonymous !== null ? anonymous : found
    },
    isValid: ({ identity, name }) => identity !== 'token' || names().has(name),
  }
}
