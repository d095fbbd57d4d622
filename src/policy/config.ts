// Loads a configuration: texts to a frozen policy and settings, or every fault with its place.

import { canonical } from '../canonical.ts'
import { isObject, type Json, type JsonObject, object, parseText, REQUEST_LIMITS } from '../json.ts'
import { assemble, type Faults, type Opened } from './assemble.ts'
import { read, type Read } from './document.ts'
import type { ConfigFault, Lookup, Source } from './position.ts'
import { CONFIG_SHAPE, VERSION_1_SHAPE } from './schema.ts'
import type { PolicySet } from './set.ts'
import type { Settings } from './settings.ts'
import { misfits } from './shape.ts'
import { substitute } from './substitute.ts'

export type { Faults } from './assemble.ts'
export type { UpstreamConfig, UrlUpstream } from './upstream.ts'

/** A loaded configuration. `profiles`: names in the order of the file. */
export type Config = Settings & {
  readonly policy: PolicySet
  readonly profiles: readonly string[]
}

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
  const whole = policy === null ? main.text : canonical([main.text, policy.text])
  const opened = [main, ...(policy === null ? [] : [policy])].map((source) => open(source, lookup))
  const loaded = await assemble(opened, whole)
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
  const opened = recordedTexts(text).map((source) => open(source, lookup, whatDecides))
  const loaded = await assemble(opened, text)
  if (loaded.kind === 'faults') return loaded
  return { kind: 'policy', policy: loaded.policy, warnings: loaded.warnings }
}

/** The texts that a recorded policy text holds: the configuration, and the policy's own file if it had one,
 *  under the names by which `loadPolicy` speaks of them. */
export const recordedTexts = (text: string): readonly Source[] =>
  textPair(text).map((one, at) => ({ file: RECORDED[at] ?? '', text: one }))

/** Names of recorded texts: they stand in no file any more. */
const RECORDED = ['recorded configuration', 'recorded policy file'] as const

function textPair(text: string): readonly string[] {
  const parsed = text.startsWith('["') ? parseText(text, { ...REQUEST_LIMITS, depth: 1 }) : null
  if (parsed?.kind !== 'json' || !Array.isArray(parsed.value)) return [text]
  const pair = parsed.value.filter((one: Json) => typeof one === 'string')
  return pair.length === 2 ? pair : [text]
}

/** Only what decides, and the names of the upstreams. */
function whatDecides(value: JsonObject): JsonObject {
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
  const odd = misfits(settled, version === 1 ? VERSION_1_SHAPE : CONFIG_SHAPE)
  const missing = new Set(faults.map(({ path, level }) => (level === 'error' ? path : null)))
  const all = [...faults, ...odd.filter(({ path }) => !missing.has(path))]
  if (!isObject(value)) return all
  return { part: { read: settled, value }, version, faults: all }
}
