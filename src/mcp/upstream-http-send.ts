// One HTTP exchange: what was sent, what came back as it comes, and how sure we are of either.

import type { ClientRequest, IncomingMessage } from 'node:http'

import { type SseEvent, sseReader } from './sse-read.ts'
import type { HeaderSet } from './upstream-http-headers.ts'
import { PRIVATE, type Site } from './upstream-http-site.ts'

/** What is sent. `own`: headers that go to the server's own origin only. `long`: its reply is a stream that
 *  may stay open and silent. */
export type Letter = {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly headers: HeaderSet
  readonly own: HeaderSet
  readonly body: string | null
  readonly limitBytes: number
  readonly long: boolean
}

/** The head of a reply. `session` is as the server named it, null when it did not. */
export type Head = {
  readonly status: number
  readonly type: 'json' | 'events' | 'other'
  readonly session: string | null
  readonly retryAfterMs: number | null
}

/** How an exchange ended. unreached: not one byte of the request was written. broken: a connection was had
 *  and the reply did not come whole; `stale`: on a connection that was kept, before any byte of a reply.
 *  refused: the reply cannot be taken. whole: all of it came; `body` is empty after events. */
export type Ending =
  | { readonly kind: 'unreached'; readonly why: string }
  | { readonly kind: 'broken'; readonly why: string; readonly stale: boolean }
  | { readonly kind: 'refused'; readonly head: Head; readonly why: string }
  | { readonly kind: 'whole'; readonly head: Head; readonly body: Buffer }

/** What is heard of an exchange. `head` comes at most once and first, `end` exactly once and last, unless it
 *  was stopped: then nothing comes any more. Nothing comes before `send` has returned. */
export type SendEars = {
  /** The connection is made: from now on the server may have the request. `kept`: it was made before. */
  readonly handed?: (kept: boolean) => void
  readonly head?: (head: Head) => void
  readonly event?: (event: SseEvent) => void
  readonly retry?: (ms: number) => void
  readonly end: (ending: Ending) => void
}

/** An exchange under way. */
export type Sending = {
  /** False while it is certain that nothing was written. */
  readonly handed: () => boolean
  /** Closes it; nothing more is heard. */
  readonly stop: () => void
  /** All that was wanted has come: the rest is let pass for a moment, so that the connection can be kept. */
  readonly finish: () => void
  /** Reads nothing for so long: the server gets back-pressure. */
  readonly hold: (ms: number) => void
}

/** How long a connection may take to be made. */
const CONNECT_MS = 10_000
const MAX_HEAD_BYTES = 16 * 1024
/** Bytes of a reply that is no success: only a refusal is looked for in it. */
const ERROR_BYTES = 64 * 1024
/** How long a stream may take to end after what was wanted of it. */
const LINGER_MS = 200
const MAX_REDIRECTS = 3
const MAX_RETRY_AFTER_S = 86_400

type State = {
  readonly site: Site
  readonly letter: Omit<Letter, 'body'>
  readonly ears: SendEars
  /** Held only until nobody can want it again. */
  body: Buffer | null
  request: ClientRequest | null
  reply: IncomingMessage | null
  handed: boolean
  /** A byte of a reply came. */
  heard: boolean
  over: boolean
  finishing: boolean
  redirects: number
  timer: NodeJS.Timeout | undefined
}

/** Sends one request. Never throws. */
export function send(site: Site, letter: Letter, ears: SendEars): Sending {
  const { body, ...rest } = letter
  const state: State = {
    site,
    letter: rest,
    ears,
    body: body === null ? null : Buffer.from(body),
    request: null,
    reply: null,
    handed: false,
    heard: false,
    over: false,
    finishing: false,
    redirects: 0,
    timer: undefined,
  }
  start(state, site.url)
  return {
    handed: () => state.handed,
    stop() {
      close(state)
    },
    finish() {
      if (state.over || state.finishing) return
      state.finishing = true
      state.timer = setTimeout(() => close(state), LINGER_MS).unref()
    },
    hold(ms) {
      const { reply } = state
      if (reply === null || reply.isPaused()) return
      reply.pause()
      setTimeout(() => reply.resume(), ms).unref()
    },
  }
}

/** What the runtime refuses to send is not sent, and does not end this process. */
function start(state: State, to: URL): void {
  try {
    begin(state, to)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    // Later, as everything else that is heard.
    setImmediate(() =>
      end(state, { kind: 'unreached', why: `the request to it cannot be made (${code})` }),
    )
  }
}

function close(state: State): void {
  state.over = true
  clearTimeout(state.timer)
  state.request?.destroy()
}

function end(state: State, ending: Ending): void {
  if (state.over) return
  state.over = true
  clearTimeout(state.timer)
  if (!state.finishing) state.ears.end(ending)
}

function begin(state: State, to: URL): void {
  const { body, letter, site } = state
  const own = to.origin === site.url.origin ? letter.own : {}
  const length = body === null ? {} : { 'Content-Length': body.length }
  const request = site.open(
    to,
    {
      method: letter.method,
      headers: { ...own, ...letter.headers, ...length },
      maxHeaderSize: MAX_HEAD_BYTES,
    },
    letter.long,
  )
  state.request = request
  request.once('socket', (socket) => {
    // One that failed at once is not connecting any more, and was never connected.
    if (request.reusedSocket) return hand(state, true)
    if (!socket.connecting && !socket.destroyed) return hand(state, false)
    const timer = setTimeout(() => request.destroy(new Error(TOO_SLOW)), CONNECT_MS)
    // Over TLS nothing of the request is written before the server has proved who it is.
    socket.once(to.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      hand(state, false)
    })
    socket.once('close', () => clearTimeout(timer))
  })
  request.once('response', (reply) => receive(state, to, reply))
  request.on('error', (error) => failed(state, request, error))
  request.end(body ?? undefined)
}

function hand(state: State, kept: boolean): void {
  state.handed = true
  state.ears.handed?.(kept)
}

const TOO_SLOW = 'no connection in time'

function failed(state: State, request: ClientRequest, error: NodeJS.ErrnoException): void {
  if (!state.handed) return end(state, { kind: 'unreached', why: whyUnreached(error) })
  const stale = request.reusedSocket && !state.heard
  const why = error.code === 'HPE_HEADER_OVERFLOW' ? 'its reply has too many headers' : BROKEN
  end(state, { kind: 'broken', why, stale })
}

const BROKEN = 'it closed the connection before its answer was whole'

function whyUnreached(error: NodeJS.ErrnoException): string {
  const { code = '' } = error
  if (error.message === TOO_SLOW) return `it took no connection in ${CONNECT_MS / 1000} s`
  if (code === PRIVATE)
    return 'its name now leads to a private address; set allow_private to go there'
  const told = UNREACHED.get(code)
  if (told !== undefined) return told
  if (/CERT|SSL|TLS|SIGNATURE|ISSUER/.test(code)) return `its certificate is not accepted (${code})`
  return `it cannot be reached (${code === '' ? 'no reason is known' : code})`
}

const UNREACHED: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'it refuses connections; check that it runs and the url'],
  ['ENOTFOUND', 'its name is not known; check the url'],
  ['EAI_AGAIN', 'its name cannot be looked up now'],
])

function receive(state: State, to: URL, reply: IncomingMessage): void {
  state.heard = true
  if (state.over) {
    reply.destroy()
    return
  }
  const head = headOf(reply)
  const next = redirected(state, to, reply)
  if (typeof next === 'string') {
    refuse(state, head, next)
    return
  }
  if (next !== null) {
    reply.resume()
    state.handed = false
    state.heard = false
    start(state, next)
    return
  }
  state.reply = reply
  state.body = null
  state.ears.head?.(head)
  // What hears of the head may have stopped it.
  if (over(state)) return
  if (head.status < 300 && head.type === 'events') stream(state, head, reply)
  else gather(state, head, reply)
}

const over = (state: State): boolean => state.over

/** The address to go on to, why it is not gone to, or null where nothing is redirected. Only the two statuses
 *  that keep the method and the body say that nothing was done with the request. */
function redirected(state: State, from: URL, reply: IncomingMessage): URL | string | null {
  const { statusCode: status = 0 } = reply
  const { location } = reply.headers
  if (status < 300 || status > 399 || location === undefined) return null
  const to = URL.parse(location, from.href)
  if (to === null || (to.protocol !== 'https:' && to.protocol !== 'http:')) {
    return 'it redirects to no address'
  }
  const refused = state.site.refuses(from, to)
  if (refused !== null) return refused
  if (status !== 307 && status !== 308)
    return `it redirects with status ${status}; only 307 and 308 are followed`
  return ++state.redirects > MAX_REDIRECTS ? 'it redirects in a circle' : to
}

function headOf(reply: IncomingMessage): Head {
  const { headers, statusCode: status = 0 } = reply
  const [type = ''] = (headers['content-type'] ?? '').toLowerCase().split(';')
  const session = headers['mcp-session-id']
  const after = headers['retry-after'] ?? ''
  return {
    status,
    type: TYPES.get(type.trim()) ?? 'other',
    session: typeof session === 'string' ? session : null,
    retryAfterMs: /^[0-9]{1,9}$/.test(after)
      ? 1000 * Math.min(Number(after), MAX_RETRY_AFTER_S)
      : null,
  }
}

const TYPES: ReadonlyMap<string, Head['type']> = new Map([
  ['application/json', 'json'],
  ['text/event-stream', 'events'],
])

function stream(state: State, head: Head, reply: IncomingMessage): void {
  const { ears, letter } = state
  const reader = sseReader(letter.limitBytes, {
    event(event) {
      if (!state.over && !state.finishing) ears.event?.(event)
    },
    retry: (ms) => ears.retry?.(ms),
    tooLong: () => refuse(state, head, `it says more than ${letter.limitBytes} bytes at once`),
  })
  if (encoded(reply)) return refuse(state, head, ENCODED)
  reply.on('data', (chunk: Buffer) => {
    if (!state.finishing) reader.push(chunk)
  })
  finale(state, head, { reply, body: () => NOTHING })
}

const NOTHING: Buffer = Buffer.alloc(0)
const ENCODED = 'its reply is compressed, which was not asked for'
const encoded = (reply: IncomingMessage): boolean =>
  (reply.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity'

function gather(state: State, head: Head, reply: IncomingMessage): void {
  const success = head.status < 300
  const limit = success ? state.letter.limitBytes : ERROR_BYTES
  const tooLong = `its answer has more than ${limit} bytes`
  if (success && encoded(reply)) return refuse(state, head, ENCODED)
  if (success && Number(reply.headers['content-length'] ?? 0) > limit)
    return refuse(state, head, tooLong)
  let chunks: Buffer[] = []
  let bytes = 0
  reply.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limit) {
      chunks = []
      // The status says enough; a refusal that needs more words is none that we know.
      if (success) refuse(state, head, tooLong)
      else refuse(state, head, `it answered with HTTP status ${head.status}`)
    } else chunks.push(chunk)
  })
  finale(state, head, {
    reply,
    body: () => (chunks.length === 1 ? (chunks[0] ?? NOTHING) : Buffer.concat(chunks)),
  })
}

function refuse(state: State, head: Head, why: string): void {
  if (state.over) return
  end(state, { kind: 'refused', head, why })
  state.request?.destroy()
}

function finale(
  state: State,
  head: Head,
  { reply, body }: { readonly reply: IncomingMessage; readonly body: () => Buffer },
): void {
  const cut = (): void => end(state, { kind: 'broken', why: BROKEN, stale: false })
  reply.once('end', () => {
    if (reply.complete) end(state, { kind: 'whole', head, body: body() })
    else cut()
  })
  reply.once('error', cut)
  reply.once('close', cut)
}
