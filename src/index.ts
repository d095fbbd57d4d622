// The library's public names, and the second place where the rooms are wired together.

import type { Client } from './call.ts'
import { canonical } from './canonical.ts'
import { chance } from './cli/chance.ts'
import { processIo } from './cli/io.ts'
import { lookup, readSource } from './cli/place.ts'
import { exitStatus, Fault } from './fault.ts'
import { turns } from './cli/turns.ts'
import { type JsonObject, object } from './json.ts'
import { type Config, loadConfig } from './policy/config.ts'
import { declared } from './policy/decide.ts'
import { type ConfigFault, faultLine, type Source } from './policy/position.ts'
import { type Gate, gateOf } from './sdk/gate.ts'
import { openSqlite } from './store/sqlite.ts'

export { EXIT, Fault, type FaultCode } from './fault.ts'
export type { Gate } from './sdk/gate.ts'

/** What a tool is, whoever calls it. `key.at`: JSON Pointer into the arguments; `honoured`: the tool itself
 *  runs once for one key, so that a call whose outcome is not known may be sent again. */
export type Contract = {
  readonly effect: 'read' | 'write' | 'destructive'
  readonly key?: { readonly at: string; readonly honoured?: boolean }
}

/** `policy`: path of a policy file of version 1 or 2, or its text.
 *  `tools`: contracts by tool name. `server`: the server's name in policies and records, `[a-z0-9-]{1,20}`.
 *  `profile`: whose rights apply; may be left out where the policy has one profile.
 *  `state`: the directory of the ledger; created when it is not there.
 *  `say`: takes lines for the operator; stderr by default.
 *  `onFatal`: called when the ledger could not be synced and the process must not go on; by default it
 *  says why and exits with 70. */
export type GateOptions = {
  readonly policy: string | { readonly text: string }
  readonly tools: Readonly<Record<string, Contract>>
  readonly server?: string
  readonly profile?: string
  readonly attributes?: Readonly<Record<string, string>>
  readonly state: string
  readonly say?: (line: string) => void
  readonly onFatal?: (fault: Fault) => void
}

/** A gate for a server of this process, its ledger open and its start recorded. Put it round the server with
 *  `guard` of `eclusa/sdk`, and `stop()` it before the process ends.
 *  Errors: `Fault('config_invalid')` naming every fault of the policy with file, line and column;
 *  `Fault('usage')` when no profile can be chosen; `Fault('state_refused' | 'state_tampered')`. */
export async function createGate(options: GateOptions): Promise<Gate> {
  const say = options.say ?? toStderr
  const server = options.server ?? 'server'
  const config = await configOf(options, server, say)
  const client = clientOf(config, options)
  const store = await openSqlite({
    dir: options.state,
    create: config.state.create,
    policy: { digest: config.policy.digest, text: config.policy.text },
    limits: config.limits,
    minFreeBytes: config.minFreeBytes,
    say,
    onFatal: options.onFatal ?? exitNow,
  })
  const doors = {
    store,
    policy: () => config.policy,
    clock: { nowUs: () => Date.now() * 1000 },
    random: chance(),
    broken: (error: unknown) => say(`a late record failed: ${reasonOf(error)}`),
    turn: turns(),
    views: new Map<string, string>(),
  }
  const { limits, drainMs } = config
  return gateOf({ server, client, calls: limits.calls, drainMs }, doors)
}

/** The policy as a configuration whose one server is this process. */
async function configOf(
  { policy, tools }: GateOptions,
  server: string,
  say: (line: string) => void,
): Promise<Config> {
  const source: Source =
    typeof policy === 'string'
      ? readSource(policy, process.cwd())
      : { file: 'policy', text: policy.text }
  const contracts: Record<string, JsonObject> = {}
  for (const [name, contract] of Object.entries(tools)) {
    contracts[`${server}/${name}`] = object({ effect: contract.effect, key: keyOf(contract) })
  }
  const main = object({
    version: 2,
    policy: source.file,
    upstreams: object({ [server]: object({ command: ['in-process'] }) }),
    tools: object(contracts),
  })
  const io = { ...processIo(), err: say }
  const loaded = await loadConfig({ file: 'createGate', text: canonical(main) }, source, lookup(io))
  if (loaded.kind === 'faults') throw new Fault('config_invalid', linesOf(loaded.faults))
  for (const warning of loaded.warnings) say(faultLine(warning))
  return loaded.config
}

const keyOf = ({ key }: Contract): JsonObject | undefined =>
  key === undefined ? undefined : object({ at: key.at, honoured: key.honoured })

const linesOf = (faults: readonly ConfigFault[]): string =>
  ['the policy cannot be used; correct it and start again', ...faults.map(faultLine)].join('\n')

function clientOf({ policy }: Config, { profile, attributes }: GateOptions): Client {
  const found = declared(policy, profile ?? null, attributes ?? {})
  if (!('kind' in found)) return found
  throw new Fault('usage', `choose a profile: ${found.profiles.join(', ')}`)
}

const toStderr = (line: string): void => void process.stderr.write(`eclusa: ${line}\n`)

function exitNow(fault: Fault): never {
  toStderr(fault.message)
  process.exit(exitStatus(fault.code))
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : 'unknown')
