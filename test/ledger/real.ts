// A real ledger with something of everything in it, and the ways in which somebody would bend it.

import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

import { canonical, sha256 } from '../../src/canonical.ts'
import type { Io } from '../../src/cli/io.ts'
import { Fault } from '../../src/fault.ts'
import { object, type JsonObject } from '../../src/json.ts'
import { emptyDraft, type Draft } from '../../src/ledger/entry.ts'
import type { Store } from '../../src/ports.ts'
import { openSqlite } from '../../src/store/sqlite.ts'

/** The arguments of every write in `fill`. */
export const ARGS: JsonObject = object({ text: 'ação', request_id: 'note-0001' })
const POLICY = 'version: 2\n'

/** What a verb said and how it ended; a thrown fault is its code. */
export async function run(
  verb: (args: string[], io: Io) => Promise<number>,
  ...args: string[]
): Promise<{ readonly status: number | string; readonly out: string; readonly err: string }> {
  const out: string[] = []
  const err: string[] = []
  const io = {
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    env: {},
    cwd: tmpdir(),
  }
  const text = (): { readonly out: string; readonly err: string } => ({
    out: out.join('\n'),
    err: err.join('\n'),
  })
  try {
    return { status: await verb(args, io), ...text() }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { status: error.code, out: out.join('\n'), err: error.message }
  }
}

/** A store on `dir`, made where there is nothing. */
export const open = (dir: string): Promise<Store> =>
  openSqlite({
    dir,
    create: true,
    policy: { digest: sha256(POLICY), text: POLICY },
    limits: { storedAnswerBytes: 262_144, keyDays: 30, keyRefusedDays: 30 },
    minFreeBytes: 0,
    say: () => undefined,
    onFatal: (fault) => {
      throw fault
    },
  })

/** The draft of an allowed call of `name`. */
export const call = (name: string, ts: number): Draft => ({
  ...emptyDraft('call', ts),
  method: 'tools/call',
  name,
  client: 'writer',
  decision: 'allow',
})

/** A write under `key` that comes to this end. */
export async function write(
  store: Store,
  key: string,
  outcome: 'committed' | 'unknown',
): Promise<void> {
  const args = store.digest(canonical(ARGS))
  const draft = { ...call('write_note', 10), request_id: key, args_digest: args.digest }
  const opened = await store.open({
    operation: sha256(key).slice(0, 32),
    draft: { ...draft, kind: 'intent', outcome: 'pending', args_bytes: args.bytes },
    does: 'write',
    upstream: 'notes',
    tool: 'write_note',
    client: 'writer',
    key,
    honoured: false,
    args,
    pin: 'a'.repeat(64),
    continues: null,
    round: 1,
  })
  if (opened.kind !== 'ticket') assert.fail(opened.kind)
  const done = outcome === 'committed'
  await store.close(opened.ticket, {
    outcome,
    awaits: null,
    code: done ? null : 'timeout',
    answer: done ? store.digest('{"content":[]}') : null,
    store: done ? '{"kind":"result","era":"modern","value":{"content":[]}}' : null,
    durationUs: 5,
    nowUs: 20,
  })
}

/** A write without a key that waits for its client or its server. */
async function waiting(store: Store, name: string, awaits: 'input' | 'task'): Promise<void> {
  const args = store.digest(canonical(ARGS))
  const opened = await store.open({
    operation: sha256(name).slice(0, 32),
    draft: { ...call(name, 10), args_digest: args.digest, kind: 'intent', outcome: 'pending' },
    does: 'write',
    upstream: 'notes',
    tool: name,
    client: 'writer',
    key: null,
    honoured: false,
    args,
    pin: null,
    continues: null,
    round: 1,
  })
  if (opened.kind !== 'ticket') assert.fail(opened.kind)
  await store.close(opened.ticket, {
    outcome: 'awaiting',
    awaits,
    code: null,
    answer: store.digest('{}'),
    store: null,
    durationUs: 5,
    nowUs: Date.now() * 1_000,
  })
}

/** One of everything that changes a row: a pin, one that waits, a write that is done, one that is not, one that
 *  waits for its client and one for its server. */
export async function fill(store: Store): Promise<void> {
  const definition = {
    name: 'write_note',
    value: object({ name: 'write_note' }),
    hash: 'a'.repeat(64),
  }
  await store.pin([{ tool: 'notes/write_note', definition, state: 'approved' }], 'writer')
  await store.pin([{ tool: 'notes/x\u202e', definition, state: 'waits' }], 'writer')
  await write(store, 'note-0001', 'committed')
  await write(store, 'note-0002', 'unknown')
  await waiting(store, 'ask_note', 'input')
  await waiting(store, 'long_note', 'task')
  await store.append({
    ...call('rm_rf\u001b[2J\n{"seq":1}', 30),
    decision: 'deny',
    code: 'tool_denied',
  })
}

/** Runs SQL as somebody would who has the file, triggers out of the way. */
export function sql(dir: string, ...texts: readonly string[]): void {
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  db.exec('DROP TRIGGER IF EXISTS entries_stay; DROP TRIGGER IF EXISTS entries_remain')
  for (const text of texts) db.exec(text)
  db.close()
}

/** The rows of a query. */
export function query(dir: string, text: string): readonly Record<string, unknown>[] {
  const db = new DatabaseSync(join(dir, 'ledger.db'))
  const rows = db.prepare(text).all()
  db.close()
  return rows
}

/** The last record of the ledger. */
export const headOf = (dir: string): { readonly seq: number; readonly sha256: string } => {
  const [row] = query(dir, 'SELECT seq, sha256 FROM entries ORDER BY seq DESC LIMIT 1')
  return { seq: Number(row?.['seq']), sha256: String(row?.['sha256']) }
}

/** The number of the first record whose line holds `text`. */
export function seqOf(dir: string, text: string): number {
  const found = query(dir, 'SELECT seq, line FROM entries ORDER BY seq').find((row) =>
    String(row['line']).includes(text),
  )
  assert.ok(found !== undefined, text)
  return Number(found['seq'])
}
