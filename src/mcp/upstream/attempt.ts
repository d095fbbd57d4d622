// One call to one server: sent once, watched to its deadline, asked back, and told for what it was.

import { type Answer, type Ask, isFailure, type Method } from '../../call.ts'
import type { Code } from '../../decision.ts'
import { type Json, type JsonObject, member, object } from '../../json.ts'
import { requiredBy } from '../../policy/asks.ts'
import type { Attempt, Send, Ticket } from '../../ports.ts'
import { joined } from '../wire/capabilities.ts'
import { isDeclared, MAX_ASKS_A_ROUND, mayBeAsked, urlAsks, withRetry } from './asks.ts'
import { type Deadline, deadline, type Deadlines } from './deadline.ts'
import type { Heard } from './heard.ts'
import { type Hop, outgoing } from './meta.ts'
import type { Lot, Parked, Taker } from './park.ts'
import { asTask, createdTask, takesTasks } from './tasks.ts'
import { attemptOf, unknown, unsent } from './told.ts'
import type { AskReply, Exchange, Waiter, Wire } from './wire.ts'

/** One process or session of a server, ready to be called. */
export type Line = { readonly wire: Wire; readonly hop: Hop }

/** How calls of one server go. `lot`: where calls wait for a client's answers. `asTask`: this tool can only
 *  be called as a task of 2025-11-25. `over`: told once, when the server is not waited for any more. */
export type Way = {
  readonly deadlines: Deadlines
  readonly lot: Lot
  readonly asTask: boolean
  readonly over: () => void
}

/** How long the first question of a round waits for others. */
const GATHER_MS = 20
/** From the refusal of what a parked call asked to the end of waiting for what the server makes of it. */
const REFUSED_MS = 10_000

/** Sends the call and resolves when it has been answered, when it never can be, when the server asks the
 *  client something, or at its deadline; then an answer that still comes is `late`. A cancelled read ends
 *  at once, a cancelled mutation goes on: what it did has to be known. */
export function attemptOn(
  line: Line,
  call: { readonly ticket: Ticket; readonly send: Send },
  way: Way,
): Promise<Attempt> {
  const { send, ticket } = call
  const flight = launch(line, { ...factsOf(send), ticket }, way)
  const attempt = listen(flight, send)
  flight.exchange = post(line, send, { waiter: waiterOf(flight), way })
  if (flight.exchange === null) finish(flight, unsent('upstream_down', 'it does not take requests'))
  return attempt
}

/** Who hears of a call while somebody waits for it. */
type Listener = Pick<Taker, 'watch' | 'signal'> & {
  readonly resolve: (attempt: Attempt) => void
  readonly aborted: () => void
}

type Question = { readonly ask: Ask; readonly answer: (reply: AskReply) => void }

/** What is known of a call for as long as it lives: never its arguments. */
type Facts = {
  readonly method: Method
  readonly client: string
  readonly capabilities: JsonObject
  /** The client's own progress token; null: it gave none. */
  readonly token: Json | null
  readonly ticket: Ticket
}

type Flight = Facts & {
  readonly line: Line
  readonly way: Way
  readonly clock: Deadline
  readonly late: PromiseWithResolvers<Answer>
  /** What the server asked and nobody answered yet, by our own keys; null: it never asked. */
  asks: Map<string, Question> | null
  /** What it asked and this call does not let it ask, as client capabilities. */
  lacks: JsonObject | null
  /** Questions and rounds so far. */
  asked: number
  rounds: number
  /** The exchange whose answer is that of the call. */
  exchange: Exchange | null
  /** The task that a legacy server made of it. */
  task: string | null
  /** Null while it is parked and when it is over. */
  listener: Listener | null
  /** While it is parked: who wants to know what becomes of it, and what came meanwhile. */
  parked: { readonly name: string; readonly expired: PromiseWithResolvers<Attempt> } | null
  kept: Attempt | null
  state: 'open' | 'stopping' | 'over'
  gathering: boolean
}

const factsOf = ({ method, client, capabilities, params }: Send): Omit<Facts, 'ticket'> => ({
  method,
  client,
  capabilities,
  token: member(params['_meta'], 'progressToken') ?? null,
})

function launch(line: Line, facts: Facts, way: Way): Flight {
  const flight: Flight = {
    ...facts,
    line,
    way,
    clock: deadline(way.deadlines, () => overdue(flight)),
    late: Promise.withResolvers(),
    asks: null,
    lacks: null,
    asked: 0,
    rounds: 0,
    exchange: null,
    task: null,
    listener: null,
    parked: null,
    kept: null,
    state: 'open',
    gathering: false,
  }
  return flight
}

/** Apart from the waiting, whose closures would otherwise hold the params until the end. */
function post(
  { wire, hop }: Line,
  { method, params, retry, capabilities, headers }: Send,
  { waiter, way }: { readonly waiter: Waiter; readonly way: Way },
): Exchange | null {
  const bare = withRetry(params, { method, era: hop.era }, retry)
  const sent = way.asTask ? asTask(bare, way.deadlines.callMaxMs) : bare
  return wire.request(method, (id) => outgoing(sent, hop, id, capabilities), waiter, headers)
}

function waiterOf(flight: Flight): Waiter {
  const waiter: Waiter = {
    heard: (said) => heard(flight, said),
    progress(params) {
      if (flight.listener === null) return
      flight.clock.extend()
      const { token } = flight
      // Progress goes on only to a client that asked for it, under the client's own token.
      if (token !== null) {
        flight.listener.watch.progress(object({ ...params, progressToken: token }))
      }
    },
    log: (params) => flight.listener?.watch.log(params),
    client: flight.client,
    waits: () => flight.listener === null,
  }
  if (flight.line.hop.era === 'modern' || !mayBeAsked(flight.method)) return waiter
  return { ...waiter, asked: (ask, answer) => asked(flight, { ask, answer }) }
}

/** Somebody waits for the call from now on. */
function listen(
  flight: Flight,
  { watch, signal }: Pick<Taker, 'watch' | 'signal'>,
): Promise<Attempt> {
  const { promise, resolve } = Promise.withResolvers<Attempt>()
  const aborted = (): void => cancelled(flight)
  flight.listener = { watch, signal, resolve, aborted }
  flight.clock.go()
  signal.addEventListener('abort', aborted)
  return promise
}

function unlisten(flight: Flight): Listener | null {
  const { listener } = flight
  flight.clock.pause()
  listener?.signal.removeEventListener('abort', listener.aborted)
  flight.listener = null
  return listener
}

/** The last thing that is said of the call, to whoever wants to know. */
function finish(flight: Flight, last: Attempt): void {
  const { lacks } = flight
  const isLacking = lacks !== null && last.kind === 'answered' && isFailure(last.answer)
  const attempt = isLacking ? { ...last, lacks } : last
  flight.state = 'over'
  refuseAll(flight, 'the call is over')
  unlisten(flight)?.resolve(attempt)
  flight.parked?.expired.resolve(attempt)
  flight.parked = null
  flight.way.over()
}

function heard(flight: Flight, said: Heard): void {
  if (flight.way.asTask && flight.task === null && flight.state !== 'over') {
    flight.task = createdTask(said)
    if (flight.task !== null) return follow(flight)
  }
  const attempt = toldOf(flight, said)
  if (flight.state === 'over') {
    if (attempt.kind === 'answered') flight.late.resolve(attempt.answer)
    return
  }
  // What a server says by itself while its question is out, or after it was refused, is kept.
  if (flight.parked !== null && flight.state === 'open' && said.kind !== 'gone') {
    flight.kept = attempt
    return
  }
  if (flight.parked !== null) flight.way.lot.take(flight.parked.name)
  finish(flight, attempt)
}

function toldOf(flight: Flight, said: Heard): Attempt {
  const { era } = flight.line.hop
  const url =
    era === 'legacy' && mayBeAsked(flight.method) ? urlAsks(said, flight.capabilities) : null
  if (url !== null) return { kind: 'asks', asks: url, parked: null, expired: null }
  // Once there is a task, something was executed, whatever became of asking for its result.
  if (flight.task !== null && said.kind === 'unsent') return unknown('upstream_down', said.why)
  return attemptOf(said, era, { method: flight.method, tasks: takesTasks(flight.capabilities) })
}

/** Waits for the result of the task that the call became. */
function follow(flight: Flight): void {
  const { wire, hop } = flight.line
  const params = object({ taskId: flight.task ?? '' })
  const asking = wire.request('tasks/result', (id) => outgoing(params, hop, id), waiterOf(flight))
  if (asking === null) finish(flight, unknown('upstream_down', 'it does not take requests'))
  else flight.exchange = asking
  if (flight.state !== 'open' || flight.listener?.signal.aborted === true)
    stopServer(flight, 'cancelled')
}

/** Asks the server to stop. `unsent`: the request had not left and is taken back. */
function stopServer(flight: Flight, reason: string): 'told' | 'unsent' {
  const { wire, hop } = flight.line
  if (flight.task === null) return flight.exchange?.cancel(reason) ?? 'told'
  const params = object({ taskId: flight.task })
  wire.request('tasks/cancel', () => outgoing(params, hop, null), { heard: () => undefined })
  return 'told'
}

function overdue(flight: Flight): void {
  if (stopServer(flight, 'timeout') === 'unsent') {
    finish(flight, unsent('timeout', 'it did not read the request in time'))
    return
  }
  flight.exchange?.abandon()
  finish(flight, unknown('timeout', 'it did not answer in time', flight.late.promise))
}

/** The caller does not want it any more. A mutation is still waited for. */
function cancelled(flight: Flight): void {
  refuseAll(flight, 'the call was cancelled')
  flight.state = 'stopping'
  if (stopServer(flight, 'cancelled') === 'unsent') {
    finish(flight, unsent('cancelled', 'it was cancelled'))
  } else if (flight.ticket.does === 'read') {
    // The server may still speak of it: were the call forgotten, that would pass for words of another one.
    flight.exchange?.abandon()
    finish(flight, unknown('cancelled', 'it was cancelled'))
  }
}

/** A legacy server asks the client. What was not declared for this call is refused as if nobody had ever
 *  heard of it, and the call goes on. */
function asked(flight: Flight, question: Question): void {
  const refuse = (code: number, message: string): void =>
    question.answer({ kind: 'error', code, message })
  if (flight.state !== 'open') return refuse(INTERNAL, 'the call is over')
  if (!isDeclared(question.ask, flight.capabilities)) {
    flight.lacks = joined(flight.lacks ?? object({}), requiredBy(question.ask))
    return refuse(METHOD_NOT_FOUND, `${question.ask.method} is not offered`)
  }
  flight.asks ??= new Map()
  if (flight.asks.size >= MAX_ASKS_A_ROUND) return refuse(INTERNAL, 'too many questions wait')
  flight.asks.set(`ask-${++flight.asked}`, question)
  gather(flight)
}

const METHOD_NOT_FOUND = -32601
const INTERNAL = -32603

/** Questions that come together are asked together. */
function gather(flight: Flight): void {
  if (flight.gathering || flight.listener === null) return
  flight.gathering = true
  setTimeout(() => {
    flight.gathering = false
    if (flight.state === 'open' && flight.listener !== null) park(flight)
  }, GATHER_MS)
}

/** The call waits for the client's answers; while it does, its deadline stands still. */
function park(flight: Flight): void {
  const questions = [...(flight.asks ?? [])]
  if (questions.length === 0) return
  const name = `${flight.ticket.operation}-${++flight.rounds}`
  const expired = Promise.withResolvers<Attempt>()
  const call: Parked = {
    client: flight.client,
    resume: (taker) => resume(flight, taker),
    refuse: (code) => abandonParked(flight, code),
  }
  if (!flight.way.lot.park(name, call))
    return refuseAll(flight, 'too many calls wait for an answer')
  flight.parked = { name, expired }
  const asks = Object.fromEntries(questions.map(([key, { ask }]) => [key, ask]))
  unlisten(flight)?.resolve({
    kind: 'asks',
    asks: { asks, state: null },
    parked: name,
    expired: expired.promise,
  })
}

function resume(flight: Flight, taker: Taker): Promise<Attempt> {
  const { kept } = flight
  flight.parked = null
  const attempt = listen(flight, taker)
  if (kept !== null) finish(flight, kept)
  else if (taker.signal.aborted) cancelled(flight)
  else {
    for (const [key, { answer }] of flight.asks ?? []) {
      const value = taker.responses[key]
      if (value === undefined) continue
      flight.asks?.delete(key)
      answer({ kind: 'result', value })
    }
    // What was not answered is asked again.
    gather(flight)
  }
  return attempt
}

/** Nobody takes the call up any more: what the server makes of that is waited for a little. */
function abandonParked(flight: Flight, code: Code): void {
  const { kept } = flight
  if (kept !== null) return finish(flight, kept)
  flight.state = 'stopping'
  refuseAll(flight, 'the client did not answer')
  stopServer(flight, code)
  setTimeout(() => {
    if (flight.state === 'over') return
    flight.exchange?.abandon()
    finish(flight, unknown('timeout', 'it was not answered and did not end', flight.late.promise))
  }, REFUSED_MS).unref()
}

function refuseAll(flight: Flight, message: string): void {
  const { asks } = flight
  if (asks === null) return
  for (const { answer } of asks.values()) answer({ kind: 'error', code: INTERNAL, message })
  asks.clear()
}
