// Logs to verify: good ones of every kind of record, and the tools with which a forger would bend them.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'

import { canonical } from '../../src/canonical.ts'
import { isObject, object, parseText, REQUEST_LIMITS, type JsonObject } from '../../src/json.ts'
import { emptyDraft, GENESIS_PREV, toEntry, type Draft, type More } from '../../src/ledger/entry.ts'

export type Log = { readonly lines: readonly string[]; readonly hashes: readonly string[] }

const POLICY = createHash('sha256').update('policy').digest('hex')
const digest = (of: string): string => createHash('sha256').update(of).digest('hex')

/** A log of these drafts after a genesis record with this origin. */
export function chain(
  records: readonly (readonly [Draft, More?])[],
  origin: string = '0123456789abcdef'.repeat(2),
): Log {
  const genesis: readonly [Draft, More] = [
    { ...emptyDraft('genesis', 1_764_000_000_000_000), policy: POLICY },
    { origin, nonce: 'fedcba9876543210'.repeat(2) },
  ]
  const lines: string[] = []
  const hashes: string[] = []
  for (const [seq, [draft, more]] of [genesis, ...records].entries()) {
    const { line, sha256 } = toEntry(draft, { seq, prev: hashes.at(-1) ?? GENESIS_PREV }, more)
    lines.push(line)
    hashes.push(sha256)
  }
  return { lines, hashes }
}

/** What a gateway writes in a quiet minute: `count` records after genesis, of many kinds. */
export function drafts(count: number): readonly (readonly [Draft, More?])[] {
  return Array.from({ length: count }, (_, at) => {
    const ts = 1_764_000_001_000_000 + at * 1_000
    const one = SHAPES[at % SHAPES.length]
    return one === undefined ? [emptyDraft('count', ts)] : one(at, ts)
  })
}

/** The bytes of a log file. */
export const fileOf = (lines: readonly string[]): Buffer =>
  Buffer.from(lines.map((line) => `${line}\n`).join(''), 'latin1')

/** The record of a line. */
export function read(line: string): JsonObject {
  const parsed = parseText(line, REQUEST_LIMITS)
  if (parsed.kind === 'json' && isObject(parsed.value)) return parsed.value
  throw new Error('not a record')
}

/** A member that must be a text. */
export function text(value: unknown): string {
  assert.ok(typeof value === 'string')
  return value
}

/** The line of a record with these members, given the right hash. */
export function sealed(record: JsonObject, members: JsonObject): string {
  const { sha256: _old, ...rest } = object({ ...record, ...members })
  const prev = text(rest['prev_sha256'])
  const own = digest(prev + canonical(object(rest)))
  return canonical(object({ ...rest, sha256: own }))
}

/** The log from line `at` on chained again with right hashes, after that line got these members. */
export function resealed(lines: readonly string[], at: number, members: JsonObject): string[] {
  const made = lines.slice(0, at)
  for (const [offset, line] of lines.slice(at).entries()) {
    const before = made.at(-1)
    const prev = before === undefined ? GENESIS_PREV : text(read(before)['sha256'])
    made.push(sealed(read(line), { prev_sha256: prev, ...(offset === 0 ? members : {}) }))
  }
  return made
}

const asker = {
  client: 'writer',
  profile: 'writer',
  identity: 'declared',
  transport: 'stdio',
} as const

const call = (at: number, ts: number): Draft => ({
  ...emptyDraft('call', ts),
  ...asker,
  request_id: 'observe',
  method: 'tools/call',
  name: 'read_ledger',
  decision: 'allow',
  outcome: 'observed',
  rule: '/profiles/writer/allow/0',
  args_digest: digest(`args ${at}`),
  args_bytes: 2,
  result_digest: digest(`result ${at}`),
  result_bytes: 512 + at,
  duration_us: 900 + at,
  policy: POLICY,
  facts: { definition: digest('read_ledger'), pin: 'approved' },
  more: { segment: 's000001', upstream: 'notes' },
})

const write = (at: number, ts: number): Draft => ({
  ...call(at, ts),
  kind: 'intent',
  request_id: `note-${at}`,
  name: 'write_note',
  outcome: 'pending',
  result_digest: null,
  result_bytes: null,
  duration_us: null,
})

const row = (at: number): More => ({
  table: 'operations',
  row: digest(`operation ${at}`).slice(0, 32),
  row_sha256: digest(`row ${at}`),
})

const SHAPES: readonly ((at: number, ts: number) => readonly [Draft, More?])[] = [
  (_at, ts) => [
    { ...emptyDraft('start', ts), policy: POLICY },
    { pid: 4711, lease: 'a'.repeat(32) },
  ],
  (at, ts) => [call(at, ts)],
  (at, ts) => [write(at, ts), row(at)],
  (at, ts) => [
    { ...write(at, ts), kind: 'outcome', outcome: 'committed', duration_us: 12 },
    row(at),
  ],
  (at, ts) => [
    {
      ...call(at, ts),
      name: 'rm_rf\n{"seq":1}',
      decision: 'deny',
      outcome: 'not_executed',
      code: 'tool_denied',
      rule: 'tools',
      failures: [
        { rule: '/tools/notes~1write_note/args', field: '/text' },
        { rule: '/profiles/writer/rules/0', field: null },
      ],
    },
  ],
  (_at, ts) => [
    { ...emptyDraft('malformed', ts), ...asker, decision: 'deny', code: 'malformed' },
    { problem: 'duplicate_key', bytes: 77 },
  ],
  (_at, ts) => [emptyDraft('count', ts), { pings: 3, logs: 0, relaxed: false, until: null }],
]
