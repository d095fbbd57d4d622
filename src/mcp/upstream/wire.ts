// JSON-RPC with one server process: our ids, its answers, and what it may not do to us.

import type { Ask, AskMethod } from '../../call.ts'
import { isExact, isObject, member, object, parseJson, writeJson } from '../../json.ts'
import type { Json, JsonLimits, JsonObject, JsonProblem } from '../../json.ts'
import type { Child, Parcel } from './child.ts'
import type { Edges } from '../wire/lines.ts'
import { PROTOCOL } from '../wire/era.ts'
import { type Shelf, shelf } from '../wire/shelf.ts'
import { type Candidate, only } from './correlate.ts'
import { type Floodgate, floodgate } from './flood.ts'
import { answerOf, type Heard, idOf } from './heard.ts'
import { answerByItems, OF_ONE_PLACE } from './items.ts'

/** What is answered to a request of a server. */
export type AskReply =
  | { readonly kind: 'result'; readonly value: JsonObject }
  | { readonly kind: 'error'; readonly code: number; readonly message: string }

/** Who waits for an answer. `heard` comes at most once; `progress` before it, with growing values. */
export type Waiter = {
  readonly heard: (heard: Heard) => void
  readonly progress?: (params: JsonObject) => void
  /** The server asks something of the client in the middle of this request; `answer` does nothing when it
   *  is called again or when the server does not wait any more. Absent: it is told that nobody answers. */
  readonly asked?: (ask: Ask, answer: (reply: AskReply) => void) => void
  /** For whom it is asked; absent: for nobody in particular. */
  readonly client?: string
  /** True while its client is asked, so that it is hardly the one that speaks. */
  readonly waits?: () => boolean
  /** A log message that belongs to this request. */
  readonly log?: (params: JsonObject) => void
  /** A subscription only: what the server announces on it. */
  readonly notice?: (method: string, params: JsonObject) => void
  /** The server ended it without an answer, which it may do to a subscription only. */
  readonly ended?: () => void
  /** A list is asked for: an item that cannot be admitted is null and does not cost the others. */
  readonly byItems?: boolean
}

/** One request under way. */
export type Exchange = {
  readonly id: number
  /** Asks the server to stop; the answer is still awaited. `unsent`: it had not left and is taken back. */
  readonly cancel: (reason: string) => 'told' | 'unsent'
  /** Nobody waits any more, but an answer that comes late is still heard, while there is room. */
  readonly abandon: () => void
  /** Nothing is heard of it any more. */
  readonly forget: () => void
}

/** The conversation with one process or session of a server. */
export type Wire = {
  /** Sends a request whose params may hold its own id, where the transport has headers with these. Null:
   *  it cannot be sent now. */
  readonly request: (
    method: string,
    params: (id: number) => JsonObject,
    waiter: Waiter,
    headers?: Readonly<Record<string, string>>,
  ) => Exchange | null
  readonly notify: (method: string, params: JsonObject) => void
  /** From now on an array is several messages: 2025-03-26 and before allow that. */
  readonly acceptBatches: () => void
}

/** The conversation over the pipes of one process. `counts` are of messages that were dropped. */
export type Pipe = Wire & {
  /** Takes one line; true when it was an answer that somebody waited for. */
  readonly line: (line: Buffer) => boolean
  readonly tooLong: (bytes: number, edges: Edges) => void
  /** Every waiter hears that the process is gone. */
  readonly gone: () => void
  readonly counts: Readonly<Record<'junk' | 'stray' | 'asked' | 'flood', number>>
}

/** What a wire needs of its surroundings. `nextId` never gives an id twice, not even for another
 *  process of the same upstream: an answer can then only be the answer to what was asked of this one. */
export type WireOptions = {
  readonly child: Pick<Child, 'send' | 'withdraw'>
  readonly limits: JsonLimits
  readonly nextId: () => number
  readonly notified: (method: string, params: JsonObject) => void
}

/** Requests that wait for an answer; and of those that nobody waits for any more, the latest. */
const MAX_PENDING = 10_000
const MAX_ABANDONED = 1000
/** Requests of the server that wait for an answer. */
const MAX_ASKS = 64
/** For so long a call that was cancelled may still be the one that speaks. */
const CANCELLED_SPEAKS_MS = 30_000
const METHOD_NOT_FOUND = -32601
const INTERNAL = -32603
const SUBSCRIPTION = `${PROTOCOL}subscriptionId`

type Pending = {
  readonly waiter: Waiter
  readonly parcel: Parcel
  last: number
  cancelledAt: number | null
}

type Talk = WireOptions & {
  readonly pending: Shelf<number, Pending>
  /** Of the pending ones, those that nobody waits for, oldest first. */
  readonly abandoned: Set<number>
  /** Requests of the server that were not answered yet. */
  readonly asks: Set<string | number>
  readonly counts: { junk: number; stray: number; asked: number; flood: number }
  readonly flood: Floodgate
  batches: boolean
  /** Answers that somebody waited for. */
  answers: number
}

/** A conversation over this child. */
export function wire(options: WireOptions): Pipe {
  const talk: Talk = {
    ...options,
    pending: shelf(),
    abandoned: new Set(),
    asks: new Set(),
    counts: { junk: 0, stray: 0, asked: 0, flood: 0 },
    flood: floodgate(),
    batches: false,
    answers: 0,
  }
  return {
    request: (method, params, waiter) => request(talk, method, params, waiter),
    notify: (method, params) => void post(talk, { method, params }),
    line(line) {
      const before = talk.answers
      read(talk, line)
      return talk.answers > before
    },
    tooLong(bytes, edges) {
      refuse(talk, edges, `its answer has ${bytes} bytes, the limit is ${talk.limits.bytes}`)
    },
    gone() {
      const left = talk.pending.values()
      talk.pending.clear()
      for (const { waiter, parcel } of left) {
        waiter.heard({ kind: 'gone', handed: parcel.state === 'handed' })
      }
    },
    acceptBatches() {
      talk.batches = true
    },
    counts: talk.counts,
  }
}

const post = ({ child }: Talk, members: Record<string, Json>): Parcel | null =>
  child.send(`{"jsonrpc":"2.0",${writeJson(members).slice(1)}\n`)

function request(
  talk: Talk,
  method: string,
  params: (id: number) => JsonObject,
  waiter: Waiter,
): Exchange | null {
  const { pending, abandoned, child } = talk
  if (pending.size() >= MAX_PENDING) return null
  const id = talk.nextId()
  const parcel = post(talk, { id, method, params: params(id) })
  if (parcel === null) return null
  const one: Pending = { waiter, parcel, last: Number.NEGATIVE_INFINITY, cancelledAt: null }
  pending.set(id, one)
  return {
    id,
    cancel(reason) {
      if (child.withdraw(parcel)) {
        pending.delete(id)
        return 'unsent'
      }
      if (pending.has(id) && one.cancelledAt === null) {
        one.cancelledAt = performance.now()
        const told = object({ requestId: id, reason })
        post(talk, { method: 'notifications/cancelled', params: told })
      }
      return 'told'
    },
    abandon() {
      abandoned.add(id)
      const [oldest] = abandoned
      if (abandoned.size <= MAX_ABANDONED || oldest === undefined) return
      abandoned.delete(oldest)
      pending.delete(oldest)
    },
    forget: () => pending.delete(id),
  }
}

function read(talk: Talk, line: Buffer): void {
  if (talk.flood.closed(line)) {
    talk.counts.flood++
    return
  }
  const parsed = parseJson(line, talk.limits)
  if (parsed.kind === 'refused') {
    readRefused(talk, line, parsed.problem)
    return
  }
  const { value, text, result } = parsed
  if (member(value, 'method') !== undefined || member(value, 'id') === undefined) {
    talk.flood.count(line.length)
  }
  if (talk.batches && isList(value)) {
    for (const one of value) take(talk, one, null)
    return
  }
  take(talk, value, result === null ? null : text.slice(...result))
}

/** A line that was not admitted. Where a list was asked for, its good items are. */
function readRefused(talk: Talk, line: Buffer, problem: JsonProblem): void {
  const edges = { head: line, tail: line }
  const id = idOf(edges)
  const waiting = id === null ? undefined : talk.pending.get(id)
  if (waiting?.waiter.byItems === true && OF_ONE_PLACE.has(problem)) {
    const value = answerByItems(line.toString('utf8'), talk.limits)
    if (value !== null && value['id'] === id) return take(talk, value, null)
  }
  refuse(talk, edges, `its answer is not admissible JSON (${problem})`)
}

/** One message; `text` is the source of its result. */
function take(talk: Talk, value: Json, text: string | null): void {
  if (!isObject(value) || value['jsonrpc'] !== '2.0') {
    talk.counts.junk++
    return
  }
  const { id, method, params } = value
  if (typeof method === 'string') {
    const given = isObject(params) ? params : object({})
    if (id !== undefined) answerAsk(talk, { id, method, params: given })
    else notice(talk, method, given)
    return
  }
  const heard = answerOf(value, text)
  if (heard === null) talk.counts.junk++
  else if (typeof id === 'number') settle(talk, id, heard)
  else talk.counts.stray++
}

function settle(talk: Talk, id: number, heard: Heard): void {
  const { pending, abandoned, counts } = talk
  const waiting = pending.get(id)
  pending.delete(id)
  abandoned.delete(id)
  if (waiting === undefined) {
    counts.stray++
    return
  }
  talk.answers++
  waiting.waiter.heard(heard)
}

/** An answer that was not admitted still ends the call it was for, when its id can be read. */
function refuse(talk: Talk, edges: Edges, why: string): void {
  const id = idOf(edges)
  if (id === null || !talk.pending.has(id)) talk.counts.junk++
  else settle(talk, id, { kind: 'refused', why })
}

function progress({ pending }: Talk, params: JsonObject): void {
  const { progressToken: token, progress: at } = params
  const waiting = typeof token === 'number' ? pending.get(token) : undefined
  const value = isExact(at) ? Number(at.rawJSON) : typeof at === 'number' ? at : Number.NaN
  // Unknown tokens, ended calls and values that do not grow are dropped: strict clients hang up on them.
  if (waiting === undefined || !(value > waiting.last)) return
  waiting.last = value
  waiting.waiter.progress?.(params)
}

function notice(talk: Talk, method: string, params: JsonObject): void {
  if (method === 'notifications/progress') progress(talk, params)
  else if (method === 'notifications/cancelled') ended(talk, params)
  else {
    const waiter = listenerOf(talk, method, params)
    if (waiter === null) talk.notified(method, params)
    else waiter(params)
  }
}

/** The one request that this notification belongs to, as far as anything says so. No field of a log message
 *  names its call: with one in flight it is that one, with several nobody can say. */
function listenerOf(
  { pending }: Talk,
  method: string,
  params: JsonObject,
): ((params: JsonObject) => void) | null {
  if (method === 'notifications/message') {
    const one = only(candidates(pending, 'log'))
    return typeof one === 'string' ? null : (one.log ?? null)
  }
  const id = member(params['_meta'], SUBSCRIPTION)
  const listening = typeof id === 'number' ? pending.get(id)?.waiter.notice : undefined
  return listening === undefined ? null : (told) => listening(method, told)
}

/** The server ends a subscription, or does not wait any more for what it asked. */
function ended({ pending, asks }: Talk, params: JsonObject): void {
  const { requestId: id } = params
  if (typeof id === 'number' || typeof id === 'string') asks.delete(id)
  const waiting = typeof id === 'number' ? pending.get(id) : undefined
  if (typeof id !== 'number' || waiting?.waiter.ended === undefined) return
  pending.delete(id)
  waiting.waiter.ended()
}

type Asking = { readonly id: Json; readonly method: string; readonly params: JsonObject }

/** Answers a request of the server: a ping here, what it asks of the client by the only call that it can
 *  belong to. No field names that call, so with several in flight nobody is asked: a wrong guess would
 *  show one call's question to another. */
function answerAsk(talk: Talk, { id, method, params }: Asking): void {
  talk.counts.asked++
  if (typeof id !== 'string' && typeof id !== 'number') return
  const reply = (said: AskReply): void => {
    if (!talk.asks.delete(id)) return
    const { kind: _kind, ...error } = said.kind === 'error' ? said : { ...said, value: null }
    post(talk, said.kind === 'result' ? { id, result: said.value } : { id, error: object(error) })
  }
  const turnAway = (code: number, message: string): void => reply({ kind: 'error', code, message })
  if (talk.asks.has(id)) return
  const crowded = talk.asks.size >= MAX_ASKS
  talk.asks.add(id)
  if (crowded) return turnAway(INTERNAL, 'too many requests wait for an answer')
  if (method === 'ping') return reply({ kind: 'result', value: object({}) })
  if (!isAskMethod(method)) return turnAway(METHOD_NOT_FOUND, `${method} is not offered`)
  const one = only(candidates(talk.pending, 'asked'))
  if (one === 'none') turnAway(METHOD_NOT_FOUND, `${method} is not offered`)
  else if (one === 'several') turnAway(INTERNAL, SEVERAL)
  else one.asked?.({ method, params }, reply)
}

const SEVERAL = 'several calls are in flight, and nothing says which one asks'

/** The requests that this may be about. One that was just cancelled may still be the one that speaks. */
function* candidates(pending: Talk['pending'], of: 'asked' | 'log'): Iterable<Candidate<Waiter>> {
  for (const { waiter, cancelledAt } of pending.values()) {
    if (waiter[of] === undefined) continue
    const isLate = cancelledAt !== null && performance.now() - cancelledAt > CANCELLED_SPEAKS_MS
    if (isLate) continue
    const waits = cancelledAt !== null || waiter.waits?.() === true
    yield { of: waiter, client: waiter.client ?? null, waits }
  }
}

const ASK_METHODS: ReadonlySet<string> = new Set<AskMethod>([
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
])
const isAskMethod = (method: string): method is AskMethod => ASK_METHODS.has(method)

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)
