// Breakage as a value that can be thrown: one class, a closed list of codes, one table of meanings.

/** Exit statuses of `eclusa`; documented in README, pinned by test/pins.test.ts.
 *  `finding`: the program did its work and the finding is bad (a log that does not verify, a policy with
 *  faults). `unknownFormat`: a log of a format version or record kind that this build does not know.
 *  `internal`: a sync failed or something broke that should not; the process must not go on. */
export const EXIT: {
  readonly ok: 0
  readonly finding: 1
  readonly usage: 2
  readonly unknownFormat: 3
  readonly upstream: 69
  readonly internal: 70
  readonly state: 73
} = { ok: 0, finding: 1, usage: 2, unknownFormat: 3, upstream: 69, internal: 70, state: 73 }

/** Every way in which the program itself can fail; `EXITS` gives each an exit status. */
export type FaultCode =
  | 'usage'
  | 'config_invalid'
  | 'state_refused'
  | 'state_tampered'
  | 'not_recorded'
  | 'outcome_not_recorded'
  | 'sync_failed'
  | 'upstream_failed'
  | 'internal'

const EXITS: Readonly<Record<FaultCode, number>> = {
  usage: EXIT.usage,
  config_invalid: EXIT.usage,
  state_refused: EXIT.state,
  state_tampered: EXIT.finding,
  not_recorded: EXIT.internal,
  outcome_not_recorded: EXIT.internal,
  sync_failed: EXIT.internal,
  upstream_failed: EXIT.upstream,
  internal: EXIT.internal,
}

/** Our own breakage. `message` is one sentence that ends with the next step and is safe to show to the
 *  operator; it never holds an argument, a result or a token. Caught only at an edge. */
export class Fault extends Error {
  override readonly name: string = 'Fault'
  readonly code: FaultCode
  constructor(code: FaultCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** The exit status of a fault. */
export const exitStatus = (code: FaultCode): number => EXITS[code]
