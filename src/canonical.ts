// Canonical bytes of a JSON value, and the digests over them. docs/ledger.md is the specification.

import { Buffer } from 'node:buffer'
import { createHmac, hash } from 'node:crypto'

import { isExact, isObject, type Json } from './json.ts'

/** The one text of a value: keys by code point, no spaces, `"` escapes as JSON.stringify writes them,
 *  source-kept numbers as their source. Equal values in other key order give equal texts. */
export function canonical(value: Json): string {
  if (isObject(value)) {
    const parts: string[] = []
    for (const key of Object.keys(value).sort(byCodePoint)) {
      const one = value[key]
      if (one !== undefined) parts.push(`${JSON.stringify(key)}:${canonical(one)}`)
    }
    return `{${parts.join(',')}}`
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  return isExact(value) ? value.rawJSON : JSON.stringify(value)
}

/** Orders as UTF-8 bytes do. `<` alone orders by UTF-16 units, which differs above U+D7FF. */
export function byCodePoint(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const x = a.charCodeAt(at)
    const y = b.charCodeAt(at)
    if (x !== y) return isSurrogate(x) === isSurrogate(y) ? x - y : isSurrogate(x) ? 1 : -1
  }
  return a.length - b.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

/** SHA-256, 64 lower-case hex digits. */
export const sha256 = (data: string | Uint8Array): string => hash('sha256', data, 'hex')

/** HMAC-SHA-256, 64 lower-case hex digits. */
export const hmac256 = (key: Uint8Array, data: string | Uint8Array): string =>
  typeof data === 'string' && data.length <= SHORT_UNITS
    ? hmacOfText(key, data).digest
    : createHmac('sha256', key).update(data).digest('hex')

/** `hmac256` of a text, and the length of its UTF-8 in bytes. */
export function hmacOfText(
  key: Uint8Array,
  text: string,
): { readonly digest: string; readonly bytes: number } {
  if (text.length > SHORT_UNITS) {
    return { digest: hmac256(key, text), bytes: Buffer.byteLength(text) }
  }
  // RFC 2104 by two plain hashes: an Hmac object costs three times as much and outlives many collections.
  const { inner, outer } = padsOf(key)
  const bytes = inner.write(text, BLOCK_BYTES)
  const first = hash('sha256', inner.subarray(0, BLOCK_BYTES + bytes), 'binary')
  outer.write(first, BLOCK_BYTES, 'latin1')
  return { digest: hash('sha256', outer, 'hex'), bytes }
}

/** As `hmacOfText`, of a text that is given in pieces that end between characters. */
export type Digester = {
  readonly add: (piece: string) => void
  readonly end: () => { readonly digest: string; readonly bytes: number }
}

/** A digest of nothing yet. */
export function hmacOfPieces(key: Uint8Array): Digester {
  const hmac = createHmac('sha256', key)
  let bytes = 0
  return {
    add(piece) {
      bytes += Buffer.byteLength(piece)
      hmac.update(piece)
    },
    end: () => ({ digest: hmac.digest('hex'), bytes }),
  }
}

/** A text in pieces of at most `units` UTF-16 units, each of which ends between characters. */
export function* pieces(text: string, units: number): Generator<string> {
  for (let from = 0; from < text.length;) {
    let to = Math.min(text.length, from + units)
    if (to < text.length && isHigh(text.charCodeAt(to - 1))) to--
    yield text.slice(from, to)
    from = to
  }
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff

const BLOCK_BYTES = 64
const DIGEST_BYTES = 32
/** Texts of up to so many UTF-16 units are digested in one buffer that is kept. */
const SHORT_UNITS = 4_096

/** The padded key before the text and before the inner digest, each in a buffer that is written anew for each
 *  digest. */
type Pads = { readonly inner: Buffer; readonly outer: Buffer }

const padsOfKeys = new WeakMap<Uint8Array, Pads>()

function padsOf(key: Uint8Array): Pads {
  const known = padsOfKeys.get(key)
  if (known !== undefined) return known
  const short = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key
  const inner = Buffer.alloc(BLOCK_BYTES + 3 * SHORT_UNITS)
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES)
  for (let at = 0; at < BLOCK_BYTES; at++) {
    inner[at] = 0x36 ^ (short[at] ?? 0)
    outer[at] = 0x5c ^ (short[at] ?? 0)
  }
  const made = { inner, outer }
  padsOfKeys.set(key, made)
  return made
}
