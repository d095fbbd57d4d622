// What the verbs about policy say of findings, of a decision made again, and of what no command lifts.

import type { Call } from '../call.ts'
import type { Code, Decision, Failure } from '../decision.ts'
import type { Entry } from '../ledger/entry.ts'
import { nameOf } from '../policy/judge.ts'
import type { Finding } from '../policy/judge.ts'
import type { PolicySet } from '../policy/set.ts'

/** One line a check: state, rule, place, and the field it failed on. */
export const findingLines = (
  findings: readonly Finding[],
  place: (rule: string) => string,
): readonly string[] =>
  findings.map(({ rule, state, failure }) => {
    const why = failure === null ? '' : `  ${failure.code}`
    const field = failure === null || failure.field === null ? '' : `  field ${failure.field}`
    return `${state.padEnd(7)}  ${rule}  ${place(rule)}${why}${field}`
  })

/** What to do about a refusal that no edit of the policy and no command lifts. */
export function notPolicy(failure: Failure, set: PolicySet, call: Call): string {
  const { target } = call
  const name = target === null ? call.asked : nameOf(set, target)
  const said = SAID[failure.code]
  return said === undefined
    ? 'policy did not refuse it, so that no command allows it'
    : `no command allows it: ${said(name, at(failure.field))}`
}

/** ` at FIELD`, or nothing. */
export const at = (field: string | null): string =>
  field === null ? '' : ` at ${field === '' ? 'the top level' : field}`

const AGAIN = 'look at the state of the world before it is called again'
const SAID: Partial<Readonly<Record<Code, (name: string, field: string) => string>>> = {
  arguments_invalid: (_name, field) =>
    `the arguments do not fit the server's own inputSchema${field}; send others`,
  key_missing: (name, field) =>
    `${name} needs an idempotency key of 1 to 200 printable ASCII characters${field}, or in \`_meta\` as \`eclusa/key\``,
  key_invalid: (_name, field) =>
    `send a key of 1 to 200 printable ASCII characters${field}, or in \`_meta\` as \`eclusa/key\``,
  key_conflict: () => 'its key was used with other arguments; a new call needs a new key',
  key_expired: () => `its key is past its time; ${AGAIN}, then use a new one`,
  busy: () => 'another call with its key was running; ask again with the same key',
  outcome_unknown: () => `whether it was executed is not known; ${AGAIN}`,
  upstream_down: () => 'its server was not available and nothing was sent; start the server',
  timeout: () => `its server did not answer in time; ${AGAIN}`,
  cancelled: () => 'the client cancelled it',
  answer_refused: () => `it was sent, and its answer could not be admitted; ${AGAIN}`,
  not_bridged: () => `its server asked for something that cannot be passed on; ${AGAIN}`,
  capability_missing: () =>
    'its server asks the client for something that the client did not declare; declare it there',
  state_invalid: () => 'the state it came back with is not ours, or too old; begin the call again',
  upstream_login: () => 'its server needs a login; set its header under `upstreams`',
  too_many_calls: () => 'too many calls ran at once; call it again later',
  draining: () => 'the program was stopping; call it again',
}

/** Codes that come of no decision, or after one that allowed. */
const AFTERWARDS: ReadonlySet<string> = new Set<Code>([
  'key_conflict',
  'key_expired',
  'busy',
  'outcome_unknown',
  'timeout',
  'cancelled',
  'not_bridged',
  'answer_refused',
  'upstream_down',
])
const UNDECIDED: ReadonlySet<string> = new Set<Code>(['too_many_calls', 'draining'])

/** Why a recorded refusal cannot be decided again, or null: it came before any decision, or was about a
 *  key that is in no record because it is none. */
function undecided(entry: Entry): string | null {
  const code = entry.code ?? ''
  if (UNDECIDED.has(code) || (code === 'upstream_down' && entry.facts === null)) {
    return `it was refused (${code}) before any decision`
  }
  if (code === 'key_invalid' && entry.rule === 'key')
    return 'the key that was refused is not recorded'
  return null
}

/** Whether a decision made again is the recorded one, in words. */
export function agreement(
  entry: Entry,
  decision: Decision,
): { readonly agrees: boolean; readonly words: string } {
  const rule = decision.effect === 'allow' ? decision.rule : decision.failures[0].rule
  const made = decision.effect === 'allow' ? 'allow' : `deny ${decision.failures[0].code}`
  const why = undecided(entry)
  const start = `record ${entry.seq}:`
  if (why !== null) return { agrees: true, words: `${start} ${why}; now: ${made} by ${rule}` }
  const afterwards = AFTERWARDS.has(entry.code ?? '')
  const recorded =
    afterwards || entry.decision === 'allow' ? 'allow' : `deny ${entry.code ?? 'without a code'}`
  if (made === recorded && (afterwards || entry.rule === rule)) {
    return { agrees: true, words: `${start} ${made} by ${rule}; agrees` }
  }
  const before = `recorded ${recorded} by ${entry.rule ?? 'no rule'}`
  return { agrees: false, words: `${start} DOES NOT AGREE: ${before}, now ${made} by ${rule}` }
}
