// The vectors of docs/ledger.md: logs with the finding that any right verifier comes to.
// `node test/ledger/make-vectors.ts` writes them; a test holds that the files are what this makes.

import { writeFileSync } from 'node:fs'

import { object, type JsonObject } from '../../src/json.ts'
import { emptyDraft, GENESIS_PREV, toEntry } from '../../src/ledger/entry.ts'
import { chain, drafts, fileOf, read, resealed, sealed, type Log } from './logs.ts'

/** `expect` is `{ok: records, anchored: seq or null}` or `{line, code}`; `log` is the file in base64
 *  when it holds a byte that JSON text would hide, and its text otherwise. */
export type Vector = {
  readonly name: string
  readonly about: string
  readonly head?: string
  readonly origin?: string
  readonly log?: string
  readonly log_base64?: string
  readonly expect:
    | { readonly ok: number; readonly anchored: number | null }
    | { readonly line: number; readonly code: string }
}

const good: Log = chain(drafts(9))
const other: Log = chain(drafts(9), 'f'.repeat(32))
const { lines, hashes } = good

const replaced = (at: number, line: string): string[] => lines.with(at, line)
const edited = (at: number, edit: (line: string) => string): string[] =>
  replaced(at, edit(lines[at] ?? ''))
const without = (...gone: readonly number[]): string[] =>
  lines.filter((_, at) => !gone.includes(at))
const line = (at: number): string => lines[at] ?? ''
const bytesOf = (...parts: readonly (string | Buffer)[]): Buffer =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : part)),
  )
/** Line 4 with these members and all that follows chained to it: only the form or the place is wrong. */
const forged = (members: JsonObject): string[] => resealed(lines, 3, members)

type Case = {
  readonly about: string
  readonly log: readonly string[] | Buffer
  readonly head?: string
  readonly origin?: string
  readonly expect: Vector['expect']
}

const ok = (records: number, anchored: number | null): Vector['expect'] => ({
  ok: records,
  anchored,
})
const bad = (at: number, code: string): Vector['expect'] => ({ line: at, code })

const anchor = `7:${hashes[7]}`

const ODD = chain([
  [{ ...emptyDraft('call', 1), name: 'ação', method: 'a"b\\c', client: 'x'.repeat(300) }],
  [{ ...emptyDraft('call', 2), name: `${'x'.repeat(127)}é`, rule: '\u202e\u0000', request_id: '' }],
  [
    { ...emptyDraft('call', 3), duration_us: 2 ** 53 - 1 },
    { least: -(2 ** 53 - 1), aa: 'a', zz: '/' },
  ],
])

/** Truncated after line 6 and continued by a process that knows the format. */
const continued = chain([...drafts(9).slice(0, 5), ...drafts(12).slice(9)])

const CASES: Readonly<Record<string, Case>> = {
  'good-genesis-only': { about: 'one record', log: [line(0)], expect: ok(1, null) },
  'good-kinds': { about: 'records of many kinds', log: lines, expect: ok(10, null) },
  'good-odd-texts': {
    about: 'cut, encoded and escaped texts',
    log: ODD.lines,
    expect: ok(4, null),
  },
  'good-anchored': { about: 'the last hash', log: lines, head: `${hashes[9]}`, expect: ok(10, 9) },
  'good-beyond-anchor': {
    about: 'two more than the head',
    log: lines,
    head: anchor,
    expect: ok(10, 7),
  },
  'good-tail-dropped': {
    about: 'no head: cannot be seen',
    log: without(8, 9),
    expect: ok(8, null),
  },
  'good-future-member': {
    about: 'a member that this build does not know',
    log: forged(object({ zebra: 'z', apples: 3 })),
    expect: ok(10, null),
  },
  'bad-empty': { about: 'no record', log: [], expect: bad(1, 'genesis') },
  'bad-no-genesis': {
    about: 'begins with another kind',
    log: [toEntry(emptyDraft('start', 1), { seq: 0, prev: GENESIS_PREV }).line],
    expect: bad(1, 'genesis'),
  },
  'bad-second-genesis': {
    about: 'a genesis in the middle',
    log: forged(object({ kind: 'genesis' })),
    expect: bad(4, 'genesis'),
  },
  'bad-genesis-origin': {
    about: 'an origin that is no 32 hex digits',
    log: resealed(lines, 0, object({ origin: 'mine' })),
    expect: bad(1, 'genesis'),
  },
  'bad-space': {
    about: 'a space',
    log: edited(2, (one) => one.replace(':', ': ')),
    expect: bad(3, 'form'),
  },
  'bad-key-order': {
    about: 'keys in another order',
    log: edited(2, (one) => one.replace(/^\{("args_bytes":\w+),(.*)\}$/, '{$2,$1}')),
    expect: bad(3, 'form'),
  },
  'bad-escaped-slash': {
    about: 'an escape that changes nothing',
    log: edited(2, (one) => one.replace('tools/call', 'tools\\/call')),
    expect: bad(3, 'bytes'),
  },
  'bad-escaped-letter': {
    about: 'a letter as its code',
    log: edited(2, (one) => one.replace('writer', '\\u0077riter')),
    expect: bad(3, 'bytes'),
  },
  'bad-duplicate-key': {
    about: 'a member twice',
    log: edited(2, (one) => one.replace('{', '{"args_bytes":2,')),
    expect: bad(3, 'json'),
  },
  'bad-proto-key': {
    about: 'a name that sets a prototype in careless readers',
    log: edited(2, (one) => one.replace('{', '{"__proto__":{},')),
    expect: bad(3, 'json'),
  },
  'bad-member-name': {
    about: 'a name outside the alphabet, chained rightly',
    log: forged(object({ Zebra: 1 })),
    expect: bad(4, 'form'),
  },
  'bad-crlf': {
    about: 'CR before LF',
    log: edited(2, (one) => `${one}\r`),
    expect: bad(3, 'bytes'),
  },
  'bad-bom': {
    about: 'a byte order mark',
    log: bytesOf('\xef\xbb\xbf', fileOf(lines)),
    expect: bad(1, 'bytes'),
  },
  'bad-nul': {
    about: 'a NUL at the end',
    log: bytesOf(fileOf(lines), '\0\n'),
    expect: bad(11, 'bytes'),
  },
  'bad-utf8': {
    about: 'a letter outside ASCII',
    log: edited(2, (one) => one.replace('writer', 'wr\xc3\xadter')),
    expect: bad(3, 'bytes'),
  },
  'bad-blank-line-end': {
    about: 'an empty last line',
    log: [...lines, ''],
    expect: bad(11, 'json'),
  },
  'bad-blank-line-middle': {
    about: 'an empty line',
    log: [...lines.slice(0, 4), '', ...lines.slice(4)],
    expect: bad(5, 'json'),
  },
  'bad-torn': {
    about: 'no LF at the end',
    log: fileOf(lines).subarray(0, -1),
    expect: bad(10, 'torn'),
  },
  'bad-torn-middle': {
    about: 'half a line',
    log: fileOf(lines).subarray(0, -300),
    expect: bad(10, 'torn'),
  },
  'bad-not-object': { about: 'a string', log: replaced(2, '"x"'), expect: bad(3, 'json') },
  'bad-nan': {
    about: 'NaN',
    log: edited(2, (one) => one.replace(/"ts":\d+/, '"ts":NaN')),
    expect: bad(3, 'json'),
  },
  'bad-float': {
    about: 'a float, chained rightly',
    log: forged(object({ duration_us: 0.5 })),
    expect: bad(4, 'form'),
  },
  'bad-one-point-zero': {
    about: 'an integer written as a float',
    log: edited(2, (one) => one.replace('"round":1', '"round":1.0')),
    expect: bad(3, 'form'),
  },
  'bad-minus-zero': {
    about: 'minus zero',
    log: edited(2, (one) => one.replace('"round":1', '"round":-0')),
    expect: bad(3, 'form'),
  },
  'bad-big-integer': {
    about: '2^53, chained rightly',
    log: forged(object({ duration_us: 2 ** 53 })),
    expect: bad(4, 'form'),
  },
  'bad-deep': {
    about: 'brackets deeper than a record has',
    log: forged(object({ zebra: [[[[1]]]] })),
    expect: bad(4, 'form'),
  },
  'bad-too-long': {
    about: 'a line beyond 64 KiB, chained rightly',
    log: forged(object({ zebra: 'z'.repeat(65_536) })),
    expect: bad(4, 'bytes'),
  },
  'bad-flip': {
    about: 'one letter',
    log: edited(2, (one) => one.replace('writer', 'wryter')),
    expect: bad(3, 'hash'),
  },
  'bad-own-hash': {
    about: 'another hash of itself',
    log: edited(9, (one) => one.replace(/"sha256":"[0-9a-f]{64}"/, `"sha256":"${'0'.repeat(64)}"`)),
    expect: bad(10, 'hash'),
  },
  'bad-upper-case-hash': {
    about: 'the right hash in capitals',
    log: edited(9, (one) => one.replace(`${hashes[9]}`, `${hashes[9]}`.toUpperCase())),
    expect: bad(10, 'hash'),
  },
  'bad-dropped-line': { about: 'line 4 is gone', log: without(3), expect: bad(4, 'seq') },
  'bad-first-dropped': { about: 'line 1 is gone', log: without(0), expect: bad(1, 'seq') },
  'bad-swapped': {
    about: 'lines 4 and 5',
    log: lines.with(3, line(4)).with(4, line(3)),
    expect: bad(4, 'seq'),
  },
  'bad-duplicate-line': {
    about: 'line 4 twice',
    log: lines.toSpliced(3, 0, line(3)),
    expect: bad(5, 'seq'),
  },
  'bad-spliced': {
    about: 'line 4 of another log',
    log: replaced(3, other.lines[3] ?? ''),
    expect: bad(4, 'link'),
  },
  'bad-rest-of-other': {
    about: 'the rest of another log',
    log: [...lines.slice(0, 5), ...other.lines.slice(5)],
    expect: bad(6, 'link'),
  },
  'bad-forged-middle': {
    about: 'line 4 changed and given its right hash; first and last line are true',
    log: replaced(3, sealed(read(line(3)), object({ decision: 'deny' }))),
    head: `${hashes[9]}`,
    expect: bad(5, 'link'),
  },
  'bad-resealed': {
    about: 'line 4 changed and everything after it chained anew, against a head',
    log: forged(object({ decision: 'deny' })),
    head: anchor,
    expect: bad(8, 'head'),
  },
  'bad-resealed-hash-only': {
    about: 'the same, of the head only the hash is known',
    log: forged(object({ decision: 'deny' })),
    head: `${hashes[7]}`,
    expect: bad(11, 'head'),
  },
  'bad-tail-dropped': {
    about: 'cut before the head',
    log: without(7, 8, 9),
    head: anchor,
    expect: bad(8, 'head'),
  },
  'bad-truncated-and-continued': {
    about: 'cut and continued by the program itself, against a head',
    log: continued.lines,
    head: anchor,
    expect: bad(8, 'head'),
  },
  'bad-origin': {
    about: 'a whole other log',
    log: other.lines,
    origin: '0123456789abcdef'.repeat(2),
    expect: bad(1, 'origin'),
  },
  'bad-seq-gap': {
    about: 'a gap, chained rightly',
    log: forged(object({ seq: 4 })),
    expect: bad(4, 'seq'),
  },
  'bad-seq-true': {
    about: 'true for 1',
    log: resealed(lines, 1, object({ seq: true })),
    expect: bad(2, 'seq'),
  },
  'bad-member-missing': {
    about: 'no `verdict`, chained rightly',
    log: replaced(9, dropped(9, 'verdict')),
    expect: bad(10, 'member'),
  },
  'bad-member-type': {
    about: 'a text for a number',
    log: forged(object({ ts: '1' })),
    expect: bad(4, 'member'),
  },
  'bad-hash-inside': {
    about: 'a nested member with the name of the hash, before the own one',
    log: forged(
      object({
        facts: object({ definition: null, pin: 'new', sha256: GENESIS_PREV, zoo: 1 }),
        ts: null,
      }),
    ),
    expect: bad(4, 'member'),
  },
  'unknown-version': {
    about: 'version 2',
    log: forged(object({ v: 2 })),
    expect: bad(4, 'version'),
  },
  'unknown-version-true': {
    about: 'version true',
    log: forged(object({ v: true })),
    expect: bad(4, 'version'),
  },
  'unknown-kind': {
    about: 'a kind of later',
    log: forged(object({ kind: 'tide' })),
    expect: bad(4, 'kind'),
  },
  'bad-kind-unsealed': {
    about: 'a kind like a word of ours, not chained',
    log: edited(2, (one) => one.replace('"kind":"call"', '"kind":"problem"')),
    expect: bad(3, 'hash'),
  },
  'bad-version-unsealed': {
    about: 'another version, not chained: an alteration and no format of later',
    log: edited(2, (one) => one.replace('"v":1', '"v":2')),
    expect: bad(3, 'hash'),
  },
  'unknown-kind-problem': {
    about: 'a kind like a word of ours',
    log: forged(object({ kind: 'problem' })),
    expect: bad(4, 'kind'),
  },
}

function dropped(at: number, name: string): string {
  const { [name]: _gone, ...rest } = read(line(at))
  return sealed(object(rest), object({}))
}

/** Every vector, by its file name. */
export const vectors: readonly Vector[] = Object.entries(CASES).map(([name, one]) => {
  const bytes = Buffer.isBuffer(one.log) ? one.log : fileOf(one.log)
  const text = bytes.toString('latin1')
  return {
    name,
    about: one.about,
    ...(one.head === undefined ? {} : { head: one.head }),
    ...(one.origin === undefined ? {} : { origin: one.origin }),
    ...(/^[\x20-\x7e\n]*$/.test(text) ? { log: text } : { log_base64: bytes.toString('base64') }),
    expect: one.expect,
  }
})

/** The text of a vector's file. */
export const vectorText = (one: Vector): string => `${JSON.stringify(one, null, 1)}\n`

if (import.meta.main) {
  for (const one of vectors) {
    writeFileSync(new URL(`vectors/${one.name}.json`, import.meta.url), vectorText(one))
  }
}
