// What one record of the ledger holds. docs/ledger.md is the specification.

import type { Identity, Transport } from '../call.ts'
import type { Code } from '../decision.ts'

/** `call`: a decision that is complete in one record (a denial, a read, a replay). `intent` and
 *  `outcome`: before and after a mutation. The others are told in docs/ledger.md. */
export type EntryKind =
  | 'genesis'
  | 'start'
  | 'stop'
  | 'call'
  | 'intent'
  | 'outcome'
  | 'malformed'
  | 'view'
  | 'pin'
  | 'policy'
  | 'lease'
  | 'recovery'
  | 'count'

export type Outcome =
  | 'none'
  | 'not_executed'
  | 'pending'
  | 'answered'
  | 'committed'
  | 'replay'
  | 'observed'
  | 'failed'
  | 'unknown'
  | 'unsent'
  | 'late'

export type Verdict = 'none' | 'continue' | 'stop' | 'rolled_back'

/** The part of a record that the hall knows; the store adds `seq`, `prev_sha256`, `sha256` and what
 *  belongs to its own tables. Names and keys are raw text here: the ledger room cuts and encodes them. */
export type Draft = {
  readonly kind: EntryKind
  /** Microseconds since 1970. */
  readonly ts: number
  /** The idempotency key; `observe` for keyless reads, `missing` otherwise. */
  readonly request_id: string
  readonly method: string
  readonly name: string
  readonly decision: 'allow' | 'deny' | 'hold' | 'none'
  readonly outcome: Outcome
  readonly verdict: Verdict
  readonly code: Code | null
  /** JSON Pointer into the policy text, or a built-in check; of the first failure when several. */
  readonly rule: string | null
  /** All failed checks when there are more than one, as `rule field` pairs; at most 20. */
  readonly failures: readonly { readonly rule: string; readonly field: string | null }[]
  readonly client: string | null
  readonly profile: string | null
  readonly identity: Identity | null
  readonly transport: Transport | null
  /** HMAC of the canonical arguments with the segment's key, and their length in bytes. */
  readonly args_digest: string | null
  readonly args_bytes: number | null
  readonly result_digest: string | null
  readonly result_bytes: number | null
  readonly duration_us: number | null
  /** SHA-256 of the policy text. */
  readonly policy: string | null
  readonly trace: string | null
  /** Recorded facts of the decision, enough to decide it again; null where none were read. */
  readonly facts: { readonly definition: string | null; readonly pin: string } | null
  /** Further members of this kind, ASCII keys, integers and strings only. */
  readonly more: { readonly [key: string]: string | number | boolean }
}
