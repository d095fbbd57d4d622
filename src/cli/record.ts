// Records as people read them: one line or one page each, with nothing in them that a terminal obeys.

import { Buffer } from 'node:buffer'

import { isObject, type Json, type JsonObject, writeJson } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'

/** `text` with every character that is not seen, or that moves what is seen, written as its code
 *  (`\u{1b}`): controls, bidirectional marks, zero-width and unassigned characters, odd spaces. A
 *  backslash is doubled, so that no two texts look the same. */
export const visible = (text: string): string =>
  text
    .toWellFormed()
    .replace(UNSEEN, (one) =>
      one === '\\' ? '\\\\' : `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`,
    )

/** The text that a member holds, decoded where it was encoded and marked where it was cut; null when it
 *  is no text. Not yet safe for a terminal. */
export function textOf(record: JsonObject, member: string): string | null {
  const value = record[member]
  if (typeof value !== 'string') return null
  const text = record[`${member}_b64`] === true ? Buffer.from(value, 'base64').toString() : value
  return record[`${member}_cut`] === undefined ? text : `${text}...`
}

/** One line: seq, time, kind, who, what, what was decided and what came of it. */
export function summary(entry: Entry): string {
  const parts = [String(entry.seq), time(entry.ts), entry.kind]
  for (const member of ['client', 'method', 'name', 'decision', 'outcome', 'code'] as const) {
    const text = textOf(entry, member)
    if (text !== null && text !== '' && text !== 'none') parts.push(text)
  }
  return visible(parts.join('  '))
}

/** Every member that says something, one a line, in canonical order: `name: value`. */
export function details(entry: Entry): readonly string[] {
  const lines: string[] = []
  for (const member of Object.keys(entry)) {
    const value = entry[member]
    if (saysNothing(value) || MARK.test(member)) continue
    const note = member === 'ts' ? ` (${time(entry.ts)})` : ''
    lines.push(`${member}: ${valueText(entry, member)}${note}`)
  }
  return lines
}

// `\p{C}`: controls, formats (bidirectional marks among them), surrogates, private and unassigned.
const UNSEEN = /[\\\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu
const MARK = /_(?:b64|cut)$/

const saysNothing = (value: Json | undefined): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && !value.length)

/** A member's value on one line. */
function valueText(record: JsonObject, member: string): string {
  const text = textOf(record, member)
  return text === null ? plain(record[member]) : visible(text)
}

function plain(value: Json | undefined): string {
  if (Array.isArray(value)) return value.map((one: Json) => plain(one)).join('; ')
  if (isObject(value)) {
    return Object.keys(value)
      .filter((member) => !MARK.test(member))
      .map((member) => `${member} ${valueText(value, member)}`)
      .join(', ')
  }
  return typeof value === 'string' ? visible(value) : writeJson(value ?? null)
}

/** `2026-11-30T17:04:59.123456Z`. Every integer that a record may hold is a time of the calendar. */
function time(us: number): string {
  const ms = Math.floor(us / 1_000)
  const rest = String(us - ms * 1_000).padStart(3, '0')
  return new Date(ms).toISOString().replace('Z', `${rest}Z`)
}
