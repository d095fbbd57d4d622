// What one record of the ledger holds, and its one text. docs/ledger.md is the specification.

import { hash } from 'node:crypto'

import type { Identity, Transport } from '../call.ts'
import type { Code } from '../decision.ts'
import { Fault } from '../fault.ts'
import type { JsonObject } from '../json.ts'
import {
  inBraces,
  LAST,
  NO_PARTS,
  type Part,
  passFurther,
  put,
  putText as putLimited,
  type Sink,
  sinkOf,
} from './members.ts'
import { PRINTABLE, textParts } from './text.ts'

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
  | 'ask'
  | 'client'

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
  | 'awaiting'

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
  const { parts, segment, round } = furtherMembers(draft.more, more)
  const sink = sinkOf(parts)
  putUpToSeq(sink, draft, { ...place, segment, round })
  passFurther(sink, ',"sha256":')
  const before = sink.out.slice(1)
  sink.out = ''
  putAfterHash(sink, draft)
  passFurther(sink, LAST)
  const after = `${sink.out}}`
  const sha256 = hash('sha256', `${place.prev}{${before}${after}`, 'hex')
  return { line: `{${before},"sha256":"${sha256}"${after}`, sha256 }
}

/** The key of a table's row as a record names it: itself when it is at most 128 printable ASCII
 *  characters, else `sha256:` and the hash of its UTF-8 bytes, so that no two keys share a name. */
export const rowName = (key: string): string =>
  key.length <= ENTRY_LIMITS.name && PRINTABLE.test(key) && !key.startsWith('sha256:')
    ? key
    : `sha256:${hash('sha256', key, 'hex')}`

const NONE: More = {}
const EXTRA_KEY = /^[a-z][a-z0-9_]{0,63}$/

function furtherMembers(
  first: More,
  second: More,
): {
  readonly parts: readonly Part[]
  readonly segment: string | null
  readonly round: number | null
} {
  const all = { ...first, ...second }
  const parts: Part[] = []
  for (const key of Object.keys(all)) {
    if (key !== 'segment' && key !== 'round') addFurther(parts, key, all[key] ?? null)
  }
  if (parts.length > 1) parts.sort((a, b) => (a.lead < b.lead ? -1 : 1))
  const { segment, round } = all
  return {
    parts,
    segment: typeof segment === 'string' ? segment : null,
    round: typeof round === 'number' ? round : null,
  }
}

function addFurther(parts: Part[], key: string, value: More[string]): void {
  if (!EXTRA_KEY.test(key) || isReserved(key)) {
    throw new Fault('internal', `the member "${key}" cannot be recorded; report this as a defect`)
  }
  if (typeof value !== 'string') {
    const json = typeof value === 'number' ? integer(value) : String(value)
    parts.push({ lead: `,"${key}":`, json })
    return
  }
  const text = key === 'row' ? rowName(value) : value
  for (const [mark, json] of textParts(text, ENTRY_LIMITS.name)) {
    parts.push({ lead: `,"${key}${mark}":`, json })
  }
}

/** A further member may take neither the name of a member of the format nor that of a mark: a name
 *  that stands twice in one record would be read differently by different readers. */
const isReserved = (key: string): boolean =>
  key === 'v' || key === 'kind' || MEMBERS.has(key) || /_(?:b64|cut)$/.test(key)

function putUpToSeq(
  sink: Sink,
  draft: Draft,
  place: {
    readonly seq: number
    readonly prev: string
    readonly segment: string | null
    readonly round: number | null
  },
): void {
  put(sink, ',"args_bytes":', integer(draft.args_bytes))
  putText(sink, ',"args_digest":', draft.args_digest)
  putText(sink, ',"client":', draft.client)
  putText(sink, ',"code":', draft.code)
  put(sink, ',"decision":', `"${draft.decision}"`)
  put(sink, ',"duration_us":', integer(draft.duration_us))
  put(sink, ',"facts":', factsText(draft.facts))
  putFailures(sink, draft.failures)
  putText(sink, ',"identity":', draft.identity)
  put(sink, ',"kind":', `"${draft.kind}"`)
  putText(sink, ',"method":', draft.method)
  putText(sink, ',"name":', draft.name)
  put(sink, ',"outcome":', `"${draft.outcome}"`)
  putText(sink, ',"policy":', draft.policy)
  put(sink, ',"prev_sha256":', `"${place.prev}"`)
  putText(sink, ',"profile":', draft.profile)
  putText(sink, ',"request_id":', draft.request_id, ENTRY_LIMITS.key)
  put(sink, ',"result_bytes":', integer(draft.result_bytes))
  putText(sink, ',"result_digest":', draft.result_digest)
  put(sink, ',"round":', integer(place.round ?? (ROUNDS.has(draft.kind) ? 1 : null)))
  putText(sink, ',"rule":', draft.rule, ENTRY_LIMITS.pointer)
  putText(sink, ',"segment":', place.segment)
  put(sink, ',"seq":', integer(place.seq))
}

/** The kinds that are about one round of a call. */
const ROUNDS: ReadonlySet<EntryKind> = new Set<EntryKind>(['call', 'intent', 'outcome'])

function putAfterHash(sink: Sink, draft: Draft): void {
  putText(sink, ',"trace":', draft.trace)
  putText(sink, ',"transport":', draft.transport)
  put(sink, ',"ts":', integer(draft.ts))
  put(sink, ',"v":', String(FORMAT_VERSION))
  put(sink, ',"verdict":', `"${draft.verdict}"`)
}

function factsText(facts: Draft['facts']): string {
  if (facts === null) return 'null'
  const sink = sinkOf(NO_PARTS)
  putText(sink, ',"definition":', facts.definition)
  putText(sink, ',"pin":', facts.pin)
  return inBraces(sink)
}

function putFailures(sink: Sink, failures: Draft['failures']): void {
  if (failures.length === 0) return put(sink, ',"failures":', '[]')
  const texts = failures.slice(0, ENTRY_LIMITS.failures).map((failure) => {
    const one = sinkOf(NO_PARTS)
    putText(one, ',"field":', failure.field, ENTRY_LIMITS.pointer)
    putText(one, ',"rule":', failure.rule, ENTRY_LIMITS.pointer)
    return inBraces(one)
  })
  put(sink, ',"failures":', `[${texts.join(',')}]`)
  if (failures.length > texts.length) put(sink, ',"failures_cut":', String(failures.length))
}

/** Adds a member that is a text of at most `limitBytes`, and its marks. */
const putText = (
  sink: Sink,
  lead: string,
  text: string | null,
  limitBytes: number = ENTRY_LIMITS.name,
): void => putLimited(sink, lead, text, limitBytes)

function integer(value: number | null): string {
  if (value === null) return 'null'
  if (Number.isSafeInteger(value)) return String(value)
  throw new Fault('internal', 'a number that is no exact integer cannot be recorded')
}
