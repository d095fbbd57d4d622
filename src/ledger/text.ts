// Texts that came from outside, made fit for a record: cut, encoded, and marked.

import { Buffer } from 'node:buffer'

/** Printable ASCII only. */
export const PRINTABLE: RegExp = /^[\x20-\x7e]*$/
/** Printable ASCII that JSON writes as it is. */
export const PLAIN: RegExp = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** The JSON of a text that may be anything, under the mark `''`, and of the marks `_b64` (it is in base64)
 *  and `_cut` (the bytes of the whole, when it was cut at `limitBytes`) where they apply, in this order. */
export function textParts(
  text: string,
  limitBytes: number,
): readonly (readonly [string, string])[] {
  if (text.length <= limitBytes && PLAIN.test(text)) return [['', `"${text}"`]]
  const bytes = Buffer.byteLength(text)
  const kept = bytes <= limitBytes ? text : cut(text, limitBytes)
  const plain = PRINTABLE.test(kept)
  const json = plain ? JSON.stringify(kept) : `"${Buffer.from(kept).toString('base64')}"`
  const parts: (readonly [string, string])[] = [['', json]]
  if (!plain) parts.push(['_b64', 'true'])
  if (bytes > limitBytes) parts.push(['_cut', String(bytes)])
  return parts
}

/** The longest beginning of `text` that is at most `limitBytes` of UTF-8 and ends at a code point. */
function cut(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text.slice(0, limitBytes + 1))
  let end = Math.min(limitBytes, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}
