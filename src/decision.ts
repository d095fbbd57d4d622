// Nouns of a decision: what policy says of a call, and the closed list of what an agent may be told.

import type { JsonObject } from './json.ts'

/** Built-in refusal codes: the closed list of design.md 3, pinned by a test. `definition_waits`,
 *  `definition_changed` and `tool_unknown` are for the record only: the agent is told `tool_denied`. */
export type Code =
  | 'client_unknown'
  | 'tool_denied'
  | 'resource_denied'
  | 'prompt_denied'
  | 'arguments_denied'
  | 'number_not_exact'
  | 'arguments_invalid'
  | 'definition_waits'
  | 'definition_changed'
  | 'method_unknown'
  | 'malformed'
  | 'key_missing'
  | 'key_invalid'
  | 'key_conflict'
  | 'key_expired'
  | 'busy'
  | 'outcome_unknown'
  | 'upstream_down'
  | 'timeout'
  | 'cancelled'
  | 'not_bridged'
  | 'ask_denied'
  | 'capability_missing'
  | 'state_invalid'
  | 'client_revoked'
  | 'upstream_login'
  | 'answer_refused'
  | 'too_many_calls'
  | 'draining'
  | 'not_recorded'
  | 'outcome_not_recorded'
  | 'tool_unknown'

/** What a call is refused with that the ledger does not let go out, by what it says of it: the record and the
 *  caller are told the same. Source: `Opened` in ports.ts. */
export const STOPPED: Readonly<
  Record<'busy' | 'conflict' | 'unknown' | 'expired' | 'withheld' | 'ended' | 'revoked', Code>
> = {
  busy: 'busy',
  conflict: 'key_conflict',
  unknown: 'outcome_unknown',
  expired: 'key_expired',
  withheld: 'definition_changed',
  ended: 'state_invalid',
  revoked: 'client_revoked',
}

/** What an operation may do to the world. `undeclared`: no contract says; treated as a mutation that
 *  nobody may repeat. */
export type Effect = 'read' | 'write' | 'destructive' | 'undeclared'

/** One check that failed: `rule` is a JSON Pointer into the policy file (`/profiles/writer/rules/0`) or
 *  a built-in check's name; `field` is a JSON Pointer into the arguments, or null. Never a value. */
export type Failure = {
  readonly code: Code
  readonly rule: string
  readonly field: string | null
  readonly reason: string | null
  readonly message: string | null
}

/** The failure of a check that no policy wrote: its rule is its code. */
export const builtIn = (code: Code): Failure => ({
  code,
  rule: code,
  field: null,
  reason: null,
  message: null,
})

/** What policy says of one call, decided from nothing but the call, the set and the facts.
 *  allow: `args` are the arguments to send (pinned ones in place); `key` is the idempotency key or null;
 *  `honoured` says that the server itself deduplicates by it.
 *  deny: `failures[0]` is what is told; all are recorded. Never empty. */
export type Decision =
  | {
      readonly effect: 'allow'
      readonly rule: string
      readonly does: Effect
      readonly args: JsonObject
      readonly key: string | null
      readonly honoured: boolean
    }
  | { readonly effect: 'deny'; readonly failures: readonly [Failure, ...Failure[]] }

/** What is known that the call does not say. `definition` is null when the upstream has no such thing;
 *  `pin` is the state of that definition: `new` = never seen, to be pinned by this use. */
export type Facts = {
  readonly definition: { readonly hash: string; readonly value: JsonObject } | null
  readonly pin: 'none' | 'new' | 'approved' | 'waits' | 'changed'
}

/** A refusal as the agent gets it: `code` from the closed list, `reason` a rule's own code. */
export type Refusal = {
  readonly code: Code
  readonly reason?: string
  readonly message?: string
  readonly retryAfterMs?: number
}
