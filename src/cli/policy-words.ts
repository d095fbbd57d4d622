// What the verbs about policy say: findings, places, and the step that would allow a call.

import { type Call, qualified } from '../call.ts'
import type { Code, Decision, Failure } from '../decision.ts'
import type { Entry } from '../ledger/entry.ts'
import { nameOf } from '../policy/judge.ts'
import type { Finding } from '../policy/judge.ts'
import type { PolicySet } from '../policy/set.ts'

/** `file:line:column` of a rule; what it is where it is a built-in check. */
export function placeText(set: PolicySet, rule: string): string {
  if (!rule.startsWith('/')) return '(built in)'
  const { file, line, column } = set.place(rule)
  return `${file}:${line}:${column}`
}

/** One line a check: state, rule, place, and the field it failed on. */
export const findingLines = (set: PolicySet, findings: readonly Finding[]): readonly string[] =>
  findings.map(({ rule, state, failure }) => {
    const why = failure === null ? '' : `  ${failure.code}`
    const field = failure === null || failure.field === null ? '' : `  field ${failure.field}`
    return `${state.padEnd(7)}  ${rule}  ${placeText(set, rule)}${why}${field}`
  })

/** The command or edit that would let a denied call pass. */
export function nextStep(set: PolicySet, call: Call, failure: Failure): string {
  const { target } = call
  const name = target === null ? call.asked : nameOf(set, target)
  const step = STEPS[failure.code]
  if (step !== undefined) return step(target === null ? call.asked : qualified(target))
  const where = placeText(set, failure.rule)
  const profile = call.client.profile
  switch (failure.code) {
    case 'client_unknown':
      return `no such profile, or it asks for a token; profiles: ${[...set.profiles.keys()].join(', ')}`
    case 'tool_denied':
      return denialStep(failure.rule, { name, profile, where })
    case 'resource_denied':
    case 'prompt_denied':
      return `to allow it, list ${call.asked} in profile \`${profile}\` (${where})`
    case 'arguments_denied':
    case 'number_not_exact':
      return `to allow it, change the rule at ${where}, or send other arguments${at(failure.field)}`
    case 'key_missing':
    case 'key_invalid':
      return `send a key of 1 to 200 printable ASCII characters${at(failure.field)}, or in \`_meta\` as \`eclusa/key\``
    default:
      return 'policy allowed it; something else refused it'
  }
}

const at = (field: string | null): string => (field === null ? '' : ` at ${field}`)

const STEPS: Partial<Readonly<Record<Code, (tool: string) => string>>> = {
  tool_unknown: (tool) => `no server has a tool ${tool}; check the name`,
  definition_waits: (tool) => `its definition waits; to use it, run: eclusa pin approve ${tool}`,
  definition_changed: (tool) =>
    `its definition changed; look at it, then run: eclusa pin approve ${tool}`,
  arguments_invalid: () => "the arguments do not fit the server's own inputSchema; send others",
}

function denialStep(
  rule: string,
  {
    name,
    profile,
    where,
  }: { readonly name: string; readonly profile: string; readonly where: string },
): string {
  if (rule.includes('/deny/')) return `to allow it, remove the entry at ${where}`
  if (rule.endsWith('/effect')) {
    return `${name} is destructive: to allow it, write its exact name under \`allow\` of profile \`${profile}\``
  }
  if (rule.endsWith('/approve')) {
    return `${name} is destructive: to allow it, say \`approve: { ${name}: none }\` in profile \`${profile}\``
  }
  const tool = name.slice(name.indexOf('/') + 1)
  return (
    `to allow it, add ${name} to \`allow\` of profile \`${profile}\` (${where}), then run: eclusa policy check FILE; ` +
    `without a file, start it with --read ${tool} or --write ${tool}`
  )
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
