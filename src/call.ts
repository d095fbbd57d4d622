// Nouns of a call: who asks, what for, and what came back.

import type { Json, JsonObject } from './json.ts'

/** The two families of protocol revisions: `modern` is 2026-07-28 and later. */
export type Era = 'modern' | 'legacy'

/** How a client's identity was established. `declared`: a profile without a token; `unknown`: a wrong
 *  name or token on stdio, for whom every call is denied. */
export type Identity = 'token' | 'declared' | 'anonymous' | 'unknown'

/** Who asks. A declared client bears its profile's name. */
export type Client = {
  readonly name: string
  readonly profile: string
  readonly identity: Identity
  readonly attributes: Readonly<Record<string, string>>
}

/** What a name can be of. Templates are resources. */
export type Kind = 'tool' | 'resource' | 'prompt'

/** One thing of one upstream: `name` is the tool's or prompt's name as the upstream knows it, or a URI. */
export type Target = { readonly kind: Kind; readonly upstream: string; readonly name: string }

/** `notes/write_note`: the name of a target in policies, contracts, pins and the ledger. */
export const qualified = (target: { readonly upstream: string; readonly name: string }): string =>
  `${target.upstream}/${target.name}`

/** The methods that are decided and recorded one by one. Subscribing is reading; a task belongs to the call
 *  that made it. */
export type Method =
  | 'tools/call'
  | 'resources/read'
  | 'prompts/get'
  | 'completion/complete'
  | 'resources/subscribe'
  | 'tasks/get'
  | 'tasks/update'
  | 'tasks/cancel'

/** What servers may ask of a client in the middle of a call. */
export type AskMethod = 'elicitation/create' | 'sampling/createMessage' | 'roots/list'

/** One thing a server asks of the client, admitted and never edited. */
export type Ask = { readonly method: AskMethod; readonly params: JsonObject }

/** What a server asks in one round, by key. `state` is its own `requestState`, byte for byte; null: it gave
 *  none. No asks and a state: it wants the call again. */
export type Asks = {
  readonly asks: Readonly<Record<string, Ask>>
  readonly state: string | null
}

/** Bare results of asks, by the keys of the asks. */
export type Responses = Readonly<Record<string, JsonObject>>

/** The marks of a later round, as the client sent them: `state` is the token that we sealed, or null. */
export type Retry = { readonly state: string | null; readonly responses: Responses }

/** By which way a call came in; `library`: a gate inside the server's own process. */
export type Transport = 'stdio' | 'http' | 'library'

/** One wish of one client, admitted but not yet decided. */
export type Call = {
  readonly method: Method
  readonly client: Client
  /** The name or URI as the client sent it; it is echoed in refusals. */
  readonly asked: string
  /** What `asked` names; null when it names nothing that any upstream could serve. */
  readonly target: Target | null
  /** `params.arguments` as admitted; an empty object where absent. */
  readonly args: JsonObject
  /** All of `params` as admitted. */
  readonly params: JsonObject
  /** What the client can do for servers, as it declared it for this request or its session. Not yet cut by
   *  policy. */
  readonly capabilities: JsonObject
  /** The marks of a later round of a multi-round call; null in the first. */
  readonly retry: Retry | null
  /** For `tasks/*`: the task that `asked`, the token we sealed, names; null for other methods. */
  readonly task: Task | null
  /** `_meta["eclusa/key"]` of the client, or null. */
  readonly key: string | null
  readonly transport: Transport
  /** Headers of the request that are passed on unread (`Mcp-Param-*` that the tool's schema does not name);
   *  absent for none. */
  readonly headers?: Readonly<Record<string, string>>
  /** `traceparent` of the request when it is well-formed, or null. */
  readonly trace: string | null
  /** When the request was admitted, microseconds since 1970. */
  readonly receivedUs: number
}

/** A task of one upstream, with the operation in the ledger of the call that made it. */
export type Task = { readonly id: string; readonly operation: string; readonly does: string }

/** A tool, prompt, resource or template as its upstream described it, admitted and never edited.
 *  `hash`: SHA-256 of the canonical bytes of name, title, description, schemas, annotations, `_meta`. */
export type Definition = {
  readonly name: string
  readonly value: JsonObject
  readonly hash: string
}

/** What an upstream said. `text` is the admitted source of `value`, byte for byte, so that an answer
 *  that nobody changed may pass as it came; null when the answer was made here or changed. */
export type Answer =
  | {
      readonly kind: 'result'
      readonly era: Era
      readonly value: JsonObject
      readonly text: string | null
    }
  | {
      readonly kind: 'error'
      readonly code: number
      readonly message: string
      readonly data: Json | null
    }

/** An answer that says the tool itself failed. */
export const isFailure = (answer: Answer): boolean =>
  answer.kind === 'error' || answer.value['isError'] === true
