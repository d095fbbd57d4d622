// One message to a server over HTTP, up to its answer: read from a body or a stream, also a resumed one.

import { isObject, object, parseJson } from '../../json.ts'
import type { SseEvent } from './sse-read.ts'
import { answerOf, type Heard } from '../upstream/heard.ts'
import type { HeaderSet } from './headers.ts'
import { type Ears, type Ground, read } from './read.ts'
import { type Ending, type Head, send, type Sending } from './send.ts'

/** One request on its way out. `resume`: headers for taking up its broken stream; null where the revision
 *  has no such thing. `long`: it stays open for as long as somebody wants it. */
export type Message = {
  readonly id: number
  readonly body: string
  readonly headers: HeaderSet
  readonly byItems: boolean
  readonly resume: HeaderSet | null
  readonly long: boolean
}

/** What came of a message. answer: one to its id, with whatever status. status: a reply without one; `error`
 *  is a JSON-RPC error that names no request. none: no reply, or not all of it. */
export type Told =
  | { readonly kind: 'answer'; readonly heard: Heard; readonly head: Head }
  | {
      readonly kind: 'status'
      readonly head: Head
      readonly error: Extract<Heard, { kind: 'error' }> | null
      readonly why: string
    }
  | {
      readonly kind: 'none'
      readonly handed: boolean
      readonly stale: boolean
      readonly why: string
    }

/** What is heard of one message. `told` comes once and last. */
export type TalkEars = Ears & {
  readonly told: (told: Told) => void
  /** The connection is made, or was `kept`: from now on the server may have it. */
  readonly handed?: (kept: boolean) => void
  readonly head?: (head: Head) => void
}

/** A message under way. */
export type Talking = {
  readonly handed: () => boolean
  /** Nothing more is heard of it. */
  readonly stop: () => void
}

/** The wait before a broken stream is taken up, where the server names none. */
const RESUME_MS = 1000
const MAX_RESUME_MS = 30_000
/** Attempts in a row that bring nothing. */
const MAX_RESUMES = 5
/** How long a server that floods us is not read, after so many bytes that were dropped. */
const HOLD_MS = 200
const DROP_BYTES = 8 * 1024 * 1024
/** What goes back as a header. */
const PRINTABLE = /^[\u0020-\u007e]{1,1024}$/

type State = {
  readonly ground: Ground
  readonly message: Omit<Message, 'body'>
  readonly ears: TalkEars
  sending: Sending | null
  over: boolean
  head: Head | null
  lastId: string | null
  retryMs: number
  resumes: number
  dropped: number
  timer: NodeJS.Timeout | undefined
}

/** Sends a message and reads until its answer. */
export function talk(ground: Ground, { body, ...message }: Message, ears: TalkEars): Talking {
  const state: State = {
    ground,
    message,
    ears,
    sending: null,
    over: false,
    head: null,
    lastId: null,
    retryMs: RESUME_MS,
    resumes: 0,
    dropped: 0,
    timer: undefined,
  }
  post(state, body)
  return {
    handed: () => state.resumes > 0 || state.sending?.handed() !== false,
    stop() {
      state.over = true
      clearTimeout(state.timer)
      state.sending?.stop()
    },
  }
}

function post(state: State, body: string): void {
  const { ground, message } = state
  state.sending = send(
    ground.site,
    {
      method: 'POST',
      headers: { ...POSTED, ...message.headers },
      own: ground.own,
      body,
      limitBytes: ground.limits.bytes,
      long: message.long,
    },
    {
      handed: (kept) => state.ears.handed?.(kept),
      head(head) {
        state.head = head
        state.ears.head?.(head)
      },
      event: (event) => heardEvent(state, event),
      retry: (ms) => waits(state, ms),
      end: (ending) => ended(state, ending),
    },
  )
}

/** The headers of every message that is posted. */
export const POSTED: HeaderSet = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
  'Accept-Encoding': 'identity',
}

function waits(state: State, ms: number): void {
  state.retryMs = Math.min(ms, MAX_RESUME_MS)
}

function heardEvent(state: State, { event, data, id }: SseEvent): void {
  state.resumes = Math.min(state.resumes, 1)
  if (id !== null) state.lastId = PRINTABLE.test(id) ? id : null
  if (data.length === 0 || (event !== '' && event !== 'message')) return
  const { ground, message } = state
  if (ground.flood.closed(data)) {
    drop(state, data.length)
    return
  }
  const heard = read(ground, data, {
    id: message.id,
    byItems: message.byItems,
    alone: false,
    ears: state.ears,
  })
  if (heard !== null) answered(state, heard)
}

/** Dropping costs little, but not nothing. */
function drop(state: State, bytes: number): void {
  state.ground.counts.flood++
  state.dropped += bytes
  if (state.dropped < DROP_BYTES) return
  state.dropped = 0
  state.sending?.hold(HOLD_MS)
}

function answered(state: State, heard: Heard): void {
  if (state.over || state.head === null) return
  state.over = true
  state.sending?.finish()
  state.ears.told({ kind: 'answer', heard, head: state.head })
}

function told(state: State, what: Told): void {
  if (state.over) return
  state.over = true
  state.ears.told(what)
}

function ended(state: State, ending: Ending): void {
  if (state.over) return
  switch (ending.kind) {
    case 'unreached':
      return told(state, { kind: 'none', handed: false, stale: false, why: ending.why })
    case 'broken':
      if (state.head?.type === 'events') return cut(state, ending.why)
      return told(state, { kind: 'none', handed: true, stale: ending.stale, why: ending.why })
    case 'refused': {
      const { head, why } = ending
      if (head.status >= 300) return told(state, { kind: 'status', head, error: null, why })
      return told(state, { kind: 'answer', heard: { kind: 'refused', why }, head })
    }
    case 'whole':
      return whole(state, ending.head, ending.body)
  }
}

function whole(state: State, head: Head, body: Buffer): void {
  const { ground, message } = state
  const why = `it answered with HTTP status ${head.status}`
  if (head.status < 300 && head.type === 'events') return cut(state, 'it ended its stream')
  if (head.type !== 'json' || body.length === 0) {
    return told(state, { kind: 'status', head, error: null, why })
  }
  if (head.status >= 300) return told(state, errorIn(state, head, body))
  const { byItems, id } = message
  const heard = read(ground, body, { id, byItems, alone: true, ears: state.ears })
  const refused: Heard = { kind: 'refused', why: 'its answer is not to the request that was sent' }
  told(state, { kind: 'answer', heard: heard ?? refused, head })
}

/** What a reply says that is no success. */
function errorIn({ ground, message }: State, head: Head, body: Buffer): Told {
  const why = `it answered with HTTP status ${head.status}`
  const parsed = parseJson(body, ground.limits)
  const value = parsed.kind === 'json' && isObject(parsed.value) ? parsed.value : object({})
  const { id, jsonrpc } = value
  const heard = jsonrpc === '2.0' ? answerOf(value, null) : null
  if (heard?.kind !== 'error') return { kind: 'status', head, error: null, why }
  if (id === message.id) return { kind: 'answer', heard, head }
  return { kind: 'status', head, error: id === null || id === undefined ? heard : null, why }
}

/** The stream ended before its answer. A legacy server may let it be taken up where it stopped: that sends
 *  nothing again. */
function cut(state: State, why: string): void {
  const { message } = state
  const lost: Told = { kind: 'none', handed: true, stale: false, why }
  if (message.resume === null || state.lastId === null) return told(state, lost)
  if (++state.resumes > MAX_RESUMES) return told(state, lost)
  const waitMs = Math.min(MAX_RESUME_MS, state.retryMs * 2 ** Math.max(0, state.resumes - 2))
  state.timer = setTimeout(() => resume(state, message.resume ?? {}, lost), waitMs)
}

function resume(state: State, headers: HeaderSet, lost: Told): void {
  const { ground } = state
  let taken = false
  state.sending = send(
    ground.site,
    {
      method: 'GET',
      headers: {
        Accept: 'text/event-stream',
        'Accept-Encoding': 'identity',
        ...headers,
        'Last-Event-ID': state.lastId ?? '',
      },
      own: ground.own,
      body: null,
      limitBytes: ground.limits.bytes,
      long: true,
    },
    {
      head(head) {
        taken = head.status < 300 && head.type === 'events'
        if (taken) state.head = head
      },
      event: (event) => heardEvent(state, event),
      retry: (ms) => waits(state, ms),
      end(ending) {
        if (state.over) return
        if (taken || ending.kind === 'unreached' || ending.kind === 'broken') cut(state, CUT)
        else told(state, lost)
      },
    },
  )
}

const CUT = 'it ended its stream'
