// Reads a line of the log back: is it a record, of a format and kind that this build knows.

import { canonical } from '../canonical.ts'
import {
  isObject,
  parseText,
  REQUEST_LIMITS,
  writeJson,
  type Json,
  type JsonLimits,
  type JsonObject,
} from '../json.ts'
import {
  ENTRY_LIMITS,
  FORMAT_VERSION,
  MEMBERS,
  type Entry,
  type EntryKind,
  type MemberType,
} from './entry.ts'
import { PRINTABLE } from './text.ts'

/** Why a line is not a record, or not the next one; a closed list, pinned by the vectors.
 *  `bytes`: a byte outside 0x20..0x7E, an escape other than `\"` and `\\`, or a line past the limit;
 *  `json`: not one strict JSON object; `form`: not the canonical text of its value, or a float, an
 *  integer beyond 2^53-1, a name outside `[a-z][a-z0-9_]*`, brackets deeper than 4; `member`: a member
 *  is missing or of the wrong type; `seq`, `link`, `hash`: out of order, not chained to the line before,
 *  not the hash of itself; `genesis`: the first line is no genesis record or another line is one;
 *  `torn`: the last line does not end in LF; `head`, `origin`: not the log that the asker expects;
 *  `version`, `kind`: chained rightly, of a format or kind that this build does not know. */
export type ProblemCode =
  | 'bytes'
  | 'json'
  | 'form'
  | 'member'
  | 'seq'
  | 'link'
  | 'hash'
  | 'genesis'
  | 'torn'
  | 'head'
  | 'origin'
  | 'version'
  | 'kind'

/** What is wrong with a line, in one sentence without the line's content. */
export type Problem = {
  readonly kind: 'problem'
  readonly code: ProblemCode
  readonly why: string
}

/** A problem as a value. */
export const problem = (code: ProblemCode, why: string): Problem => ({ kind: 'problem', code, why })

/** The record that `line` (without LF) is, or what is wrong with it. The hash and the chain are not
 *  looked at: that is the verifier's part. Never throws. */
export function parseEntry(line: string): Entry | Problem {
  const form = parseForm(line)
  return form.kind === 'problem' ? form : asEntry(form.value)
}

/** The object of which `line` is the canonical text, of whatever version and kind. */
export function parseForm(
  line: string,
): { readonly kind: 'object'; readonly value: JsonObject } | Problem {
  if (line.length > ENTRY_LIMITS.line) return problem('bytes', 'the line is longer than 64 KiB')
  if (!onlyRecordBytes(line)) return problem('bytes', 'a byte or escape that no record holds')
  const parsed = parseText(line, LINE_LIMITS)
  if (parsed.kind === 'refused') return problem('json', `not strict JSON: ${parsed.problem}`)
  if (!isObject(parsed.value)) return problem('json', 'not a JSON object')
  if (!isCanonical(parsed.value, line)) return problem('form', 'not in canonical form')
  if (!isSound(parsed.value)) return problem('form', 'a value or name that no record holds')
  return { kind: 'object', value: parsed.value }
}

/** The same object as a record of this version and of a known kind, with every member. */
export function asEntry(value: JsonObject): Entry | Problem {
  if (value['v'] !== FORMAT_VERSION) return problem('version', 'unknown format version')
  const kind = value['kind']
  if (typeof kind !== 'string' || !KINDS.has(kind)) return problem('kind', 'unknown record kind')
  for (const [name, type] of MEMBERS) {
    if (!hasType(value[name], type)) {
      return problem('member', `member "${name}" is missing or of the wrong type`)
    }
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- minted: each member was looked at
  return value as Entry
}

const LINE_LIMITS: JsonLimits = { ...REQUEST_LIMITS, bytes: ENTRY_LIMITS.line }
const RECORD_DEPTH = 4
const MEMBER_NAME = /^[a-z][a-z0-9_]*$/

function onlyRecordBytes(line: string): boolean {
  if (!PRINTABLE.test(line)) return false
  return !line.includes('\\') || !line.replace(/\\["\\]/g, '').includes('\\')
}

const KINDS: ReadonlySet<string> = new Set<EntryKind>([
  'genesis',
  'start',
  'stop',
  'call',
  'intent',
  'outcome',
  'malformed',
  'view',
  'pin',
  'policy',
  'lease',
  'recovery',
  'count',
  'ask',
  'client',
])

const HASH = /^[0-9a-f]{64}$/

function hasType(value: Json | undefined, type: MemberType): boolean {
  if (value === null) return type.endsWith('?')
  switch (type) {
    case 'int':
    case 'int?':
      return typeof value === 'number'
    case 'text':
    case 'text?':
      return typeof value === 'string'
    case 'hash':
      return typeof value === 'string' && HASH.test(value)
    case 'list':
      return Array.isArray(value) && value.every((one: Json) => isObject(one))
    case 'object?':
      return isObject(value)
    default:
      return false
  }
}

// Native writing first: it keeps the order of the line, so that only the order is left to look at.
const isCanonical = (value: Json, line: string): boolean =>
  writeJson(value) === line ? inOrder(value) : canonical(value) === line

function inOrder(value: Json | undefined): boolean {
  if (Array.isArray(value)) return value.every(inOrder)
  if (!isObject(value)) return true
  let before = ''
  for (const key of Object.keys(value)) {
    // Keys are printable ASCII here, where `<` orders as code points do.
    if (key < before || !inOrder(value[key])) return false
    before = key
  }
  return true
}

/** False for a float, for a number kept as source, for a name that is no member name and for brackets
 *  deeper than a record has. */
function isSound(value: Json | undefined, left: number = RECORD_DEPTH): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(value)
  if (typeof value !== 'object' || value === null) return true
  if (left === 0) return false
  if (Array.isArray(value)) return value.every((one: Json) => isSound(one, left - 1))
  if (!isObject(value)) return false
  for (const key of Object.keys(value)) {
    if (!MEMBER_NAME.test(key) || !isSound(value[key], left - 1)) return false
  }
  return true
}
