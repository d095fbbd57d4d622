// Walks a log line by line: every link, every byte, and the heads that an asker already trusts.

import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'

import { canonical } from '../canonical.ts'
import type { Json, JsonObject } from '../json.ts'
import { ENTRY_LIMITS, GENESIS_PREV, type Entry } from './entry.ts'
import { asEntry, parseForm, problem, type Problem } from './parse.ts'

/** A place in a chain: the hash of record `seq`. Before the first record: seq -1, 64 zeros. */
export type Head = { readonly seq: number; readonly sha256: string }

/** A head that the asker holds from elsewhere; `seq` is null when only the hash is known. */
export type Anchor = { readonly seq: number | null; readonly sha256: string }

/** Checks a log as it is handed over, one line at a time and in order. */
export type Verifier = {
  /** Null when the line (without LF) is the next record of the chain. After a problem the verifier
   *  stays where it was: the same line is asked for again. Never throws. */
  readonly push: (line: string | Uint8Array) => Problem | null
  /** The last good record. */
  readonly head: () => Head
  /** The record last accepted, or null. */
  readonly last: () => Entry | null
}

/** A verifier that expects the record after `from`; without it, a whole log from its genesis. */
export function verifier(from: Head = NOTHING): Verifier {
  let head = from
  let last: Entry | null = null
  return {
    push(line) {
      const checked = checkLine(line, head)
      if (checked.kind === 'problem') return checked
      head = { seq: checked.seq, sha256: checked.sha256 }
      last = checked
      return null
    },
    head: () => head,
    last: () => last,
  }
}

/** What an asker may know of a log beforehand. `origin`: the `origin` of its genesis record. `from`: the
 *  record before the first line that is handed over; absent for a whole log. */
export type Expected = {
  readonly anchor: Anchor | null
  readonly origin: string | null
  readonly from?: Head
}

/** The finding over a whole log. ok: every line is the record it should be; `anchored` is the last
 *  record that a given head vouches for, null without a head: records after it may have been cut off,
 *  and nobody could tell. broken: `line` is the first bad line, from 1. unknown_format: up to `line`
 *  the chain holds, but that record is of a version or kind that this build does not know. */
export type Verified =
  | {
      readonly kind: 'ok'
      readonly entries: number
      readonly head: Head
      readonly origin: string
      readonly anchored: number | null
    }
  | { readonly kind: 'broken' | 'unknown_format'; readonly line: number; readonly problem: Problem }

/** Checks a whole file as it arrives in pieces of any size. */
export type FileCheck = {
  /** Takes the next bytes. False once the finding is final, so that reading may stop. */
  readonly push: (bytes: Uint8Array) => boolean
  /** The finding, once every byte was pushed. */
  readonly end: () => Verified
}

/** A check of a log file: records, each followed by one LF. `each` sees every good record in order. */
export function fileCheck(expected: Expected, each: (entry: Entry) => void = nobody): FileCheck {
  const walk = logCheck(expected)
  let rest: Buffer = Buffer.alloc(0)

  const take = (line: Uint8Array): boolean => {
    const more = walk.push(line)
    const entry = walk.last()
    if (more && entry !== null) each(entry)
    return more
  }
  return {
    push(bytes) {
      let data = rest.length === 0 ? view(bytes) : Buffer.concat([rest, bytes])
      for (let at = data.indexOf(LF); at >= 0; at = data.indexOf(LF)) {
        if (!take(data.subarray(0, at))) return false
        data = data.subarray(at + 1)
      }
      // A line without end is refused as soon as it is too long, so that memory stays bounded.
      if (data.length > ENTRY_LIMITS.line) return take(data)
      rest = Buffer.from(data)
      return true
    },
    end: () => (rest.length === 0 ? walk.end() : walk.torn()),
  }
}

/** Checks a log that is handed over as lines without LF, and compares it with what is expected. */
export function logCheck(expected: Expected): {
  readonly push: (line: string | Uint8Array) => boolean
  readonly last: () => Entry | null
  readonly end: () => Verified
  readonly torn: () => Verified
} {
  const walk = verifier(expected.from)
  let bad: Verified | null = null
  let origin = textOf(expected.origin)
  let anchored: number | null = null

  const fail = (found: Problem): Verified => {
    const unknown = found.code === 'version' || found.code === 'kind'
    bad ??= {
      kind: unknown ? 'unknown_format' : 'broken',
      line: walk.head().seq + 2,
      problem: found,
    }
    return bad
  }
  return {
    push(line) {
      if (bad !== null) return false
      const found = walk.push(line) ?? foreign(walk, expected)
      const { seq, sha256 } = walk.head()
      if (found !== null) {
        // A record of another log is good in itself: the walk already stands on it.
        bad =
          found.code === 'origin' || found.code === 'head'
            ? { kind: 'broken', line: seq + 1, problem: found }
            : fail(found)
        return false
      }
      if (seq === 0) origin = textOf(walk.last()?.['origin'])
      if (isAnchor(expected.anchor, seq, sha256)) anchored = seq
      return true
    },
    last: walk.last,
    torn: () => fail(problem('torn', 'the last line does not end in a line feed')),
    end() {
      if (bad !== null) return bad
      const head = walk.head()
      if (head.seq < 0) return fail(problem('genesis', 'the log is empty'))
      if (expected.anchor !== null && anchored === null) return fail(problem('head', MISSING_HEAD))
      return { kind: 'ok', entries: head.seq + 1, head, origin, anchored }
    },
  }
}

/** A head as people hand it on: `SEQ:SHA256` or `SHA256` alone; null when the text is neither. */
export function parseAnchor(text: string): Anchor | null {
  const found = /^(?:(0|[1-9][0-9]{0,15}):)?([0-9a-f]{64})$/.exec(text)
  if (found === null) return null
  const seq = found[1] === undefined ? null : Number(found[1])
  if (seq !== null && !Number.isSafeInteger(seq)) return null
  return { seq, sha256: found[2] ?? '' }
}

const NOTHING: Head = { seq: -1, sha256: GENESIS_PREV }
const LF = 0x0a
const MISSING_HEAD =
  'the given head is not in this log: records were cut off, or it is the head of another log'

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

const nobody = (): void => undefined

const view = (bytes: Uint8Array): Buffer =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

const isAnchor = (anchor: Anchor | null, seq: number, sha256: string): boolean =>
  anchor !== null && anchor.sha256 === sha256 && (anchor.seq ?? seq) === seq

/** Not the log that is asked about, though its record is good. */
function foreign(walk: Verifier, { anchor, origin }: Expected): Problem | null {
  const { seq, sha256 } = walk.head()
  if (seq === 0 && origin !== null && walk.last()?.['origin'] !== origin) {
    return problem('origin', 'the log has another origin than the one asked for')
  }
  if (anchor?.seq === seq && anchor.sha256 !== sha256) {
    return problem('head', 'the record at the place of the given head has another hash')
  }
  return null
}

function checkLine(line: string | Uint8Array, before: Head): Entry | Problem {
  const text = typeof line === 'string' ? line : lineText(line)
  const form = parseForm(text)
  if (form.kind === 'problem') return form
  const { value } = form
  // The hash before the version: the members of the chain are the same in every version, so that an
  // altered `v` is an alteration and not a format of later.
  const found = checkLink(value, before) ?? checkHash(value, text, before)
  if (found !== null) return found
  const entry = asEntry(value)
  return entry.kind === 'problem' ? entry : (checkGenesis(entry) ?? entry)
}

// latin1 keeps every byte a character of its own, so that a byte above 0x7E is seen and refused.
const lineText = (line: Uint8Array): string =>
  line.length > ENTRY_LIMITS.line
    ? ' '.repeat(ENTRY_LIMITS.line + 1)
    : view(line).toString('latin1')

function checkLink(value: JsonObject, before: Head): Problem | null {
  if (value['seq'] !== before.seq + 1) return problem('seq', `expected seq ${before.seq + 1}`)
  if (value['prev_sha256'] !== before.sha256) {
    return problem('link', 'prev_sha256 is not the hash of the line before')
  }
  return null
}

function checkHash(value: JsonObject, text: string, before: Head): Problem | null {
  const right = hash('sha256', before.sha256 + withoutHash(value, text), 'hex')
  return right === value['sha256'] ? null : problem('hash', 'sha256 is not the hash of the record')
}

/** The canonical text of the record without its own hash. `seq` stands before it, so that the record's
 *  own member is in the line with a comma; where it is the only one it is cut out, and where a value holds
 *  another of that name, or nothing follows, the text is written anew. */
function withoutHash(value: JsonObject, text: string): string {
  const at = text.indexOf(OWN_HASH)
  const end = at + OWN_HASH.length + HASH_LENGTH + 1
  if (at > 0 && at === text.lastIndexOf(OWN_HASH) && text[end] === ',') {
    return text.slice(0, at) + text.slice(end)
  }
  const { sha256: _own, ...rest } = value
  return canonical(rest)
}

const OWN_HASH = ',"sha256":"'
const HASH_LENGTH = 64

function checkGenesis(value: Entry): Problem | null {
  const first = value['seq'] === 0
  if ((value['kind'] === 'genesis') !== first) {
    return problem('genesis', first ? 'the log does not begin with genesis' : 'a second genesis')
  }
  if (first && !(isHex32(value['origin']) && isHex32(value['nonce']))) {
    return problem('genesis', 'genesis has no origin or no nonce')
  }
  return null
}

const isHex32 = (value: unknown): boolean =>
  typeof value === 'string' && /^[0-9a-f]{32}$/.test(value)
