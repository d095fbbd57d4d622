// Turns checked documents into profiles and contracts, with every fault that only their meaning shows.

import type { Effect } from '../decision.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { contractCheck } from './arguments.ts'
import { type CelParse, compile, type Expression } from './cel.ts'
import type { Read } from './document.ts'
import { type Entry, nameList } from './pattern.ts'
import { type ConfigFault, pointer, segmentsOf } from './position.ts'
import { type Root, rootOf } from './roots.ts'
import {
  type ClientGrant,
  type Contract,
  type KeyContract,
  type Message,
  NO_GRANT,
  type Pinned,
  type Profile,
  type Rule,
} from './set.ts'
import { items, members, textOf, texts, valueAt } from './value.ts'

/** One document of a configuration, already of the published shape. */
export type Part = { readonly read: Read; readonly value: JsonObject }

/** What compiling collects. `upstreams`: known names, or null where none are declared. `parse` is null where
 *  no expression stands. */
export type Workshop = {
  readonly faults: ConfigFault[]
  readonly upstreams: ReadonlySet<string> | null
  readonly parse: CelParse | null
}

/** Adds a fault at a value (`at`), its key, or a character inside it. */
export function report(
  shop: Workshop,
  part: Part,
  path: string,
  told: {
    readonly message: string
    readonly level?: ConfigFault['level']
    readonly on?: 'key' | number
  },
): void {
  const { read } = part
  const where =
    told.on === 'key'
      ? read.key(path)
      : told.on === undefined
        ? read.at(path)
        : read.inside(path, told.on)
  shop.faults.push({
    file: read.file,
    ...where,
    path,
    level: told.level ?? 'error',
    message: told.message,
  })
}

/** Reports every one of these keys that stands in an object: parts of the language that this build does not
 *  have. */
export function notYet(shop: Workshop, part: Part, path: string, keys: readonly string[]): void {
  const value = valueAt(part.value, path)
  for (const key of keys) {
    if (!isObject(value) || value[key] === undefined) continue
    report(shop, part, pointer(path, key), {
      message: `\`${key}\` is not yet built; remove it`,
      on: 'key',
    })
  }
}

/** Reports a name whose upstream is not declared. */
export function checkName(shop: Workshop, part: Part, path: string, name: string): void {
  const upstream = name.slice(0, Math.max(name.indexOf('/'), 0))
  if (shop.upstreams === null || name === '*' || shop.upstreams.has(upstream)) return
  const known = [...shop.upstreams].join(', ')
  report(shop, part, path, { message: `no upstream is called \`${upstream}\`; known: ${known}` })
}

/** The contracts of one document. */
export function contracts(shop: Workshop, part: Part): ReadonlyMap<string, Contract> {
  const made = new Map<string, Contract>()
  for (const [tool, value] of members(part.value['tools'])) {
    const path = pointer('/tools', tool)
    checkName(shop, part, path, tool)
    notYet(shop, part, path, ['fields', 'verify', 'undo', 'lookup'])
    if (isObject(value)) made.set(tool, contract(shop, part, path, value))
  }
  return made
}

const EFFECTS: Readonly<Record<string, Effect>> = {
  read: 'read',
  write: 'write',
  destructive: 'destructive',
}

function contract(shop: Workshop, part: Part, path: string, value: JsonObject): Contract {
  const effect = EFFECTS[textOf(value['effect']) ?? ''] ?? 'undeclared'
  const key = keyContract(`${path}/key`, value['key'])
  if (
    (effect === 'write' || effect === 'destructive') &&
    key === null &&
    value['verify'] === undefined
  ) {
    report(shop, part, `${path}/effect`, {
      level: 'warning',
      message: `\`${effect}\` without \`key\` and without \`verify\`: a repeated call runs again, and an unknown outcome stays unknown`,
    })
  }
  const args = isObject(value['args'])
    ? argumentCheck(shop, part, `${path}/args`, value['args'])
    : null
  return Object.freeze({ path, effect, key, args, bounds: [] })
}

function keyContract(path: string, value: Json | undefined): KeyContract | null {
  if (!isObject(value)) return null
  const at = textOf(value['at'])
  return {
    path,
    at: at === null ? null : { pointer: at, segments: segmentsOf(at) ?? [] },
    honoured: value['honoured'] === true,
  }
}

function argumentCheck(
  shop: Workshop,
  part: Part,
  path: string,
  schema: JsonObject,
): Contract['args'] {
  const check = contractCheck(schema)
  if (!('run' in check)) {
    for (const fault of check) report(shop, part, path + fault.path, { message: fault.message })
    return null
  }
  const required = new Set(texts(schema['required']))
  for (const [name, value] of members(schema['properties'])) {
    if (required.has(name) || !isObject(value) || Object.keys(value).length === 0) continue
    report(shop, part, pointer(`${path}/properties`, name), {
      level: 'warning',
      on: 'key',
      message: `\`${name}\` is constrained but not required: a call without it passes, and the server chooses`,
    })
  }
  return check
}

/** The profiles of one document of version 2. */
export function profiles(shop: Workshop, part: Part): ReadonlyMap<string, Profile> {
  const raw = new Map(members(part.value['profiles']))
  const made = new Map<string, Profile>()
  const drafts = new Map<string, Draft>()
  for (const [name, value] of raw) {
    if (isObject(value)) drafts.set(name, draft(shop, part, pointer('/profiles', name), value))
  }
  for (const [name, one] of drafts) {
    const chain = chainOf(drafts, name)
    if (typeof chain === 'string') {
      report(shop, part, `${one.path}/extends`, { message: chain })
      continue
    }
    made.set(name, joined(name, one, chain))
  }
  return made
}

/** A profile by itself, before what it extends is joined; null = not said. */
type Draft = {
  readonly path: string
  readonly extends: string | null
  readonly token: 'required' | 'optional' | null
  readonly allow: readonly Entry[]
  readonly deny: readonly Entry[]
  readonly rules: readonly Rule[]
  readonly set: ReadonlyMap<string, readonly Pinned[]> | null
  readonly exempt: ReadonlySet<string> | null
  readonly resources: readonly Entry[] | null
  readonly prompts: readonly Entry[] | null
  readonly client: ClientGrant | null
}

function draft(shop: Workshop, part: Part, path: string, value: JsonObject): Draft {
  notYet(shop, part, path, ['limits', 'envelope', 'approves'])
  const result = value['result']
  if (result === 'spec' || result === 'fields') {
    report(shop, part, `${path}/result`, {
      message: `\`result: ${result}\` is not yet built; write \`full\` or remove it`,
    })
  }
  const list = (key: string, check: boolean): readonly Entry[] =>
    texts(value[key]).map((source, at) => {
      const entry = { source, path: pointer(`${path}/${key}`, at) }
      if (check) checkName(shop, part, entry.path, source)
      return entry
    })
  const token = value['token']
  return {
    path,
    extends: textOf(value['extends']),
    token: token === 'required' || token === 'optional' ? token : null,
    allow: list('allow', true),
    deny: list('deny', true),
    rules: rules(shop, part, `${path}/rules`, value['rules']),
    set: value['set'] === undefined ? null : pinned(shop, part, `${path}/set`, value['set']),
    exempt:
      value['approve'] === undefined
        ? null
        : exempt(shop, part, `${path}/approve`, value['approve']),
    resources:
      value['resources'] === undefined ? null : resources(shop, part, list('resources', false)),
    prompts: value['prompts'] === undefined ? null : list('prompts', true),
    client: isObject(value['client']) ? grant(shop, part, `${path}/client`, value['client']) : null,
  }
}

function resources(shop: Workshop, part: Part, entries: readonly Entry[]): readonly Entry[] {
  for (const { source, path } of entries) {
    const star = source.indexOf('*')
    if (star === -1 || (star === source.length - 1 && source.endsWith('/*'))) continue
    report(shop, part, path, { message: 'expected a URI, or a URI prefix that ends in `/*`' })
  }
  return entries
}

function grant(shop: Workshop, part: Part, path: string, value: JsonObject): ClientGrant {
  const { elicitation, sampling, roots } = value
  const known: Root[] = []
  for (const [at, source] of texts(roots).entries()) {
    const root = rootOf({ source })
    if ('problem' in root)
      report(shop, part, pointer(`${path}/roots`, at), { message: root.problem })
    else known.push(root)
  }
  return Object.freeze({
    elicitation: elicitation === true,
    sampling: sampling === true,
    roots: roots === true ? 'any' : Array.isArray(roots) ? known : null,
  })
}

function rules(shop: Workshop, part: Part, path: string, value: Json | undefined): readonly Rule[] {
  const made: Rule[] = []
  for (const [at, one] of items(value).entries()) {
    if (!isObject(one)) continue
    const place = pointer(path, at)
    const tool = textOf(one['tool']) ?? '*'
    checkName(shop, part, `${place}/tool`, tool)
    const when = textOf(one['when'])
    const applies = when === null ? null : expression(shop, part, `${place}/when`, when)
    const holds = expression(shop, part, `${place}/require`, textOf(one['require']) ?? '')
    if (holds === null) continue
    const words = { code: textOf(one['code']), message: textOf(one['message']) }
    made.push(Object.freeze({ path: place, tool, when: applies, require: holds, ...words }))
  }
  return made
}

function expression(shop: Workshop, part: Part, path: string, text: string): Expression | null {
  if (shop.parse === null) return null
  const made = compile(text, shop.parse)
  if ('run' in made) return made
  report(shop, part, path, { message: made.message, on: made.offset })
  return null
}

function pinned(
  shop: Workshop,
  part: Part,
  path: string,
  value: Json,
): ReadonlyMap<string, readonly Pinned[]> {
  const made = new Map<string, readonly Pinned[]>()
  for (const [tool, given] of members(value)) {
    const place = pointer(path, tool)
    checkName(shop, part, place, tool)
    const entries: Pinned[] = []
    for (const [name, one] of members(given)) {
      const at = pointer(place, name)
      const cel = isObject(one) && Object.keys(one).length === 1 ? textOf(one['cel']) : null
      const computed = cel === null ? null : expression(shop, part, `${at}/cel`, cel)
      if (cel === null) entries.push({ path: at, name, value: { constant: one } })
      else if (computed !== null) entries.push({ path: at, name, value: { cel: computed } })
    }
    made.set(tool, entries)
  }
  return made
}

function exempt(shop: Workshop, part: Part, path: string, value: Json): ReadonlySet<string> {
  const made = new Set<string>()
  for (const [tool, how] of members(value)) {
    const place = pointer(path, tool)
    checkName(shop, part, place, tool)
    if (how === 'none') made.add(tool)
    else
      report(shop, part, place, {
        message: '`approve` is not yet built; write `none` or remove it',
      })
  }
  return made
}

/** What a profile extends, from the farthest to itself, or why that cannot be told. */
function chainOf(drafts: ReadonlyMap<string, Draft>, name: string): readonly Draft[] | string {
  const chain: Draft[] = []
  const seen = new Set<string>()
  for (let at: string | null = name; at !== null;) {
    const one = drafts.get(at)
    if (one === undefined) return `no profile is called \`${at}\``
    if (seen.has(at)) return `\`extends\` leads back to \`${at}\``
    seen.add(at)
    chain.unshift(one)
    at = one.extends
  }
  return chain
}

function joined(name: string, own: Draft, chain: readonly Draft[]): Profile {
  const last = <T>(pick: (one: Draft) => T | null): T | null =>
    chain.reduce<T | null>((found, one) => pick(one) ?? found, null)
  return Object.freeze({
    path: own.path,
    name,
    token: last((one) => one.token) ?? 'optional',
    allow: nameList(
      chain.flatMap((one) => one.allow),
      false,
    ),
    deny: nameList(
      chain.flatMap((one) => one.deny),
      false,
    ),
    allowPath: `${own.path}/allow`,
    rules: chain.flatMap((one) => one.rules),
    set: last((one) => one.set) ?? new Map<string, readonly Pinned[]>(),
    exempt: last((one) => one.exempt) ?? new Set<string>(),
    resources: last((one) => one.resources) ?? [],
    prompts: nameList(last((one) => one.prompts) ?? [], false),
    client: last((one) => one.client) ?? NO_GRANT,
  })
}

/** What the policy says instead of built-in words; `codes` are those it may speak of. */
export function messages(
  shop: Workshop,
  part: Part,
  codes: ReadonlySet<string>,
): readonly (readonly [string, Message])[] {
  return members(part.value['messages']).map(([code, value]) => {
    if (!codes.has(code)) {
      report(shop, part, pointer('/messages', code), {
        message: `\`${code}\` is no built-in code`,
        on: 'key',
      })
    }
    return isObject(value)
      ? [code, { code: textOf(value['code']), message: textOf(value['message']) }]
      : [code, { code: null, message: textOf(value) }]
  })
}
