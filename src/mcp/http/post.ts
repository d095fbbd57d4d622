// One POST: from its body to the front that answers it.

import type { IncomingMessage, ServerResponse } from 'node:http'

import type { Client } from '../../call.ts'
import type { Doors } from '../../gateway.ts'
import { isObject, type Json, type JsonLimits } from '../../json.ts'
import { isCall } from '../front/calls.ts'
import type { Channel } from '../front/channel.ts'
import { isModern, LEGACY_VERSIONS } from '../wire/era.ts'
import { announced, type Body, discard, readBody } from './body.ts'
import { acceptsOf, type Accepts, isJson } from './guard.ts'
import { eraOf, type Headers, hopOf, invalidRequest, ladder, VERSION_HEADER } from './headers.ts'
import { plainCarrier, type Reply, replyTo } from './reply.ts'
import { type Seat, type Seats, type Session, whenReady } from './seat.ts'
import { type Line, readLine } from '../wire/message.ts'
import type { Shelf } from '../wire/shelf.ts'
import { type EventLine, eventLine, type Load, MAX_UNREAD } from './sse-write.ts'
import type { Told } from '../front/stage.ts'

/** One request whose client is known. `extra`: headers that every answer to it bears, in pairs. */
export type Visit = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly headers: Headers
  readonly client: Client
  readonly path: string
  readonly extra: readonly string[]
}

/** What the server lends to a request. */
export type Hall = {
  readonly seats: Seats
  readonly json: JsonLimits
  readonly nowMs: () => number
  readonly say: (line: string) => void
  readonly turn: Doors['turn']
  /** Replies in work, by `nextNumber`: those that stay silent become streams. */
  readonly replies: Shelf<
    number,
    { readonly reply: Reply; readonly sinceMs: number; readonly isLegacy: boolean }
  >
  readonly nextNumber: () => number
  /** Refuses as HTTP, counted only. */
  readonly overload: (visit: Visit, what: string) => void
  /** True when the server ends without waiting any longer. */
  readonly isAbandoned: () => boolean
  /** False once the client of a request may not come any more; then it has been answered. */
  readonly isKept: (visit: Visit) => boolean
  /** Requests of one client in work, over all its seats. */
  readonly posts: number
}

/** Takes one POST. Never throws. */
export function post(hall: Hall, visit: Visit): void {
  const { request, headers } = visit
  const accepts = acceptsOf(headers.values.get('accept'))
  if (!isJson(headers)) return refuse(hall, visit, 415, MEDIA)
  if (!accepts.json && !accepts.stream) return refuse(hall, visit, 406, ACCEPT)
  const length = announced(headers.values.get('content-length'))
  if (length !== null && length > hall.json.bytes) return tooLong(hall, visit, length)
  const seat = hall.seats.desk(visit.client, visit.path)
  if (seat.load.posts >= hall.posts) return hall.overload(visit, 'too many requests at once')
  if (seat.load.unread() > MAX_UNREAD) return hall.overload(visit, 'too many answers unread')
  if (headers.values.get('expect')?.toLowerCase() === '100-continue') {
    visit.response.writeContinue()
  }
  const { hold, release } = holding(seat.load)
  readBody(request, hall.json.bytes, hold, (body) => {
    received(hall, { ...visit, accepts, release }, body)
  })
}

/** Counts one message of a client from its first byte on; what it holds is given back once. */
function holding(load: Seat['load']): {
  readonly hold: (bytes: number) => boolean
  readonly release: () => void
} {
  let held = 0
  let isOver = false
  load.posts++
  return {
    hold(bytes) {
      if (!load.hold(bytes)) return false
      held += bytes
      return true
    },
    release() {
      if (isOver) return
      isOver = true
      load.posts--
      load.free(held)
    },
  }
}

/** `release`: called when nothing of the message is held any more. */
type Post = Visit & { readonly accepts: Accepts; readonly release: () => void }

function received(hall: Hall, visit: Post, body: Body): void {
  // A body may take long, and its client may be revoked before its end.
  if (body.kind === 'body' && hall.isKept(visit)) return arrived(hall, visit, body.bytes)
  visit.release()
  if (body.kind === 'too_long') return tooLong(hall, visit, body.bytes)
  if (body.kind === 'crowded') hall.overload(visit, 'too much of your messages is held')
}

function arrived(hall: Hall, visit: Post, bytes: Buffer): void {
  const read = readLine(bytes, hall.json)
  const size = bytes.length
  if (read.kind === 'request' && read.method === 'initialize' && isHandshake(visit, read)) {
    return handshake(hall, visit, { read, size })
  }
  if (isOfSession(visit, read)) return inSession(hall, visit, { read, size })
  const problem = modernProblem(visit.headers, read)
  if (problem !== null) return turn(hall, visit, 400, [problem, idOf(read)])
  const seat = hall.seats.desk(visit.client, visit.path)
  take(hall, visit, { seat, session: null, read, size })
}

const isHandshake = ({ headers }: Post, { params }: Extract<Line, { kind: 'request' }>): boolean =>
  eraOf(headers, params) === 'legacy'

/** Whether a message is for a session: legacy, and not something that no session can read. */
function isOfSession({ headers }: Post, read: Line): boolean {
  if (read.kind === 'request' || read.kind === 'notification') {
    return eraOf(headers, read.params) === 'legacy'
  }
  if (read.kind === 'batch' && read.elements.some(isModernElement)) return false
  if (read.kind === 'malformed' && !headers.values.has(SESSION_HEADER)) return false
  return eraOf(headers, null) === 'legacy'
}

const isModernElement = (element: Json): boolean => {
  const params = isObject(element) ? element['params'] : undefined
  return isObject(params) && isModern(params)
}

/** Why a message that is for no session is not taken, or null. Malformed ones are for the front to refuse. */
function modernProblem(headers: Headers, read: Line): Told | null {
  if (read.kind === 'batch') {
    return invalidRequest('batch', 'batches are not taken; send each message in a POST of its own')
  }
  if (read.kind === 'response') {
    return invalidRequest('response', 'nothing was asked, so nothing can be answered')
  }
  return read.kind === 'request' ? ladder(headers, read) : null
}

/** The header that names a session. */
export const SESSION_HEADER = 'mcp-session-id'

type Read = { readonly read: Line; readonly size: number }

function handshake(hall: Hall, visit: Post, { read, size }: Read): void {
  const session = hall.seats.begin(visit.client, visit.path)
  if (session === null) {
    visit.release()
    return hall.overload(visit, 'too many sessions')
  }
  take(hall, visit, { seat: session, session, read, size })
}

function inSession(hall: Hall, visit: Post, { read, size }: Read): void {
  const session = sessionOf(hall, visit)
  if (session === 'missing') return turn(hall, visit, 400, [NO_SESSION, idOf(read)])
  if (session === 'unknown') return turn(hall, visit, 404, [OTHER_SESSION, idOf(read)])
  tellVersion(hall, visit, session)
  take(hall, visit, { seat: session, session, read, size })
}

function turn(hall: Hall, visit: Post, status: number, why: readonly [Told, Known]): void {
  visit.release()
  refuse(hall, visit, status, ...why)
}

/** The session that a request names. One of another client does not exist, as one that ended does not. */
export function sessionOf(
  { seats }: Pick<Hall, 'seats'>,
  { headers, client, path }: Visit,
): Session | 'missing' | 'unknown' {
  const id = headers.values.get(SESSION_HEADER)
  if (id === undefined) return 'missing'
  return headers.repeated.has(SESSION_HEADER)
    ? 'unknown'
    : (seats.find(id, client, path) ?? 'unknown')
}

// A client that went on with another revision's header is served as it agreed, and the operator hears of it.
function tellVersion({ say }: Hall, { headers }: Visit, session: Session): void {
  const header = headers.values.get(VERSION_HEADER)
  const agreed = session.front.session()?.version
  if (header === undefined || agreed === undefined || header === agreed) return
  if (told.has(session) || !LEGACY_VERSIONS.includes(header)) return
  told.add(session)
  say(`a client says ${header} in its headers but agreed on ${agreed}; it is served as agreed`)
}

const told = new WeakSet<Session>()

type Taken = Read & { readonly seat: Seat; readonly session: Session | null }

function take(hall: Hall, visit: Post, taken: Taken): void {
  const { seat, read, size } = taken
  const reply = replyFor(hall, visit, taken)
  const hop = taken.session === null ? hopOf(visit.headers) : undefined
  const isTaken = whenReady(seat, () => {
    // Whoever closed the connection while its request waited has cancelled it, unless it is of a session.
    if (taken.session === null && visit.response.destroyed) reply.done()
    else seat.front.take(read, size, reply, hop)
  })
  if (isTaken) return
  hall.overload(visit, 'too many requests wait')
  reply.done()
}

function replyFor(hall: Hall, visit: Post, { seat, session, read }: Taken): Reply {
  const { response, accepts, extra, release } = visit
  const { load } = seat
  const number = hall.nextNumber()
  seat.posts++
  seat.lastMs = hall.nowMs()
  const gone = (): void => seat.front.gone(reply)
  const open = (closed: () => void): EventLine => lineFor(hall, visit, { seat, session, closed })
  const reply = replyTo({
    response,
    accepts,
    headers: () => [...sessionHeader(session), ...extra],
    status: null,
    empty: isUnanswered(read) ? 400 : 202,
    // A session's client may have cancelled its request, and then nothing is owed.
    owes: () => isAsking(read) && (session === null || hall.isAbandoned() || !hall.isKept(visit)),
    batch: read.kind === 'batch',
    load,
    turn: hall.turn,
    stream: () => {
      if (session === null) return plainCarrier(open(gone))
      const stream = session.log.begin('answer')
      stream.attach(open, null)
      return stream
    },
    lost: gone,
    over() {
      hall.replies.delete(number)
      release()
      seat.posts--
      seat.lastMs = hall.nowMs()
      if (session !== null && session.front.session() === null) hall.seats.end(session)
    },
  })
  hall.replies.set(number, { reply, sinceMs: hall.nowMs(), isLegacy: session !== null })
  return reply
}

/** Begins an event stream as the answer to a request. */
export function lineFor(
  hall: Pick<Hall, 'nowMs'>,
  { response, extra }: Pick<Visit, 'response' | 'extra'>,
  to: {
    readonly seat: { readonly load: Load }
    readonly session: Session | null
    readonly closed: () => void
  },
): EventLine {
  return eventLine(response, {
    headers: [...sessionHeader(to.session), ...extra],
    load: to.seat.load,
    nowMs: hall.nowMs,
    closed: to.closed,
  })
}

// Only a handshake that was answered made a session.
const sessionHeader = (session: Session | null): readonly string[] =>
  session === null || session.front.session() === null ? [] : ['Mcp-Session-Id', session.id]

/** A message that is refused without an answer: HTTP still owes one. */
const isUnanswered = (read: Line): boolean =>
  (read.kind === 'malformed' && !read.told) || (read.kind === 'notification' && isCall(read.method))

const isAsking = (read: Line): boolean => read.kind === 'request' || read.kind === 'batch'

const idOf = (read: Line): Known =>
  read.kind === 'request'
    ? { id: read.id, method: read.method }
    : { id: null, method: read.kind === 'notification' ? read.method : '' }

type Known = Parameters<Seat['front']['refuse']>[0]

/** Records a request that is refused before any front takes it, then answers with this status. */
export function refuse(
  hall: Hall,
  visit: Visit,
  status: number,
  ...[why, what = { id: null, method: '' }]: readonly [Told, Known?]
): void {
  const { request, response, client, path, extra } = visit
  const seat = hall.seats.desk(client, path)
  discard(request)
  seat.posts++
  const reply: Channel = replyTo({
    response,
    accepts: { json: true, stream: false },
    headers: () => (status === 405 ? ['Allow', 'POST', ...extra] : extra),
    status,
    empty: 400,
    owes: () => false,
    batch: false,
    load: seat.load,
    turn: hall.turn,
    stream: () => NOTHING,
    lost: () => undefined,
    over() {
      seat.posts--
    },
  })
  seat.front.refuse(what, why, reply)
}

const NOTHING = { write: () => false, end: () => undefined, keepAlive: () => undefined }

const tooLong = (hall: Hall, visit: Visit, bytes: number): void =>
  refuse(hall, visit, 413, TOO_LONG, { id: null, method: '', bytes })

const TOO_LONG = invalidRequest('too_long', 'the message is too long; send a shorter one')
const MEDIA = invalidRequest(
  'content_type',
  'the body must be application/json in UTF-8, and not compressed',
)
const ACCEPT = invalidRequest('accept', 'accept application/json and text/event-stream')
/** The refusal of a request that names no session. */
export const NO_SESSION: Told = invalidRequest(
  'session_missing',
  'the header Mcp-Session-Id is missing; initialize first, or send MCP-Protocol-Version: 2026-07-28',
)
/** The refusal of a request whose session ended, or is somebody else's. */
export const OTHER_SESSION: Told = invalidRequest(
  'session_unknown',
  'there is no such session; initialize again',
)
