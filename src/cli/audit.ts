// The verbs that read the ledger: audit verify, show, tail and disclose.

import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { canonical, hmac256 } from '../canonical.ts'
import { EXIT, Fault } from '../fault.ts'
import { parseText, REQUEST_LIMITS } from '../json.ts'
import { parseAnchor, verifier, type Expected } from '../ledger/chain.ts'
import type { Entry } from '../ledger/entry.ts'
import { parseEntry } from '../ledger/parse.ts'
import { openReader, type Reader } from '../store/reader.ts'
import { checkDirectory, checkFile, isGood } from './audit-check.ts'
import { findingsJson, findingsText } from './audit-words.ts'
import type { Io } from './io.ts'
import { readSource, stateFor } from './place.ts'
import { details, summary, visible } from './record.ts'

/** `audit verify [DIR|FILE] [--head HEAD] [--origin ORIGIN] [--json]`: exit 0 when every line holds, 1
 *  when one does not, when a table row or the mirror is not as the log says or the head is not in the
 *  log, 3 when a record is of a version or kind of a later build. Without DIR: the state directory. */
export async function verify(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      head: { type: 'string' },
      origin: { type: 'string' },
      json: { type: 'boolean', default: false },
      ...STATE_OPTIONS,
    },
  })
  const [given, ...more] = positionals
  if (more.length > 0) throw usage('audit verify takes one directory or file')
  const path = given === undefined ? stateFor(values.state, io) : resolve(io.cwd, given)
  const expected = expectedOf(values)
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined)
    throw usage(`there is nothing at ${path}; name a state directory or a log`)

  io.err(`eclusa: checking ${path}`)
  const findings = stats.isDirectory() ? checkDirectory(path, expected) : checkFile(path, expected)
  if (values.json) io.out(findingsJson(findings))
  else for (const line of findingsText(findings)) io.out(line)
  return findings.chain.kind === 'unknown_format'
    ? EXIT.unknownFormat
    : isGood(findings)
      ? EXIT.ok
      : EXIT.finding
}

/** `audit show SEQ [--json]`: one record, a member a line; with `--json` its line as it is chained. */
export async function show(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, ...STATE_OPTIONS },
  })
  const seq = seqOf(positionals, 'audit show SEQ')
  return reading(stateFor(values.state, io), io, (reader) => {
    const { line, entry } = recordAt(reader, seq)
    for (const one of values.json ? [line] : details(entry)) io.out(one)
    return EXIT.ok
  })
}

/** `audit tail [-n N] [--follow] [--json]`: the last N records (20), a line each; with `--follow` those
 *  to come as well, until the process is ended or its reader is gone. */
export async function tail(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      lines: { type: 'string', short: 'n', default: '20' },
      follow: { type: 'boolean', short: 'f', default: false },
      json: { type: 'boolean', default: false },
      ...STATE_OPTIONS,
    },
  })
  if (!/^[0-9]{1,6}$/.test(values.lines)) throw usage('-n is a number of records, at most 999999')
  return reading(stateFor(values.state, io), io, async (reader) => {
    let next = Math.max(0, reader.head().seq + 1 - Number(values.lines))
    for (;;) {
      for (const line of reader.entries(next)) {
        io.out(values.json ? line : lineText(line, next))
        next++
      }
      if (!values.follow) return EXIT.ok
      await sleep(FOLLOW_MS)
    }
  })
}

/** `audit disclose SEQ --args FILE`: whether the JSON in FILE is what the arguments of that record
 *  were: exit 0 and the name of the key that proves it, or exit 1. The key itself is not shown. */
export async function disclose(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { args: { type: 'string' }, ...STATE_OPTIONS },
  })
  const seq = seqOf(positionals, 'audit disclose SEQ --args FILE')
  if (values.args === undefined) throw usage('name the file with the arguments: --args FILE')
  const { file, text } = readSource(values.args, io.cwd)
  const parsed = parseText(text, REQUEST_LIMITS)
  if (parsed.kind === 'refused') {
    throw usage(`${file} is not strict JSON (${parsed.problem}); put the arguments there as sent`)
  }
  const source = canonical(parsed.value)
  return reading(stateFor(values.state, io), io, (reader) => {
    const { entry } = recordAt(reader, seq)
    if (entry.args_digest === null || entry.segment === null) {
      throw usage(`record ${seq} is about no arguments; choose the record of a call`)
    }
    const proved = hmac256(reader.segmentKey(entry.segment), source) === entry.args_digest
    const words = proved ? 'holds the arguments' : 'does NOT hold the arguments'
    io.out(`${visible(file)} ${words} of record ${seq} (key of segment ${visible(entry.segment)})`)
    return proved ? EXIT.ok : EXIT.finding
  })
}

const STATE_OPTIONS = { state: { type: 'string' } } as const

/** How often `--follow` looks. */
const FOLLOW_MS = 250

const usage = (sentence: string): Fault => new Fault('usage', sentence)

function expectedOf(values: {
  readonly head?: string | undefined
  readonly origin?: string | undefined
}): Expected {
  const anchor = values.head === undefined ? null : parseAnchor(values.head)
  if (values.head !== undefined && anchor === null) {
    throw usage('--head is SHA256 or SEQ:SHA256, as audit verify prints it')
  }
  if (values.origin !== undefined && !/^[0-9a-f]{32}$/.test(values.origin)) {
    throw usage('--origin is 32 hex digits, as audit verify prints it')
  }
  return { anchor, origin: values.origin ?? null }
}

function seqOf(positionals: readonly string[], form: string): number {
  const [text = '', ...more] = positionals
  if (more.length > 0 || !/^(?:0|[1-9][0-9]{0,14})$/.test(text)) throw usage(`use: eclusa ${form}`)
  return Number(text)
}

/** One record, which is at its place and whose hash is its own; the chain before it is not walked. */
function recordAt(reader: Reader, seq: number): { readonly line: string; readonly entry: Entry } {
  const line = reader.entry(seq)
  if (line === null) throw usage(`there is no record ${seq}; run: eclusa audit tail`)
  const entry = parseEntry(line)
  if (entry.kind === 'problem') throw bad(seq, entry.why)
  const found = verifier({ seq: seq - 1, sha256: entry.prev_sha256 }).push(line)
  if (found !== null) throw bad(seq, found.why)
  return { line, entry }
}

/** Runs `work` on the ledger in `dir`, which is named on stderr. */
async function reading(
  dir: string,
  io: Io,
  work: (reader: Reader) => number | Promise<number>,
): Promise<number> {
  io.err(`eclusa: state directory ${dir}`)
  const reader = openReader(dir)
  try {
    return await work(reader)
  } finally {
    reader.close()
  }
}

const bad = (seq: number, why: string): Fault =>
  new Fault('state_tampered', `record ${seq} is bad: ${why}; run: eclusa audit verify`)

function lineText(line: string, seq: number): string {
  const entry = parseEntry(line)
  // A line that cannot be read is still told: a view may not leave records out.
  return entry.kind === 'problem' ? `${seq}  BAD RECORD: ${entry.why}` : summary(entry)
}
