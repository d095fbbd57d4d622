// What the store's tests share: directories, drafts, intents, and the whole check of a directory.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { logCheck } from '../../src/ledger/chain.ts'
import { type Draft, emptyDraft, type Entry } from '../../src/ledger/entry.ts'
import { CHAINED, stateFold } from '../../src/ledger/state.ts'
import type { Closing, Intent, Opened, Store, Ticket } from '../../src/ports.ts'
import { openReader } from '../../src/store/reader.ts'
import type { SqliteOptions } from '../../src/store/sqlite.ts'
import { folder } from '../folder.ts'

/** A directory for one test. */
export const scratch = (_test: unknown): string => folder('eclusa-store-')

export const POLICY: { readonly digest: string; readonly text: string } = {
  digest: 'a'.repeat(64),
  text: 'version: 2',
}

/** Options of a plain store; a fatal fault fails the test unless it is expected. */
export const optionsFor = (dir: string, other: Partial<SqliteOptions> = {}): SqliteOptions => ({
  dir,
  create: true,
  policy: POLICY,
  limits: { storedAnswerBytes: 256 * 1024, keyDays: 30, keyRefusedDays: 30 },
  minFreeBytes: 0,
  say: () => undefined,
  onFatal: (fault) => {
    throw fault
  },
  ...other,
})

export const nowUs = (): number => Date.now() * 1_000
export const random = (): string => randomBytes(16).toString('hex')

/** A plain record of one call. */
export const draft = (other: Partial<Draft> = {}): Draft => ({
  ...emptyDraft('call', nowUs()),
  method: 'tools/call',
  name: 'write_note',
  decision: 'deny',
  outcome: 'not_executed',
  code: 'tool_denied',
  client: 'writer',
  profile: 'writer',
  identity: 'declared',
  transport: 'stdio',
  policy: POLICY.digest,
  ...other,
})

/** A claim of `key` with arguments whose digest is that of `args`. */
export function intent(store: Store, key: string | null, other: Partial<Intent> = {}): Intent {
  const args = other.args ?? store.digest('{"text":"one"}')
  return {
    operation: random(),
    draft: draft({
      kind: 'intent',
      decision: 'allow',
      outcome: 'pending',
      code: null,
      request_id: key ?? 'missing',
      args_digest: args.digest,
      args_bytes: args.bytes,
    }),
    does: 'write',
    upstream: 'notes',
    tool: 'write_note',
    client: 'writer',
    key,
    honoured: false,
    args,
    pin: null,
    continues: null,
    round: 1,
    ...other,
  }
}

export const ANSWER = '{"result":{"content":[],"big":12345678901234567890}}'

/** An outcome; by default a committed one with an answer that is kept. */
export const closing = (store: Store, other: Partial<Closing> = {}): Closing => ({
  outcome: 'committed',
  awaits: null,
  code: null,
  answer: store.digest(ANSWER),
  store: ANSWER,
  durationUs: 1_000,
  nowUs: nowUs(),
  ...other,
})

/** The ticket, or a failed test. */
export function ticketOf(opened: Opened): Ticket {
  if (opened.kind !== 'ticket') assert.fail(`expected a ticket, got ${opened.kind}`)
  return opened.ticket
}

/** Every record of a directory, after the whole check: chain, mirror byte for byte, every chained row. */
export function verified(dir: string): readonly Entry[] {
  const reader = openReader(dir)
  try {
    const walk = logCheck({ anchor: null, origin: null })
    const fold = stateFold()
    const entries: Entry[] = []
    const lines = [...reader.entries(0)]
    for (const line of lines) {
      walk.push(line)
      const entry = walk.last()
      if (entry === null) assert.fail('the first line is no record')
      entries.push(entry)
      fold.push(entry)
    }
    const found = walk.end()
    assert.equal(found.kind, 'ok', JSON.stringify(found))
    const mirror = readFileSync(join(dir, 'audit.jsonl'), 'latin1')
    assert.ok(mirror === lines.map((line) => `${line}\n`).join(''), 'the mirror is not the ledger')
    for (const table of Object.keys(CHAINED)) {
      assert.deepEqual(fold.compare(table, reader.rows(table)), [], table)
    }
    return entries
  } finally {
    reader.close()
  }
}

/** As `verified`, once there is a record of which `is` holds and the mirror has followed: beside processes that
 *  write, the one is read a moment after the other. */
export async function recorded(
  dir: string,
  is: (entry: Entry) => boolean,
): Promise<readonly Entry[]> {
  const end = performance.now() + 60_000
  for (;;) {
    try {
      const entries = verified(dir)
      if (entries.some(is)) return entries
      assert.ok(performance.now() < end, 'there is no such record')
    } catch (error) {
      if (performance.now() >= end) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** Waits for a condition, never for a time; fails after `withinMs`. */
export async function until(what: string, met: () => boolean, withinMs = 60_000): Promise<void> {
  const end = performance.now() + withinMs
  while (!met()) {
    if (performance.now() > end) assert.fail(`did not come to pass: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** A process with a store of its own, driven by lines; see child.ts. */
export type Child = {
  readonly process: ChildProcess
  /** Lines it printed so far. */
  readonly lines: string[]
  readonly tell: (line: string) => void
  /** Resolves with the first line that begins so. */
  readonly heard: (start: string) => Promise<string>
  readonly exited: Promise<number | null>
}

/** Starts child.ts on `dir`. It is killed at the end of the test. */
export function child(
  t: { after(work: () => void): void },
  dir: string,
  command: readonly string[] = [process.execPath],
): Child {
  const [program = '', ...args] = command
  const made = spawn(program, [...args, join(import.meta.dirname, 'child.ts'), dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => made.kill('SIGKILL'))
  const lines: string[] = []
  createInterface({ input: made.stdout }).on('line', (line) => lines.push(line))
  made.stdin.on('error', () => undefined)
  return {
    process: made,
    lines,
    tell: (line) => made.stdin.write(`${line}\n`),
    async heard(start) {
      const find = (): string | undefined => lines.find((line) => line.startsWith(start))
      try {
        await until(`the child says ${start}`, () => find() !== undefined)
      } catch (error) {
        throw new Error(`it says ${lines.slice(-5).join(' | ')}`, { cause: error })
      }
      return find() ?? ''
    },
    exited: new Promise((resolve) => made.on('close', (code) => resolve(code))),
  }
}
