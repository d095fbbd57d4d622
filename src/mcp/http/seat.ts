// The fronts behind one server: a desk for each modern client and endpoint, a session for each handshake.

import type { Client } from '../../call.ts'
import { canonical } from '../../canonical.ts'
import type { Weight } from '../front/channel.ts'
import { type Front, front, type FrontOptions } from '../front/front.ts'
import { type Shelf, streamLog, type StreamLog } from './log.ts'
import type { Load } from './sse-write.ts'

/** A front with what came in for it. `posts`: messages in work; `waiting`: those it was not ready for. */
export type Seat = {
  readonly front: Front
  readonly client: Client
  readonly path: string
  readonly load: ClientLoad
  readonly waiting: (() => void)[]
  posts: number
  lastMs: number
}

/** A session of a legacy client, bound to that client and the endpoint of its handshake. */
export type Session = Seat & { readonly id: string; readonly log: StreamLog }

/** What one client has open, over all its seats. `posts`: messages in work, those that are still being read
 *  too. `hold`: takes room for so many bytes of them, or says that there is none; `free` gives it back. */
export type ClientLoad = Load & {
  posts: number
  readonly hold: (bytes: number) => boolean
  readonly free: (bytes: number) => void
}

/** The seats of one server. */
export type Seats = {
  /** The desk of a modern client at an endpoint, made when it is first needed. */
  desk(client: Client, path: string): Seat
  /** A new session, or null: there is no room even when the one longest unused is ended. */
  begin(client: Client, path: string): Session | null
  /** The session of this id; null for one that is not this client's, or not at this endpoint. */
  find(id: string, client: Client, path: string): Session | null
  /** Ends a session: its calls are cancelled, its streams closed, its id never known again. */
  end(session: Session): void
  fronts(): readonly Front[]
  sessions(): readonly Session[]
  /** What all clients have not read yet, in UTF-16 units. */
  unread(): number
  /** Ends what was not used for too long, and all of clients that are not valid any more. */
  sweep(nowMs: number): void
}

/** Sessions of one client, and of all; the one longest unused makes room. */
const MAX_SESSIONS_A_CLIENT = 256
const MAX_SESSIONS = 4_096
/** Desks; they hold nothing but what is in flight. */
const MAX_DESKS = 4_096
/** How long a session without an open stream may be unused. */
export const SESSION_IDLE_MS = 1_800_000
const DESK_IDLE_MS = 600_000
/** Bytes of messages in work of one client, and of all: from their first byte until they are answered. */
const MAX_HELD: number = 64 * 1024 * 1024
const MAX_HELD_IN_ALL: number = 256 * 1024 * 1024
/** Messages to a session that wait for a stream to go out on. */
const MAX_WAITING = 100

/** What seats are made of. `random`: 32 fresh hex digits. `isValid`: false once a client is revoked. */
export type SeatOptions = {
  readonly front: Omit<FrontOptions, 'client' | 'transport' | 'ids' | 'eras' | 'write' | 'onReady'>
  readonly random: () => string
  readonly nowMs: () => number
  readonly isValid: (client: Client) => boolean
  readonly sessionIdleMs: number
}

type Room = {
  readonly options: SeatOptions
  readonly desks: Map<string, Seat>
  readonly sessions: Map<string, Session>
  readonly loads: Map<string, ClientLoad>
  readonly shelf: Shelf
  unread: number
  held: number
}

/** No seats. */
export function seats(options: SeatOptions): Seats {
  const room: Room = {
    options,
    desks: new Map(),
    sessions: new Map(),
    loads: new Map(),
    shelf: { kept: 0 },
    unread: 0,
    held: 0,
  }
  return {
    desk: (client, path) => deskOf(room, client, path),
    begin: (client, path) => begin(room, client, path),
    find(id, client, path) {
      const session = room.sessions.get(id)
      if (session === undefined || session.path !== path) return null
      return isSame(session.client, client) ? session : null
    },
    end: (session) => end(room, session),
    fronts: () => [...room.desks.values(), ...room.sessions.values()].map((one) => one.front),
    sessions: () => [...room.sessions.values()],
    unread: () => room.unread,
    sweep: (nowMs) => sweep(room, nowMs),
  }
}

/** Gives `run` to the front when it is ready for one more message; false when too many wait already. */
export function whenReady(seat: Seat, run: () => void): boolean {
  if (seat.waiting.length === 0 && seat.front.ready()) {
    run()
    return true
  }
  if (seat.waiting.length >= MAX_WAITING) return false
  seat.waiting.push(run)
  return true
}

const wake = (seat: Seat): void => {
  while (seat.front.ready()) {
    const run = seat.waiting.shift()
    if (run === undefined) return
    run()
  }
}

const keys = new WeakMap<Client, string>()

function keyOf(client: Client): string {
  const known = keys.get(client)
  if (known !== undefined) return known
  const { identity, profile, name, attributes } = client
  const key = canonical([identity, profile, name, { ...attributes }])
  keys.set(client, key)
  return key
}

const isSame = (one: Client, other: Client): boolean =>
  one.name === other.name && one.profile === other.profile && one.identity === other.identity

function loadOf(room: Room, client: Client): ClientLoad {
  const key = keyOf(client)
  const known = room.loads.get(key)
  if (known !== undefined) return known
  let unread = 0
  let held = 0
  const load: ClientLoad = {
    posts: 0,
    hold(bytes) {
      if (held + bytes > MAX_HELD || room.held + bytes > MAX_HELD_IN_ALL) return false
      held += bytes
      room.held += bytes
      return true
    },
    free(bytes) {
      held -= bytes
      room.held -= bytes
    },
    unread: () => unread,
    add(units) {
      unread += units
      room.unread += units
    },
  }
  room.loads.set(key, load)
  return load
}

function deskOf(room: Room, client: Client, path: string): Seat {
  const key = `${path} ${keyOf(client)}`
  const known = room.desks.get(key)
  if (known !== undefined) return known
  if (room.desks.size >= MAX_DESKS) dropIdleDesk(room)
  const seat: Seat = {
    ...blank(room, client, path),
    front: front({
      ...room.options.front,
      client,
      transport: 'http',
      ids: 'channel',
      eras: 'modern',
      // Nothing comes unasked in this era.
      write: () => false,
      onReady: () => wake(seat),
    }),
  }
  room.desks.set(key, seat)
  return seat
}

const blank = (room: Room, client: Client, path: string): Omit<Seat, 'front'> => ({
  client,
  path,
  load: loadOf(room, client),
  waiting: [],
  posts: 0,
  lastMs: room.options.nowMs(),
})

function dropIdleDesk(room: Room): void {
  for (const [key, { posts }] of room.desks) {
    if (posts > 0) continue
    room.desks.delete(key)
    return
  }
}

function begin(room: Room, client: Client, path: string): Session | null {
  const own = [...room.sessions.values()].filter((one) => isSame(one.client, client))
  const full = own.length >= MAX_SESSIONS_A_CLIENT ? own : null
  const crowded = room.sessions.size >= MAX_SESSIONS ? [...room.sessions.values()] : null
  const crowd = full ?? crowded
  if (crowd !== null && !endIdlest(room, crowd)) return null
  const { options } = room
  const { nowMs } = options
  const id = `${options.random()}${options.random()}`
  const log = streamLog({
    shelf: room.shelf,
    // Older clients cannot read an event without a message.
    primes: () => session.front.session()?.version === PRIMED,
    nowMs,
  })
  const session: Session = {
    ...blank(room, client, path),
    id,
    log,
    front: front({
      ...options.front,
      client,
      transport: 'http',
      ids: 'session',
      eras: 'legacy',
      write: (message, weight) => unasked(session, message, weight),
      onReady: () => wake(session),
    }),
  }
  // What is said before the client listens waits here.
  log.begin('open')
  room.sessions.set(id, session)
  return session
}

/** The revision whose streams begin with an event without a message. */
const PRIMED = '2025-11-25'

const isUnused = (session: Session): boolean =>
  session.posts === 0 && !session.log.live().some((stream) => stream.isAttached())

function endIdlest(room: Room, among: readonly Session[]): boolean {
  const [idlest] = among.filter(isUnused).sort((a, b) => a.lastMs - b.lastMs)
  if (idlest === undefined) return false
  end(room, idlest)
  return true
}

/** What belongs to no request goes out on one stream only: the newest that somebody reads, else the newest
 *  that somebody may come back for. */
function unasked(session: Session, message: string, weight: Weight): boolean {
  const open = session.log.live().filter(({ kind }) => kind === 'open')
  const stream = open.findLast((one) => one.isAttached()) ?? open.at(-1)
  return stream?.write(message, weight) ?? false
}

function end(room: Room, session: Session): void {
  room.sessions.delete(session.id)
  session.front.abandon()
  // What was counted still gets its record; nobody waits for it.
  void session.front.drain()
  session.log.close()
}

function sweep(room: Room, nowMs: number): void {
  const { isValid, sessionIdleMs } = room.options
  for (const session of room.sessions.values()) {
    const isOld = nowMs - session.lastMs > sessionIdleMs
    if (!isValid(session.client) || (isOld && isUnused(session))) end(room, session)
    else session.log.sweep(nowMs)
  }
  sweepDesks(room, nowMs)
  const used = new Set([...room.desks.values(), ...room.sessions.values()].map((one) => one.load))
  for (const [key, load] of room.loads) {
    if (load.posts === 0 && load.unread() === 0 && !used.has(load)) room.loads.delete(key)
  }
}

function sweepDesks(room: Room, nowMs: number): void {
  for (const [key, { posts, lastMs, client, front: one }] of room.desks) {
    const isValid = room.options.isValid(client)
    if (isValid && (posts > 0 || nowMs - lastMs <= DESK_IDLE_MS)) continue
    room.desks.delete(key)
    if (!isValid) one.abandon()
    void one.drain()
  }
}
