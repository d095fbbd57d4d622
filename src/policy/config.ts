// Loads a configuration: texts to a frozen policy and settings, or every fault with its place.

import type { Code } from '../decision.ts'
import { canonical, sha256 } from '../canonical.ts'
import { isObject, type Json, type JsonObject, object, parseText, REQUEST_LIMITS } from '../json.ts'
import type { CelParse } from './cel.ts'
import {
  checkName,
  contracts,
  members,
  messages,
  type Part,
  profiles,
  report,
  texts,
  valueAt,
  versionOne,
  type Workshop,
} from './compile.ts'
import { read, type Read } from './document.ts'
import type { ConfigFault, Lookup, Place, Source } from './position.ts'
import { proveDenied, proveDestructive } from './prove.ts'
import { CONFIG_SHAPE, VERSION_1_SHAPE } from './schema.ts'
import type { Contract, Message, PolicySet, Profile } from './set.ts'
import { type Settings, settings } from './settings.ts'
import { misfits } from './shape.ts'
import { substitute } from './substitute.ts'

export type { UpstreamConfig } from './settings.ts'

/** A loaded configuration. `profiles`: names in the order of the file. */
export type Config = Settings & {
  readonly policy: PolicySet
  readonly profiles: readonly string[]
}

/** Every fault that was found; at least one is an error. */
export type Faults = { readonly kind: 'faults'; readonly faults: readonly ConfigFault[] }

/** The path written under `policy:` as it stands, or null: then the document holds its own policy. A text
 *  with faults gives null; `loadConfig` tells them. */
export function policyReference(main: Source, lookup: Lookup): string | null {
  const document = read(main)
  if (!('value' in document)) return null
  const { value } = substitute(document, lookup)
  const named = isObject(value) ? value['policy'] : null
  return typeof named === 'string' && named !== '' ? named : null
}

/** Loads a configuration. `policy` is the text that `policy:` names, or null. A policy of version 1 or 2
 *  without upstreams may stand alone as `main`. */
export async function loadConfig(
  main: Source,
  policy: Source | null,
  lookup: Lookup,
): Promise<
  | { readonly kind: 'config'; readonly config: Config; readonly warnings: readonly ConfigFault[] }
  | Faults
> {
  const texts = policy === null ? main.text : canonical([main.text, policy.text])
  const opened = [main, ...(policy === null ? [] : [policy])].map((source) => open(source, lookup))
  const loaded = await assemble(opened, texts)
  if (loaded.kind === 'faults') return loaded
  const config = Object.freeze({
    ...loaded.settings,
    policy: loaded.policy,
    profiles: [...loaded.policy.profiles.keys()],
  })
  return { kind: 'config', config, warnings: loaded.warnings }
}

/** Loads a policy from its recorded text (`PolicySet.text`), to decide again. What configures doors is not
 *  looked at; a reference to the environment in a part that decides needs `lookup`, and is a fault without. */
export async function loadPolicy(
  text: string,
  lookup: Lookup = { env: () => undefined, file: () => undefined },
): Promise<
  | {
      readonly kind: 'policy'
      readonly policy: PolicySet
      readonly warnings: readonly ConfigFault[]
    }
  | Faults
> {
  const pair = textPair(text)
  const sources = pair.map((one, at) => ({
    file: at === 0 ? RECORDED : `${RECORDED}:2`,
    text: one,
  }))
  const opened = sources.map((source) => open(source, lookup, deciding))
  const loaded = await assemble(opened, text)
  if (loaded.kind === 'faults') return loaded
  return { kind: 'policy', policy: loaded.policy, warnings: loaded.warnings }
}

const RECORDED = 'recorded policy'

function textPair(text: string): readonly string[] {
  const parsed = text.startsWith('["') ? parseText(text, { ...REQUEST_LIMITS, depth: 1 }) : null
  if (parsed?.kind !== 'json' || !Array.isArray(parsed.value)) return [text]
  const pair = parsed.value.filter((one: Json) => typeof one === 'string')
  return pair.length === 2 ? pair : [text]
}

/** Only what decides, and the names of the upstreams. */
function deciding(value: JsonObject): JsonObject {
  const kept: Record<string, Json> = {}
  for (const key of [
    'version',
    'policy',
    'tools',
    'profiles',
    'must_deny',
    'messages',
    'pins',
    'allow',
    'deny',
    'arg_rules',
  ]) {
    const one = value[key]
    if (one !== undefined) kept[key] = one
  }
  if (isObject(value['upstreams'])) {
    kept['upstreams'] = object(
      Object.fromEntries(
        Object.keys(value['upstreams']).map((name) => [name, object({ command: ['recorded'] })]),
      ),
    )
  }
  return object(kept)
}

type Opened =
  | { readonly part: Part; readonly version: 1 | 2; readonly faults: readonly ConfigFault[] }
  | readonly ConfigFault[]

/** Reads one text, puts references in place and checks its shape. */
function open(
  source: Source,
  lookup: Lookup,
  narrow: (value: JsonObject) => JsonObject = (value) => value,
): Opened {
  const document = read(source)
  if (!('value' in document)) return document
  const whole = document.value
  const narrowed: Read = { ...document, value: isObject(whole) ? narrow(whole) : whole }
  const { value, faults } = substitute(narrowed, lookup)
  const version = isObject(value) && value['version'] === 1 ? 1 : 2
  const settled: Read = { ...narrowed, value }
  const all = [...faults, ...misfits(settled, version === 1 ? VERSION_1_SHAPE : CONFIG_SHAPE)]
  if (!isObject(value)) return all
  return { part: { read: settled, value }, version, faults: all }
}

type Loaded = {
  readonly kind: 'loaded'
  readonly policy: PolicySet
  readonly settings: Settings
  readonly warnings: readonly ConfigFault[]
}

async function assemble(opened: readonly Opened[], text: string): Promise<Loaded | Faults> {
  const good: Exclude<Opened, readonly ConfigFault[]>[] = []
  const bad: ConfigFault[] = []
  for (const one of opened) {
    if ('part' in one) good.push(one)
    else bad.push(...one)
  }
  const [main, policy] = good
  if (main === undefined || bad.length > 0) return { kind: 'faults', faults: bad }
  const value = policy?.part.value ?? main.part.value
  const names = members(main.part.value['upstreams']).map(([name]) => name)
  const shop: Workshop = {
    faults: good.flatMap((one) => one.faults),
    upstreams: main.part.value['upstreams'] === undefined ? null : new Set(names),
    parse: hasExpressions(value) ? await celParse() : null,
  }
  checkParts(shop, main, policy ?? null)
  const set = policySet(shop, { main, policy: policy ?? null, names, text })
  const made = settings(shop, main.part)
  if (!shop.faults.some((fault) => fault.level === 'error')) {
    for (const one of good) proveDenied(shop, one.part, set)
  }
  if (shop.faults.some((fault) => fault.level === 'error')) {
    return { kind: 'faults', faults: inOrder(shop.faults) }
  }
  return { kind: 'loaded', policy: set, settings: made, warnings: inOrder(shop.faults) }
}

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
      isObject(profile) &&
      ((Array.isArray(profile['rules']) && profile['rules'].length > 0) ||
        profile['set'] !== undefined),
  )
}

type Version = Exclude<Opened, readonly ConfigFault[]>

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
  for (const [tool] of members(policy.value['tools'])) {
    if (valueAt(main.value, '/tools') === undefined) return
    if (!isObject(main.value['tools']) || main.value['tools'][tool] === undefined) continue
    report(shop, policy, `/tools/${tool.replace('/', '~1')}`, {
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

function policySet(shop: Workshop, { main, policy, names, text }: Sheets): PolicySet {
  const parts = policy === null ? [main.part] : [policy.part, main.part]
  const deciding = policy ?? main
  const tools = new Map<string, Contract>()
  const words = new Map<Code, Message>()
  for (const part of parts) {
    for (const [name, one] of contracts(shop, part)) tools.set(name, one)
    for (const [code, one] of messages(shop, part, new Set(TOLD))) {
      const known = TOLD.find((told) => told === code)
      if (known !== undefined) words.set(known, one)
    }
  }
  let found: ReadonlyMap<string, Profile>
  if (deciding.version === 1) {
    const one = versionOne(deciding.part, names[0] ?? null)
    found = new Map([[one.profile.name, one.profile]])
    for (const [name, bounds] of one.bounds) {
      const before = tools.get(name) ?? UNDECLARED
      tools.set(name, Object.freeze({ ...before, bounds }))
    }
  } else {
    found = profiles(shop, deciding.part)
  }
  for (const part of parts) checkDenials(shop, part)
  const set: PolicySet = Object.freeze({
    digest: sha256(text),
    text,
    qualified: deciding.version === 2 || names.length > 0,
    profiles: found,
    tools,
    messages: words,
    pins: parts.some((part) => part.value['pins'] === 'strict') ? 'strict' : 'first_use',
    place: (path: string) => placeOf(parts, path),
    checks: new Map(),
  })
  proveDestructive(shop, deciding.part, set)
  return set
}

const UNDECLARED: Contract = {
  path: '/arg_rules',
  effect: 'undeclared',
  key: null,
  args: null,
  bounds: [],
}

function checkDenials(shop: Workshop, part: Part): void {
  for (const [at, one] of (Array.isArray(part.value['must_deny'])
    ? (part.value['must_deny'] as readonly Json[])
    : []
  ).entries()) {
    const [tool] = texts([isObject(one) ? (one['tool'] ?? null) : null])
    if (tool !== undefined) checkName(shop, part, `/must_deny/${at}/tool`, tool)
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
  'answer_refused',
  'too_many_calls',
  'draining',
  'not_recorded',
  'outcome_not_recorded',
]

function placeOf(parts: readonly Part[], path: string): Place {
  const part = parts.find((one) => valueAt(one.value, path) !== undefined) ?? parts[0]
  if (part === undefined) return { file: '', line: 1, column: 1 }
  return { file: part.read.file, ...part.read.at(path) }
}

/** The configuration that the short command line stands for, as canonical JSON: one upstream `server`, one
 *  profile `default`, these tools and nothing else. */
export function shortConfig(flags: {
  readonly command: readonly string[]
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly passEnv: readonly string[]
}): Source {
  const contract = (effect: string) => (name: string) =>
    [`server/${name}`, object({ effect })] as const
  const tools = [...flags.read.map(contract('read')), ...flags.write.map(contract('write'))]
  const names = [...new Set(tools.map(([name]) => name))]
  const text = canonical(
    object({
      version: 2,
      upstreams: object({
        server: object({
          command: flags.command.map(plainText),
          env: object(
            Object.fromEntries(
              Object.entries(flags.env).map(([key, value]) => [key, plainText(value)]),
            ),
          ),
          pass_env: [...flags.passEnv],
        }),
      }),
      tools: object(Object.fromEntries(tools)),
      profiles: object({ default: object({ allow: names }) }),
    }),
  )
  return { file: 'command line', text }
}

// A `${` on the command line was the shell's business: here it is text.
const plainText = (value: string): string => value.replaceAll('${', () => '$${')
