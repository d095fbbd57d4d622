// Tokens that only this ledger can open: what a client carries for us between two requests.

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'

/** Seals and opens with one key. */
export type Seals = {
  /** base64url of version, expiry, nonce, cipher text and tag. `untilUs`: microseconds since 1970. */
  readonly seal: (purpose: string, text: string, untilUs: number) => string
  /** The text, or null for a token of another key or purpose, a changed one, and one past its time. */
  readonly unseal: (purpose: string, token: string, nowUs: number) => string | null
}

/** The 32 byte key of a ledger's tokens, from its master secret: HKDF-SHA-256 with the origin (32 hex
 *  digits, as ASCII) as salt. No segment's key tells it, so that an auditor who was handed one cannot seal. */
export const sealKey = (master: Uint8Array, origin: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', master, origin, 'eclusa seal', KEY_BYTES))

/** Seals under `key`. AES-256-GCM with a random nonce and a key of its own a purpose; the purpose and the
 *  expiry are authenticated. */
export function sealsOf(key: Uint8Array): Seals {
  const keys = new Map<string, Uint8Array>()
  const keyFor = (purpose: string): Uint8Array => {
    const known = keys.get(purpose)
    if (known !== undefined) return known
    const made = new Uint8Array(hkdfSync('sha256', key, '', `eclusa seal ${purpose}`, KEY_BYTES))
    keys.set(purpose, made)
    return made
  }
  return {
    seal(purpose, text, untilUs) {
      const front = Buffer.alloc(FRONT_BYTES)
      front.writeUInt8(VERSION, 0)
      front.writeBigUInt64BE(BigInt(untilUs), 1)
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(CIPHER, keyFor(purpose), nonce)
      cipher.setAAD(front)
      const sealed = [cipher.update(text, 'utf8'), cipher.final()]
      return Buffer.concat([front, nonce, ...sealed, cipher.getAuthTag()]).toString('base64url')
    },
    unseal(purpose, token, nowUs) {
      if (!TOKEN.test(token)) return null
      const bytes = Buffer.from(token, 'base64url')
      // Spare bits of the last character would make many tokens of one.
      if (bytes.length < LEAST_BYTES || bytes.toString('base64url') !== token) return null
      return open(keyFor(purpose), bytes, nowUs)
    },
  }
}

const CIPHER = 'aes-256-gcm'
const VERSION = 1
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** Version and expiry. */
const FRONT_BYTES = 9
const LEAST_BYTES = FRONT_BYTES + NONCE_BYTES + TAG_BYTES
const TOKEN = /^[A-Za-z0-9_-]+$/

function open(key: Uint8Array, bytes: Buffer, nowUs: number): string | null {
  const front = bytes.subarray(0, FRONT_BYTES)
  if (front.readUInt8(0) !== VERSION) return null
  if (front.readBigUInt64BE(1) < BigInt(nowUs)) return null
  const nonce = bytes.subarray(FRONT_BYTES, FRONT_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(front)
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const sealed = bytes.subarray(FRONT_BYTES + NONCE_BYTES, -TAG_BYTES)
  try {
    return Buffer.concat([decipher.update(sealed), decipher.final()]).toString('utf8')
  } catch {
    // Not sealed by us, or changed since: the one thing that this error can mean.
    return null
  }
}
