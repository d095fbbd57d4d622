// One transaction for everything that waits, and what each of its requests gets to hear.

import { Fault } from '../fault.ts'
import { emptyDraft } from '../ledger/entry.ts'
import type { Fresh } from './book.ts'
import type { Mended } from './mirror.ts'
import { STORE_LIMITS } from './limits.ts'
import {
  closeOperation,
  openOperation,
  type Retention,
  settleOperation,
  sweepWaiting,
} from './operations.ts'
import { rememberPins } from './pins.ts'
import { recordMended, type Room } from './start.ts'
import { troubleOf } from './trouble.ts'
import type { Reply, Request } from './wire.ts'

/** What one transaction did. `pins`: true when pins may have changed. */
export type Committed = {
  readonly replies: readonly Reply[]
  readonly fresh: Fresh | null
  readonly pins: boolean
}

/** What goes into a transaction beside the requests. */
export type Extras = {
  readonly retention: Retention
  readonly mended: readonly Mended[]
  readonly renew: boolean
}

/** Carries out `requests` in the transaction that is open, and commits it. A request that is wrong in
 *  itself fails alone; anything else that fails undoes all and is thrown. */
export function commitBatch(room: Room, requests: readonly Request[], extras: Extras): Committed {
  const { book, lease } = room
  try {
    // A claim stands on our lease; a record does not.
    if (extras.renew || requests.some(({ kind }) => kind !== 'record')) lease.hold()
    if (extras.renew) lease.renew()
    recordMended(book, extras.mended)
    if (extras.renew) sweep(room, extras.retention)
    const replies = requests.map((request) => attend(room, request, extras.retention))
    const fresh = book.commit()
    return { replies, fresh, pins: requests.some(({ kind }) => kind === 'pin') }
  } catch (error) {
    book.rollback()
    throw error
  }
}

function sweep({ book }: Room, { keptUs }: Retention): void {
  const nowUs = Date.now() * 1_000
  const inputUs = nowUs - STORE_LIMITS.inputMs * 1_000
  sweepWaiting(book, { inputUs, taskUs: nowUs - keptUs, nowUs }, STORE_LIMITS.swept)
}

function attend(room: Room, request: Request, retention: Retention): Reply {
  const { id } = request
  try {
    return request.kind === 'record' ? record(room, request) : apart(room, request, retention)
  } catch (error) {
    const { kind, why } = troubleOf(error)
    // The rest of the batch has nothing to do with a mistake in this one.
    if (kind === 'ours') return { id, why }
    throw error
  }
}

// One insert undoes itself when it fails: it needs no savepoint, and it is the common case.
function record(
  { book }: Room,
  { id, draft, segment }: Extract<Request, { kind: 'record' }>,
): Reply {
  if (draft.args_digest === null) book.append(draft)
  else book.append(draft, { segment })
  return { id }
}

function apart(
  { book, lease }: Room,
  request: Exclude<Request, { kind: 'record' }>,
  retention: Retention,
): Reply {
  const { id } = request
  return book.apart((): Reply => {
    switch (request.kind) {
      case 'open': {
        const desk = { nonce: lease.nonce(), endIfDead: lease.endIfDead, retention }
        return { id, done: openOperation(book, desk, request.work) }
      }
      case 'close':
        closeOperation(book, request.work)
        return { id }
      case 'settle':
        settleOperation(book, request.work)
        return { id }
      case 'pin':
        rememberPins(book, request.pins, { client: request.client })
        return { id }
      case 'stop':
        lease.end()
        book.append(emptyDraft('stop', Date.now() * 1_000), { lease: lease.nonce() })
        return { id }
    }
  })
}

/** The error of a start as the caller of `openSqlite` gets it. */
export function startFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { kind, why } = troubleOf(error)
  if (kind === 'ours') return new Fault('internal', why, { cause: error })
  if (kind === 'sync') return new Fault('sync_failed', why, { cause: error })
  return new Fault('state_refused', `the state directory cannot be used: ${why}`, { cause: error })
}
