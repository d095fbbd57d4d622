// `eclusa stdio`: the composition of one gateway between a client on stdin and its servers.

import { parseArgs } from 'node:util'

import type { Client } from '../call.ts'
import { EXIT, Fault } from '../fault.ts'
import { serveStdio } from '../mcp/front/stdio.ts'
import { startUpstreams } from '../mcp/upstream/upstreams.ts'
import type { Config } from '../policy/config.ts'
import { declared } from '../policy/decide.ts'
import type { Store } from '../ports.ts'
import { warmSqlite } from '../store/sqlite.ts'
import { doorsOf, fileConfig, openLedger, sourceConfig } from './compose.ts'
import type { Io } from './io.ts'
import { placed, stateDir } from './place.ts'
import { shortForm } from './short.ts'
import { version } from './version.ts'
import { tellingWaits } from './waiting.ts'
import { boundYoung } from './young.ts'

/** Serves the client on stdin until it goes away. Exit statuses: 0 after a clean end, 2 for a
 *  configuration that cannot be used, 70 when the ledger broke, 73 when its directory is refused. */
export async function stdio(args: string[], io: Io): Promise<number> {
  const wish = wishOf(args)
  if (wish.kind === 'look') return look(wish.command, wish.env, io)
  boundYoung()
  // The writer's thread starts while the configuration is read.
  warmSqlite()
  const { config, file } = await configured(wish, io)
  const client = clientOf(config, wish)
  const say = (line: string): void => io.err(`eclusa: ${line}`)
  if (client.identity === 'unknown') say(strangerLine(config, client))
  const upstreams = startUpstreams(placed(config.upstreams, file), {
    limits: config.limits,
    client: { name: 'eclusa', version: version() },
    say,
    environment: io.env,
    principals: 'one',
  })
  const dir = stateDir(io, file === null ? null : { file, dir: config.state.dir })
  let store: Store
  try {
    store = tellingWaits(await openLedger(config, dir, say), say)
  } catch (error) {
    await upstreams.stop()
    throw error
  }
  say(startLine(config, client, dir))
  const doors = doorsOf(config, { store, upstreams }, say)
  await serveStdio({
    client,
    doors,
    upstreams,
    limits: config.limits,
    version: version(),
    say,
    streams: { input: process.stdin, output: process.stdout, errors: process.stderr },
    signals: process,
    drainMs: config.drainMs,
  })
  await store.stop()
  // A client that keeps its end open, or does not read what waits for it, must not keep this process.
  process.stdin.destroy()
  setTimeout(() => process.exit(), LINGER_MS).unref()
  return EXIT.ok
}

/** How long the last words may still take once everything is settled. */
const LINGER_MS = 200

type Wish =
  | { readonly kind: 'look'; readonly command: readonly string[]; readonly env: readonly string[] }
  | {
      readonly kind: 'file' | 'short'
      readonly file: string
      readonly read: readonly string[]
      readonly write: readonly string[]
      readonly env: readonly string[]
      readonly command: readonly string[]
      readonly profile: string | null
      readonly set: Readonly<Record<string, string>>
    }
type Served = Exclude<Wish, { readonly kind: 'look' }>

function wishOf(args: string[]): Wish {
  const { values, positionals: command } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      config: { type: 'string' },
      profile: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      read: { type: 'string', multiple: true, default: [] },
      write: { type: 'string', multiple: true, default: [] },
      env: { type: 'string', multiple: true, default: [] },
    },
  })
  const read = namesIn(values.read)
  const write = namesIn(values.write)
  const { config, env } = values
  const flags = read.length + write.length
  if (config !== undefined && (command.length > 0 || flags > 0 || env.length > 0)) {
    throw new Fault('usage', 'give --config FILE or flags and a command, not both')
  }
  if (config === undefined && command.length === 0) {
    throw new Fault(
      'usage',
      'say what to stand before: eclusa stdio --config FILE, or eclusa stdio -- COMMAND',
    )
  }
  if (config === undefined && flags === 0) return { kind: 'look', command, env }
  const kind = config === undefined ? 'short' : 'file'
  const profile = values.profile ?? null
  return { kind, file: config ?? '', read, write, env, command, profile, set: pairsIn(values.set) }
}

const namesIn = (lists: readonly string[]): readonly string[] =>
  lists.flatMap((list) => list.split(',')).filter((name) => name !== '')

function pairsIn(pairs: readonly string[]): Readonly<Record<string, string>> {
  const found = new Map<string, string>()
  for (const pair of pairs) {
    const at = pair.indexOf('=')
    if (at < 1) throw new Fault('usage', `--set ${pair}: write --set KEY=VALUE`)
    found.set(pair.slice(0, at), pair.slice(at + 1))
  }
  return Object.fromEntries(found)
}

async function configured(
  wish: Served,
  io: Io,
): Promise<{ readonly config: Config; readonly file: string | null }> {
  if (wish.kind === 'short') {
    const { source, values } = shortForm(wish)
    return { config: await sourceConfig(source, null, { io, values }), file: null }
  }
  return fileConfig(wish.file, io)
}

function clientOf({ policy }: Config, { profile, set }: Served): Client {
  const found = declared(policy, profile, set)
  if (!('kind' in found)) return found
  throw new Fault('usage', `choose a profile with --profile: ${found.profiles.join(', ')}`)
}

const strangerLine = ({ profiles }: Config, { profile }: Client): string =>
  `profile ${profile} is not known, or asks for a token: every call will be denied; profiles: ${profiles.join(', ')}`

const startLine = ({ policy }: Config, client: Client, dir: string): string =>
  `profile ${client.profile} (${client.identity}), policy ${policy.digest.slice(0, 12)}, state ${dir}; ` +
  'results pass whole: field selection is not built yet'

/** Nothing was allowed: tells what the server has and how to allow it. */
async function look(command: readonly string[], env: readonly string[], io: Io): Promise<number> {
  const { discover, quoted, shortCommand } = await import('./discover.ts')
  const found = await discover(command, env, io)
  io.err(`eclusa: ${found.length} tools, none allowed yet (the effects are guesses; review them):`)
  for (const { name, does } of found) io.err(`  ${does.padEnd(12)}${name}`)
  io.err('To allow what is guessed as read or write, run:')
  io.err(`  ${shortCommand(found, command)}`)
  io.err('To draft a file with rules instead, run:')
  io.err(`  eclusa init -- ${command.map(quoted).join(' ')}`)
  return EXIT.usage
}
