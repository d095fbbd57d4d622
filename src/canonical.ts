// Canonical bytes of a JSON value, and the digests over them. docs/ledger.md is the specification.

import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto'

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
export function hmac256(key: Uint8Array, data: string | Uint8Array): string {
  let object = keyObjects.get(key)
  if (object === undefined) keyObjects.set(key, (object = createSecretKey(key)))
  return createHmac('sha256', object).update(data).digest('hex')
}

// Making the key object costs ten times the digest, and one key serves every call of a process.
const keyObjects = new WeakMap<Uint8Array, KeyObject>()
