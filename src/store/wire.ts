// What the two threads of the store say to each other: one text of JSON each way a batch.

import type { Code, Effect } from '../decision.ts'
import type { FaultCode } from '../fault.ts'
import type { Draft, Outcome } from '../ledger/entry.ts'
import type { Awaits, ClientRow } from '../ports.ts'

/** What the writer needs to begin. */
export type Setup = {
  readonly dir: string
  readonly create: boolean
  readonly policy: { readonly digest: string; readonly text: string }
  readonly keptUs: number
  readonly refusedUs: number
  readonly minFreeBytes: number
}

/** The claim of one send; see `Intent`. `draft` is the intent's record. */
export type OpenWork = {
  readonly attempt: string
  readonly draft: Draft
  readonly does: Effect
  readonly client: string
  readonly upstream: string
  readonly tool: string
  readonly key: string | null
  readonly honoured: boolean
  readonly argsDigest: string
  readonly segment: string
  readonly pin: string | null
  readonly continues: string | null
  readonly round: number
}

/** The end of one send. `draft` is the outcome's record. */
export type CloseWork = {
  readonly operation: string
  readonly attempt: string
  readonly segment: string
  readonly draft: Draft
  readonly outcome: Outcome
  readonly awaits: Awaits | null
  readonly stored: string | null
  readonly nowUs: number
}

/** The final outcome of an operation that waits; see `Store.settle`. */
export type SettleWork = {
  readonly operation: string
  readonly outcome: Outcome
  readonly code: Code | null
  readonly resultDigest: string | null
  readonly resultBytes: number | null
  readonly durationUs: number
  readonly stored: string | null
  readonly nowUs: number
}

/** A definition to be remembered. `text`: its canonical JSON. */
export type PinWork = {
  readonly tool: string
  readonly hash: string
  readonly text: string
  readonly state: 'approved' | 'waits'
}

/** One thing to do; `id` is the main thread's. A `record` is one entry and nothing else. */
export type Request =
  | {
      readonly id: number
      readonly kind: 'record'
      readonly draft: Draft
      readonly segment: string
      /** Under this number its draft is the form of records to come; see forms.ts. */
      readonly form?: number
    }
  | { readonly id: number; readonly kind: 'open'; readonly work: OpenWork }
  | { readonly id: number; readonly kind: 'close'; readonly work: CloseWork }
  | { readonly id: number; readonly kind: 'settle'; readonly work: SettleWork }
  | {
      readonly id: number
      readonly kind: 'pin'
      readonly pins: readonly PinWork[]
      readonly client: string | null
    }
  | { readonly id: number; readonly kind: 'stop' }

/** A record of a form that was sent before: what differs from one to the next, after the request's and the
 *  form's numbers. */
export type Filling = readonly [
  id: number,
  form: number,
  ts: number,
  request_id: string,
  outcome: Draft['outcome'],
  code: Draft['code'],
  args_digest: string | null,
  args_bytes: number | null,
  result_digest: string | null,
  result_bytes: number | null,
  duration_us: number | null,
  trace: string | null,
]

/** What became of a claim. `operation` is the key of the row in `operations`. */
export type OpenDone =
  | { readonly kind: 'ticket'; readonly operation: string }
  | {
      readonly kind: 'replayed'
      readonly answer: string | null
      readonly digest: string
      readonly bytes: number
      readonly failed: boolean
    }
  | { readonly kind: 'busy' | 'conflict' | 'unknown' | 'expired' | 'withheld' }
  | { readonly kind: 'ended' | 'revoked' }

/** The answer to one request. `done` is only there for `open`. */
export type Reply =
  | { readonly id: number; readonly done?: OpenDone }
  | { readonly id: number; readonly why: string }

/** Pins as rows: tool, hash, waiting. */
export type PinRow = readonly [tool: string, hash: string | null, waiting: string | null]

/** Everything the writer says. `broken`: nothing more will be answered. */
export type Message =
  | {
      readonly kind: 'started'
      readonly segment: string
      readonly key: string
      readonly sealKey: string
      readonly said: readonly string[]
      readonly pins: readonly PinRow[]
      readonly clients: readonly ClientRow[]
    }
  | { readonly kind: 'replies'; readonly replies: readonly Reply[] }
  | { readonly kind: 'pins'; readonly pins: readonly PinRow[] }
  | { readonly kind: 'clients'; readonly clients: readonly ClientRow[] }
  | { readonly kind: 'health'; readonly health: true | string; readonly records: boolean }
  | { readonly kind: 'say'; readonly line: string }
  | { readonly kind: 'broken'; readonly code: FaultCode; readonly why: string }

/** The texts of `postMessage` back as values. Both ends are this program, so they are not checked. */
export const fromWire: {
  readonly setup: (text: string) => Setup
  readonly requests: (text: string) => readonly (Request | Filling)[]
  readonly message: (text: string) => Message
} = { setup: JSON.parse, requests: JSON.parse, message: JSON.parse }
