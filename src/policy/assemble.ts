// Puts the documents of a configuration together: what belongs where, one policy, one set of settings.

import { sha256 } from '../canonical.ts'
import type { Code } from '../decision.ts'
import { isObject, type JsonObject } from '../json.ts'
import type { CelParse } from './cel.ts'
import {
  checkName,
  contracts,
  messages,
  type Part,
  profiles,
  report,
  type Workshop,
} from './compile.ts'
import { type ConfigFault, type Place, pointer } from './position.ts'
import { proveDenied, proveDestructive } from './prove.ts'
import type { Contract, Message, PolicySet, Profile } from './set.ts'
import { type Settings, settings } from './settings.ts'
import { items, members, textOf, valueAt } from './value.ts'
import { versionOne } from './version-one.ts'

/** Every fault that was found; at least one is an error. */
export type Faults = { readonly kind: 'faults'; readonly faults: readonly ConfigFault[] }

/** A document that was read, with the faults of its references and shape. */
export type Version = {
  readonly part: Part
  readonly version: 1 | 2
  readonly faults: readonly ConfigFault[]
}

/** A document, or the faults for which it could not be read at all. */
export type Opened = Version | readonly ConfigFault[]

/** A policy and settings without faults. */
export type Loaded = {
  readonly kind: 'loaded'
  readonly policy: PolicySet
  readonly settings: Settings
  readonly warnings: readonly ConfigFault[]
}

/** The policy and settings of documents that were read: the main one, and the policy's own if there is one.
 *  `text`: what the digest is over. */
export async function assemble(opened: readonly Opened[], text: string): Promise<Loaded | Faults> {
  const bad = opened.flatMap((one) => ('part' in one ? [] : one))
  const [main, policy = null] = opened.filter((one) => 'part' in one)
  if (main === undefined || bad.length > 0) return { kind: 'faults', faults: bad }
  const names = members(main.part.value['upstreams']).map(([name]) => name)
  const first = opened.flatMap((one) => ('part' in one ? one.faults : []))
  const shop: Workshop = {
    faults: [...first],
    upstreams: main.part.value['upstreams'] === undefined ? null : new Set(names),
    parse: hasExpressions((policy ?? main).part.value) ? await celParse() : null,
  }
  checkParts(shop, main, policy)
  const set = policySet(shop, { main, policy, names, text })
  const made = settings(shop, main.part, new Set(set.profiles.keys()))
  if (!hasErrors(shop)) {
    proveDenied(shop, main.part, set)
    if (policy !== null) proveDenied(shop, policy.part, set)
  }
  if (hasErrors(shop)) return { kind: 'faults', faults: inOrder(causes(shop.faults, first)) }
  return { kind: 'loaded', policy: set, settings: made, warnings: inOrder(shop.faults) }
}

/** A value that could not be read has its fault; what else is wrong with what stands in its place follows. */
function causes(
  faults: readonly ConfigFault[],
  first: readonly ConfigFault[],
): readonly ConfigFault[] {
  const told = new Set(first)
  const unread = new Set(first.filter(({ level }) => level === 'error').map(place))
  return faults.filter((one) => told.has(one) || !unread.has(place(one)))
}

const place = ({ file, path, line, column }: ConfigFault): string =>
  `${file} ${path} ${line} ${column}`

const hasErrors = (shop: Workshop): boolean => shop.faults.some((fault) => fault.level === 'error')

const inOrder = (faults: readonly ConfigFault[]): readonly ConfigFault[] =>
  faults.toSorted((a, b) => a.line - b.line || a.column - b.column)

// Loaded only for a policy that has expressions: a start without them does not pay for it.
async function celParse(): Promise<CelParse> {
  const { Environment } = await import('@marcbachmann/cel-js')
  const { CEL_LIMITS } = await import('./cel.ts')
  const environment = new Environment({
    limits: { maxAstNodes: CEL_LIMITS.nodes, maxDepth: CEL_LIMITS.depth },
  })
  return (text) => environment.parse(text).ast
}

function hasExpressions(value: JsonObject): boolean {
  return members(value['profiles']).some(
    ([, profile]) =>
      isObject(profile) && (items(profile['rules']).length > 0 || profile['set'] !== undefined),
  )
}

/** What belongs in which document. */
function checkParts(shop: Workshop, main: Version, policy: Version | null): void {
  const { part } = main
  if (policy === null) {
    if (part.value['policy'] !== undefined) {
      report(shop, part, '/policy', { message: 'the policy file was not read; check the path' })
    } else if (main.version === 2 && part.value['profiles'] === undefined) {
      report(shop, part, '', {
        message: '`profiles` is missing; add one, or name a file under `policy`',
      })
    }
    return
  }
  if (main.version === 1)
    report(shop, part, '/version', { message: 'a configuration is of version 2' })
  if (part.value['profiles'] !== undefined) {
    report(shop, part, '/profiles', {
      message: 'profiles stand in the file that `policy` names, or here, not in both',
      on: 'key',
    })
  }
  if (policy.version === 2) checkPolicyPart(shop, part, policy.part)
  else if (shop.upstreams !== null && shop.upstreams.size !== 1) {
    report(shop, policy.part, '/version', {
      message: 'a policy of version 1 does not name upstreams, so there must be exactly one',
    })
  }
}

const POLICY_KEYS: ReadonlySet<string> = new Set([
  '$schema',
  'version',
  'tools',
  'profiles',
  'must_deny',
  'messages',
  'pins',
])

function checkPolicyPart(shop: Workshop, main: Part, policy: Part): void {
  for (const [key] of members(policy.value)) {
    if (POLICY_KEYS.has(key)) continue
    report(shop, policy, `/${key}`, { message: `\`${key}\` belongs in the main file`, on: 'key' })
  }
  if (policy.value['profiles'] === undefined) {
    report(shop, policy, '', { message: '`profiles` is missing' })
  }
  const { tools } = main.value
  for (const [tool] of members(policy.value['tools'])) {
    if (!isObject(tools) || tools[tool] === undefined) continue
    report(shop, policy, pointer('/tools', tool), {
      message: 'this contract stands in the main file too',
      on: 'key',
    })
  }
}

type Sheets = {
  readonly main: Version
  readonly policy: Version | null
  readonly names: readonly string[]
  readonly text: string
}

function policySet(shop: Workshop, sheets: Sheets): PolicySet {
  const { main, policy, names, text } = sheets
  const parts = policy === null ? [main.part] : [policy.part, main.part]
  const deciding = policy ?? main
  const { tools, found } = language(shop, parts, sheets)
  for (const part of parts) checkDenials(shop, part)
  const set: PolicySet = Object.freeze({
    digest: sha256(text),
    text,
    qualified: deciding.version === 2 || names.length > 0,
    profiles: found,
    tools,
    messages: wordsOf(shop, parts),
    pins: parts.some((part) => part.value['pins'] === 'strict') ? 'strict' : 'first_use',
    place: (path: string) => placeOf(parts, path),
    checks: new Map(),
  })
  proveDestructive(shop, deciding.part, set)
  return set
}

/** Contracts and profiles, whichever version of the language they are in. */
function language(
  shop: Workshop,
  parts: readonly Part[],
  { main, policy, names }: Sheets,
): {
  readonly tools: ReadonlyMap<string, Contract>
  readonly found: ReadonlyMap<string, Profile>
} {
  const deciding = policy ?? main
  const tools = new Map(parts.flatMap((part) => [...contracts(shop, part)]))
  if (deciding.version === 2) return { tools, found: profiles(shop, deciding.part) }
  const { profile, bounds } = versionOne(deciding.part, names[0] ?? null)
  for (const [name, rules] of bounds) {
    tools.set(name, Object.freeze({ ...(tools.get(name) ?? UNDECLARED), bounds: rules }))
  }
  return { tools, found: new Map([[profile.name, profile]]) }
}

function wordsOf(shop: Workshop, parts: readonly Part[]): ReadonlyMap<Code, Message> {
  const words = new Map<Code, Message>()
  const codes = new Set<string>(TOLD)
  const given = parts.flatMap((part) => messages(shop, part, codes))
  for (const [code, one] of given) {
    const known = TOLD.find((told) => told === code)
    if (known !== undefined) words.set(known, one)
  }
  return words
}

const UNDECLARED: Contract = {
  path: '/arg_rules',
  effect: 'undeclared',
  key: null,
  args: null,
  bounds: [],
}

function checkDenials(shop: Workshop, part: Part): void {
  for (const [at, one] of items(part.value['must_deny']).entries()) {
    const tool = isObject(one) ? textOf(one['tool']) : null
    if (tool !== null) checkName(shop, part, `/must_deny/${at}/tool`, tool)
  }
}

/** Built-in codes that an agent may be told; `messages` speaks of them. */
const TOLD: readonly Code[] = [
  'client_unknown',
  'tool_denied',
  'resource_denied',
  'prompt_denied',
  'arguments_denied',
  'number_not_exact',
  'arguments_invalid',
  'method_unknown',
  'malformed',
  'key_missing',
  'key_invalid',
  'key_conflict',
  'key_expired',
  'busy',
  'outcome_unknown',
  'upstream_down',
  'timeout',
  'cancelled',
  'not_bridged',
  'ask_denied',
  'capability_missing',
  'state_invalid',
  'client_revoked',
  'upstream_login',
  'answer_refused',
  'too_many_calls',
  'draining',
  'not_recorded',
  'outcome_not_recorded',
]

/** The place of a value; of one that is not there, its nearest parent's, in whichever text has that. */
function placeOf(parts: readonly Part[], path: string): Place {
  for (let at = path; at !== ''; at = at.slice(0, at.lastIndexOf('/'))) {
    const part = parts.find((one) => valueAt(one.value, at) !== undefined)
    if (part !== undefined) return { file: part.read.file, ...part.read.at(at) }
    if (!at.includes('/')) break
  }
  const [first] = parts
  if (first === undefined) return { file: '', line: 1, column: 1 }
  return { file: first.read.file, ...first.read.at('') }
}
