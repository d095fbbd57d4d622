// One HTTP exchange: what was sent, what came back as it comes, and how sure we are of either.

import { room } from '../wire/room.ts'
import { type SseEvent, sseReader } from './sse-read.ts'
import type { HeaderSet } from './headers.ts'
import { CONNECT_MS, type LaneFault, type Passage } from './lane.ts'
import type { ReplyHead } from './reply.ts'
import { requestHead } from './request.ts'
import { PRIVATE, type Site } from './site.ts'

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

/** Bytes of a reply that is no success: only a refusal is looked for in it. */
const ERROR_BYTES = 64 * 1024
/** How long a stream may take to end after what was wanted of it. */
const LINGER_MS = 200
const MAX_REDIRECTS = 3
/** Answers of the greatest size that one server may have under way; of smaller ones it is more. */
const MAX_HELD_ANSWERS = 8
const MAX_RETRY_AFTER_S = 86_400

/** What takes the body of a reply, and what it is when it is whole. */
type Taker = { readonly data: (chunk: Buffer) => void; readonly body: () => Buffer }

type State = {
  readonly site: Site
  readonly letter: Omit<Letter, 'body'>
  readonly ears: SendEars
  /** Held only until nobody can want it again. */
  body: string | null
  passage: Passage | null
  head: Head | null
  taker: Taker | null
  over: boolean
  redirects: number
  /** Its part of `site.held`. */
  held: number
}

/** Sends one request. Never throws. */
export function send(site: Site, letter: Letter, ears: SendEars): Sending {
  const { body, ...rest } = letter
  const state: State = {
    site,
    letter: rest,
    ears,
    body,
    passage: null,
    head: null,
    taker: null,
    over: false,
    redirects: 0,
    held: 0,
  }
  start(state, site.url)
  return {
    handed: () => state.passage?.handed() === true,
    stop() {
      state.over = true
      holds(state, 0)
      state.passage?.stop()
    },
    finish() {
      if (state.over) return
      state.over = true
      holds(state, 0)
      state.passage?.leave(LINGER_MS)
    },
    hold: (ms) => state.passage?.hold(ms),
  }
}

/** What cannot be written as a request is not sent, and does not end this process. */
function start(state: State, to: URL): void {
  const { body, letter, site } = state
  const own = to.origin === site.url.origin ? letter.own : null
  const head = requestHead(to, { method: letter.method, headers: letter.headers, own, body })
  if (head === null) {
    // Later, as everything else that is heard.
    setImmediate(() => end(state, { kind: 'unreached', why: 'the request to it cannot be made' }))
    return
  }
  const ears = {
    handed: (kept: boolean) => state.ears.handed?.(kept),
    head: (came: ReplyHead) => receive(state, to, came),
    data: (chunk: Buffer) => state.taker?.data(chunk),
    end: () => whole(state),
    failed: (fault: LaneFault) => failed(state, fault),
  }
  state.passage = site.open(to, { head, body }, ears, letter.long)
}

function end(state: State, ending: Ending): void {
  if (state.over) return
  state.over = true
  holds(state, 0)
  state.ears.end(ending)
}

/** So many bytes of this answer are held now. False when its server has too many under way. */
function holds(state: State, bytes: number): boolean {
  const { held } = state.site
  held.bytes += bytes - state.held
  state.held = bytes
  return held.bytes <= MAX_HELD_ANSWERS * state.letter.limitBytes
}

function whole(state: State): void {
  const { head, taker } = state
  if (head !== null && taker !== null) end(state, { kind: 'whole', head, body: taker.body() })
}

function failed(state: State, { handed, stale, why }: LaneFault): void {
  if (!handed) return end(state, { kind: 'unreached', why: whyUnreached(why) })
  end(state, { kind: 'broken', why: FAULTS.get(why) ?? BROKEN, stale })
}

const BROKEN = 'it closed the connection before its answer was whole'
const FAULTS: ReadonlyMap<LaneFault['why'], string> = new Map([
  ['too_large', 'its reply has too many headers'],
  ['no_http', 'its reply is no HTTP that can be read'],
])

function whyUnreached(why: LaneFault['why']): string {
  if (why === 'too_slow') return `it took no connection in ${CONNECT_MS / 1000} s`
  if (why === 'too_many') return 'too many requests wait for a connection to it'
  const code = why !== null && typeof why === 'object' ? (why.code ?? '') : ''
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

function receive(state: State, to: URL, reply: ReplyHead): void {
  if (state.over) return
  const head = headOf(reply)
  const next = redirected(state, to, reply)
  if (typeof next === 'string') {
    refuse(state, head, next)
    return
  }
  if (next !== null) {
    state.passage?.leave(LINGER_MS)
    state.passage = null
    start(state, next)
    return
  }
  state.head = head
  state.body = null
  state.ears.head?.(head)
  // What hears of the head may have stopped it.
  if (over(state)) return
  state.taker =
    head.status < 300 && head.type === 'events'
      ? stream(state, head, reply)
      : gather(state, head, reply)
}

const over = (state: State): boolean => state.over

/** The address to go on to, why it is not gone to, or null where nothing is redirected. Only the two statuses
 *  that keep the method and the body say that nothing was done with the request. */
function redirected(state: State, from: URL, { headers, status }: ReplyHead): URL | string | null {
  const location = headers.get('location')
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

function headOf({ headers, status }: ReplyHead): Head {
  const after = headers.get('retry-after') ?? ''
  return {
    status,
    type: typeOf(headers.get('content-type') ?? ''),
    session: headers.get('mcp-session-id') ?? null,
    retryAfterMs: /^[0-9]{1,9}$/.test(after)
      ? 1000 * Math.min(Number(after), MAX_RETRY_AFTER_S)
      : null,
  }
}

function typeOf(text: string): Head['type'] {
  const [type = ''] = text.toLowerCase().split(';', 1)
  return TYPES.get(type.trim()) ?? 'other'
}

const TYPES: ReadonlyMap<string, Head['type']> = new Map([
  ['application/json', 'json'],
  ['text/event-stream', 'events'],
])

function stream(state: State, head: Head, reply: ReplyHead): Taker | null {
  const { ears, letter } = state
  if (encoded(reply)) return refuse(state, head, ENCODED)
  const reader = sseReader(letter.limitBytes, {
    event(event) {
      if (!state.over) ears.event?.(event)
    },
    retry(ms) {
      if (!state.over) ears.retry?.(ms)
    },
    tooLong: () => refuse(state, head, `it says more than ${letter.limitBytes} bytes at once`),
  })
  return {
    data(chunk) {
      reader.push(chunk)
      if (!state.over && !holds(state, reader.held())) refuse(state, head, CROWDED)
    },
    body: () => NOTHING,
  }
}

const NOTHING: Buffer = Buffer.alloc(0)
const CROWDED = 'its answers that are under way have too many bytes together'
const ENCODED = 'its reply is compressed, which was not asked for'
const encoded = ({ headers }: ReplyHead): boolean =>
  (headers.get('content-encoding') ?? 'identity').toLowerCase() !== 'identity'

function gather(state: State, head: Head, reply: ReplyHead): Taker | null {
  const success = head.status < 300
  const limit = success ? state.letter.limitBytes : ERROR_BYTES
  const tooLong = `its answer has more than ${limit} bytes`
  if (success && encoded(reply)) return refuse(state, head, ENCODED)
  if (success && Number(reply.headers.get('content-length') ?? 0) > limit)
    return refuse(state, head, tooLong)
  // Most answers come in one piece. Of many, no views are kept: each would cost more than the byte it may hold,
  // and keep alive all that was read with it.
  let only: Buffer | null = null
  const held = room()
  let bytes = 0
  return {
    data(chunk) {
      const isFirst = bytes === 0
      bytes += chunk.length
      if (isFirst && bytes <= limit) {
        only = chunk
        return
      }
      if (only !== null) held.add(only)
      only = null
      if (bytes <= limit && holds(state, bytes)) {
        held.add(chunk)
        return
      }
      held.drop(0)
      if (bytes <= limit) return void refuse(state, head, CROWDED)
      // The status says enough; a refusal that needs more words is none that we know.
      refuse(state, head, success ? tooLong : `it answered with HTTP status ${head.status}`)
    },
    body: () => only ?? held.take(),
  }
}

function refuse(state: State, head: Head, why: string): null {
  end(state, { kind: 'refused', head, why })
  state.passage?.stop()
  return null
}
