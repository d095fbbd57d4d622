// Looks a key up without claiming it: what may be said of it while the server of its tool is away.

import type { DatabaseSync } from 'node:sqlite'

import type { Definition } from '../call.ts'
import { Fault } from '../fault.ts'
import { isObject, parseText, UPSTREAM_LIMITS } from '../json.ts'
import type { Recalled } from '../ports.ts'
import { asOperation } from './operation.ts'
import { BY_KEY, type Retention, stateOf } from './operations.ts'
import { troubleOf } from './trouble.ts'

/** A connection of the main thread that only reads; opened when it is first needed. */
export type Recall = {
  /** As `Store.recall`. Errors: `Fault('not_recorded')` where the ledger cannot be read. */
  readonly ask: (asked: Recalled) => Definition | null
  readonly close: () => void
}

/** Reads `file`, the ledger. */
export function recallIn(file: string, retention: Retention): Recall {
  let db: DatabaseSync | null = null
  let isOver = false
  return {
    ask(asked) {
      if (isOver) throw new Fault('not_recorded', 'not recorded: the ledger is closed')
      try {
        return recall((db ??= connect(file)), retention, asked)
      } catch (error) {
        throw new Fault('not_recorded', `not recorded: ${troubleOf(error).why}`, { cause: error })
      }
    },
    close() {
      isOver = true
      db?.close()
    },
  }
}

function connect(file: string): DatabaseSync {
  // Loaded only now: the main thread seldom has a use for SQLite.
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
  return new Database(file, { readOnly: true, timeout: LOCK_WAIT_MS })
}
/** A reader meets a lock only while another process opens or closes the ledger. */
const LOCK_WAIT_MS = 100

function recall(db: DatabaseSync, retention: Retention, asked: Recalled): Definition | null {
  const { client, upstream, tool, key } = asked
  const found = db.prepare(BY_KEY).get(client, upstream, tool, key)
  if (found === undefined) return null
  const row = asOperation(found)
  const work = { ...asked, argsDigest: asked.args.digest }
  const isSaid = row.state !== 'parked' && stateOf(row, work, retention) !== 'free'
  return isSaid ? definitionOf(db, asked) : null
}

function definitionOf(db: DatabaseSync, { upstream, tool }: Recalled): Definition | null {
  const row = db.prepare(APPROVED).get(`${upstream}/${tool}`)
  if (row === undefined) return null
  const parsed = parseText(String(row['text']), UPSTREAM_LIMITS)
  if (parsed.kind !== 'json' || !isObject(parsed.value)) return null
  return { name: tool, value: parsed.value, hash: String(row['hash']) }
}

const APPROVED =
  'SELECT pins.hash, definitions.text FROM pins JOIN definitions USING (hash) WHERE pins.tool = ?'
