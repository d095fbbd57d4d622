// Connections to one origin: each carries one exchange at a time, and is kept for the next one for a while.

import type { Socket } from 'node:net'

import { bursts } from '../wire/burst.ts'
import { dial, type Place, type Session } from './dial.ts'
import { type ReplyFault, type ReplyHead, type ReplyReader, replyReader } from './reply.ts'

/** Why an exchange ended without a whole reply. `handed`: the connection was had, so the server may have the
 *  request. `stale`: it was kept from before, and not one byte came back. */
export type LaneFault = {
  readonly handed: boolean
  readonly stale: boolean
  readonly why: NodeJS.ErrnoException | ReplyFault | 'too_slow' | 'too_many' | null
}

/** What is written: a head with its last empty line, and a body. */
export type Parcel = { readonly head: string; readonly body: string | null }

/** What is heard of an exchange. `end` or `failed` comes once and last. Nothing comes before `open` returned. */
export type LaneEars = {
  readonly handed: (kept: boolean) => void
  readonly head: (head: ReplyHead) => void
  readonly data: (chunk: Buffer) => void
  readonly end: () => void
  readonly failed: (fault: LaneFault) => void
}

/** An exchange under way. */
export type Passage = {
  /** False while it is certain that nothing was written. */
  readonly handed: () => boolean
  /** Closes its connection; nothing more is heard. */
  readonly stop: () => void
  /** Nothing more is heard. The rest of the reply is let pass for so long, so that the connection can be kept. */
  readonly leave: (ms: number) => void
  /** Reads nothing for so long. */
  readonly hold: (ms: number) => void
}

/** All connections to one origin. */
export type Lanes = {
  /** Sends on a connection that is kept, on a new one, or when one is free. */
  readonly open: (parcel: Parcel, ears: LaneEars) => Passage
  /** Closes all, also those in use. */
  readonly close: () => void
  /** True when there is none and nobody waits for one. */
  readonly isEmpty: () => boolean
}

/** Where they lead, and how many there may be. */
export type LanesOptions = Place & { readonly maxOpen: number; readonly maxFree: number }

/** How long a connection may take to be made. */
export const CONNECT_MS = 10_000
/** How long a connection without a call is kept. Servers close theirs after 5 s and more; one that is closed
 *  just when we write is a call of which nobody can say whether it arrived. */
const KEEP_MS = 4000
/** A server that names its own time gets back its connection so much earlier. */
const KEEP_MARGIN_MS = 1000
/** Between two looks at which connections were kept for long enough. */
const SWEEP_MS = 500
/** Requests that wait for a connection. */
const MAX_WAITING = 10_000
/** A longer body is written beside its head, not copied together with it. */
const JOINED_CHARS = 64 * 1024

type Turn = {
  readonly parcel: Parcel
  readonly ears: LaneEars
  /** Null while it waits, and once it is over. */
  lane: Lane | null
  handed: boolean
  over: boolean
}

type Lane = {
  readonly pool: Pool
  readonly socket: Socket
  readonly reader: ReplyReader
  readonly breathe: (chunk: Buffer) => void
  turn: Turn | null
  /** It carried an exchange before this one. */
  kept: boolean
  open: boolean
  /** A byte came back for this exchange. */
  heard: boolean
  why: LaneFault['why']
  keepMs: number
  freeUntil: number
  timer: NodeJS.Timeout | undefined
}

type Pool = {
  readonly options: LanesOptions
  readonly lanes: Set<Lane>
  /** The one that was used last is last. */
  free: Lane[]
  readonly waiting: Set<Turn>
  readonly session: Session
  sweeper: NodeJS.Timeout | undefined
}

/** No connection yet. */
export function lanes(options: LanesOptions): Lanes {
  const pool: Pool = {
    options,
    lanes: new Set(),
    free: [],
    waiting: new Set(),
    session: { last: undefined },
    sweeper: undefined,
  }
  return {
    open: (parcel, ears) => open(pool, parcel, ears),
    close() {
      for (const turn of pool.waiting) fail(turn, { handed: false, stale: false, why: null })
      pool.waiting.clear()
      for (const lane of pool.lanes) lane.socket.destroy()
    },
    isEmpty: () => pool.lanes.size === 0 && pool.waiting.size === 0,
  }
}

function open(pool: Pool, parcel: Parcel, ears: LaneEars): Passage {
  const turn: Turn = { parcel, ears, lane: null, handed: false, over: false }
  const lane = freeOne(pool)
  if (lane !== null) {
    take(lane, turn)
    write(lane, turn)
    process.nextTick(tellKept, turn)
  } else if (pool.lanes.size < pool.options.maxOpen) connect(pool, turn)
  else if (pool.waiting.size < MAX_WAITING) pool.waiting.add(turn)
  else process.nextTick(fail, turn, { handed: false, stale: false, why: 'too_many' })
  return {
    handed: () => turn.handed,
    stop() {
      pool.waiting.delete(turn)
      turn.over = true
      turn.lane?.socket.destroy()
    },
    leave(ms) {
      turn.over = true
      if (turn.lane !== null) linger(turn.lane, ms)
    },
    hold(ms) {
      if (turn.lane !== null) hold(turn.lane, ms)
    },
  }
}

/** The free connection that was used last, if one is still good. */
function freeOne(pool: Pool): Lane | null {
  const now = performance.now()
  for (;;) {
    const lane = pool.free.pop()
    if (lane === undefined) return null
    if (lane.freeUntil > now && lane.open && !lane.socket.destroyed) return lane
    lane.socket.destroy()
  }
}

function take(lane: Lane, turn: Turn): void {
  lane.turn = turn
  turn.lane = lane
  lane.heard = false
  lane.why = null
}

function tellKept(turn: Turn): void {
  if (!turn.over) turn.ears.handed(true)
}

function fail(turn: Turn, fault: LaneFault): void {
  if (turn.over) return
  turn.over = true
  turn.ears.failed(fault)
}

/** From here on the server may have it. */
function write({ kept, socket }: Lane, turn: Turn): void {
  const { head, body } = turn.parcel
  turn.handed = true
  if (kept) socket.ref()
  if (body === null) socket.write(head, 'latin1')
  else if (body.length < JOINED_CHARS && isAscii(body)) socket.write(head + body, 'latin1')
  else {
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body, 'utf8')
    socket.uncork()
  }
}

const isAscii = (text: string): boolean => Buffer.byteLength(text) === text.length

function connect(pool: Pool, turn: Turn): void {
  const socket = dial(pool.options, pool.session, (chunk) => arrived(lane, chunk))
  if (socket instanceof Error) {
    process.nextTick(fail, turn, { handed: false, stale: false, why: socket })
    return
  }
  const lane: Lane = {
    pool,
    socket,
    reader: replyReader({
      head(head) {
        lane.keepMs = head.keepMs
        if (lane.turn?.over === false) lane.turn.ears.head(head)
      },
      data(chunk) {
        if (lane.turn?.over === false) lane.turn.ears.data(chunk)
      },
    }),
    breathe: bursts(socket),
    turn: null,
    kept: false,
    open: false,
    heard: false,
    why: null,
    keepMs: 0,
    freeUntil: 0,
    timer: undefined,
  }
  pool.lanes.add(lane)
  take(lane, turn)
  lane.timer = setTimeout(() => {
    lane.why = 'too_slow'
    socket.destroy()
  }, CONNECT_MS)
  // Over TLS nothing of the request is written before the server has proved who it is.
  socket.once(pool.options.secure ? 'secureConnect' : 'connect', () => connected(lane))
  socket.once('end', () => finished(lane))
  socket.on('error', (error) => {
    lane.why ??= error
  })
  socket.once('close', () => closed(lane))
}

function connected(lane: Lane): void {
  const { turn } = lane
  clearTimeout(lane.timer)
  lane.open = true
  if (turn === null || turn.over) {
    lane.socket.destroy()
    return
  }
  write(lane, turn)
  turn.ears.handed(false)
}

function arrived(lane: Lane, chunk: Buffer): void {
  const { reader, socket, turn } = lane
  // Nobody asked: what it says now would be taken for the answer to the next request.
  if (turn === null || !turn.handed) {
    socket.destroy()
    return
  }
  lane.heard = true
  const state = reader.push(chunk)
  if (state === 'done' || state === 'excess') settle(lane, turn, state === 'done')
  else if (state !== 'reading') {
    lane.why = state
    socket.destroy()
  } else lane.breathe(chunk)
}

/** The reply is whole. The connection is free before anybody hears of it, who may want the next one. */
function settle(lane: Lane, turn: Turn, clean: boolean): void {
  const { pool, socket } = lane
  lane.turn = null
  turn.lane = null
  clearTimeout(lane.timer)
  // A reply that came before its request was whole leaves a rest of which nobody knows what it is taken for.
  if (clean && keepMs(lane) > 0 && socket.writableLength === 0 && !socket.destroyed) release(lane)
  else socket.destroy()
  // Before one who hears of it now wants another: those who wait were first.
  if (pool.waiting.size > 0) pump(pool)
  if (turn.over) return
  turn.over = true
  turn.ears.end()
}

const keepMs = ({ keepMs: told }: Lane): number => Math.min(KEEP_MS, told - KEEP_MARGIN_MS)

function release(lane: Lane): void {
  const { pool, reader, socket } = lane
  reader.reset()
  lane.kept = true
  if (socket.isPaused()) socket.resume()
  if (pool.free.length >= pool.options.maxFree && pool.waiting.size === 0) {
    socket.destroy()
    return
  }
  // One that is only kept does not keep this process.
  socket.unref()
  lane.freeUntil = performance.now() + keepMs(lane)
  pool.free.push(lane)
  pool.sweeper ??= setTimeout(() => sweep(pool), SWEEP_MS).unref()
}

/** Closes what was kept for long enough: one timer for all, none for a call. */
function sweep(pool: Pool): void {
  const now = performance.now()
  pool.sweeper = undefined
  pool.free = pool.free.filter((lane) => {
    if (lane.freeUntil > now) return true
    lane.socket.destroy()
    return false
  })
  if (pool.free.length > 0) pool.sweeper = setTimeout(() => sweep(pool), SWEEP_MS).unref()
}

/** Those who wait get what is free now. */
function pump(pool: Pool): void {
  for (const turn of pool.waiting) {
    const lane = freeOne(pool)
    if (lane === null && pool.lanes.size >= pool.options.maxOpen) return
    pool.waiting.delete(turn)
    if (lane === null) {
      connect(pool, turn)
      continue
    }
    take(lane, turn)
    write(lane, turn)
    process.nextTick(tellKept, turn)
  }
}

function finished(lane: Lane): void {
  const { reader, socket, turn } = lane
  if (turn !== null && turn.handed && reader.close()) settle(lane, turn, false)
  socket.destroy()
}

function closed(lane: Lane): void {
  const { heard, kept, pool, turn, why } = lane
  clearTimeout(lane.timer)
  pool.lanes.delete(lane)
  const at = pool.free.indexOf(lane)
  if (at >= 0) pool.free.splice(at, 1)
  lane.turn = null
  if (turn !== null) {
    turn.lane = null
    fail(turn, { handed: turn.handed, stale: kept && !heard, why })
  }
  if (pool.waiting.size > 0) pump(pool)
}

function linger(lane: Lane, ms: number): void {
  clearTimeout(lane.timer)
  lane.timer = setTimeout(() => lane.socket.destroy(), ms).unref()
}

function hold({ socket }: Lane, ms: number): void {
  if (socket.isPaused()) return
  socket.pause()
  setTimeout(() => socket.resume(), ms).unref()
}
