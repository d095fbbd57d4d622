// The part of a configuration that decides nothing: upstreams, state, limits, times.

import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { notYet, type Part, report, type Workshop } from './compile.ts'
import { DEFAULT_LIMITS, durationOf, LIMIT_NAMES, type Limits, sizeOf } from './limits.ts'
import { pointer } from './position.ts'
import { bare, members, textOf, texts } from './value.ts'

/** One server behind the gateway. `command`: program and arguments, run without a shell. `cwd` is as
 *  written; relative to the file's folder. Times in ms: `callMs` is moved by progress up to `callMaxMs`. */
export type UpstreamConfig = {
  readonly name: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly passEnv: readonly string[]
  readonly cwd: string | null
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly probeMs: number
  readonly callMs: number
  readonly callMaxMs: number
  readonly listMs: number
}

/** What the doors need. `minFreeBytes`: below this health turns red. */
export type Settings = {
  readonly upstreams: readonly UpstreamConfig[]
  readonly state: { readonly dir: string | null; readonly create: boolean }
  readonly limits: Limits
  readonly minFreeBytes: number
  readonly drainMs: number
}

/** Deadlines where none is written. Source: design.md 2. */
export const DEFAULT_TIMES: {
  readonly probeMs: number
  readonly callMs: number
  readonly callMaxMs: number
  readonly listMs: number
  readonly drainMs: number
} = {
  probeMs: 15_000,
  callMs: 300_000,
  callMaxMs: 1_800_000,
  listMs: 10_000,
  drainMs: 5_000,
}
const DEFAULT_MIN_FREE_BYTES = 64 * 1024 * 1024
/** Longest wait that may be written: timers hold 2^31-1 ms. */
const MAX_TIME_MS = 2_147_483_647

/** The settings of the main document. */
export function settings(shop: Workshop, part: Part): Settings {
  const root = part.value
  notYet(shop, part, '', ['anonymous', 'endpoints', 'public_url', 'listen', 'hosts', 'origins'])
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

function upstream(shop: Workshop, part: Part, name: string, value: Json): UpstreamConfig {
  const path = pointer('/upstreams', name)
  const given = isObject(value) ? value : object({})
  notYet(shop, part, path, ['url', 'headers'])
  const command = texts(given['command'])
  if (command.length === 0 && given['url'] === undefined) {
    report(shop, part, path, { message: '`command` is missing' })
  }
  const { era } = given
  const env = bare<string>()
  for (const [key, text] of members(given['env'])) if (typeof text === 'string') env[key] = text
  return {
    name,
    command,
    env,
    passEnv: texts(given['pass_env']),
    cwd: textOf(given['cwd']),
    era: era === 'modern' || era === 'legacy' ? era : 'auto',
    ...times(shop, part, path, given),
  }
}

function times(
  shop: Workshop,
  part: Part,
  path: string,
  given: JsonObject,
): Pick<UpstreamConfig, 'probeMs' | 'callMs' | 'callMaxMs' | 'listMs'> {
  const of = (key: string): number | null => time(shop, part, `${path}/${key}`, given[key])
  const callMs = of('call') ?? DEFAULT_TIMES.callMs
  return {
    probeMs: of('probe') ?? DEFAULT_TIMES.probeMs,
    callMs,
    // Never less than what a call has from the start.
    callMaxMs: Math.max(of('call_max') ?? DEFAULT_TIMES.callMaxMs, callMs),
    listMs: of('list') ?? DEFAULT_TIMES.listMs,
  }
}

function time(shop: Workshop, part: Part, path: string, value: Json | undefined): number | null {
  if (typeof value !== 'string') return null
  const ms = durationOf(value)
  if (ms !== null && ms >= 1 && ms <= MAX_TIME_MS) return ms
  report(shop, part, path, { message: 'expected a time from 1ms to 24d' })
  return null
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
