// A policy of version 1 as the one profile that it stands for.

import { isObject, type Json } from '../json.ts'
import type { Part } from './compile.ts'
import { type Entry, nameList } from './pattern.ts'
import { pointer } from './position.ts'
import { type LengthRule, NO_GRANT, type Profile } from './set.ts'
import { members, texts } from './value.ts'

/** The one profile and the length rules of a policy of version 1. `upstream`: the only one, whose name its
 *  tools then bear; null where they stand alone. */
export function versionOne(
  part: Part,
  upstream: string | null,
): { readonly profile: Profile; readonly bounds: ReadonlyMap<string, readonly LengthRule[]> } {
  const named = (tool: string): string => (upstream === null ? tool : `${upstream}/${tool}`)
  const list = (key: string): readonly Entry[] =>
    texts(part.value[key]).map((tool, at) => ({
      source: named(tool),
      path: pointer(`/${key}`, at),
    }))
  const bounds = new Map<string, readonly LengthRule[]>()
  for (const [tool, fields] of members(part.value['arg_rules'])) {
    const made = members(fields).map(([field, rule]): LengthRule => ({
      path: pointer(pointer('/arg_rules', tool), field),
      field,
      least: count(rule, 'min_len') ?? 0,
      most: count(rule, 'max_len') ?? Number.MAX_SAFE_INTEGER,
    }))
    bounds.set(named(tool), made)
  }
  const profile: Profile = {
    path: '',
    name: 'default',
    token: 'optional',
    allow: nameList(list('allow'), true),
    deny: nameList(list('deny'), true),
    allowPath: '/allow',
    rules: [],
    set: new Map(),
    exempt: new Set(),
    resources: [],
    prompts: nameList([], true),
    client: NO_GRANT,
  }
  return { profile: Object.freeze(profile), bounds }
}

function count(rule: Json, key: string): number | null {
  const value = isObject(rule) ? rule[key] : undefined
  return typeof value === 'number' ? value : null
}
