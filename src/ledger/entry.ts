// What one record of the ledger holds, and its one text. docs/ledger.md is the specification.

import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'

import type { Identity, Transport } from '../call.ts'
import type { Code } from '../decision.ts'
import { Fault } from '../fault.ts'
import type { JsonObject } from '../json.ts'

/** `call`: a decision that is complete in one record (a denial, a read, a replay). `intent` and
 *  `outcome`: before and after a mutation. The others are told in docs/ledger.md. */
export type EntryKind =
  | 'genesis'
  | 'start'
  | 'stop'
  | 'call'
  | 'intent'
  | 'outcome'
  | 'malformed'
  | 'view'
  | 'pin'
  | 'policy'
  | 'lease'
  | 'recovery'
  | 'count'

/** What became of a call, as far as this record knows; docs/ledger.md tells each. */
export type Outcome =
  | 'none'
  | 'not_executed'
  | 'pending'
  | 'answered'
  | 'committed'
  | 'replay'
  | 'observed'
  | 'failed'
  | 'unknown'
  | 'unsent'
  | 'late'

/** What a declared verification made of the outcome; `none` where nothing was verified. */
export type Verdict = 'none' | 'continue' | 'stop' | 'rolled_back'

/** The part of a record that the hall knows; the store adds `seq`, `prev_sha256`, `sha256` and what
 *  belongs to its own tables. Names and keys are raw text here: the ledger room cuts and encodes them. */
export type Draft = {
  readonly kind: EntryKind
  /** Microseconds since 1970. */
  readonly ts: number
  /** The idempotency key; `observe` for keyless reads, `missing` otherwise. */
  readonly request_id: string
  readonly method: string
  readonly name: string
  readonly decision: 'allow' | 'deny' | 'hold' | 'none'
  readonly outcome: Outcome
  readonly verdict: Verdict
  readonly code: Code | null
  /** JSON Pointer into the policy text, or a built-in check; of the first failure when several. */
  readonly rule: string | null
  /** All failed checks when there are more than one, as `rule field` pairs; at most 20. */
  readonly failures: readonly { readonly rule: string; readonly field: string | null }[]
  readonly client: string | null
  readonly profile: string | null
  readonly identity: Identity | null
  readonly transport: Transport | null
  /** HMAC of the canonical arguments with the segment's key, and their length in bytes. */
  readonly args_digest: string | null
  readonly args_bytes: number | null
  readonly result_digest: string | null
  readonly result_bytes: number | null
  readonly duration_us: number | null
  /** SHA-256 of the policy text. */
  readonly policy: string | null
  readonly trace: string | null
  /** Recorded facts of the decision, enough to decide it again; null where none were read. */
  readonly facts: { readonly definition: string | null; readonly pin: string } | null
  /** Further members of this kind, ASCII keys, integers and strings only. */
  readonly more: { readonly [key: string]: string | number | boolean }
}

/** The version of this format, the member `v` of every record. A reader refuses any other. */
export const FORMAT_VERSION: number = 1

/** `prev_sha256` of the first record. */
export const GENESIS_PREV: string = '0'.repeat(64)

/** Ceilings of one record, in bytes of UTF-8 before encoding. A text that is longer is cut at a
 *  code-point border and `<member>_cut` tells its full length. `failures` counts checks. */
export const ENTRY_LIMITS: {
  readonly name: number
  readonly key: number
  readonly pointer: number
  readonly failures: number
  readonly line: number
} = { name: 128, key: 200, pointer: 512, failures: 20, line: 64 * 1024 }

/** A record as it stands in the log: every member of the format is present, texts are cut and encoded.
 *  Further members of its kind are read through the index. */
export type Entry = JsonObject & {
  readonly v: number
  readonly kind: EntryKind
  readonly seq: number
  readonly ts: number
  readonly request_id: string
  readonly method: string
  readonly name: string
  readonly decision: string
  readonly outcome: string
  readonly verdict: string
  readonly code: string | null
  readonly rule: string | null
  readonly failures: readonly JsonObject[]
  readonly facts: JsonObject | null
  readonly client: string | null
  readonly profile: string | null
  readonly identity: string | null
  readonly transport: string | null
  readonly args_digest: string | null
  readonly args_bytes: number | null
  readonly result_digest: string | null
  readonly result_bytes: number | null
  readonly segment: string | null
  readonly duration_us: number | null
  readonly policy: string | null
  readonly trace: string | null
  readonly round: number | null
  readonly prev_sha256: string
  readonly sha256: string
}

/** The type of a member in the log. `?`: or null. `hash`: 64 lower-case hex digits. `list`: of objects. */
export type MemberType = 'int' | 'int?' | 'text' | 'text?' | 'hash' | 'list' | 'object?'

/** Every member of the format but `v` and `kind`, in canonical order. Further members may take neither
 *  these names nor those of their marks. */
export const MEMBERS: ReadonlyMap<string, MemberType> = new Map<string, MemberType>([
  ['args_bytes', 'int?'],
  ['args_digest', 'text?'],
  ['client', 'text?'],
  ['code', 'text?'],
  ['decision', 'text'],
  ['duration_us', 'int?'],
  ['facts', 'object?'],
  ['failures', 'list'],
  ['identity', 'text?'],
  ['method', 'text'],
  ['name', 'text'],
  ['outcome', 'text'],
  ['policy', 'text?'],
  ['prev_sha256', 'hash'],
  ['profile', 'text?'],
  ['request_id', 'text'],
  ['result_bytes', 'int?'],
  ['result_digest', 'text?'],
  ['round', 'int?'],
  ['rule', 'text?'],
  ['segment', 'text?'],
  ['seq', 'int'],
  ['sha256', 'hash'],
  ['trace', 'text?'],
  ['transport', 'text?'],
  ['ts', 'int'],
  ['verdict', 'text'],
])

/** Further members of a record that its writer adds. */
export type More = { readonly [key: string]: string | number | boolean | null }

/** A record of `kind` in which nothing applies: for records that are not about a call. */
export const emptyDraft = (kind: EntryKind, ts: number): Draft => ({
  kind,
  ts,
  request_id: 'missing',
  method: '',
  name: '',
  decision: 'none',
  outcome: 'none',
  verdict: 'none',
  code: null,
  rule: null,
  failures: [],
  client: null,
  profile: null,
  identity: null,
  transport: null,
  args_digest: null,
  args_bytes: null,
  result_digest: null,
  result_bytes: null,
  duration_us: null,
  policy: null,
  trace: null,
  facts: null,
  more: {},
})

/** The record of `draft` at its place in the chain: `line` is the canonical text without LF, `sha256`
 *  its hash. `more` wins over `draft.more`. `row` is written as `rowName` does.
 *  Errors: `Fault('internal')` for a number that is no exact integer and for a further member whose
 *  name is not `[a-z][a-z0-9_]*` or belongs to the format: our own mistake, and nothing is recorded. */
export function toEntry(
  draft: Draft,
  place: { readonly seq: number; readonly prev: string },
  more: More = NONE,
): { readonly line: string; readonly sha256: string } {
  const extras = furtherMembers(draft.more, more)
  const before = merged(upToSeq(draft, place, extras), extras.before)
  const after = merged(afterHash(draft), extras.after)
  const sha256 = hash('sha256', `${place.prev}{${before},${after}}`, 'hex')
  return { line: `{${before},"sha256":"${sha256}",${after}}`, sha256 }
}

/** The key of a table's row as a record names it: itself when it is at most 128 printable ASCII
 *  characters, else `sha256:` and the hash of its UTF-8 bytes, so that no two keys share a name. */
export const rowName = (key: string): string =>
  key.length <= ENTRY_LIMITS.name && PRINTABLE.test(key) && !key.startsWith('sha256:')
    ? key
    : `sha256:${hash('sha256', key, 'hex')}`

const NONE: More = {}
const PRINTABLE = /^[\x20-\x7e]*$/
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/
const EXTRA_KEY = /^[a-z][a-z0-9_]{0,63}$/

/** Further members, each as `"key":value`, on the two sides of `sha256`, and those that the format has
 *  a place for. */
type Extras = {
  readonly before: readonly string[]
  readonly after: readonly string[]
  readonly segment: string | null
  readonly round: number | null
}

function furtherMembers(first: More, second: More): Extras {
  const all = { ...first, ...second }
  const parts: string[] = []
  for (const key of Object.keys(all)) {
    if (key !== 'segment' && key !== 'round') putFurther(parts, key, all[key] ?? null)
  }
  // ASCII keys and a quote that sorts before every key character: text order is key order.
  parts.sort()
  const after = parts.findIndex((part) => part > '"sha256"')
  const border = after < 0 ? parts.length : after
  return {
    before: parts.slice(0, border),
    after: parts.slice(border),
    segment: typeof all['segment'] === 'string' ? all['segment'] : null,
    round: typeof all['round'] === 'number' ? all['round'] : null,
  }
}

function putFurther(out: string[], key: string, value: More[string]): void {
  if (!EXTRA_KEY.test(key) || isReserved(key)) {
    throw new Fault('internal', `the member "${key}" cannot be recorded; report this as a defect`)
  }
  if (typeof value === 'string') putText(out, key, key === 'row' ? rowName(value) : value)
  else out.push(`"${key}":${typeof value === 'number' ? integer(value) : String(value)}`)
}

/** A further member may take neither the name of a member of the format nor that of a mark: a name
 *  that stands twice in one record would be read differently by different readers. */
const isReserved = (key: string): boolean =>
  key === 'v' || key === 'kind' || MEMBERS.has(key) || /_(?:b64|cut)$/.test(key)

function upToSeq(
  draft: Draft,
  place: { readonly seq: number; readonly prev: string },
  extras: Extras,
): string[] {
  const out: string[] = [`"args_bytes":${integer(draft.args_bytes)}`]
  putText(out, 'args_digest', draft.args_digest)
  putText(out, 'client', draft.client)
  putText(out, 'code', draft.code)
  out.push(`"decision":"${draft.decision}"`, `"duration_us":${integer(draft.duration_us)}`)
  out.push(`"facts":${factsText(draft.facts)}`)
  putFailures(out, draft.failures)
  putText(out, 'identity', draft.identity)
  out.push(`"kind":"${draft.kind}"`)
  putText(out, 'method', draft.method)
  putText(out, 'name', draft.name)
  out.push(`"outcome":"${draft.outcome}"`)
  putText(out, 'policy', draft.policy)
  out.push(`"prev_sha256":"${place.prev}"`)
  putText(out, 'profile', draft.profile)
  putText(out, 'request_id', draft.request_id, ENTRY_LIMITS.key)
  out.push(`"result_bytes":${integer(draft.result_bytes)}`)
  putText(out, 'result_digest', draft.result_digest)
  out.push(`"round":${integer(extras.round ?? (ROUNDS.has(draft.kind) ? 1 : null))}`)
  putText(out, 'rule', draft.rule, ENTRY_LIMITS.pointer)
  putText(out, 'segment', extras.segment)
  out.push(`"seq":${integer(place.seq)}`)
  return out
}

/** The kinds that are about one round of a call. */
const ROUNDS: ReadonlySet<EntryKind> = new Set<EntryKind>(['call', 'intent', 'outcome'])

function afterHash(draft: Draft): string[] {
  const out: string[] = []
  putText(out, 'trace', draft.trace)
  putText(out, 'transport', draft.transport)
  out.push(`"ts":${integer(draft.ts)}`, `"v":${FORMAT_VERSION}`, `"verdict":"${draft.verdict}"`)
  return out
}

function factsText(facts: Draft['facts']): string {
  if (facts === null) return 'null'
  const out: string[] = []
  putText(out, 'definition', facts.definition)
  putText(out, 'pin', facts.pin)
  return `{${out.join(',')}}`
}

function putFailures(out: string[], failures: Draft['failures']): void {
  const texts: string[] = []
  for (const failure of failures.slice(0, ENTRY_LIMITS.failures)) {
    const one: string[] = []
    putText(one, 'field', failure.field, ENTRY_LIMITS.pointer)
    putText(one, 'rule', failure.rule, ENTRY_LIMITS.pointer)
    texts.push(`{${one.join(',')}}`)
  }
  out.push(`"failures":[${texts.join(',')}]`)
  if (failures.length > texts.length) out.push(`"failures_cut":${failures.length}`)
}

/** Adds the member and, where the text was encoded or cut, its marks `_b64` and `_cut`. */
function putText(
  out: string[],
  key: string,
  text: string | null,
  limitBytes: number = ENTRY_LIMITS.name,
): void {
  if (text === null) out.push(`"${key}":null`)
  else if (text.length <= limitBytes && PLAIN.test(text)) out.push(`"${key}":"${text}"`)
  else putOdd(out, key, text, limitBytes)
}

function putOdd(out: string[], key: string, text: string, limitBytes: number): void {
  const bytes = Buffer.byteLength(text)
  const kept = bytes <= limitBytes ? text : cut(text, limitBytes)
  const plain = PRINTABLE.test(kept)
  const shown = plain ? JSON.stringify(kept) : `"${Buffer.from(kept).toString('base64')}"`
  out.push(`"${key}":${shown}`)
  if (!plain) out.push(`"${key}_b64":true`)
  if (bytes > limitBytes) out.push(`"${key}_cut":${bytes}`)
}

/** The longest beginning of `text` that is at most `limitBytes` of UTF-8 and ends at a code point. */
function cut(text: string, limitBytes: number): string {
  const bytes = Buffer.from(text.slice(0, limitBytes + 1))
  let end = Math.min(limitBytes, bytes.length)
  while (end > 0 && end < bytes.length && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--
  return bytes.toString('utf8', 0, end)
}

function integer(value: number | null): string {
  if (value === null) return 'null'
  if (Number.isSafeInteger(value)) return String(value)
  throw new Fault('internal', 'a number that is no exact integer cannot be recorded')
}

/** Two sorted lists of members as one sorted text. */
function merged(fixed: readonly string[], extras: readonly string[]): string {
  if (extras.length === 0) return fixed.join(',')
  const out: string[] = []
  let at = 0
  for (const part of fixed) {
    for (let extra = extras[at]; extra !== undefined && extra < part; extra = extras[++at]) {
      out.push(extra)
    }
    out.push(part)
  }
  return out.concat(extras.slice(at)).join(',')
}
