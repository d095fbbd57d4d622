// What the writer's thread knows, and how it tells of trouble.

import type { Stats } from 'node:fs'

import type { FaultCode } from '../fault.ts'
import type { Fresh } from './book.ts'
import { readClients } from './clients.ts'
import type { Inbox, Waiting } from './inbox.ts'
import { STORE_LIMITS } from './limits.ts'
import { underLock, type Mended } from './mirror.ts'
import { readPins } from './pins.ts'
import { sentence, type Room } from './start.ts'
import { troubleOf, type Trouble } from './trouble.ts'
import type { Message, Setup } from './wire.ts'

/** What the thread knows beside its room. `mended`: mendings that have no record yet. `late`: the mirror
 *  waits for its lock. `trouble`: what is wrong now, by what it is about. */
export type Writer = {
  readonly room: Room
  readonly setup: Setup
  readonly inbox: Inbox
  readonly tell: (message: Message) => void
  mended: readonly Mended[]
  late: boolean
  over: boolean
  renewedAt: number
  /** When free space was last asked for. */
  lookedAt: number
  /** ledger.db as it was opened. */
  readonly file: Stats | null
  health: true | string
  pins: string
  clients: string
  dataVersion: number
  readonly trouble: { commit: string | null; mirror: string | null; space: string | null }
}

/** The mirror follows the ledger, or the reason why it cannot is noted. Gives an error that ends all. */
export function mirrorFollows(writer: Writer, fresh: Fresh | null): Error | null {
  const { mirror, mirrorLock } = writer.room
  try {
    const waitMs = writer.late ? 0 : STORE_LIMITS.mirrorWaitMs
    writer.late = !underLock(mirrorLock, waitMs, () => mirror.follow(fresh))
    if (!writer.late) writer.trouble.mirror = null
  } catch (error) {
    const { kind, why } = troubleOf(error)
    if (kind !== 'refuse' && kind !== 'busy') return error instanceof Error ? error : new Error(why)
    writer.trouble.mirror = why
  }
  const mended = mirror.mended()
  for (const one of mended) writer.tell({ kind: 'say', line: sentence(one) })
  writer.mended = [...writer.mended, ...mended]
  return null
}

/** Tells the main thread of the pins, when they are other than it knows. */
export function sharePins(writer: Writer): void {
  const pins = readPins(writer.room.book)
  const text = JSON.stringify(pins)
  if (text === writer.pins) return
  writer.pins = text
  writer.tell({ kind: 'pins', pins })
}

/** Tells the main thread of the clients, when they are other than it knows. */
export function shareClients(writer: Writer): void {
  const clients = readClients(writer.room.book)
  const text = JSON.stringify(clients)
  if (text === writer.clients) return
  writer.clients = text
  writer.tell({ kind: 'clients', clients })
}

/** Tells the main thread of a change of health. */
export function tellHealth(writer: Writer): void {
  const { commit: first, mirror, space } = writer.trouble
  // Little space is a warning: records still go in.
  const stopped = first ?? mirror
  const now = stopped ?? space ?? true
  if (now === writer.health) return
  writer.health = now
  writer.tell({ kind: 'health', health: now, records: stopped === null })
}

/** Answers each of `waiting` that nothing was recorded, and why. */
export function refuse(writer: Writer, waiting: readonly Waiting[], why: string): void {
  if (waiting.length === 0) return
  writer.tell({ kind: 'replies', replies: waiting.map(({ request }) => ({ id: request.id, why })) })
}

/** Runs `work`; whatever it throws is the end of all writing. */
export function guarded(writer: Writer, work: () => void): void {
  try {
    work()
  } catch (error) {
    // The connection stays open and untouched: closing it would sync.
    writer.over = true
    const trouble = troubleOf(error)
    writer.tell({ kind: 'broken', code: codeOf(trouble), why: trouble.why })
  }
}

function codeOf({ kind }: Trouble): FaultCode {
  if (kind === 'sync') return 'sync_failed'
  return kind === 'broken' ? 'state_tampered' : 'internal'
}
