// What the hall asks of the world. Each method states what is durable, when, and what failure means.

import type {
  Answer,
  Asks,
  Client,
  Definition,
  Era,
  Method,
  Responses,
  Retry,
  Target,
} from './call.ts'
import type { Code, Effect } from './decision.ts'
import type { JsonObject } from './json.ts'
import type { Draft, Outcome } from './ledger/entry.ts'

/** Resolves in a turn of the event loop in which nobody else who asked goes on; first come, first served. */
export type Turn = () => Promise<void>

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
  /** The operation that this round goes on with, and which round it is; null and 1 for a new call. */
  readonly continues: string | null
  readonly round: number
}

/** A key, and who asks what under it; as in `Intent`. */
export type Recalled = Pick<Intent, 'client' | 'upstream' | 'tool' | 'honoured' | 'args'> & {
  readonly key: string
  readonly nowUs: number
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
 *  the key; expired: the key is past its retention; withheld: the definition is no longer approved; ended:
 *  the operation to go on with does not wait any more; revoked: the client is revoked or past its expiry. */
export type Opened =
  | { readonly kind: 'ticket'; readonly ticket: Ticket }
  | { readonly kind: 'replayed'; readonly stored: Stored }
  | { readonly kind: 'busy' | 'conflict' | 'unknown' | 'expired' | 'withheld' }
  | { readonly kind: 'ended' | 'revoked' }

/** What an operation without a final outcome waits for. input: the client is asked and the server holds
 *  nothing; parked: the client is asked and the call waits in this process; task: the server works on. */
export type Awaits = 'input' | 'parked' | 'task'

/** One client as the ledger knows it. `digest`: SHA-256 of its token, hex. Times in microseconds since 1970. */
export type ClientRow = {
  readonly name: string
  readonly profile: string
  readonly person: boolean
  readonly attributes: Readonly<Record<string, string>>
  readonly digest: string
  readonly limit: number | null
  readonly createdUs: number
  readonly expiresUs: number | null
  readonly revokedUs: number | null
}

/** What became of an attempt. `answer` is null when there is none. `store` is the era-neutral JSON text
 *  to keep for replays, or null (no key, or larger than the limit). */
export type Closing = {
  readonly outcome: Outcome
  /** Set where `outcome` is `awaiting`. */
  readonly awaits: Awaits | null
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
  /** As `digest`, of a text that is given in pieces that end between characters. */
  digester(): { add(piece: string): void; end(): Digest }
  /** An opaque token around `text` that only this ledger can open, for as long as it says; printable ASCII.
   *  `purpose` parts one kind of token from another. Pure of I/O. */
  seal(purpose: string, text: string, untilUs: number): string
  /** The text, or null: it was not sealed here for this purpose, was changed, or is past its time. */
  unseal(purpose: string, token: string, nowUs: number): string | null
  /** Clients by the digest of their token, as of at most 1 s ago, revoked ones too. No I/O. */
  clients(): ReadonlyMap<string, ClientRow>
  /** Gives an operation that waits its final outcome without another send: a task that ended, a round that
   *  nobody took up. Durable when it resolves. One that does not wait any more is left as it is, with a `late`
   *  record where the answer is another one. */
  settle(operation: string, closing: Closing): Promise<void>
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
  /** The approved definition of the tool as the ledger keeps it, where `open` would not send under this key
   *  but say what is known of it: so that no server is needed for that. Null where it would send, or where no
   *  definition is approved. Nothing is claimed or written: what holds, `open` alone says. */
  recall(asked: Recalled): Promise<Definition | null>
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
  /** For whom: servers that keep a session or a process keep one a client. */
  readonly client: Client['name']
  /** What servers may ask of this client: its own capabilities cut by policy, as they are declared to the
   *  server. Empty for none. */
  readonly capabilities: JsonObject
  /** The server's own state and the answers to what it asked, in a later round; null in the first. */
  readonly retry: Retry | null
  /** Headers of the client that a gateway passes on unread (`Mcp-Param-*` that the schema does not name). */
  readonly headers: Readonly<Record<string, string>>
  readonly watch: Watch
  /** Aborted when the client cancelled or is gone. The cancel goes to the server; the attempt goes on to
   *  its deadline for a mutation and settles at once for a read. */
  readonly signal: AbortSignal
}

/** What came of calling. unsent: it is certain that the server executed nothing. unknown: bytes may have
 *  reached it and no admissible answer came; `late` resolves if one still comes. */
export type Attempt =
  /** `lacks`: the answer is a failure, and meanwhile the server asked what needs these client capabilities,
   *  which were not declared to it. */
  | { readonly kind: 'answered'; readonly answer: Answer; readonly lacks?: JsonObject }
  | { readonly kind: 'unsent'; readonly code: Code; readonly why: string }
  | {
      readonly kind: 'unknown'
      readonly code: Code
      readonly why: string
      readonly late: Promise<Answer> | null
    }
  /** The server asks the client something. `parked`: the call waits in this process under this name, to be
   *  taken up with `resume`; null: the server holds nothing and wants the call again, with `retry`.
   *  `expired` resolves with what became of a parked call that nobody took up; null where nothing is parked. */
  | {
      readonly kind: 'asks'
      readonly asks: Asks
      readonly parked: string | null
      readonly expired: Promise<Attempt> | null
    }

/** The servers behind the gateway. Never rejects for what a server or a network does. */
export interface Upstreams {
  /** Names in the order of the configuration. */
  readonly names: readonly string[]
  /** The list as last known, asked for when it is not known or no longer true. With a client, as that one has
   *  it: some servers offer what their calls have brought up. */
  list(upstream: string, kind: ListKind, client?: Client['name']): Promise<Listed>
  /** False while a call of this client would have to wait for the server to start, or is not sent. */
  isUp(upstream: string, client: Client['name']): boolean
  /** One tool's current definition; asks the server for its list at most once for a name that the last
   *  list lacks. `down`: the server cannot be asked. */
  definition(
    upstream: string,
    tool: string,
    client?: Client['name'],
  ): Promise<Definition | 'absent' | 'down'>
  /** Capabilities and instructions the server declared; null while it is down. */
  hello(upstream: string): Promise<Hello | null>
  /** A client that may be asked these is about to be shown what servers offer, which some make depend on it:
   *  resolves when lists are asked as somebody who may. Left out where no server can ask. */
  expect?(capabilities: JsonObject): Promise<void>
  /** Sends one call. The only way to reach a server with a mutation; it takes a ticket. */
  attempt(ticket: Ticket, send: Send): Promise<Attempt>
  /** Answers what a parked call asked and waits on. `unsent` with `state_invalid`: it is not parked here. */
  resume(
    ticket: Ticket,
    parked: string,
    line: { readonly responses: Responses; readonly watch: Watch; readonly signal: AbortSignal },
  ): Promise<Attempt>
  /** Refuses what a parked call asked, tells its server to stop and forgets it. */
  drop(parked: string, why: Code): void
  /** Undoes one `resources/subscribe` of this client. The last one tells the server. */
  release(upstream: string, uri: string, client: Client['name']): void
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
