// The key of a segment: digests of arguments and results are HMACs with it.

import { hkdfSync } from 'node:crypto'

/** The 32 byte key of one segment, from the ledger's master secret: HKDF-SHA-256 with the ledger's
 *  origin (32 hex digits, as ASCII) as salt and `eclusa segment NAME` as info. To hand it on opens the
 *  digests of that segment and of no other. */
export const segmentKey = (
  master: Uint8Array,
  { origin, segment }: { readonly origin: string; readonly segment: string },
): Uint8Array => new Uint8Array(hkdfSync('sha256', master, origin, `eclusa segment ${segment}`, 32))
