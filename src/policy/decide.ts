// The decision: pure and total. Deny by default; deny wins; an error in a rule denies.

import type { Call, Client, Definition, Kind, Method, Target } from '../call.ts'
import type { Code, Decision, Effect, Facts, Failure, Refusal } from '../decision.ts'
import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { type Case, failure, judge, nameOf } from './judge.ts'
import { keyText } from './key.ts'
import { listed, uriListed } from './pattern.ts'
import type { Contract, PolicySet, Profile } from './set.ts'
import { viewOf } from './view.ts'

/** What policy says of one call. Never throws. Failures stand in the order of design.md 3: client, list,
 *  `args`, `set`, the server's schema, `rules` in file order, key. After a failure of client or list nothing
 *  further is looked at. */
export function decide(call: Call, set: PolicySet, facts: Facts): Decision {
  const { client, target } = call
  if (target === null || !KINDS[call.method].includes(target.kind)) {
    return deny([failure(unlisted(call), 'target')])
  }
  const refused = admits(set, client, target)
  if (refused !== null) return deny([refused])
  const profile = set.profiles.get(client.profile)
  if (profile === undefined) return deny([failure('client_unknown', 'client')])
  const rule = entryOf(set, profile, target)
  // What asks for a task only looks; what answers or ends it is one more send to its server.
  if (call.method.startsWith('tasks/')) {
    const does = call.method === 'tasks/get' ? 'read' : 'undeclared'
    return { effect: 'allow', rule, does, args: call.args, key: null, honoured: false }
  }
  if (target.kind !== 'tool') {
    return { effect: 'allow', rule, does: 'read', args: call.args, key: null, honoured: false }
  }
  const withheld = definitionFailure(set, call, facts)
  if (withheld !== null) return deny([withheld])
  return decideTool({ call, set, facts, profile, name: nameOf(set, target) }, rule)
}

/** The name level alone: what a list is filtered by, and what is asked before a definition is looked up.
 *  Null when some call of it could be allowed. */
export function admits(set: PolicySet, client: Client, target: Target): Failure | null {
  const profile = set.profiles.get(client.profile)
  if (client.identity === 'unknown' || profile === undefined || !proved(client, profile)) {
    return failure('client_unknown', 'client')
  }
  if (target.kind === 'resource') {
    const entry = uriListed(profile.resources, target.name)
    return entry === null ? failure('resource_denied', `${profile.path}/resources`) : null
  }
  const name = nameOf(set, target)
  if (target.kind === 'prompt') {
    const listing = listed(profile.prompts, name)
    return listing === null ? failure('prompt_denied', `${profile.path}/prompts`) : null
  }
  return toolListed(set, profile, name)
}

function toolListed(set: PolicySet, profile: Profile, name: string): Failure | null {
  const denied = listed(profile.deny, name)
  if (denied !== null) return failure('tool_denied', denied.entry.path)
  const allowed = listed(profile.allow, name)
  if (allowed === null) return failure('tool_denied', profile.allowPath)
  const contract = set.tools.get(name)
  if (contract?.effect !== 'destructive') return null
  // A pattern never reaches what destroys, and someone must have said that nobody approves it.
  if (allowed.by === 'pattern') return failure('tool_denied', `${contract.path}/effect`)
  return profile.exempt.has(name) ? null : failure('tool_denied', `${profile.path}/approve`)
}

/** What becomes of a definition that is seen for the first time. `tool`: `upstream/tool`. */
export function firstUse(set: PolicySet, client: Client, tool: string): 'approved' | 'waits' {
  const profile = set.profiles.get(client.profile)
  if (profile === undefined || set.pins === 'strict') return 'waits'
  const name = set.qualified ? tool : tool.slice(tool.indexOf('/') + 1)
  return listed(profile.allow, name)?.by === 'name' ? 'approved' : 'waits'
}

/** A tool as this client sees it: arguments that policy sets are gone from `properties` and `required` of
 *  its `inputSchema`. The definition's own value when nothing is set. */
export function advertise(
  set: PolicySet,
  client: Client,
  upstream: string,
  definition: Definition,
): JsonObject {
  const name = nameOf(set, { upstream, name: definition.name })
  const pinned = set.profiles.get(client.profile)?.set.get(name)
  const schema = definition.value['inputSchema']
  if (pinned === undefined || !isObject(schema)) return definition.value
  const gone = new Set(pinned.map((one) => one.name))
  const { properties, required } = schema
  return object({
    ...definition.value,
    inputSchema: object({
      ...schema,
      properties: isObject(properties) ? without(properties, gone) : properties,
      required: Array.isArray(required)
        ? required.filter((one: Json) => typeof one !== 'string' || !gone.has(one))
        : required,
    }),
  })
}

/** What the agent may know of a failure. A tool that is unknown, waits or has changed is told as denied. */
export function tell(set: PolicySet, failed: Failure): Refusal {
  const code = SAME_AS_DENIED.has(failed.code) ? 'tool_denied' : failed.code
  const words = set.messages.get(code)
  const reason = failed.reason ?? words?.code ?? null
  const message = failed.message ?? words?.message ?? null
  return { code, ...(reason === null ? {} : { reason }), ...(message === null ? {} : { message }) }
}

/** Who a declared client is. `choose`: no profile was named and the policy has several. An unknown
 *  profile, or one that asks for a token, gives a client whose every call is denied. */
export function declared(
  set: PolicySet,
  profile: string | null,
  attributes: Readonly<Record<string, string>>,
): Client | { readonly kind: 'choose'; readonly profiles: readonly string[] } {
  const names = [...set.profiles.keys()]
  const [only, ...others] = names
  if (profile === null && (only === undefined || others.length > 0)) {
    return { kind: 'choose', profiles: names }
  }
  const name = profile ?? only ?? ''
  const known = set.profiles.get(name)
  const identity = known === undefined || known.token === 'required' ? 'unknown' : 'declared'
  return { name, profile: name, identity, attributes }
}

/** The idempotency key that a call brings, for its record: null when it brings none, or one that is no
 *  key. */
export const keyOf = (set: PolicySet, call: Call): string | null => keyIn(set, call)?.key ?? null

/** As `keyOf`, with whether the server itself deduplicates by it. */
export function keyIn(
  set: PolicySet,
  call: Call,
): { readonly key: string; readonly honoured: boolean } | null {
  if (call.method !== 'tools/call' || call.target?.kind !== 'tool') return null
  const contract = set.tools.get(nameOf(set, call.target))
  const view = contract?.key?.at === undefined ? null : viewOf(call.args)
  const found = keyText(contract?.key ?? null, view, call.key)
  return found.kind === 'key' ? found : null
}

/** What each method may be about. A call that mixes them up is about nothing. */
const KINDS: Readonly<Record<Method, readonly Kind[]>> = {
  'tools/call': ['tool'],
  'resources/read': ['resource'],
  'prompts/get': ['prompt'],
  'completion/complete': ['prompt', 'resource'],
  'resources/subscribe': ['resource'],
  'tasks/get': ['tool'],
  'tasks/update': ['tool'],
  'tasks/cancel': ['tool'],
}

/** A profile that asks for a token is nobody's who has shown none. */
const proved = (client: Client, profile: Profile): boolean =>
  profile.token === 'optional' || client.identity === 'token'

const SAME_AS_DENIED: ReadonlySet<Code> = new Set<Code>([
  'tool_unknown',
  'definition_waits',
  'definition_changed',
])

const deny = (failures: readonly [Failure, ...Failure[]]): Decision => ({
  effect: 'deny',
  failures,
})

function unlisted(call: Call): Code {
  if (call.method === 'tools/call' || call.method.startsWith('tasks/')) return 'tool_unknown'
  if (call.method === 'resources/read' || call.method === 'resources/subscribe')
    return 'resource_denied'
  if (call.method === 'prompts/get') return 'prompt_denied'
  const ref = call.params['ref']
  return isObject(ref) && ref['type'] === 'ref/resource' ? 'resource_denied' : 'prompt_denied'
}

/** The JSON Pointer of the entry that lists a target. */
export function entryOf(set: PolicySet, profile: Profile, target: Target): string {
  if (target.kind === 'resource') {
    return uriListed(profile.resources, target.name)?.path ?? `${profile.path}/resources`
  }
  const list = target.kind === 'tool' ? profile.allow : profile.prompts
  return listed(list, nameOf(set, target))?.entry.path ?? profile.allowPath
}

/** What is wrong with the definition of a tool whose name is allowed, or null. */
export function definitionFailure(set: PolicySet, call: Call, facts: Facts): Failure | null {
  if (facts.definition === null) return failure('tool_unknown', 'definition')
  if (facts.pin === 'approved') return null
  if (facts.pin === 'changed') return failure('definition_changed', 'definition')
  const { target, client } = call
  const tool = `${target?.upstream ?? ''}/${target?.name ?? ''}`
  const first = facts.pin === 'new' && firstUse(set, client, tool) === 'approved'
  return first ? null : failure('definition_waits', 'definition')
}

function decideTool(of: Case, rule: string): Decision {
  const contract = of.set.tools.get(of.name)
  const judged = judge(of)
  const [first, ...others] = judged.failures
  if (first !== undefined) return deny([first, ...others])
  return {
    effect: 'allow',
    rule,
    does: effectOf(contract, of.facts),
    args: judged.args,
    key: judged.key,
    honoured: judged.key !== null && judged.honoured,
  }
}

/** A contract says what a tool does; annotations can only take a claim of harmlessness away. */
function effectOf(contract: Contract | undefined, facts: Facts): Effect {
  const effect = contract?.effect ?? 'undeclared'
  const annotations = facts.definition?.value['annotations']
  if (effect !== 'read' || !isObject(annotations)) return effect
  const contradicted =
    annotations['readOnlyHint'] === false || annotations['destructiveHint'] === true
  return contradicted ? 'undeclared' : effect
}

function without(members: JsonObject, gone: ReadonlySet<string>): JsonObject {
  return object(Object.fromEntries(Object.entries(members).filter(([name]) => !gone.has(name))))
}
