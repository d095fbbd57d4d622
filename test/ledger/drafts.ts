// Random drafts for the property tests of the ledger room.

import fc from 'fast-check'

import type { Draft, EntryKind, More, Outcome } from '../../src/ledger/entry.ts'

const text = fc.oneof(
  fc.constantFrom('', 'notes/write_note', 'a"b', 'back\\slash', 'ação', 'x\n{"seq":1}', '\u2028'),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme-ascii', minLength: 120, maxLength: 600 }),
)
const maybe = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(one, { freq: 3 })
const whole = fc.maxSafeInteger()
const digest = fc
  .uint8Array({ minLength: 32, maxLength: 32 })
  .map((bytes) => Buffer.from(bytes).toString('hex'))

const KINDS: readonly EntryKind[] = ['start', 'stop', 'call', 'intent', 'outcome', 'malformed']
const OUTCOMES: readonly Outcome[] = ['none', 'pending', 'committed', 'unknown', 'late', 'observed']

/** A draft of any kind but genesis, with texts of every sort in every text member. */
export const draft: fc.Arbitrary<Draft> = fc.record({
  kind: fc.constantFrom(...KINDS),
  ts: whole,
  request_id: text,
  method: text,
  name: text,
  decision: fc.constantFrom<Draft['decision'][]>('allow', 'deny', 'hold', 'none'),
  outcome: fc.constantFrom(...OUTCOMES),
  verdict: fc.constantFrom<Draft['verdict'][]>('none', 'continue', 'stop'),
  code: maybe(fc.constantFrom<NonNullable<Draft['code']>[]>('tool_denied', 'arguments_denied')),
  rule: maybe(text),
  failures: fc.array(fc.record({ rule: text, field: maybe(text) }), { maxLength: 25 }),
  client: maybe(text),
  profile: maybe(text),
  identity: maybe(fc.constantFrom<NonNullable<Draft['identity']>[]>('declared', 'unknown')),
  transport: maybe(fc.constantFrom<NonNullable<Draft['transport']>[]>('stdio', 'library')),
  args_digest: maybe(digest),
  args_bytes: maybe(whole),
  result_digest: maybe(digest),
  result_bytes: maybe(whole),
  duration_us: maybe(whole),
  policy: maybe(digest),
  trace: maybe(text),
  facts: maybe(fc.record({ definition: maybe(digest), pin: fc.constantFrom('new', 'none') })),
  more: fc.constantFrom<Draft['more'][]>({}, { upstream: 'notes' }, { zoo: 'ö', segment: 's1' }),
})

/** Further members whose names sort everywhere among those of the format. */
export const extras: fc.Arbitrary<More> = fc.dictionary(
  fc.constantFrom(
    'aa',
    'name_a',
    'row',
    'row_sha256',
    'segment',
    'sha',
    'shb',
    'table',
    'v2',
    'zz',
  ),
  fc.oneof(text, whole, fc.boolean(), fc.constant(null)),
)
