// The stream on which a legacy server says what belongs to no request: opened, and opened again with patience.

import { type Json, type JsonObject, object } from '../../json.ts'
import { type Candidate, only } from '../upstream/correlate.ts'
import { type Flight, type Link, type Session, sessionHeaders } from './link.ts'
import { read } from './read.ts'
import { type Head, send, type Sending } from './send.ts'
import { answerAsk, asked, notOffered } from './wire.ts'
import type { AskReply } from '../upstream/wire.ts'

/** The stream of one session. */
export type Stream = { readonly stop: () => void }

/** The wait before it is opened again, where the server names none; it doubles. */
const FIRST_WAIT_MS = 1000
const MAX_WAIT_MS = 60_000
/** One that lasted so long takes the growth back. */
const SUSTAINED_MS = 30_000
const PRINTABLE = /^[\u0020-\u007e]{1,1024}$/
const HOLD_MS = 200

type State = {
  readonly link: Link
  readonly session: Session
  readonly lost: () => void
  sending: Sending | null
  timer: NodeJS.Timeout | undefined
  lastId: string | null
  askedMs: number
  waitMs: number
  openedAt: number
  stopped: boolean
}

/** Listens on this session until it is stopped, or the server says that it has no such stream. `lost` is told
 *  when it says that the session is gone. */
export function listenOn(link: Link, session: Session, lost: () => void): Stream {
  const state: State = {
    link,
    session,
    lost,
    sending: null,
    timer: undefined,
    lastId: null,
    askedMs: 0,
    waitMs: FIRST_WAIT_MS,
    openedAt: 0,
    stopped: false,
  }
  open(state)
  return {
    stop() {
      state.stopped = true
      clearTimeout(state.timer)
      state.sending?.stop()
    },
  }
}

function open(state: State): void {
  const { link, session } = state
  const { ground } = link
  let head: Head | null = null
  const resumed = state.lastId === null ? {} : { 'Last-Event-ID': state.lastId }
  state.sending = send(
    ground.site,
    {
      method: 'GET',
      headers: {
        Accept: 'text/event-stream',
        'Accept-Encoding': 'identity',
        ...sessionHeaders(session),
        ...resumed,
      },
      own: ground.own,
      body: null,
      limitBytes: ground.limits.bytes,
      long: true,
    },
    {
      head(came) {
        head = came
        state.openedAt = performance.now()
      },
      retry(ms) {
        state.askedMs = Math.min(ms, MAX_WAIT_MS)
      },
      event({ event, data, id }) {
        if (id !== null) state.lastId = PRINTABLE.test(id) ? id : null
        if (data.length === 0 || (event !== '' && event !== 'message')) return
        if (!ground.flood.closed(data)) return hear(state, data)
        ground.counts.flood++
        state.sending?.hold(HOLD_MS)
      },
      end() {
        if (!state.stopped) ended(state, head)
      },
    },
  )
}

function ended(state: State, head: Head | null): void {
  if (head !== null && head.status === 404 && state.session.id !== null) return state.lost()
  // What is refused for good is not asked for again.
  if (head !== null && (head.status >= 300 || head.type !== 'events') && head.status < 500) return
  if (head !== null && performance.now() - state.openedAt > SUSTAINED_MS)
    state.waitMs = FIRST_WAIT_MS
  const waitMs = Math.max(state.waitMs, state.askedMs) * (0.75 + Math.random() / 2)
  state.waitMs = Math.min(2 * state.waitMs, MAX_WAIT_MS)
  state.timer = setTimeout(() => open(state), waitMs).unref()
}

/** What is said here names no call. It is about the only one that it can be about; with several nobody can say,
 *  and a question to the client is refused. */
function hear({ link, session }: State, data: Buffer): void {
  const { epoch } = session
  read(link.ground, data, {
    id: null,
    byItems: false,
    alone: false,
    ears: {
      notice(method: string, params: JsonObject) {
        if (method === 'notifications/progress') return
        const one =
          method === 'notifications/message' ? only(candidates(link, epoch, 'log')) : 'none'
        if (typeof one === 'string') link.notified(method, params)
        else one.waiter.log?.(params)
      },
      asked(id: Json, method: string, params: JsonObject) {
        if (typeof id !== 'string' && typeof id !== 'number') return
        if (method === 'ping') return answerAsk(link, { id, epoch }, PONG)
        const one = only(candidates(link, epoch, 'asked'))
        if (one === 'several') answerAsk(link, { id, epoch }, SEVERAL)
        else if (one === 'none') answerAsk(link, { id, epoch }, notOffered(method))
        else asked(link, one, { id, method, params })
      },
    },
  })
}

/** The requests under way in this session that this may be about. */
function* candidates(
  { flights }: Link,
  epoch: number,
  of: 'asked' | 'log',
): Iterable<Candidate<Flight>> {
  for (const one of flights) {
    const { waiter, cancelled } = one
    if (one.state !== 'out' || one.epoch !== epoch || waiter[of] === undefined) continue
    yield { of: one, client: waiter.client ?? null, waits: cancelled || waiter.waits?.() === true }
  }
}

const SEVERAL: AskReply = {
  kind: 'error',
  code: -32_603,
  message: 'several calls are in flight, and nothing says which one asks',
}

const PONG: AskReply = { kind: 'result', value: object({}) }
