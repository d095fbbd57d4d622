// What a server asks of the client in the middle of a call: read from its answer, and held against what was declared.

import type { Ask, AskMethod, Asks, Era, Method, Responses, Retry } from '../../call.ts'
import { isObject, type Json, type JsonObject, member, object, withMembers } from '../../json.ts'
import type { Heard } from './heard.ts'

/** Questions of one round. */
export const MAX_ASKS_A_ROUND = 16
/** Characters of the name of a question, and of the server's own state. */
const MAX_ASK_KEY = 256
const MAX_STATE = 1024 * 1024

const ASK_METHODS: ReadonlySet<Json> = new Set<AskMethod>([
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
])
/** True for what a server may ask of a client. */
export const isAskMethod = (method: Json | undefined): method is AskMethod =>
  method !== undefined && ASK_METHODS.has(method)

const ASKING: ReadonlySet<Method> = new Set<Method>(['tools/call', 'prompts/get', 'resources/read'])
/** True for the calls in the middle of which a server may ask. Source: MCP 2026-07-28, multi-round-trip requests. */
export const mayBeAsked = (method: Method): boolean => ASKING.has(method)

/** What an `input_required` result asks, or why it is none that may be passed on, as a clause. */
export function readAsks({ inputRequests, requestState }: JsonObject): Asks | string {
  if (inputRequests !== undefined && !isObject(inputRequests)) return 'its questions are no object'
  const state = requestState ?? null
  if (state !== null && (typeof state !== 'string' || state.length > MAX_STATE)) {
    return 'its requestState is no string that can be kept'
  }
  const asks = questions(inputRequests ?? NOTHING)
  if (typeof asks === 'string') return asks
  const isEmpty = state === null && Object.keys(asks).length === 0
  return isEmpty ? 'it wants something and does not say what' : { asks, state }
}

const NOTHING: JsonObject = object({})

function questions(wanted: JsonObject): Asks['asks'] | string {
  const keys = Object.keys(wanted)
  if (keys.length > MAX_ASKS_A_ROUND) return 'it asks too many questions at once'
  const asks: Record<string, Ask> = {}
  for (const key of keys) {
    const ask = key.length > MAX_ASK_KEY ? null : askOf(wanted[key])
    if (ask === null) return 'it asks something that is no question'
    asks[key] = ask
  }
  return withoutPrototype(asks)
}

/** A question inside a result is method and params alone: with an id it would be a request that somebody
 *  could answer past us. */
function askOf(value: Json | undefined): Ask | null {
  if (!isObject(value) || 'id' in value || 'jsonrpc' in value) return null
  const { method, params } = value
  if (!isAskMethod(method)) return null
  if (params === undefined) return method === 'roots/list' ? { method, params: object({}) } : null
  return isObject(params) ? { method, params } : null
}

// A key is the server's: an object with a prototype would lend it members.
function withoutPrototype<T>(members: Readonly<Record<string, T>>): Readonly<Record<string, T>> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an empty object holds nothing else
  return Object.assign(Object.create(null) as Record<string, T>, members)
}

/** True when these capabilities, as they were declared, let a server ask this. `elicitation: {}` is the
 *  form mode alone. */
export function isDeclared({ method, params }: Ask, capabilities: JsonObject): boolean {
  const { elicitation, sampling, roots } = capabilities
  switch (method) {
    case 'roots/list':
      return isObject(roots)
    case 'sampling/createMessage':
      return isObject(sampling) && (!usesTools(params) || isObject(sampling['tools']))
    case 'elicitation/create':
      if (!isObject(elicitation)) return false
      if (params['mode'] === 'url') return isObject(elicitation['url'])
      return isObject(elicitation['form']) || elicitation['url'] === undefined
  }
}

const usesTools = (params: JsonObject): boolean =>
  params['tools'] !== undefined || params['toolChoice'] !== undefined

/** What a legacy server may be told of a client when it is initialized. */
export function legacyCapabilities({ elicitation, sampling, roots }: JsonObject): JsonObject {
  return object({
    elicitation,
    sampling,
    // Changes of roots are not passed on.
    roots: isObject(roots) ? object({}) : undefined,
  })
}

/** Of the params of a call what may be sent: the marks of a later round are those of `retry`, never what
 *  stood in the request, and a server of the legacy era knows none. */
export function withRetry(
  params: JsonObject,
  hop: { readonly method: Method; readonly era: Era },
  retry: Retry | null,
): JsonObject {
  if (!mayBeAsked(hop.method)) return params
  const bare = RETRY_MARKS.some((name) => params[name] !== undefined)
    ? withMembers(params, { inputResponses: undefined, requestState: undefined, task: undefined })
    : params
  if (retry === null || hop.era === 'legacy') return bare
  const { state, responses } = retry
  const given = Object.keys(responses).length > 0 || state === null
  return withMembers(bare, {
    inputResponses: given ? object({ ...responses }) : undefined,
    requestState: state ?? undefined,
  })
}

const RETRY_MARKS: readonly string[] = ['inputResponses', 'requestState', 'task']

const URL_NEEDED = -32_042

/** The questions in a legacy server's error that a URL must be opened first, or null when it is another
 *  error or nobody said that URLs can be opened. The error proves that nothing was executed. Source: MCP
 *  2025-11-25, elicitation. */
export function urlAsks(heard: Heard, capabilities: JsonObject): Asks | null {
  if (heard.kind !== 'error' || heard.code !== URL_NEEDED) return null
  const wanted = member(heard.data ?? undefined, 'elicitations')
  if (!Array.isArray(wanted) || wanted.length === 0 || wanted.length > MAX_ASKS_A_ROUND) return null
  const asks: Record<string, Ask> = {}
  const list: readonly Json[] = wanted
  for (const [at, one] of list.entries()) {
    const message = member(one, 'message')
    const url = member(one, 'url')
    const params = object({ mode: 'url', message, url })
    const ask: Ask = { method: 'elicitation/create', params }
    if (typeof message !== 'string' || typeof url !== 'string') return null
    if (!isDeclared(ask, capabilities)) return null
    asks[`url-${at + 1}`] = ask
  }
  return { asks, state: null }
}

/** True when each of these answers is a consent. */
export const allAccepted = (responses: Responses): boolean =>
  Object.values(responses).every((one) => one['action'] === 'accept')
