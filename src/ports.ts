// What the hall asks of the world. Each method states what is durable, when, and what failure means.

import type { Answer, Definition, Era, Method, Target } from './call.ts'
import type { Code, Effect } from './decision.ts'
import type { JsonObject } from './json.ts'
import type { Draft, Outcome } from './ledger/entry.ts'

/** Microseconds since 1970, for records only: order comes from `seq`. */
export interface Clock {
  nowUs(): number
}

declare const minted: unique symbol
/** Proof that an intent is in the ledger. Only a store mints one; nothing is sent without it. */
export type Ticket = {
  readonly operation: string
  readonly does: Effect
  readonly [minted]: true
}

/** A digest with a key of the ledger. `segment` names the key. */
export type Digest = { readonly digest: string; readonly bytes: number; readonly segment: string }

/** The remembered shape of one tool. `waits`: seen, matched by a pattern or changed, not yet approved;
 *  `waiting` is the hash that waits (null when nothing does). */
export type Pin = {
  readonly tool: string
  readonly hash: string | null
  readonly waiting: string | null
}

/** What `open` needs. `draft` is the decision's record in its `allow` form: the store completes it as
 *  the intent, or turns it into the record of a replay or refusal. */
export type Intent = {
  /** Unique to this send attempt of this call; 32 hex digits, random. */
  readonly operation: string
  readonly draft: Draft
  readonly does: Effect
  readonly upstream: string
  readonly tool: string
  readonly client: string
  readonly key: string | null
  readonly honoured: boolean
  readonly args: Digest
  /** The definition hash on which the decision stands; null for resources and prompts. */
  readonly pin: string | null
}

/** A stored answer, in era-neutral form. `answer` is null when it was larger than the limit: then only
 *  its digest and size are known. `failed`: the upstream had answered with an error. */
export type Stored = {
  readonly answer: Answer | null
  readonly digest: string
  readonly bytes: number
  readonly failed: boolean
}

/** Every arm but `ticket` has been recorded when the promise resolves, and nothing was sent.
 *  replayed: the key is done; busy: another call with this key is in flight; conflict: the key was used
 *  with other arguments; unknown: an earlier send's outcome is not known and the server does not honour
 *  the key; expired: the key is past its retention; withheld: the definition is no longer approved. */
export type Opened =
  | { readonly kind: 'ticket'; readonly ticket: Ticket }
  | { readonly kind: 'replayed'; readonly stored: Stored }
  | { readonly kind: 'busy' | 'conflict' | 'unknown' | 'expired' | 'withheld' }

/** What became of an attempt. `answer` is null when there is none. `store` is the era-neutral JSON text
 *  to keep for replays, or null (no key, or larger than the limit). */
export type Closing = {
  readonly outcome: Outcome
  readonly code: Code | null
  readonly answer: Digest | null
  readonly store: string | null
  readonly durationUs: number
  readonly nowUs: number
}

/** The ledger and its tables. All methods may be called at once; each is one transaction.
 *  Rejections are `Fault('not_recorded')` (append, open, pin: nothing changed, nothing may be sent) or
 *  `Fault('outcome_not_recorded')` (close). After a failed sync every call rejects and the process exits 70. */
export interface Store {
  /** HMAC-SHA-256 of `text` with the open segment's key. Pure of I/O. */
  digest(text: string): Digest
  /** The pins as of at most 1 s ago. No I/O. Keys are `upstream/tool`. */
  pins(): ReadonlyMap<string, Pin>
  /** Resolves when these pins are durable, each with its `pin` record. `approved`: used from now on;
   *  `waits`: remembered as waiting. A tool that is already pinned with this hash is left alone; an
   *  approved pin is never replaced by this call. When it resolves, `pins()` says what holds. */
  pin(
    pins: readonly {
      readonly tool: string
      readonly definition: Definition
      readonly state: 'approved' | 'waits'
    }[],
    client: string | null,
  ): Promise<void>
  /** Resolves when the record is durable. */
  append(draft: Draft): Promise<void>
  /** Claims the key and writes the intent, durable when it resolves; a `read` is only minted a ticket
   *  (its one record is written at close). A ticket is valid for one `close`. */
  open(intent: Intent): Promise<Opened>
  /** Writes the outcome record and, for a key, the stored answer: durable when it resolves. A second
   *  close of one ticket is recorded `late`: it may settle an unknown outcome, never reopen a key. */
  close(ticket: Ticket, closing: Closing): Promise<void>
  /** True, or the sentence that says why nothing can be recorded now. */
  health(): true | string
  /** Waits for what is queued, records `stop`, ends the lease, closes. */
  stop(): Promise<void>
}

/** What upstreams may be asked to list. */
export type ListKind = 'tools' | 'prompts' | 'resources' | 'templates'

/** All pages of a list. `incomplete`: the upstream did not answer or answered something inadmissible; what
 *  was had before is still given, and the caller must not present it as cacheable. */
export type Listed = {
  readonly items: readonly Definition[]
  readonly complete: boolean
}

/** What an attempt reports while it runs. Both are called synchronously, never after the attempt settled. */
export type Watch = {
  progress(params: JsonObject): void
  log(params: JsonObject): void
}

/** What one attempt sends, where to, and who listens meanwhile. */
export type Send = {
  readonly method: Method
  readonly target: Target
  /** The params to send, final but for the protocol's own `_meta` keys, which the door sets for its hop. */
  readonly params: JsonObject
  readonly watch: Watch
  /** Aborted when the client cancelled or is gone. The cancel goes to the server; the attempt goes on to
   *  its deadline for a mutation and settles at once for a read. */
  readonly signal: AbortSignal
}

/** What came of calling. unsent: it is certain that the server executed nothing. unknown: bytes may have
 *  reached it and no admissible answer came; `late` resolves if one still comes. */
export type Attempt =
  | { readonly kind: 'answered'; readonly answer: Answer }
  | { readonly kind: 'unsent'; readonly code: Code; readonly why: string }
  | {
      readonly kind: 'unknown'
      readonly code: Code
      readonly why: string
      readonly late: Promise<Answer> | null
    }

/** The servers behind the gateway. Never rejects for what a server or a network does. */
export interface Upstreams {
  /** Names in the order of the configuration. */
  readonly names: readonly string[]
  /** The list as last known, asked for when it is not known or no longer true. */
  list(upstream: string, kind: ListKind): Promise<Listed>
  /** One tool's current definition; asks the server for its list at most once for a name that the last
   *  list lacks. `down`: the server cannot be asked. */
  definition(upstream: string, tool: string): Promise<Definition | 'absent' | 'down'>
  /** Capabilities and instructions the server declared; null while it is down. */
  hello(upstream: string): Promise<Hello | null>
  /** Sends one call. The only way to reach a server with a mutation; it takes a ticket. */
  attempt(ticket: Ticket, send: Send): Promise<Attempt>
}

/** What a server said of itself, admitted. */
export type Hello = {
  readonly era: Era
  readonly version: string
  readonly capabilities: JsonObject
  readonly info: JsonObject | null
  readonly instructions: string | null
}

/** A list item that may be shown, with the upstream it is of. */
export type Shown = { readonly upstream: string; readonly definition: Definition }
