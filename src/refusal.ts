// What an agent is told when its call was not answered: one sentence with the next step, never a secret.

import type { Answer, Asks, Call } from './call.ts'
import type { Code, Failure, Refusal } from './decision.ts'
import type { JsonObject } from './json.ts'

/** What the caller gets. refused: `as` error = a JSON-RPC error with `rpc`, result = `isError`; silent:
 *  the client cancelled and gets nothing; asks: the server wants something of the client first, which sends
 *  the call again with the answers and with `state`, a token that only this ledger opens. */
export type Reply =
  | {
      readonly kind: 'answered'
      readonly answer: Answer
      readonly replayed: boolean
      /** As in an attempt. */
      readonly lacks?: JsonObject
    }
  | Refused
  | { readonly kind: 'asks'; readonly asks: Asks; readonly state: string }
  | { readonly kind: 'silent' }

/** A reply that refuses. `data`: further members of the error's `data`. */
export type Refused = {
  readonly kind: 'refused'
  readonly as: 'error' | 'result'
  readonly rpc: number
  readonly refusal: Refusal
  readonly sentence: string
  readonly data?: JsonObject
}

/** Names are echoed in refusals up to this many characters. */
const ECHO_CHARACTERS = 128

/** What an agent is told of an attempt without an answer. The reason may fit what was sent and what was not;
 *  the sentence must not: who reads "nothing was sent" tries again, and a write would run twice. */
export function codeOf(attempt: {
  readonly kind: 'unsent' | 'unknown'
  readonly code: Code
}): Code {
  const { kind, code } = attempt
  if (kind === 'unknown') return code === 'upstream_down' ? 'outcome_unknown' : code
  return code === 'timeout' ? 'upstream_down' : code
}

/** Denials: an argument or a name that will never pass as it stands. All others are told as a result. */
const ERRORS: ReadonlySet<Code> = new Set<Code>([
  'client_unknown',
  'tool_denied',
  'resource_denied',
  'prompt_denied',
  'arguments_denied',
  'number_not_exact',
  'method_unknown',
  'malformed',
  'state_invalid',
  'capability_missing',
])
const INVALID_PARAMS = -32602
const INTERNAL_ERROR = -32603
/** Of revision 2026-07-28 only; the door tells an older client otherwise. */
const MISSING_CAPABILITY = -32021

/** The reply for a denied or failed call. `failure` is exact and stays inside; `refusal` is what policy lets
 *  the agent know of it. */
export function refusalOf(call: Call, failure: Failure, refusal: Refusal): Refused {
  const denial = ERRORS.has(refusal.code)
  return {
    kind: 'refused',
    as: denial || call.method !== 'tools/call' ? 'error' : 'result',
    rpc: rpcOf(refusal.code),
    refusal,
    sentence: sentence(call, failure, refusal),
  }
}

function rpcOf(code: Code): number {
  if (code === 'capability_missing') return MISSING_CAPABILITY
  return ERRORS.has(code) ? INVALID_PARAMS : INTERNAL_ERROR
}

function sentence(call: Call, failure: Failure, refusal: Refusal): string {
  // One wording for a task that is unknown, past its time, another's, or of a tool that is not allowed.
  if (call.method.startsWith('tasks/') && ERRORS.has(refusal.code)) return 'unknown task'
  const told = SENTENCES[refusal.code](echo(call), failure.field ?? '')
  return refusal.message === undefined ? told : `${told}: ${refusal.message}`
}

/** The asked name, short enough to be said again. */
export const echo = (call: Call): string => call.asked.slice(0, ECHO_CHARACTERS)

/** What the agent reads, with the next step. A denial says no more than the name. */
const SENTENCES: Readonly<Record<Code, (name: string, field: string) => string>> = {
  client_unknown: (name) => `tool denied: ${name}`,
  tool_denied: (name) => `tool denied: ${name}`,
  tool_unknown: (name) => `tool denied: ${name}`,
  definition_waits: (name) => `tool denied: ${name}`,
  definition_changed: (name) => `tool denied: ${name}`,
  resource_denied: (name) => `resource denied: ${name}`,
  prompt_denied: (name) => `prompt denied: ${name}`,
  arguments_denied: (name) => `arguments denied: ${name}`,
  number_not_exact: (name) => `arguments denied: ${name}`,
  arguments_invalid: (name, field) =>
    `the arguments of ${name} do not fit its schema at ${field === '' ? 'the top level' : field}; correct them and call again`,
  method_unknown: (name) => `method not found: ${name}`,
  malformed: () => 'the message is malformed; send one JSON-RPC 2.0 object',
  key_missing: (name) => `${name} needs an idempotency key; send one and call again`,
  key_invalid: (name) =>
    `the idempotency key of ${name} must be 1 to 200 printable ASCII characters; send another`,
  key_conflict: (name) =>
    `this idempotency key was used for ${name} with other arguments; use a new one for a new call`,
  key_expired: (name) =>
    `this idempotency key of ${name} is too old to be known; check the state, then use a new one`,
  busy: (name) => `${name} is already running under this key; ask again with the same key`,
  outcome_unknown: (name) =>
    `whether ${name} was executed is not known; check the state before you call it again`,
  upstream_down: (name) => `the server of ${name} is not available and nothing was sent; try again`,
  timeout: (name) =>
    `${name} did not answer in time and may have been executed; check the state before you call it again`,
  cancelled: (name) => `${name} was cancelled`,
  not_bridged: (name) =>
    `${name} asks for something that cannot be passed on yet; check the state before you call it again`,
  ask_denied: (name) =>
    `${name} asks the client for something that policy does not allow; check the state before you call it again`,
  capability_missing: (name) =>
    `${name} asks for something that this client did not declare; declare the capability and call again`,
  state_invalid: (name) =>
    `the state of ${name} is not valid any more; call it again without requestState and inputResponses`,
  client_revoked: () =>
    'the token of this client is revoked or expired; ask the operator for another',
  upstream_login: (name) =>
    `the server of ${name} needs a login; set its header in the configuration`,
  answer_refused: (name) =>
    `${name} was sent, but its answer could not be admitted; check the state before you call it again`,
  too_many_calls: () => 'too many calls at once; wait for one to end and try again',
  draining: () => 'the gateway is stopping and nothing was sent; try again later',
  not_recorded: () => 'nothing was sent, because it could not be recorded; try again later',
  outcome_not_recorded: () =>
    'it was sent, but its outcome could not be recorded; ask again with the same key, never a new one',
}

/** The refusal of a call that the store could not record; `code` is the fault's. */
export const unrecorded = (code: 'not_recorded' | 'outcome_not_recorded'): Refused => ({
  kind: 'refused',
  as: 'error',
  rpc: INTERNAL_ERROR,
  refusal: { code },
  sentence: SENTENCES[code]('', ''),
})
