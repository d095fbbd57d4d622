// The part of a configuration that decides nothing: upstreams, state, limits, times.

import { isObject, type Json } from '../json.ts'
import { type Part, report, type Workshop } from './compile.ts'
import { DEFAULT_LIMITS, durationOf, LIMIT_NAMES, type Limits, sizeOf } from './limits.ts'
import { pointer } from './position.ts'
import { type Serving, serving } from './serving.ts'
import { DEFAULT_TIMES, time, upstream, type UpstreamConfig } from './upstream.ts'
import { members } from './value.ts'

/** What the doors need. `minFreeBytes`: below this health turns red. */
export type Settings = {
  readonly serving: Serving
  readonly upstreams: readonly UpstreamConfig[]
  readonly state: { readonly dir: string | null; readonly create: boolean }
  readonly limits: Limits
  readonly minFreeBytes: number
  readonly drainMs: number
}

const DEFAULT_MIN_FREE_BYTES = 64 * 1024 * 1024
/** The settings of the main document. `profiles`: the names that the policy knows. */
export function settings(shop: Workshop, part: Part, profiles: ReadonlySet<string>): Settings {
  const root = part.value
  if (root['durability'] === 'relaxed') {
    report(shop, part, '/durability', {
      message: '`durability: relaxed` is not yet built; write `full` or remove it',
    })
  }
  const state = isObject(root['state']) ? root['state'] : null
  const dir = state?.['dir']
  const audit = isObject(root['audit']) ? root['audit'] : null
  const free = audit?.['min_free']
  return {
    serving: serving(shop, part, profiles),
    upstreams: members(root['upstreams']).map(([name, value]) => upstream(shop, part, name, value)),
    state: { dir: typeof dir === 'string' ? dir : null, create: state?.['create'] !== false },
    limits: limits(shop, part),
    minFreeBytes:
      typeof free === 'string' || typeof free === 'number'
        ? (sizeOf(free) ?? DEFAULT_MIN_FREE_BYTES)
        : DEFAULT_MIN_FREE_BYTES,
    drainMs: time(shop, part, '/drain', root['drain']) ?? DEFAULT_TIMES.drainMs,
  }
}

function limits(shop: Workshop, part: Part): Limits {
  const made: Record<keyof Limits, number> = { ...DEFAULT_LIMITS }
  for (const [name, value] of members(part.value['limits'])) {
    const path = pointer('/limits', name)
    const known = Object.hasOwn(LIMIT_NAMES, name) ? LIMIT_NAMES[name] : undefined
    if (known === undefined) {
      const names = Object.keys(LIMIT_NAMES).join(', ')
      report(shop, part, path, { message: `unknown limit \`${name}\`; known: ${names}`, on: 'key' })
      continue
    }
    const amount = amountOf(known.unit, value)
    if (amount === null || amount < 1 || amount > known.most) {
      report(shop, part, path, {
        message: `expected ${EXPECTED[known.unit]} from 1 to ${known.most}`,
      })
    } else {
      made[known.limit] = amount
    }
  }
  return made
}

const EXPECTED = {
  bytes: 'a size such as 4MiB',
  count: 'a count',
  days: 'a time such as 30d, in days',
} as const

const DAY_MS = 86_400_000

function amountOf(unit: 'bytes' | 'count' | 'days', value: Json): number | null {
  if (unit === 'count') return typeof value === 'number' ? value : null
  if (unit === 'bytes') {
    return typeof value === 'string' || typeof value === 'number' ? sizeOf(value) : null
  }
  const ms = typeof value === 'string' ? durationOf(value) : null
  return ms === null || ms % DAY_MS !== 0 ? null : ms / DAY_MS
}
