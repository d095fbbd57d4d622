// Tasks that a server works on after it answered: whose they are, what becomes of them, and their end.

import type { Answer, Ask, Call, Client, Target, Task } from '../call.ts'
import { neutral } from '../egress/stored.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  member,
  object,
  parseText,
  REQUEST_LIMITS,
  writeJson,
} from '../json.ts'
import type { Closing } from '../ports.ts'
import type { Reply } from '../refusal.ts'
import { barred, MAX_ASKS, recordAsks, unaskedAnswers } from './asks.ts'
import { digestOf } from './digest.ts'
import { awaiting, type Ended, outcomeOf, record } from './outcome.ts'
import { type Answered, type Doors, FIRST, type Round, since, type Visit } from './page.ts'
import { outward, refused } from './refuse.ts'

const PURPOSE = 'task'
/** How long a client may ask for a task: as long as its key is kept. */
const TASK_LIFE_US = 30 * 24 * 3600 * 1_000_000
/** Characters of a server's own name for a task. */
const MAX_TASK_ID = 1_024

/** The task that a client's `taskId` names, with the tool that made it; null when it was not sealed here for
 *  this client, was changed, or is past its time. */
export function taskOf(
  token: string,
  client: Client,
  doors: Doors,
): { readonly target: Target; readonly task: Task } | null {
  const text = doors.store.unseal(PURPOSE, token, doors.clock.nowUs())
  const parsed = text === null ? null : parseText(text, REQUEST_LIMITS)
  if (parsed?.kind !== 'json') return null
  const part = (key: string): string | null => textOf(member(parsed.value, key))
  if (part('client') !== client.name || part('identity') !== client.identity) return null
  const [upstream, name, id] = [part('upstream'), part('tool'), part('id')]
  const [operation, does] = [part('operation'), part('does')]
  if (upstream === null || name === null || id === null) return null
  if (operation === null || does === null) return null
  return { target: { kind: 'tool', upstream, name }, task: { id, operation, does } }
}

/** True for the answer of a server that goes on working. */
export const isTaskMade = (attempt: Ended): boolean =>
  attempt.kind === 'answered' &&
  attempt.answer.kind === 'result' &&
  attempt.answer.value['resultType'] === 'task'

/** Gives the client a task of its own name. The operation waits for the task's end; until then a repeat of its
 *  key is answered with the same task. */
export async function handOver(visit: Visit, attempt: Ended): Promise<Reply> {
  const { page, ticket, decision } = visit
  const { store } = page.doors
  const made = attempt.kind === 'answered' ? renamed(visit, attempt.answer) : null
  if (attempt.kind !== 'answered' || made === null) {
    const odd: Ended = { kind: 'unknown', code: 'answer_refused', why: 'no task id', late: null }
    await record(visit, odd)
    return outward(page, odd)
  }
  const kept = decision.key === null || ticket.does === 'read' ? null : neutral(made)
  const answer = await digestOf(page.doors, attempt.answer)
  await store.close(ticket, awaiting(visit, 'task', { answer, store: kept }))
  return { kind: 'answered', answer: made, replayed: false }
}

function renamed({ page, ticket }: Visit, answer: Answer): Answer | null {
  const { call, doors } = page
  const id = answer.kind === 'result' ? textOf(answer.value['taskId']) : null
  if (answer.kind !== 'result' || id === null || id === '' || id.length > MAX_TASK_ID) return null
  const { client, target } = call
  const text = writeJson(
    object({
      client: client.name,
      identity: client.identity,
      upstream: target?.upstream,
      tool: target?.name,
      id,
      operation: ticket.operation,
      does: ticket.does,
    }),
  )
  const taskId = doors.store.seal(PURPOSE, text, doors.clock.nowUs() + TASK_LIFE_US)
  return { ...answer, value: object({ ...answer.value, taskId }), text: null }
}

/** The params of a `tasks/*` request as its server knows them. */
export function taskParams({ params, task }: Call, answers: readonly Answered[]): JsonObject {
  const { inputResponses: _given, ...rest } = params
  const named = { ...rest, taskId: task?.id ?? '' }
  if (params['inputResponses'] === undefined) return object(named)
  const inputResponses = object(
    Object.fromEntries(answers.map(({ key, response }) => [key, response])),
  )
  return object({ ...named, inputResponses })
}

/** The answers that a `tasks/update` brings. Which ask each is for is the server's knowledge: each is held against
 *  what its form says it answers. Null when one is no object, or when they are more than a server may ask. */
export function updatesOf({ client, params }: Call, doors: Doors): Round | null {
  const given = params['inputResponses']
  if (given === undefined) return FIRST
  if (!isObject(given)) return null
  const pairs = Object.entries(given).flatMap(([key, one]) =>
    isObject(one) ? [[key, one] as const] : [],
  )
  if (pairs.length < Object.keys(given).length || pairs.length > MAX_ASKS) return null
  // What was declared when it was asked is not known here; the profile is.
  const to = { client, capabilities: ASKABLE }
  const answers = unaskedAnswers(to, doors.policy(), Object.fromEntries(pairs))
  return { ...FIRST, answers: answers.map((one) => ({ ...one, method: null })) }
}

const ASKABLE = object({
  elicitation: object({ form: object({}) }),
  sampling: object({}),
  roots: object({}),
})

/** What a client gets of its task: under its own name, with nothing asked of it that may not be, and with the
 *  operation ended in the ledger when the task is. */
export async function shown(visit: Visit, attempt: Ended): Promise<Reply> {
  const { page } = visit
  const { call, doors } = page
  const answer = attempt.kind === 'answered' ? attempt.answer : null
  const { task } = call
  if (answer === null || task === null) return outward(page, attempt)
  if (answer.kind === 'error') {
    await forget(visit, task, answer.code)
    return outward(page, attempt)
  }
  const asks = asksOf(answer.value['inputRequests'])
  if (asks === null) return outward(page, ODD)
  if (asks.length > 0) {
    const failure = barred(page, asks)
    await recordAsks(page, task.operation, asks, failure)
    if (failure !== null) return refused(page, failure)
  }
  const ended = endOf(answer.value, task.does)
  if (ended !== null && task.does !== 'read') {
    await doors.store.settle(task.operation, await settling(visit, ended))
  }
  const taskId = answer.value['taskId'] === undefined ? undefined : call.asked
  const value = object({ ...answer.value, taskId })
  return { kind: 'answered', answer: { ...answer, value, text: null }, replayed: false }
}

// A server that does not know its task any more will never tell how it ended: then nobody knows, and a repeat of
// the key must not be told that it works on.
async function forget(visit: Visit, { operation, does }: Task, code: number): Promise<void> {
  const { call, doors } = visit.page
  if (call.method !== 'tasks/get' || code !== UNKNOWN_TASK || does === 'read') return
  const lost = await settling(visit, { answer: null, does })
  await doors.store.settle(operation, { ...lost, code: 'outcome_unknown' })
}

/** MCP 2026-07-28, tasks extension: an unknown task is an error of the params. */
const UNKNOWN_TASK = -32602

const ODD: Ended = { kind: 'unknown', code: 'answer_refused', why: 'odd asks', late: null }

/** The last word on a task: what it was answered with, or null for one that was cancelled. */
type End = { readonly answer: Answer | null; readonly does: string }

function endOf(value: JsonObject, does: string): End | null {
  const { status, result, error } = value
  if (status === 'completed' && isObject(result)) {
    return { does, answer: { kind: 'result', era: 'modern', value: result, text: null } }
  }
  if (status === 'failed') return { does, answer: errorOf(error) }
  return status === 'cancelled' ? { does, answer: null } : null
}

function errorOf(error: Json | undefined): Answer {
  const [code, message, data] = [
    member(error, 'code'),
    member(error, 'message'),
    member(error, 'data'),
  ]
  return {
    kind: 'error',
    code: typeof code === 'number' ? code : INTERNAL_ERROR,
    message: typeof message === 'string' ? message : 'the task failed',
    data: data ?? null,
  }
}

const INTERNAL_ERROR = -32603

async function settling({ page }: Visit, { answer, does }: End): Promise<Closing> {
  const digest = answer === null ? null : await digestOf(page.doors, answer)
  const times = { durationUs: since(page), nowUs: page.doors.clock.nowUs(), awaits: null }
  // What a cancelled task did before it stopped, nobody says.
  if (answer === null) {
    return { outcome: 'unknown', code: 'cancelled', answer: null, store: null, ...times }
  }
  return {
    outcome: outcomeOf(does, answer),
    code: null,
    answer: digest,
    store: neutral(answer),
    ...times,
  }
}

const ASKS: readonly Ask['method'][] = [
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
]

/** The asks in a task, or null when one of them is none: with an id it would be a request that somebody could
 *  answer past us. */
function asksOf(value: Json | undefined): readonly Ask[] | null {
  if (value === undefined) return []
  if (!isObject(value)) return null
  const asks: Ask[] = []
  for (const one of Object.values(value)) {
    const method = ASKS.find((known) => known === member(one, 'method'))
    const params = member(one, 'params') ?? object({})
    if (method === undefined || !isObject(params)) return null
    if (member(one, 'id') !== undefined || member(one, 'jsonrpc') !== undefined) return null
    asks.push({ method, params })
  }
  return asks
}

const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' ? value : null
