// JSON-RPC with one server over HTTP: one POST a request, and what may be sent again because it was not executed.

import type { AskMethod } from '../../call.ts'
import { isExact, type Json, type JsonObject, object, writeJson } from '../../json.ts'
import type { Heard } from '../upstream/heard.ts'
import { type HeaderSet, headersOf, versionIn } from './headers.ts'
import { hasRoom, pump, widen } from './health.ts'
import { type Flight, learn, type Link, sessionHeaders, tell } from './link.ts'
import { talk, type Told } from './talk.ts'
import { verdictOn } from './verdict.ts'
import type { AskReply, Exchange, Waiter, Wire } from '../upstream/wire.ts'

/** Requests that wait for an answer; and of those that nobody waits for any more, the latest. */
const MAX_PENDING = 10_000
const MAX_ABANDONED = 64
/** How long an answer that nobody waits for is still read, to be recorded as late. */
const ABANDONED_MS = 300_000
/** Requests of the server during one of ours that wait for an answer. */
const MAX_ASKS = 64
/** A new connection that lived so long is proved, also without a reply. */
const PROVED_MS = 500
const METHOD_NOT_FOUND = -32_601
const INTERNAL = -32_603
const LISTEN = 'subscriptions/listen'
const NO_HEADERS: HeaderSet = {}

/** The conversation over this link. */
export const httpWire = (link: Link): Wire => ({
  request: (method, params, waiter, passed) =>
    request(link, { method, params, waiter, passed: passed ?? NO_HEADERS }),
  notify(method, params) {
    tell(link, { method, params }, link.session === null ? {} : sessionHeaders(link.session))
  },
  acceptBatches() {
    link.ground.batches = true
  },
})

/** No request starts any more. Those that were not sent are told so, subscriptions end; what is under way
 *  may still be answered. */
export function retire(link: Link, why: string): void {
  link.open = false
  link.gate.waiting = link.gate.waiting.filter(({ owner }) => owner !== link)
  for (const flight of link.flights) {
    if (flight.state === 'waiting' || flight.talking?.handed() === false) {
      flight.talking?.stop()
      over(link, flight, { kind: 'unsent', code: 'upstream_down', why })
    } else if (flight.method === LISTEN) {
      flight.talking?.stop()
      over(link, flight, { kind: 'gone', handed: true })
    }
  }
}

/** Ends everything at once. */
export function sever(link: Link): void {
  retire(link, 'it is not spoken to any more')
  for (const giveUp of link.words) giveUp()
  for (const flight of link.flights) {
    flight.talking?.stop()
    over(link, flight, { kind: 'gone', handed: true })
  }
}

type Wish = {
  readonly method: string
  readonly params: (id: number) => JsonObject
  readonly waiter: Waiter
  readonly passed: HeaderSet
}

function request(link: Link, { method, params, waiter, passed }: Wish): Exchange | null {
  if (!link.open || link.flights.size >= MAX_PENDING) return null
  const id = link.nextId()
  const flight: Flight = {
    id,
    method,
    waiter,
    passed,
    params: params(id),
    talking: null,
    state: 'waiting',
    epoch: 0,
    tried: new Set(),
    asks: new Set(),
    progress: Number.NEGATIVE_INFINITY,
    cancelled: false,
    starting: false,
    proving: undefined,
    patience: undefined,
    silent: false,
  }
  link.flights.add(flight)
  depart(link, flight)
  return {
    id,
    cancel: (reason) => cancel(link, flight, reason),
    abandon: () => abandon(link, flight),
    forget() {
      flight.talking?.stop()
      leave(link, flight)
    },
  }
}

/** Sends it when it is its turn, and not while a new session is being made. */
function depart(link: Link, flight: Flight): void {
  if (flight.state === 'over') return
  flight.state = 'waiting'
  const renewing = link.keeper.renewing()
  if (renewing !== null) void renewing.then(() => depart(link, flight))
  else if (!link.open) over(link, flight, AWAY)
  else if (hasRoom(link.gate)) post(link, flight)
  else link.gate.waiting.push({ owner: link, go: () => post(link, flight) })
}

const AWAY: Heard = { kind: 'unsent', code: 'upstream_down', why: 'it is not reached' }

function post(link: Link, flight: Flight): void {
  const { id, method, params, waiter } = flight
  if (params === null || flight.state !== 'waiting') return
  const { session } = link
  const isModern = versionIn(params) !== null
  flight.state = 'out'
  flight.epoch = isModern ? 0 : (session?.epoch ?? 0)
  flight.starting = true
  flight.silent = true
  link.gate.starting++
  link.gate.silent++
  const own = session === null || isModern ? null : sessionHeaders(session)
  flight.talking = talk(
    link.ground,
    {
      id,
      body: writeJson(object({ jsonrpc: '2.0', id, method, params })),
      headers: own ?? modernHeaders(link, flight, params),
      byItems: waiter.byItems === true,
      resume: own,
      long: method === LISTEN,
    },
    {
      handed: (kept) => handed(link, flight, kept),
      head({ status }) {
        if (flight.proving !== undefined) widen(link.gate)
        settled(link, flight)
        // Only a refusal can be a reason to send it again.
        if (status < 300) flight.params = null
        if (status < 500) link.keeper.alive()
      },
      notice: (name, told) => notice(link, flight, { name, told }),
      asked: (askId, name, asking) =>
        asked(link, flight, { id: askId, method: name, params: asking }),
      told: (what) => concluded(link, flight, what),
    },
  )
}

function modernHeaders(link: Link, { method, passed }: Flight, params: JsonObject): HeaderSet {
  const { name } = params
  const mirrors =
    method === 'tools/call' && typeof name === 'string' ? link.mirrors.get(name) : undefined
  return headersOf(method, params, { mirrors: mirrors ?? [], passed })
}

/** A connection that was kept has been proved before; a new one is by a reply, or by living for a while. */
function handed(link: Link, flight: Flight, kept: boolean): void {
  if (kept) return started(link, flight)
  flight.proving = setTimeout(() => {
    widen(link.gate)
    started(link, flight)
  }, PROVED_MS).unref()
}

function started(link: Link, flight: Flight): void {
  clearTimeout(flight.proving)
  if (!flight.starting) return
  flight.starting = false
  link.gate.starting--
  pump(link.gate)
}

function settled(link: Link, flight: Flight): void {
  const { silent, starting } = flight
  if (silent) {
    flight.silent = false
    link.gate.silent--
  }
  started(link, flight)
  // Of a server that is doubted only few may be without a reply: the next one goes now.
  if (silent && !starting) pump(link.gate)
}

function leave(link: Link, flight: Flight): void {
  flight.state = 'over'
  flight.params = null
  clearTimeout(flight.patience)
  flight.asks.clear()
  link.flights.delete(flight)
  link.abandoned.delete(flight)
  settled(link, flight)
}

function over(link: Link, flight: Flight, heard: Heard): void {
  if (flight.state === 'over') return
  leave(link, flight)
  flight.waiter.heard(heard)
}

function concluded(link: Link, flight: Flight, told: Told): void {
  if (flight.state === 'over') return
  settled(link, flight)
  if (told.kind === 'none') return unanswered(link, flight, told)
  const { session } = link
  const verdict = verdictOn(told, {
    name: link.name,
    method: flight.method,
    era: flight.epoch === 0 ? 'modern' : 'legacy',
    session: flight.epoch > 0 && session !== null && session.id !== null,
  })
  switch (verdict.kind) {
    case 'renew':
      return void renewed(link, flight)
    case 'headers':
      return void refreshed(link, flight)
    case 'end':
      over(link, flight, admitted(link, flight, verdict.heard))
      if (verdict.outdated) link.keeper.outdated()
  }
}

/** A list of tools is read for what headers mirror, whoever asked for it. */
function admitted(link: Link, { epoch, method }: Flight, heard: Heard): Heard {
  if (heard.kind !== 'result' || method !== 'tools/list' || epoch !== 0) return heard
  const value = learn(link, heard.value)
  return value === heard.value ? heard : { kind: 'result', value, text: null }
}

function unanswered(link: Link, flight: Flight, told: Extract<Told, { kind: 'none' }>): void {
  const { tried, waiter } = flight
  if (!told.handed) {
    over(link, flight, { kind: 'unsent', code: 'upstream_down', why: told.why })
    link.keeper.lost('unreached', told.why)
    return
  }
  // A kept connection was closed just then. Lists change nothing, so they may be asked for again.
  if (told.stale && waiter.byItems === true && !tried.has('stale')) {
    tried.add('stale')
    return depart(link, flight)
  }
  over(link, flight, { kind: 'gone', handed: true })
  if (flight.method !== LISTEN && !told.stale) link.keeper.lost('broken', told.why)
}

/** The session is gone: one new one for all that met that, and each is sent once more. */
async function renewed(link: Link, flight: Flight): Promise<void> {
  const { tried } = flight
  flight.state = 'waiting'
  const isFirst = !tried.has('session')
  tried.add('session')
  if (isFirst && (await link.keeper.renew(flight.epoch))) return depart(link, flight)
  over(link, flight, { kind: 'unsent', code: 'upstream_down', why: 'it does not keep a session' })
}

/** Its schema says more than we know: the list is asked for anew, and the call is sent once more. */
async function refreshed(link: Link, flight: Flight): Promise<void> {
  const { tried } = flight
  flight.state = 'waiting'
  if (!tried.has('headers')) {
    tried.add('headers')
    await link.keeper.refresh()
    return depart(link, flight)
  }
  const why = 'it refuses the headers that mirror the arguments'
  over(link, flight, { kind: 'unsent', code: 'upstream_down', why })
}

function cancel(link: Link, flight: Flight, reason: string): 'told' | 'unsent' {
  if (flight.state === 'over') return 'told'
  if (flight.state === 'waiting' || flight.talking?.handed() === false) {
    flight.talking?.stop()
    leave(link, flight)
    return 'unsent'
  }
  if (flight.cancelled) return 'told'
  flight.cancelled = true
  const { session } = link
  if (flight.epoch === 0) {
    // Closing the stream is how a modern server is told; it cannot answer after that.
    flight.talking?.stop()
    setImmediate(() => over(link, flight, { kind: 'gone', handed: true }))
  } else if (session?.epoch === flight.epoch) {
    const params = object({ requestId: flight.id, reason })
    tell(link, { method: 'notifications/cancelled', params }, sessionHeaders(session))
  }
  return 'told'
}

function abandon(link: Link, flight: Flight): void {
  if (flight.state === 'over') return
  if (flight.epoch === 0 && flight.cancelled) return leave(link, flight)
  const { abandoned } = link
  abandoned.add(flight)
  flight.patience = setTimeout(giveUpOn, ABANDONED_MS, link, flight).unref()
  const [oldest] = abandoned
  if (abandoned.size > MAX_ABANDONED && oldest !== undefined) giveUpOn(link, oldest)
}

function giveUpOn(link: Link, flight: Flight): void {
  flight.talking?.stop()
  leave(link, flight)
}

type Notice = { readonly name: string; readonly told: JsonObject }

function notice(link: Link, flight: Flight, { name, told }: Notice): void {
  const { waiter } = flight
  if (flight.state === 'over') return
  if (name === 'notifications/progress') progress(flight, told)
  else if (name === 'notifications/cancelled') withdrawn(link, flight, told['requestId'])
  else if (name === 'notifications/message' && waiter.log !== undefined) waiter.log(told)
  else if (waiter.notice !== undefined) waiter.notice(name, told)
  else link.notified(name, told)
}

/** Values that do not grow are dropped, as tokens that are not of this request: strict clients hang up on them. */
function progress(flight: Flight, told: JsonObject): void {
  const { progress: at, progressToken: token } = told
  const value = isExact(at) ? Number(at.rawJSON) : typeof at === 'number' ? at : Number.NaN
  if (token !== flight.id || !(value > flight.progress)) return
  flight.progress = value
  flight.waiter.progress?.(told)
}

/** The server does not wait any more for what it asked, or ends a subscription. */
function withdrawn(link: Link, flight: Flight, id: Json | undefined): void {
  if (typeof id === 'string' || typeof id === 'number') flight.asks.delete(id)
  if (id !== flight.id || flight.waiter.ended === undefined) return
  flight.talking?.stop()
  leave(link, flight)
  flight.waiter.ended()
}

type Asking = { readonly id: Json; readonly method: string; readonly params: JsonObject }

/** A legacy server asks on the stream of the request that it is about. A modern one never does. */
export function asked(link: Link, flight: Flight, { id, method, params }: Asking): void {
  const { asks, epoch, waiter } = flight
  if (epoch === 0 || flight.state === 'over') return
  if ((typeof id !== 'string' && typeof id !== 'number') || asks.has(id)) return
  const crowded = asks.size >= MAX_ASKS
  asks.add(id)
  const reply = (said: AskReply): void => {
    if (asks.delete(id)) answerAsk(link, { id, epoch }, said)
  }
  if (method === 'ping') reply({ kind: 'result', value: object({}) })
  else if (crowded)
    reply({ kind: 'error', code: INTERNAL, message: 'too many requests wait for an answer' })
  else if (!isAskMethod(method) || waiter.asked === undefined) reply(notOffered(method))
  else waiter.asked({ method, params }, reply)
}

/** The refusal of what a server asks and nobody answers. */
export const notOffered = (method: string): AskReply => ({
  kind: 'error',
  code: METHOD_NOT_FOUND,
  message: `${method} is not offered`,
})

/** Posts the answer to a request of the server, on the session on which it asked. */
export function answerAsk(
  link: Link,
  { id, epoch }: { readonly id: string | number; readonly epoch: number },
  said: AskReply,
): void {
  const { session } = link
  if (session?.epoch !== epoch) return
  const headers = sessionHeaders(session)
  if (said.kind === 'result') return tell(link, { id, result: said.value }, headers)
  const { code, message } = said
  tell(link, { id, error: object({ code, message }) }, headers)
}

const ASK_METHODS: ReadonlySet<string> = new Set<AskMethod>([
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
])
const isAskMethod = (method: string): method is AskMethod => ASK_METHODS.has(method)
