// A request as a call: what it names, where that leads, under which key. Nothing here decides.

import type { Call, Era, Method, Responses, Retry, Target, Transport } from '../../call.ts'
import { taskOf } from '../../gateway.ts'
import { isObject, type Json, type JsonObject, object } from '../../json.ts'
import { type Face, LOG_LEVEL, metaOf } from '../wire/era.ts'
import type { Request } from '../wire/message.ts'
import { type Desk, type Route, resolve } from './names.ts'
import type { Routes } from './routes.ts'

/** invalid: `problem` is recorded, `message` told; ambiguous: the name or URI of `call` is shared. */
export type CallRead =
  | { readonly kind: 'call'; readonly call: Call; readonly ambiguous: boolean }
  | { readonly kind: 'invalid'; readonly problem: string; readonly message: string }

const SHARED: readonly Method[] = [
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
]
const URI_METHODS: ReadonlySet<Method> = new Set(['resources/read', 'resources/subscribe'])
const TASK_METHODS: ReadonlySet<Method> = new Set(['tasks/get', 'tasks/update', 'tasks/cancel'])
const CALLS: Readonly<Record<Era, ReadonlySet<string>>> = {
  modern: new Set<Method>([...SHARED, ...TASK_METHODS]),
  legacy: new Set<Method>([...SHARED, 'resources/subscribe']),
}
/** The methods that may be made again with answers to what their server asked. */
const ROUNDS: ReadonlySet<string> = new Set(['tools/call', 'resources/read', 'prompts/get'])
const RETRY_MEMBERS = ['inputResponses', 'requestState'] as const

const isIn = (era: Era, method: string): method is Method => CALLS[era].has(method)

/** The method when requests of this era for it are decided as calls, or null. */
export const callOf = (era: Era, method: string): Method | null =>
  isIn(era, method) ? method : null

/** True for a method that is decided as a call in some era. */
export const isCall = (method: string): boolean =>
  callOf('modern', method) !== null || callOf('legacy', method) !== null

/** Reads the call that a request makes, and finds its target. Costs no I/O for a name that policy refuses. */
export async function readCall(
  { params }: Request,
  method: Method,
  place: {
    readonly desk: Desk
    readonly routes: Routes
    readonly transport: Transport
    readonly receivedUs: number
    readonly face: Face
    /** What a session set as its log level, for servers that want it with each request. */
    readonly level: string | null
  },
): Promise<CallRead> {
  const { face } = place
  const rounds = readRounds(params ?? object({}), method, face.era)
  if (rounds.kind === 'invalid') return rounds
  const { params: known, retry } = rounds
  const wish = readWish(method, known)
  if (wish.kind === 'invalid') return wish
  const { asked, args } = wish
  const key = metaOf(known)?.['eclusa/key'] ?? null
  if (key !== null && typeof key !== 'string') {
    return invalid('key', 'params._meta["eclusa/key"] must be a string')
  }
  const { target, task, ambiguous } = await find(wish, place)
  return {
    kind: 'call',
    ambiguous,
    call: {
      method,
      client: place.desk.client,
      asked,
      target,
      args,
      params: withLevel(withReference(known, method, target), place.level),
      capabilities: face.capabilities,
      retry,
      task,
      key,
      transport: place.transport,
      trace: traceOf(known),
      receivedUs: place.receivedUs,
    },
  }
}

/** Where a wish leads. A task that is not this client's leads nowhere, as one that never was. */
async function find(
  { thing, asked }: Extract<Wish, { readonly kind: 'wish' }>,
  { desk, routes }: { readonly desk: Desk; readonly routes: Routes },
): Promise<Pick<Call, 'target' | 'task'> & { readonly ambiguous: boolean }> {
  if (thing === 'task') {
    const found = taskOf(asked, desk.client, desk.doors)
    return { target: found?.target ?? null, task: found?.task ?? null, ambiguous: false }
  }
  const route =
    thing === 'resource' ? await routes.target(asked, desk) : await resolve(asked, thing, desk)
  return { target: targetOf(route), task: null, ambiguous: route === 'ambiguous' }
}

type Rounds =
  | { readonly kind: 'rounds'; readonly params: JsonObject; readonly retry: Retry | null }
  | Extract<CallRead, { readonly kind: 'invalid' }>

/** The marks of a later round, and the params without them: they go on only by the hall's own hand. */
function readRounds(params: JsonObject, method: Method, era: Era): Rounds {
  const { inputResponses, requestState, ...rest } = params
  if (!hasRetry(params)) return { kind: 'rounds', params, retry: null }
  // To a legacy client the two names say nothing; a modern server must not take them for ours.
  if (era === 'legacy') return { kind: 'rounds', params: object(rest), retry: null }
  if (ROUNDS.has(method)) {
    const retry = readRetry(inputResponses, requestState)
    return 'kind' in retry ? retry : { kind: 'rounds', params: object(rest), retry }
  }
  if (method !== 'tasks/update' || requestState !== undefined) return invalid('retry', NO_ROUNDS)
  // There the answers are the arguments of the method itself.
  return readResponses(inputResponses) === null
    ? invalid('input_responses', WRONG_RESPONSES)
    : { kind: 'rounds', params, retry: null }
}

function readRetry(
  given: Json | undefined,
  state: Json | undefined,
): Retry | Extract<CallRead, { readonly kind: 'invalid' }> {
  if (state !== undefined && typeof state !== 'string') {
    return invalid('request_state', 'params.requestState must be the string that was given')
  }
  const responses: Responses | null = given === undefined ? {} : readResponses(given)
  if (responses === null) return invalid('input_responses', WRONG_RESPONSES)
  return { state: state ?? null, responses }
}

const WRONG_RESPONSES = 'params.inputResponses must be an object of result objects'
/** Told of a method that knows no rounds. */
export const NO_ROUNDS: string =
  'params.inputResponses and params.requestState belong to tools/call, prompts/get and resources/read only'

/** True for params that bear the marks of a later round. */
export const hasRetry = (params: JsonObject | null): boolean =>
  RETRY_MEMBERS.some((name) => params?.[name] !== undefined)

/** The answers by key, or null when one of them is no object. */
function readResponses(given: Json | undefined): Responses | null {
  if (!isObject(given)) return null
  const pairs = Object.entries(given).filter((pair): pair is [string, JsonObject] =>
    isObject(pair[1]),
  )
  return pairs.length < Object.keys(given).length ? null : Object.fromEntries(pairs)
}

type Wish =
  | {
      readonly kind: 'wish'
      readonly thing: Target['kind'] | 'task'
      readonly asked: string
      readonly args: JsonObject
    }
  | Extract<CallRead, { readonly kind: 'invalid' }>

function readWish(method: Method, params: JsonObject): Wish {
  if (method === 'completion/complete') return readCompletion(params)
  if (TASK_METHODS.has(method)) return readTask(params)
  const isRead = URI_METHODS.has(method)
  const field = isRead ? 'uri' : 'name'
  const asked = params[field]
  if (typeof asked !== 'string' || asked === '') {
    return invalid(field, `params.${field} must be a string that is not empty`)
  }
  const args = isRead ? undefined : params['arguments']
  if (args !== undefined && !isObject(args)) {
    return invalid('arguments', 'params.arguments must be an object')
  }
  const thing = isRead ? 'resource' : method === 'prompts/get' ? 'prompt' : 'tool'
  return { kind: 'wish', thing, asked, args: args ?? object({}) }
}

function readTask({ taskId }: JsonObject): Wish {
  if (!isText(taskId)) return invalid('task', 'params.taskId must be a string that is not empty')
  return { kind: 'wish', thing: 'task', asked: taskId, args: object({}) }
}

function readCompletion(params: JsonObject): Wish {
  const { ref, argument } = params
  const isWhole =
    isObject(argument) && isText(argument['name']) && typeof argument['value'] === 'string'
  if (!isWhole) return invalid('argument', 'params.argument must hold name and value')
  if (isObject(ref) && ref['type'] === 'ref/prompt' && isText(ref['name'])) {
    return { kind: 'wish', thing: 'prompt', asked: ref['name'], args: object({}) }
  }
  if (isObject(ref) && ref['type'] === 'ref/resource' && isText(ref['uri'])) {
    return { kind: 'wish', thing: 'resource', asked: ref['uri'], args: object({}) }
  }
  return invalid('ref', 'params.ref must be a ref/prompt with a name or a ref/resource with a uri')
}

const isText = (value: Json | undefined): value is string =>
  typeof value === 'string' && value !== ''

const targetOf = (route: Route): Target | null => (route === 'ambiguous' ? null : route)

// The hall names the target in calls that carry a name; a completion carries it one level down.
function withReference(params: JsonObject, method: Method, target: Target | null): JsonObject {
  const { ref } = params
  if (method !== 'completion/complete' || target?.kind !== 'prompt' || !isObject(ref)) return params
  return object({ ...params, ref: object({ ...ref, name: target.name }) })
}

const withLevel = (params: JsonObject, level: string | null): JsonObject =>
  level === null
    ? params
    : object({ ...params, _meta: object({ ...metaOf(params), [LOG_LEVEL]: level }) })

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** W3C trace context, level 1: `traceparent` when it is well-formed. */
function traceOf(params: JsonObject): string | null {
  const trace = metaOf(params)?.['traceparent']
  return typeof trace === 'string' && TRACE.test(trace) ? trace : null
}

const invalid = (problem: string, message: string): Extract<CallRead, { kind: 'invalid' }> => ({
  kind: 'invalid',
  problem,
  message,
})
