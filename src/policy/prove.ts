// Checks of a whole policy before it is used: destructive tools, and calls that must be denied.

import type { Call, Client } from '../call.ts'
import { isObject, type JsonObject, object } from '../json.ts'
import { type Part, report, type Workshop } from './compile.ts'
import { decide } from './decide.ts'
import { listed } from './pattern.ts'
import type { PolicySet } from './set.ts'
import { bare, items, members, textOf } from './value.ts'

/** Reports each profile that lists a destructive tool by its name and does not say who approves it, and
 *  warns of each that lists one only by a pattern, which does not reach it. */
export function proveDestructive(shop: Workshop, part: Part, set: PolicySet): void {
  for (const [name, contract] of set.tools) {
    if (contract.effect !== 'destructive') continue
    for (const profile of set.profiles.values()) {
      const found = listed(profile.allow, name)
      if (found === null || listed(profile.deny, name) !== null) continue
      const { path } = found.entry
      if (found.by === 'pattern') {
        report(shop, part, path, {
          level: 'warning',
          message: `${name} is destructive: a pattern does not allow it; write its name to allow it`,
        })
      } else if (!profile.exempt.has(name)) {
        report(shop, part, path, {
          message: `${name} is destructive: say \`approve: { ${name}: none }\` in profile \`${profile.name}\`, or remove it`,
        })
      }
    }
  }
}

/** Reports each entry of `must_deny` that would pass. Denials for a missing key do not count: a client
 *  would send one. */
export function proveDenied(shop: Workshop, part: Part, set: PolicySet): void {
  for (const [at, entry] of items(part.value['must_deny']).entries()) {
    if (!isObject(entry)) continue
    const path = `/must_deny/${at}`
    const profile = textOf(entry['profile']) ?? ''
    if (!set.profiles.has(profile)) {
      report(shop, part, `${path}/profile`, { message: `no profile is called \`${profile}\`` })
    } else if (passes(set, entry, profile)) {
      report(shop, part, path, {
        message: `profile \`${profile}\` may call ${textOf(entry['tool']) ?? ''} with these arguments`,
      })
    }
  }
}

/** A definition that asks for nothing: only the policy itself may deny. */
const ANYTHING: JsonObject = object({
  inputSchema: object({ type: 'object', additionalProperties: true }),
})

function passes(set: PolicySet, entry: JsonObject, profile: string): boolean {
  const tool = textOf(entry['tool']) ?? ''
  const slash = tool.indexOf('/')
  const attributes = bare<string>()
  for (const [key, value] of members(entry['attributes'])) attributes[key] = textOf(value) ?? ''
  const client: Client = { name: profile, profile, identity: 'declared', attributes }
  const call: Call = {
    method: 'tools/call',
    client,
    asked: tool,
    target: { kind: 'tool', upstream: tool.slice(0, slash), name: tool.slice(slash + 1) },
    args: isObject(entry['args']) ? entry['args'] : object({}),
    params: object({}),
    capabilities: object({}),
    retry: null,
    task: null,
    key: null,
    transport: 'library',
    trace: null,
    receivedUs: 0,
  }
  const definition = { hash: 'must_deny', value: ANYTHING }
  const decision = decide(call, set, { definition, pin: 'approved' })
  set.checks.clear()
  return (
    decision.effect === 'allow' || decision.failures.every((one) => one.code.startsWith('key_'))
  )
}
