// A call of several rounds: what it waits for, who may go on with it, and the token that says so.

import type { Ask, AskMethod, Call } from '../call.ts'
import { canonical, sha256 } from '../canonical.ts'
import { builtIn, type Failure } from '../decision.ts'
import { Fault } from '../fault.ts'
import {
  isObject,
  type Json,
  member,
  object,
  parseText,
  REQUEST_LIMITS,
  writeJson,
} from '../json.ts'
import { requiredBy } from '../policy/asks.ts'
import type { Attempt } from '../ports.ts'
import type { Reply } from '../refusal.ts'
import { answersOf, barred, recordAsks, unaskedAnswers } from './asks.ts'
import { awaiting, closing, type Ended, record, without } from './outcome.ts'
import { type Doors, FIRST, type Page, type Round, type Visit } from './page.ts'
import { refused } from './refuse.ts'
import { updatesOf } from './tasks.ts'

/** Rounds of one call; a server that asks once more is refused. */
export const MAX_ROUNDS = 10
/** How long a client may take for one round. */
const STATE_LIFE_US = 10 * 60 * 1_000_000
/** Characters of a server's own state: a longer one could not come back in a request. */
const MAX_STATE = 1024 * 1024
const PURPOSE = 'round'

/** The client was asked and answered: the call goes on with this round. */
export type Next = { readonly kind: 'next'; readonly round: Round }

type Asking = Extract<Attempt, { readonly kind: 'asks' }>

/** The round that a call is in. Null for a later round whose state was not sealed for this client and this
 *  call, was changed, is past its time, or whose answers have not the form that was asked for. */
export function takeUp(call: Call, doors: Doors): Round | null {
  if (call.method === 'tasks/update') return updatesOf(call, doors)
  if (call.retry === null) return FIRST
  // Every question of ours goes out with a state: without one this is a first round, and what it answers is its
  // server's to know.
  if (call.retry.state === null) {
    const answers = unaskedAnswers(call, doors.policy(), call.retry.responses)
    return { ...FIRST, answers }
  }
  const text = doors.store.unseal(PURPOSE, call.retry.state, doors.clock.nowUs())
  const sealed = text === null ? null : parseSealed(text)
  if (sealed === null || sealed.binding !== bindingOf(call)) return null
  const answers = answersOf({ call, set: doors.policy() }, sealed.asks, call.retry.responses)
  if (answers === null) return null
  const { number, operation, state, parked } = sealed
  return { number, operation, state, parked, answers }
}

/** A server asks something of the client. Asks that may not reach it end the call; the others are recorded and
 *  asked, on a session by real requests, else by an answer that holds them. */
export async function askClient(visit: Visit, attempt: Asking): Promise<Reply | Next> {
  const { page, ticket, line } = visit
  const { store, upstreams } = page.doors
  const asks = Object.values(attempt.asks.asks)
  const failure = barrier(page, attempt, asks)
  if (failure !== null) return refuseAsks(visit, attempt, { asks, failure })

  const held = attempt.parked === null ? 'input' : 'parked'
  const wait = awaiting(visit, held, { answer: null, store: null })
  try {
    const recorded = recordAsks(page, ticket.operation, asks, null)
    await Promise.all([store.close(ticket, wait), recorded])
  } catch (error) {
    if (attempt.parked !== null) upstreams.drop(attempt.parked, 'not_recorded')
    throw sentBefore(error)
  }
  settleExpired(visit, attempt)

  if (line.signal.aborted) {
    if (attempt.parked !== null) upstreams.drop(attempt.parked, 'cancelled')
    return { kind: 'silent' }
  }
  if (line.ask === null) {
    return { kind: 'asks', asks: attempt.asks, state: seal(visit, attempt) }
  }
  return askSession(visit, attempt, line.ask)
}

async function askSession(
  visit: Visit,
  attempt: Asking,
  ask: NonNullable<Visit['line']['ask']>,
): Promise<Reply | Next> {
  const { page, ticket, line } = visit
  const { asks, state } = attempt.asks
  // No question and a state: the server only wants the call again.
  const responses = Object.keys(asks).length === 0 ? {} : await ask(attempt.asks, line.signal)
  const answers = responses === null ? null : answersOf(page, methodsOf(asks), responses)
  if (answers === null) return unanswered(visit, attempt)
  const { operation } = ticket
  const number = page.round.number + 1
  return { kind: 'next', round: { number, operation, state, parked: attempt.parked, answers } }
}

/** Nobody answers any more: the call is over, whatever its server makes of that. */
async function unanswered(visit: Visit, { parked }: Asking): Promise<Reply> {
  const { page, ticket, line } = visit
  const { store, upstreams } = page.doors
  if (parked !== null) upstreams.drop(parked, 'cancelled')
  else await store.settle(ticket.operation, without(visit, 'not_executed', 'cancelled'))
  return line.signal.aborted ? { kind: 'silent' } : refused(page, builtIn('cancelled'))
}

function barrier(page: Page, { asks }: Asking, list: readonly Ask[]): Failure | null {
  const endless = page.round.number >= MAX_ROUNDS || (asks.state?.length ?? 0) > MAX_STATE
  return endless ? builtIn('not_bridged') : barred(page, list)
}

async function refuseAsks(
  visit: Visit,
  { parked, expired }: Asking,
  { asks, failure }: { readonly asks: readonly Ask[]; readonly failure: Failure },
): Promise<Reply> {
  const { page, ticket } = visit
  if (parked !== null) page.doors.upstreams.drop(parked, failure.code)
  // A parked call has begun: only its server knows what it did. One that asks and holds nothing did nothing.
  const ended: Ended = {
    kind: 'unknown',
    code: failure.code,
    why: 'what it asks may not reach the client',
    late: parked === null || expired === null ? null : lateAnswer(expired),
  }
  const closed =
    parked === null
      ? page.doors.store.close(ticket, without(visit, 'not_executed', failure.code))
      : record(visit, ended)
  try {
    await Promise.all([closed, recordAsks(page, ticket.operation, asks, failure)])
  } catch (error) {
    throw sentBefore(error)
  }
  return { ...refused(page, failure), ...required(failure, asks) }
}

/** Never resolves for a call that ends without an answer. */
const lateAnswer = (expired: Promise<Attempt>): ReturnType<typeof answerOf> => answerOf(expired)

async function answerOf(
  expired: Promise<Attempt>,
): Promise<Extract<Attempt, { kind: 'answered' }>['answer']> {
  const came = await expired
  return came.kind === 'answered' ? came.answer : new Promise(() => {})
}

/** What the client would have to declare, as `data.requiredCapabilities` tells it. */
function required(
  { code }: Failure,
  asks: readonly Ask[],
): { readonly data?: ReturnType<typeof object> } {
  if (code !== 'capability_missing') return {}
  let all = object({})
  for (const ask of asks) all = merged(all, requiredBy(ask))
  return { data: object({ requiredCapabilities: all }) }
}

function merged(a: ReturnType<typeof object>, b: ReturnType<typeof object>): typeof a {
  const made: Record<string, Json | undefined> = { ...a }
  for (const [key, value] of Object.entries(b)) {
    const before = a[key]
    made[key] = isObject(before) && isObject(value) ? merged(before, value) : value
  }
  return object(made)
}

/** What a parked call comes to that nobody took up is its outcome. */
function settleExpired(visit: Visit, { expired }: Asking): void {
  if (expired === null) return
  const { doors } = visit.page
  expired
    .then((came) => closing(visit, begun(came)))
    .then((closed) => doors.store.settle(visit.ticket.operation, closed))
    .catch(doors.broken)
}

/** The end of a call that had begun: that its server was not reached again proves nothing. */
export function begun(came: Attempt): Ended {
  if (came.kind === 'answered' || came.kind === 'unknown') return came
  const code = came.kind === 'asks' || came.code === 'state_invalid' ? 'outcome_unknown' : came.code
  return { kind: 'unknown', code, why: 'it had begun and did not end', late: null }
}

/** The fault of a record that comes after the send. */
const sentBefore = (error: unknown): unknown =>
  error instanceof Fault && error.code === 'not_recorded'
    ? new Fault('outcome_not_recorded', error.message, { cause: error })
    : error

const methodsOf = (asks: Readonly<Record<string, Ask>>): Readonly<Record<string, AskMethod>> =>
  Object.fromEntries(Object.entries(asks).map(([key, { method }]) => [key, method]))

type Sealed = {
  readonly binding: string
  readonly number: number
  readonly operation: string
  readonly state: string | null
  readonly parked: string | null
  readonly asks: Readonly<Record<string, AskMethod>>
}

/** Whose retry may open the state: this client's, for this very call. */
function bindingOf({ client, method, target, args }: Call): string {
  const { name, profile, identity } = client
  const about = target === null ? null : object({ ...target })
  return sha256(canonical(object({ name, profile, identity, method, about, args })))
}

function seal({ page, ticket }: Visit, { asks, parked }: Asking): string {
  const { store, clock } = page.doors
  const text = writeJson(
    object({
      binding: bindingOf(page.call),
      number: page.round.number + 1,
      operation: ticket.operation,
      state: asks.state,
      parked,
      asks: object(methodsOf(asks.asks)),
    }),
  )
  return store.seal(PURPOSE, text, clock.nowUs() + STATE_LIFE_US)
}

/** Sealed here, so that its form is known; a token of another build may still have another. */
function parseSealed(text: string): Sealed | null {
  const parsed = parseText(text, REQUEST_LIMITS)
  if (parsed.kind !== 'json') return null
  const part = (key: string): Json | undefined => member(parsed.value, key)
  const [binding, number, operation] = [part('binding'), part('number'), part('operation')]
  const [state, parked] = [part('state') ?? null, part('parked') ?? null]
  if (typeof binding !== 'string' || typeof operation !== 'string') return null
  if (typeof number !== 'number' || !isTextOrNull(state) || !isTextOrNull(parked)) return null
  const asks = askMethods(part('asks'))
  return asks === null ? null : { binding, number, operation, state, parked, asks }
}

const isTextOrNull = (value: Json): value is string | null =>
  value === null || typeof value === 'string'

const METHODS: readonly AskMethod[] = ['elicitation/create', 'sampling/createMessage', 'roots/list']

function askMethods(value: Json | undefined): Readonly<Record<string, AskMethod>> | null {
  if (!isObject(value)) return null
  const pairs: [string, AskMethod][] = []
  for (const [key, name] of Object.entries(value)) {
    const method = METHODS.find((one) => one === name)
    if (method === undefined) return null
    pairs.push([key, method])
  }
  return Object.fromEntries(pairs)
}
