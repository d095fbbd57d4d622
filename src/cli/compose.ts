// What the verbs that serve have in common: a configuration with its policy, an open ledger, the hall's doors.

import { exitStatus, Fault } from '../fault.ts'
import type { Doors } from '../gateway.ts'
import { type Config, loadConfig, policyReference } from '../policy/config.ts'
import { type ConfigFault, faultLine, type Source } from '../policy/position.ts'
import type { Store } from '../ports.ts'
import { openSqlite } from '../store/sqlite.ts'
import { chance } from './chance.ts'
import { wallClock } from './clock.ts'
import type { Io } from './io.ts'
import { lookup, readBeside, readSource } from './place.ts'
import { turns } from './turns.ts'

/** The configuration of a file, with the policy that it names. Every fault is told on stderr.
 *  Errors: `Fault('config_invalid')`. */
export async function fileConfig(
  path: string,
  io: Io,
): Promise<{ readonly config: Config; readonly file: string }> {
  const main = readSource(path, io.cwd)
  const values = new Map<string, string>()
  const reference = policyReference(main, lookup(io, values))
  const policy = reference === null ? null : readBeside(reference, main.file)
  return { config: await sourceConfig(main, policy, { io, values }), file: main.file }
}

/** As `fileConfig`, of texts that were read before. `values` overlays the environment. */
export async function sourceConfig(
  main: Source,
  policy: Source | null,
  { io, values }: { readonly io: Io; readonly values: ReadonlyMap<string, string> },
): Promise<Config> {
  const made = await loadConfig(main, policy, lookup(io, values))
  if (made.kind === 'config') return made.config
  for (const fault of made.faults) io.err(`eclusa: ${faultLine(fault)}`)
  throw new Fault('config_invalid', whatNext(made.faults, main.file))
}

const whatNext = (faults: readonly ConfigFault[], file: string): string =>
  `the configuration has ${faults.length === 1 ? 'a fault' : `${faults.length} faults`}; correct it, then run: eclusa policy check ${file}`

/** The ledger of a configuration, open in `dir`. A failed sync ends the process. */
export const openLedger = (
  config: Config,
  dir: string,
  say: (line: string) => void,
): Promise<Store> =>
  openSqlite({
    dir,
    create: config.state.create,
    policy: { digest: config.policy.digest, text: config.policy.text },
    limits: config.limits,
    minFreeBytes: config.minFreeBytes,
    say,
    onFatal: (fault) => {
      say(fault.message)
      process.exit(exitStatus(fault.code))
    },
  })

/** What the hall touches, in this process. */
export const doorsOf = (
  { policy }: Config,
  { store, upstreams }: Pick<Doors, 'store' | 'upstreams'>,
  say: (line: string) => void,
): Doors => ({
  store,
  upstreams,
  policy: () => policy,
  clock: wallClock(),
  random: chance(),
  broken: (error) =>
    say(
      `a late outcome could not be recorded: ${error instanceof Error ? error.message : 'unknown'}`,
    ),
  turn: turns(),
  views: new Map(),
})
