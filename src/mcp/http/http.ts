// The server: sockets in, requests to the front that is theirs, and an orderly end.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'

import type { Client } from '../../call.ts'
import { Fault } from '../../fault.ts'
import { recordCounts } from '../../gateway.ts'
import {
  CLOSE,
  health,
  isKept,
  known,
  overload,
  preflight,
  turnAway,
  unavailable,
  unreadable,
} from './away.ts'
import { discard } from './body.ts'
import { corsHeaders } from './cors.ts'
import { flood } from './flood.ts'
import { type Arrival, type Gate, HTTP_TIMES, type HttpOptions, type HttpTimes } from './gate.ts'
import { del, get, METHOD } from './get.ts'
import { guard } from './guard.ts'
import { invalidRequest, readHeaders } from './headers.ts'
import { post, refuse, type Visit } from './post.ts'
import { turnDown } from './reply.ts'
import { seats } from './seat.ts'
import { shelf } from '../wire/shelf.ts'

/** A server that listens. */
export type HttpServer = {
  /** `http://127.0.0.1:8377`. */
  readonly url: string
  readonly port: number
  /** New work is refused from now on, streams end; resolves when nothing is in flight. */
  drain(): Promise<void>
  /** The time is up: what is in flight is cancelled, nothing more is said. */
  abandon(): void
  /** Closes every connection; resolves when the address is free. */
  close(): Promise<void>
}

/** Bytes of the headers of one request. */
const MAX_HEADER_BYTES = 16 * 1024
/** Connections at once; more are closed as they come. */
const MAX_CONNECTIONS = 8_192
/** Requests of one connection in work: nobody needs to send a second before the first is answered. */
const MAX_PIPELINED = 16
/** Requests of one client in work, over all its connections and sessions. */
const MAX_POSTS = 1_024
/** Unread output of all clients, in UTF-16 units, from which on no new request is taken. */
const MAX_UNREAD_IN_ALL: number = 256 * 1024 * 1024
/** How long a written answer may still take to leave when the server closes. */
const FLUSH_MS = 1_000

/** Listens. Errors: `Fault('usage')` for an address that cannot be had. */
export async function serveHttp(options: HttpOptions): Promise<HttpServer> {
  const gate = gateOf(options)
  const { server, times } = gate
  server.on('request', (request, response) => visit(gate, request, response))
  server.on('checkContinue', (request, response) => visit(gate, request, response))
  server.on('clientError', (error, socket) => unreadable(gate, error, socket))
  const { upstreams } = options
  upstreams.onChange((_upstream, kind) => gate.seats.fronts().forEach((one) => one.changed(kind)))
  upstreams.onLog((_upstream, params, of) =>
    gate.seats.fronts().forEach((one) => one.logged(params, of)),
  )
  upstreams.onUpdated((upstream, params, of) =>
    gate.seats.fronts().forEach((one) => one.updated(upstream, params, of)),
  )
  const { port, host } = await listening(server, options.listen)
  openPosts(gate, host, port)
  const timer = setInterval(() => sweep(gate), times.sweep)
  const { seats: all } = gate
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    async drain() {
      gate.draining = true
      for (const session of all.sessions()) {
        for (const stream of session.log.live()) if (stream.kind === 'open') stream.end()
      }
      await Promise.all(all.fronts().map((one) => one.drain()))
      await gate.flood.flush()
    },
    abandon() {
      gate.abandoned = true
      for (const one of all.fronts()) one.abandon()
    },
    close: () => close(gate, timer),
  }
}

const nowMs = (): number => performance.now()

function gateOf(options: HttpOptions): Gate {
  const times = { ...HTTP_TIMES, ...options.times }
  const { doors, limits, version, say } = options
  const all = seats({
    front: { doors, limits, version, say },
    random: doors.random,
    nowMs,
    isValid: options.isValid,
    sessionIdleMs: times.sessionIdle,
  })
  const counted = flood({
    record: (counts) => recordCounts(doors, NOBODY, { transport: 'http', counts }),
    failed: () => say('refused requests could not be recorded; they are counted on'),
    nowMs,
  })
  const { requestBytes: bytes, depth, keys, nodes } = limits
  let last = 0
  const gate: Gate = {
    options,
    times,
    seats: all,
    flood: counted,
    server: createServer(serverOptions(times)),
    posts: { hosts: new Set(), origins: new Set(), own: new Set() },
    inWork: new WeakMap(),
    draining: false,
    abandoned: false,
    hall: {
      seats: all,
      json: { bytes, depth, keys, nodes },
      nowMs,
      say,
      turn: doors.turn,
      replies: shelf(),
      nextNumber: () => ++last,
      posts: MAX_POSTS,
      overload: (one, what) => overload(gate, one, what),
      isAbandoned: () => gate.abandoned,
      isKept: (one) => isKept(gate, one),
    },
  }
  // Counted in `guard`: Node would drop what is beyond its own count without a word.
  gate.server.maxHeadersCount = 0
  gate.server.maxConnections = MAX_CONNECTIONS
  return gate
}

/** Whoever is not known yet. */
const NOBODY: Client = { name: '', profile: '', identity: 'unknown', attributes: {} }

const serverOptions = (times: HttpTimes): Parameters<typeof createServer>[0] => ({
  maxHeaderSize: MAX_HEADER_BYTES,
  headersTimeout: times.headers,
  requestTimeout: times.request,
  keepAliveTimeout: times.keepAlive,
  connectionsCheckingInterval: Math.min(times.headers, 1_000),
  requireHostHeader: true,
  insecureHTTPParser: false,
  joinDuplicateHeaders: false,
  noDelay: true,
})

function listening(
  server: Server,
  { host, port }: HttpOptions['listen'],
): Promise<{ readonly host: string; readonly port: number }> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      const why = error.code === 'EADDRINUSE' ? 'it is in use' : (error.code ?? 'unknown')
      const what = `cannot listen on ${host}:${port} (${why}); choose another with listen or --port`
      reject(new Fault('usage', what, { cause: error }))
    }
    server.once('error', failed)
    server.listen({ host, port, exclusive: true, backlog: 1_024 }, () => {
      server.off('error', failed)
      const address = server.address()
      if (isAddress(address)) resolve({ host: address.address, port: address.port })
      else reject(new Fault('internal', 'the server has no address'))
    })
  })
}

const isAddress = (address: AddressInfo | string | null): address is AddressInfo =>
  typeof address === 'object' && address !== null

/** Names that lead to this machine only. */
const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]'] as const

function openPosts(gate: Gate, host: string, port: number): void {
  const { posts, publicOrigin } = gate.options
  const name = host.includes(':') ? `[${host}]` : host
  const names = [...LOOPBACK_HOSTS, name]
  const own = names.map((one) => `http://${one}:${port}`)
  gate.posts = {
    hosts: new Set([...names, ...posts.hosts.map((one) => one.toLowerCase())]),
    origins: new Set(posts.origins.map((one) => one.toLowerCase())),
    own: new Set(publicOrigin === null ? own : [...own, publicOrigin.toLowerCase()]),
  }
}

function visit(gate: Gate, request: IncomingMessage, response: ServerResponse): void {
  // A client may vanish at any moment; what it had asked is told by its close.
  response.on('error', ignore)
  request.on('error', ignore)
  try {
    if (countSocket(gate, request.socket, response)) enter(gate, request, response)
  } catch (error) {
    gate.options.doors.broken(error)
    turnDown(response, 500, 'the gateway broke; check the state before you call again', CLOSE)
  }
}

const ignore = (): void => undefined

// Requests that wait behind another on one connection are held in memory, and a client could send any number.
function countSocket({ inWork }: Gate, socket: Socket, response: ServerResponse): boolean {
  const held = inWork.get(socket)
  const open = held ?? []
  if (open.length >= MAX_PIPELINED) {
    socket.destroy()
    return false
  }
  open.push(response)
  // Nothing of a request goes into a map that every request changes: decision 0047.
  if (held === undefined) inWork.set(socket, open)
  response.once('close', () => void open.splice(open.indexOf(response), 1))
  return true
}

function enter(gate: Gate, request: IncomingMessage, response: ServerResponse): void {
  const headers = readHeaders(request.rawHeaders)
  const turned = guard(request, headers, gate.posts)
  const bare: Arrival = { request, response, headers, extra: [] }
  if (turned !== null) return turnAway(gate, bare, turned)
  const arrival = { ...bare, extra: corsHeaders(headers, gate.posts.origins) }
  const [path = ''] = (request.url ?? '').split('?', 1)
  if (path === '/health' || path === '/ready') return health(gate, arrival, path)
  const profiles = gate.options.endpoints.get(path)
  if (profiles === undefined) {
    return turnAway(gate, arrival, {
      status: 404,
      knock: 'path',
      message: 'nothing is served here',
    })
  }
  if (request.method === 'OPTIONS') return preflight(gate, arrival)
  const client = known(gate, arrival)
  if (client === null) return
  admit(gate, { ...arrival, client, path }, profiles)
}

function admit(gate: Gate, one: Visit, profiles: ReadonlySet<string> | null): void {
  const { hall } = gate
  if (profiles !== null && !profiles.has(one.client.profile)) {
    return refuse(hall, one, 403, OTHER_PROFILE)
  }
  const { method } = one.request
  if (gate.draining) return unavailable(gate, one)
  if (method === 'POST') return isFlooded(gate) ? unavailable(gate, one) : post(hall, one)
  discard(one.request)
  if (method === 'GET') return get(hall, one)
  if (method === 'DELETE') return del(hall, one)
  refuse(hall, one, 405, METHOD)
}

const OTHER_PROFILE = invalidRequest('endpoint', 'this endpoint is not for your profile')

// What clients do not read is held here; past this nobody's answers fit any more.
const isFlooded = ({ seats: all }: Gate): boolean => all.unread() > MAX_UNREAD_IN_ALL

function sweep(gate: Gate): void {
  const { hall, times, seats: all } = gate
  const now = hall.nowMs()
  all.sweep(now)
  for (const { reply, sinceMs, isLegacy } of hall.replies.values()) {
    const patience = isLegacy ? times.legacyStream : times.modernStream
    if (now - sinceMs >= patience) reply.becomeStream()
    reply.keepAlive(now, times.silent)
  }
  for (const session of all.sessions()) {
    for (const stream of session.log.live()) stream.keepAlive(now, times.silent)
  }
}

async function close({ server, flood: counted }: Gate, timer: NodeJS.Timeout): Promise<void> {
  clearInterval(timer)
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve())
  })
  server.closeIdleConnections()
  const last = setTimeout(() => server.closeAllConnections(), FLUSH_MS)
  await closed
  clearTimeout(last)
  await counted.flush()
}
