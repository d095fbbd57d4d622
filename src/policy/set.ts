// A compiled policy: frozen, with its digest, and all that deciding needs.

import type { Check } from './arguments.ts'
import type { Expression } from './cel.ts'
import type { Code, Effect } from '../decision.ts'
import type { Json } from '../json.ts'
import type { Entry, NameList } from './pattern.ts'
import type { Place } from './position.ts'
import type { Root } from './roots.ts'

/** The idempotency key of a contract. `at`: segments of its JSON Pointer into the arguments, or null
 *  where only the client's own key counts. `honoured`: the server itself deduplicates by it. */
export type KeyContract = {
  readonly path: string
  readonly at: { readonly pointer: string; readonly segments: readonly string[] } | null
  readonly honoured: boolean
}

/** What a tool is, whoever calls it. `args`: its own check of arguments, or null. `bounds`: lengths of
 *  version 1. */
export type Contract = {
  readonly path: string
  readonly effect: Effect
  readonly key: KeyContract | null
  readonly args: Check | null
  readonly bounds: readonly LengthRule[]
}

/** A field that must be present and a string, of so many code points. */
export type LengthRule = {
  readonly path: string
  readonly field: string
  readonly least: number
  readonly most: number
}

/** `when` holds = the rule applies; `require` must hold then. */
export type Rule = {
  readonly path: string
  readonly tool: string
  readonly when: Expression | null
  readonly require: Expression
  readonly code: string | null
  readonly message: string | null
}

/** An argument that policy sets itself. */
export type Pinned = {
  readonly path: string
  readonly name: string
  readonly value: { readonly constant: Json } | { readonly cel: Expression }
}

/** What servers may ask of a client. `roots`: those they may know of; any: all; null: none. */
export type ClientGrant = {
  readonly elicitation: boolean
  readonly sampling: boolean
  readonly roots: readonly Root[] | 'any' | null
}

/** What a profile grants that says nothing of it. */
export const NO_GRANT: ClientGrant = Object.freeze({
  elicitation: false,
  sampling: false,
  roots: null,
})

/** What a kind of client may do. `exempt`: tools for which it says `approve: none`. */
export type Profile = {
  readonly path: string
  readonly name: string
  readonly token: 'required' | 'optional'
  readonly allow: NameList
  readonly deny: NameList
  readonly allowPath: string
  readonly rules: readonly Rule[]
  readonly set: ReadonlyMap<string, readonly Pinned[]>
  readonly exempt: ReadonlySet<string>
  readonly resources: readonly Entry[]
  readonly prompts: NameList
  readonly client: ClientGrant
}

/** What the policy says instead of a built-in code's own words. */
export type Message = { readonly code: string | null; readonly message: string | null }

/** A policy in force. `digest`: SHA-256 of `text`, 64 hex digits. `text`: the source before substitution;
 *  with a policy in a file of its own, the canonical JSON array of both texts, the configuration first.
 *  `qualified`: names carry their upstream; false for a version 1 policy that stands alone.
 *  `place`: where a JSON Pointer of a rule stands. `checks`: of servers' schemas by definition hash, filled
 *  as they are needed, never more than `MAX_CHECKS`. */
export type PolicySet = {
  readonly digest: string
  readonly text: string
  readonly qualified: boolean
  readonly profiles: ReadonlyMap<string, Profile>
  readonly tools: ReadonlyMap<string, Contract>
  readonly messages: ReadonlyMap<Code, Message>
  readonly pins: 'first_use' | 'strict'
  readonly place: (path: string) => Place
  readonly checks: Map<string, Check | { readonly problem: string }>
}

/** Server schemas kept compiled by one set. */
export const MAX_CHECKS = 1_000
