// Answers of the server itself: to those who are not let in, and to those who ask how it is.

import type { ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import type { Client } from '../../call.ts'
import { discard } from './body.ts'
import { preflightHeaders } from './cors.ts'
import type { Arrival, Gate } from './gate.ts'
import { isLoopback, type Knock } from './guard.ts'
import type { Visit } from './post.ts'
import { turnDown } from './reply.ts'

/** Ends the connection with the answer. */
export const CLOSE: readonly string[] = ['Connection', 'close']

/** The client of a request, which is answered where there is none. */
export function known(gate: Gate, arrival: Arrival): Client | null {
  const client = gate.options.identify(arrival.headers.values.get('authorization'))
  if (typeof client !== 'string') return client
  turnAway(gate, arrival, client === 'bad' ? BAD_TOKEN : NO_TOKEN)
  return null
}

const BAD_TOKEN = { status: 401, knock: 'token_bad', message: 'the token is not valid' } as const
const NO_TOKEN = {
  status: 401,
  knock: 'token_missing',
  message: 'send a token: Authorization: Bearer TOKEN',
} as const

/** True while the client of a request may come; else the request has been answered. */
export const isKept = (gate: Gate, visit: Visit): boolean => known(gate, visit) !== null

/** Refuses what no new work is taken for. */
export function unavailable(gate: Gate, { request, response, extra }: Arrival): void {
  discard(request)
  const what = gate.draining ? 'the gateway is stopping' : 'the gateway holds too much unread'
  const ending = gate.draining ? CLOSE : []
  turnDown(response, 503, `${what}; try again later`, ['Retry-After', '1', ...ending, ...extra])
}

/** Turns away whoever is not known, and counts it. Past the rate of its address the answer says only that. */
export function turnAway(
  gate: Gate,
  { request, response, extra }: Arrival,
  turned: { readonly status: number; readonly knock: Knock; readonly message: string },
): void {
  const waitMs = gate.flood.knock(turned.knock, request.socket.remoteAddress)
  discard(request)
  if (waitMs > 0) {
    const after = String(Math.ceil(waitMs / 1_000))
    return turnDown(response, 429, 'too many refused requests; wait', [
      'Retry-After',
      after,
      ...extra,
    ])
  }
  const { status, knock } = turned
  const challenge =
    status !== 401
      ? []
      : ['WWW-Authenticate', knock === 'token_bad' ? 'Bearer error="invalid_token"' : 'Bearer']
  turnDown(response, status, turned.message, [...challenge, ...extra])
}

/** A known client that asks for more at once than anybody may: it is counted, not recorded one by one. */
export function overload(gate: Gate, { request, response, extra }: Visit, what: string): void {
  gate.flood.knock('overload', request.socket.remoteAddress)
  discard(request)
  turnDown(response, 429, `${what}; end one and try again`, ['Retry-After', '1', ...extra])
}

/** Answers a browser that asks whether a page may call. */
export function preflight(gate: Gate, arrival: Arrival): void {
  const { response, headers, extra } = arrival
  discard(arrival.request)
  if (extra.length === 0 || !headers.values.has('access-control-request-method')) {
    return turnAway(gate, arrival, { status: 405, knock: 'method', message: 'send POST' })
  }
  response.writeHead(204, [...preflightHeaders(headers), ...extra])
  response.end()
}

/** Whether anything can be recorded, and whether new work is taken. Others than this machine show a token. */
export function health(gate: Gate, arrival: Arrival, path: '/health' | '/ready'): void {
  const { request, response, extra } = arrival
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead) {
    return turnAway(gate, arrival, { status: 405, knock: 'method', message: 'send GET' })
  }
  if (!isLoopback(request.socket.remoteAddress) && known(gate, arrival) === null) return
  discard(request)
  const isGreen = gate.options.doors.store.health() === true
  const isReady = isGreen && !gate.draining
  const status = path === '/health' ? isGreen : isReady
  const text = JSON.stringify({ [path.slice(1)]: status })
  const sizes = ['Content-Type', 'application/json', 'Content-Length', String(text.length)]
  response.writeHead(status ? 200 : 503, [...sizes, 'Cache-Control', 'no-store', ...extra])
  response.end(text)
}

/** Bytes that are no request. Whatever they are, the connection ends. */
export function unreadable(gate: Gate, error: NodeJS.ErrnoException, socket: Duplex): void {
  const isPlain = socket instanceof Socket && socket.writable && error.code !== 'ECONNRESET'
  gate.flood.knock('unreadable', socket instanceof Socket ? socket.remoteAddress : undefined)
  // Words of ours must not land inside an answer that is on its way, nor before one that is due.
  if (!isPlain || !isQuiet(gate.inWork.get(socket) ?? [])) {
    socket.destroy()
    return
  }
  const status = STATUS_LINES.get(error.code ?? '') ?? '400 Bad Request'
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`)
}

function isQuiet(open: readonly ServerResponse[]): boolean {
  const [first] = open
  return first === undefined || (open.length === 1 && !first.headersSent)
}

const STATUS_LINES: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', '431 Request Header Fields Too Large'],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', '413 Payload Too Large'],
  ['ERR_HTTP_REQUEST_TIMEOUT', '408 Request Timeout'],
])
