// One line of a client as a message: a request, a notification, a stray response, or what is wrong with it.

import {
  isObject,
  type Json,
  type JsonLimits,
  type JsonObject,
  type JsonProblem,
  parseJson,
} from '../../json.ts'

/** A request id, its JSON type kept: `1` and `"1"` are two ids. */
export type Id = string | number

/** Why a text is no message; a closed list. Recorded, and told in one sentence. */
export type MessageProblem =
  | JsonProblem
  | 'not_object'
  | 'batch'
  | 'batch_empty'
  | 'batch_too_long'
  | 'version'
  | 'member'
  | 'id'
  | 'method'
  | 'params'
  | 'response'
  | 'id_missing'

/** `id` is null where none could be known; `method` is empty likewise. `told`: false for what can only have
 *  been a notification, which is never answered. */
export type Malformed = {
  readonly kind: 'malformed'
  readonly id: Id | null
  readonly rpc: number
  readonly problem: MessageProblem
  readonly method: string
  readonly told: boolean
}

/** A request; `params` is null when absent. */
export type Request = {
  readonly kind: 'request'
  readonly id: Id
  readonly method: string
  readonly params: JsonObject | null
}

/** What a client says to a request of ours. `result` is null for an error. */
export type Response = {
  readonly kind: 'response'
  readonly id: Id | null
  readonly result: JsonObject | null
}

/** What one line, or one element of a batch, is. */
export type Message =
  | Request
  | { readonly kind: 'notification'; readonly method: string; readonly params: JsonObject | null }
  | Response
  | Malformed

/** What one line holds. The elements of a batch are not classified yet. */
export type Line = Message | { readonly kind: 'batch'; readonly elements: readonly Json[] }

/** JSON-RPC 2.0, section 5.1. */
export const RPC: {
  readonly parse: -32700
  readonly request: -32600
  readonly method: -32601
  readonly params: -32602
  readonly internal: -32603
} = { parse: -32700, request: -32600, method: -32601, params: -32602, internal: -32603 }

/** Longer ids are refused: they are held while their request runs. */
const MAX_ID_BYTES = 256
const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params'])
const RESPONSE_MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'result', 'error'])

/** Reads one line. Arrays come back as `batch`; whether one is taken is the session's to say. */
export function readLine(bytes: Uint8Array, limits: JsonLimits): Line {
  const parsed = parseJson(bytes, limits)
  if (parsed.kind === 'refused') {
    // Text that is JSON to other readers is an invalid request; only what is no JSON is a parse error.
    const rpc = parsed.problem === 'syntax' || parsed.problem === 'utf8' ? RPC.parse : RPC.request
    return malformed(parsed.problem, { rpc })
  }
  const { value } = parsed
  if (Array.isArray(value)) return { kind: 'batch', elements: value }
  return readMessage(value)
}

/** Reads one admitted value. Names are matched exactly: a case variant of a member is an unknown member. */
export function readMessage(value: Json): Message {
  if (!isObject(value)) return malformed('not_object', {})
  const { method, params } = value
  if (method === undefined && isResponse(value)) return readResponse(value)
  const id = readId(value['id'])
  const known = id ?? null
  if (typeof method !== 'string') return malformed('method', { id: known })
  const problem = frameProblem(value)
  if (problem !== null) return malformed(problem, { id: known, method })
  if (id === undefined) return malformed('id', { method })
  if (params !== undefined && !isObject(params)) {
    return malformed('params', { id, method, rpc: RPC.params, told: id !== null })
  }
  const asked = { method, params: params === undefined ? null : params }
  return id === null ? { kind: 'notification', ...asked } : { kind: 'request', id, ...asked }
}

/** The refusal of a line or element with this problem. */
export const malformed = (
  problem: MessageProblem,
  known: { readonly [K in 'id' | 'rpc' | 'method' | 'told']?: Malformed[K] },
): Malformed => ({
  kind: 'malformed',
  id: null,
  rpc: RPC.request,
  method: '',
  told: true,
  ...known,
  problem,
})

/** What a client is told, without a word of what it sent. */
export const problemSentence = (problem: MessageProblem): string => SENTENCES[problem]

function frameProblem(value: JsonObject): 'version' | 'member' | null {
  if (value['jsonrpc'] !== '2.0') return 'version'
  return Object.keys(value).every((key) => MEMBERS.has(key)) ? null : 'member'
}

// undefined: an id that cannot be used; null: no id at all. A number kept as source text (1.0, 2^53 and
// beyond) is refused, for it would come back as another id.
function readId(id: Json | undefined): Id | null | undefined {
  if (id === undefined) return null
  if (typeof id === 'number') return Number.isSafeInteger(id) ? id : undefined
  if (typeof id !== 'string' || Buffer.byteLength(id) > MAX_ID_BYTES) return undefined
  return id
}

const isResponse = (value: JsonObject): boolean => 'result' in value || 'error' in value

function readResponse(value: JsonObject): Message {
  const { jsonrpc, id, result, error } = value
  const whole = Object.keys(value).every((key) => RESPONSE_MEMBERS.has(key))
  const isOne = (result === undefined) !== (error === undefined)
  const isRead = result === undefined ? isObject(error) : isObject(result)
  if (!whole || jsonrpc !== '2.0' || !isOne || !isRead) {
    return malformed('response', { id: readId(id) ?? null, told: false })
  }
  return { kind: 'response', id: readId(id) ?? null, result: isObject(result) ? result : null }
}

const SENTENCES: Readonly<Record<MessageProblem, string>> = {
  syntax: 'the line is not JSON',
  utf8: 'the line is not UTF-8',
  surrogate: 'a string holds half of a character; send well-formed Unicode',
  duplicate_key: 'an object holds a key twice; send each key once',
  proto_key: 'the key __proto__ is not taken',
  number_range: 'a number is too large for any reader; send it as a string',
  too_long: 'the message is too long; send a shorter one',
  too_deep: 'the message is nested too deeply; send a flatter one',
  too_many_keys: 'an object has too many keys; send fewer',
  too_many_nodes: 'the message has too many values; send fewer',
  not_object: 'a message is one JSON object',
  batch: 'batches are not taken; send each message on a line of its own',
  batch_empty: 'the batch is empty; send each message on a line of its own',
  batch_too_long: 'the batch holds too many messages; send each on a line of its own',
  version: 'jsonrpc must be "2.0"',
  member:
    'the message has a member that JSON-RPC does not know; send jsonrpc, id, method and params only',
  id: 'id must be a string of at most 256 bytes or an integer within 2^53-1',
  method: 'method must be a string',
  params: 'params must be an object',
  response: 'the response is malformed',
  id_missing: 'a request needs an id',
}
