// A call with what stays the same while it walks one round, and the record that it begins.

import type { AskMethod, Asks, Call, Client, Responses } from '../call.ts'
import { canonical } from '../canonical.ts'
import type { Decision, Facts } from '../decision.ts'
import type { JsonObject } from '../json.ts'
import { blankDraft, callDraft } from '../ledger/draft.ts'
import type { Draft } from '../ledger/entry.ts'
import { keyOf } from '../policy/decide.ts'
import type { PolicySet } from '../policy/set.ts'
import type { Clock, Digest, Store, Ticket, Turn, Upstreams, Watch } from '../ports.ts'

/** Everything the hall touches. `policy` gives the set in force; `random` 32 fresh hex digits; `broken` is
 *  told of a record that failed where no caller waits any more; `turn` is for work that would hold up others;
 *  `views` remembers, a client and list, the digest of what was last shown, and is the hall's own. */
export type Doors = {
  readonly store: Store
  readonly upstreams: Upstreams
  readonly policy: () => PolicySet
  readonly clock: Clock
  readonly random: () => string
  readonly broken: (error: unknown) => void
  readonly turn: Turn
  readonly views: Map<string, string>
}

/** What a call may use while it runs: where progress and logs go, and the client's wish to stop. */
export type Line = {
  readonly watch: Watch
  readonly signal: AbortSignal
  /** Asks the client what a server wants of it, on a session that can; null: the asks are the answer. Resolves
   *  with null when the client is gone, did not answer in time, or answered inadmissibly. */
  readonly ask: ((asks: Asks, signal: AbortSignal) => Promise<Responses | null>) | null
}

/** An answer of the client to what a server asked. `place`: which ask of its round, from 1. */
export type Answered = {
  readonly place: number
  readonly method: AskMethod | null
  readonly key: string
  readonly response: JsonObject
}

/** Which round of a call this is. `operation`: the one it goes on with; `state`: the server's own; `parked`:
 *  the name under which the call waits in this process; `answers`: as the client gave them. */
export type Round = {
  readonly number: number
  readonly operation: string | null
  readonly state: string | null
  readonly parked: string | null
  readonly answers: readonly Answered[]
}

/** The first round of a call. */
export const FIRST: Round = { number: 1, operation: null, state: null, parked: null, answers: [] }

/** A call in one of its rounds. */
export type Page = {
  readonly call: Call
  readonly set: PolicySet
  readonly args: Digest
  readonly doors: Doors
  readonly round: Round
}

/** A decision that lets a call pass. */
export type Allowed = Extract<Decision, { readonly effect: 'allow' }>

/** A call that has its ticket. */
export type Visit = {
  readonly page: Page
  readonly decision: Allowed
  readonly ticket: Ticket
  readonly line: Line
}

/** The page of a call in this round, under the policy in force now. */
export const pageOf = (call: Call, doors: Doors, round: Round): Page => ({
  call,
  set: doors.policy(),
  args: doors.store.digest(canonical(call.args)),
  doors,
  round,
})

/** The draft of every record of this page. */
export function draft({ call, set, args, doors, round }: Page, facts: Facts | null): Draft {
  const made = callDraft(call, {
    args,
    facts,
    key: keyOf(set, call),
    blank: blank(doors, call.client),
  })
  return round.number === 1 ? made : { ...made, more: { ...made.more, round: round.number } }
}

/** A draft that says who asked, when and under which policy. */
export const blank = (doors: Doors, client: Client): Draft =>
  blankDraft(client, { ts: doors.clock.nowUs(), policy: doors.policy().digest })

/** Microseconds from the admission of the request to now. */
export const since = ({ call, doors }: Page): number => doors.clock.nowUs() - call.receivedUs
