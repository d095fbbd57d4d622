// Random identifiers, drawn from the system in blocks: one draw an identifier costs more than a digest.

import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'

const ID_BYTES = 16
const BLOCK_BYTES = 256 * ID_BYTES

/** A source of identifiers of 128 random bits, 32 hex digits each. No bytes are used twice. */
export function chance(): () => string {
  const block = Buffer.alloc(BLOCK_BYTES)
  let at = BLOCK_BYTES
  return () => {
    if (at === BLOCK_BYTES) {
      randomFillSync(block)
      at = 0
    }
    const id = block.toString('hex', at, at + ID_BYTES)
    block.fill(0, at, at + ID_BYTES)
    at += ID_BYTES
    return id
  }
}
