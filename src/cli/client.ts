// The verbs about clients: who may come with a token. A token is shown once and kept nowhere.

import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { EXIT, Fault } from '../fault.ts'
import { mint } from '../identity/tokens.ts'
import { type Config, loadConfig, policyReference } from '../policy/config.ts'
import { durationOf } from '../policy/limits.ts'
import { faultLine } from '../policy/position.ts'
import type { ClientRow } from '../ports.ts'
import { addClientIn, hasLedger, openReader, revokeClientIn } from '../store/reader.ts'
import { openLedger } from './compose.ts'
import type { Io } from './io.ts'
import { lookup, readBeside, readSource, stateDir, stateFor } from './place.ts'
import { visible } from './record.ts'

/** Names of clients: what stands in every record of theirs. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/
/** Names of attributes are those of CEL fields; values are short plain text. */
const ATTRIBUTE = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const MAX_VALUE = 256
const MAX_ATTRIBUTES = 32
const MAX_LIMIT = 1_000_000
const MAX_EXPIRY_MS = 3_650 * 86_400_000

/** Adds a client and prints its token, the only time it is ever seen, alone on stdout. Where there is no
 *  ledger yet it is made. Exit 1 when the name is taken or there are too many; nothing was changed then. */
export async function clientAdd(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      state: { type: 'string' },
      profile: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      person: { type: 'string' },
      limit: { type: 'string' },
      expires: { type: 'string' },
    },
  })
  const name = onlyName(positionals, 'eclusa client add NAME --profile PROFILE')
  const { profile } = values
  if (profile === undefined) throw new Fault('usage', 'say what it may do: --profile PROFILE')
  const place = await placeOf(values, io)
  checkProfile(place.config, profile)
  const attributes = attributesOf(values.set, values.person)
  const wish = {
    name,
    profile,
    person: values.person !== undefined,
    attributes,
    limit: limitOf(values.limit),
    expiresUs: expiryOf(values.expires),
  }
  await ensureLedger(place, io)
  const { token, digest } = mint()
  const done = addClientIn(place.dir, { ...wish, digest })
  if (done === 'taken') {
    io.err(`eclusa: the name ${name} is taken, now or by a revoked client; choose another`)
    return EXIT.finding
  }
  if (done === 'full') {
    io.err('eclusa: there are as many clients as may be; use another state directory')
    return EXIT.finding
  }
  io.err(`eclusa: client ${name} (profile ${profile}) is added; its token, shown this once:`)
  io.out(token)
  return EXIT.ok
}

/** Prints one line a client: state, name, profile, expiry, attributes. Never a digest. */
export async function clientList(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      state: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  })
  const { dir } = await placeOf(values, io)
  const reader = openReader(dir)
  try {
    for (const row of reader.clients()) io.out(values.json ? asJson(row) : asLine(row))
  } finally {
    reader.close()
  }
  return EXIT.ok
}

/** Revokes a client for good. Exit 1 when there is none of that name or it is revoked already. */
export async function clientRevoke(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { config: { type: 'string' }, state: { type: 'string' } },
  })
  const name = onlyName(positionals, 'eclusa client revoke NAME')
  const { dir } = await placeOf(values, io)
  const done = revokeClientIn(dir, name)
  if (done === 'revoked') {
    io.err(`eclusa: client ${name} is revoked; running gateways refuse it within a second`)
    return EXIT.ok
  }
  const why = done === 'unknown' ? 'there is no such client' : 'it is revoked already'
  io.err(`eclusa: ${name}: ${why}; run: eclusa client list`)
  return EXIT.finding
}

function onlyName(positionals: readonly string[], usage: string): string {
  const [name, ...more] = positionals
  if (name === undefined || more.length > 0) throw new Fault('usage', `name one client: ${usage}`)
  if (NAME.test(name)) return name
  throw new Fault(
    'usage',
    'a client name is 1 to 64 of a-z, 0-9, dot, underscore and hyphen, and begins with a letter or digit',
  )
}

type Where = { readonly dir: string; readonly config: Config | null }

/** The state directory and, where there is a file, what it says. */
async function placeOf(
  { config, state }: { readonly config?: string; readonly state?: string },
  io: Io,
): Promise<Where> {
  const beside = resolve(io.cwd, 'eclusa.yaml')
  const file = config ?? (state === undefined && existsSync(beside) ? beside : null)
  const loaded = file === null ? null : await load(file, io)
  const dir =
    loaded === null || state !== undefined
      ? stateFor(state, io)
      : stateDir(io, { file: loaded.file, dir: loaded.config.state.dir })
  io.err(`eclusa: state directory ${dir}`)
  return { dir, config: loaded?.config ?? null }
}

async function load(
  path: string,
  io: Io,
): Promise<{ readonly file: string; readonly config: Config }> {
  const main = readSource(path, io.cwd)
  const seen = lookup(io)
  const reference = policyReference(main, seen)
  const policy = reference === null ? null : readBeside(reference, main.file)
  const made = await loadConfig(main, policy, seen)
  if (made.kind === 'config') return { file: main.file, config: made.config }
  for (const fault of made.faults) io.err(`eclusa: ${faultLine(fault)}`)
  throw new Fault('config_invalid', `correct it, then run: eclusa policy check ${main.file}`)
}

function checkProfile(config: Config | null, profile: string): void {
  if (config === null || config.profiles.includes(profile)) return
  throw new Fault(
    'usage',
    `there is no profile ${visible(profile)}; profiles: ${config.profiles.join(', ')}`,
  )
}

/** A ledger to write in: made when the configuration is known, so that its policy is the first one. */
async function ensureLedger({ dir, config }: Where, io: Io): Promise<void> {
  if (hasLedger(dir)) return
  if (config === null) {
    throw new Fault('usage', `there is no ledger in ${dir}; name the configuration: --config FILE`)
  }
  const say = (line: string): void => io.err(`eclusa: ${line}`)
  const store = await openLedger(config, dir, say)
  await store.stop()
}

function attributesOf(
  pairs: readonly string[],
  person: string | undefined,
): Readonly<Record<string, string>> {
  const found = new Map<string, string>(person === undefined ? [] : [['person', person]])
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, Math.max(at, 0))
    if (!ATTRIBUTE.test(name) || found.has(name)) {
      throw new Fault('usage', `--set ${visible(pair)}: write --set KEY=VALUE, each key once`)
    }
    found.set(name, pair.slice(at + 1))
  }
  const long = [...found].find(([, value]) => value === '' || value.length > MAX_VALUE)
  if (long !== undefined || found.size > MAX_ATTRIBUTES) {
    throw new Fault(
      'usage',
      `at most ${MAX_ATTRIBUTES} attributes of 1 to ${MAX_VALUE} characters; shorten them`,
    )
  }
  return Object.fromEntries(found)
}

function limitOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const limit = /^[0-9]{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (limit <= MAX_LIMIT) return limit
  throw new Fault('usage', `--limit takes calls a minute, 0 to ${MAX_LIMIT}; 0 is no limit`)
}

function expiryOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const ms = durationOf(text)
  if (ms !== null && ms > 0 && ms <= MAX_EXPIRY_MS) return (Date.now() + ms) * 1_000
  throw new Fault('usage', '--expires takes a time such as 30d or 12h, at most 3650d')
}

const stateOf = ({ revokedUs, expiresUs }: ClientRow): 'active' | 'revoked' | 'expired' => {
  if (revokedUs !== null) return 'revoked'
  return expiresUs !== null && expiresUs <= Date.now() * 1_000 ? 'expired' : 'active'
}

const asLine = (row: ClientRow): string => {
  const pairs = Object.entries(row.attributes).map(([key, value]) => `${key}=${visible(value)}`)
  const until = row.expiresUs === null ? '-' : new Date(row.expiresUs / 1_000).toISOString()
  return [stateOf(row).padEnd(7), row.name, row.profile, until, pairs.join(' ')]
    .join('  ')
    .trimEnd()
}

const asJson = (row: ClientRow): string => {
  const { name, profile, person, attributes, limit, createdUs, expiresUs, revokedUs } = row
  return JSON.stringify({
    state: stateOf(row),
    name,
    profile,
    person,
    attributes,
    limit,
    created_us: createdUs,
    expires_us: expiresUs,
    revoked_us: revokedUs,
  })
}
