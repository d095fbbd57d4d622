// The other methods of a session: the streams that a client opens by itself, and the end.

import { acceptsOf } from './guard.ts'
import { invalidRequest, VERSION_HEADER } from './headers.ts'
import {
  type Hall,
  lineFor,
  NO_SESSION,
  OTHER_SESSION,
  refuse,
  SESSION_HEADER,
  sessionOf,
  type Visit,
} from './post.ts'
import type { Session } from './seat.ts'
import { LEGACY_VERSIONS } from '../wire/era.ts'
import type { Told } from '../front/stage.ts'

/** Streams of one session that are read at once beside those of its POSTs. */
const MAX_OPEN = 4

/** Takes one GET: opens a stream for what belongs to no request, or takes up one that broke. */
export function get(hall: Hall, visit: Visit): void {
  const session = named(hall, visit)
  if (session === null) return
  if (!acceptsOf(visit.headers.values.get('accept')).stream) return refuse(hall, visit, 406, ACCEPT)
  session.lastMs = hall.nowMs()
  const { log } = session
  const last = visit.headers.values.get('last-event-id')
  const broken = last === undefined ? null : log.find(last)
  const open = log.live().filter(({ kind }) => kind === 'open')
  const stream = broken?.stream ?? open.findLast((one) => !one.isAttached()) ?? log.begin('open')
  const read = open.filter((one) => one.isAttached() && one !== stream)
  if (read.length >= MAX_OPEN) read[0]?.end()
  stream.attach(
    (closed) => lineFor(hall, visit, { seat: session, session, closed }),
    broken?.after ?? null,
  )
}

/** Takes one DELETE: the session is no more when it is answered. */
export function del(hall: Hall, visit: Visit): void {
  const session = named(hall, visit)
  if (session === null) return
  hall.seats.end(session)
  visit.response.writeHead(204, [...visit.extra])
  visit.response.end()
}

/** The session of a request, which is answered where there is none. */
function named(hall: Hall, visit: Visit): Session | null {
  const { values } = visit.headers
  const version = values.get(VERSION_HEADER)
  const isLegacy = version === undefined ? values.has(SESSION_HEADER) : LEGACY.has(version)
  if (!isLegacy) {
    refuse(hall, visit, 405, METHOD)
    return null
  }
  const session = sessionOf(hall, visit)
  if (typeof session !== 'string') return session
  if (session === 'missing') refuse(hall, visit, 400, NO_SESSION)
  else refuse(hall, visit, 404, OTHER_SESSION)
  return null
}

const LEGACY: ReadonlySet<string> = new Set(LEGACY_VERSIONS)
const ACCEPT: Told = invalidRequest('accept', 'accept text/event-stream')
/** The refusal of a method of HTTP. */
export const METHOD: Told = invalidRequest('http_method', 'send messages with POST')
