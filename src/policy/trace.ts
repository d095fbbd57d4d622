// The same decision, told step by step: what `explain` shows and what `redecide` may leave out.

import type { Call } from '../call.ts'
import type { Decision, Facts } from '../decision.ts'
import { admits, decide, definitionFailure, entryOf } from './decide.ts'
import { type Finding, judge, nameOf } from './judge.ts'
import { patternMatches } from './pattern.ts'
import type { PolicySet } from './set.ts'

/** A decision and every check on the way to it, in the order in which they were made. */
export type Trace = { readonly decision: Decision; readonly findings: readonly Finding[] }

/** `decide`, with each of its checks. The decision is `decide`'s own. */
export function trace(call: Call, set: PolicySet, facts: Facts): Trace {
  const decision = decide(call, set, facts)
  const profile = set.profiles.get(call.client.profile)
  const { target } = call
  const findings: Finding[] = []
  const refused = target === null ? null : admits(set, call.client, target)
  if (target === null || profile === undefined || refused !== null) {
    if (decision.effect === 'deny') {
      for (const failure of decision.failures) {
        findings.push({ rule: failure.rule, state: 'fails', failure })
      }
    }
    return { decision, findings }
  }
  findings.push({ rule: entryOf(set, profile, target), state: 'holds', failure: null })
  if (target.kind !== 'tool') return { decision, findings }
  const withheld = definitionFailure(set, call, facts)
  const state = withheld === null ? 'holds' : 'fails'
  findings.push({ rule: 'definition', state, failure: withheld })
  if (withheld !== null) return { decision, findings }
  judge({ call, set, facts, profile, name: nameOf(set, target) }, (one) => findings.push(one))
  return { decision, findings }
}

/** False when the decision on this call cannot depend on its arguments, so that it can be made again
 *  without them. */
export function readsArguments(call: Call, set: PolicySet, facts: Facts): boolean {
  const { target, client } = call
  const profile = set.profiles.get(client.profile)
  if (target?.kind !== 'tool' || profile === undefined) return false
  if (admits(set, client, target) !== null) return false
  if (definitionFailure(set, call, facts) !== null) return false
  const name = nameOf(set, target)
  if (profile.set.has(name)) return true
  if (profile.rules.some((rule) => patternMatches(rule.tool, name))) return true
  const contract = set.tools.get(name)
  if (contract === undefined) return false
  const at = contract.key === null ? null : contract.key.at
  return contract.args !== null || contract.bounds.length > 0 || at !== null
}
