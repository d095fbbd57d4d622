// Looks at a server once: which tools it has and what each seems to do to the world.

import type { Definition } from '../call.ts'
import type { Effect } from '../decision.ts'
import { Fault } from '../fault.ts'
import { member } from '../json.ts'
import { startUpstreams } from '../mcp/upstream/upstreams.ts'
import { loadConfig } from '../policy/config.ts'
import type { Io } from './io.ts'
import { lookup } from './place.ts'
import { shortForm } from './short.ts'
import { version } from './version.ts'

/** A tool and the effect guessed from its annotations and its name: never `undeclared`, always to be
 *  reviewed by a person. */
export type Found = {
  readonly name: string
  readonly does: Exclude<Effect, 'undeclared'>
  readonly definition: Definition
}

/** Starts `command`, lists its tools and stops it again. Nothing is called.
 *  Errors: `Fault('upstream_failed')` when it cannot be started or does not answer. */
export async function discover(
  command: readonly string[],
  env: readonly string[],
  io: Io,
): Promise<readonly Found[]> {
  const { source, values } = shortForm({ read: [], write: [], env, command })
  const loaded = await loadConfig(source, null, lookup(io, values))
  if (loaded.kind === 'faults') {
    throw new Fault('usage', loaded.faults.map((fault) => fault.message).join('; '))
  }
  const { config } = loaded
  const upstreams = startUpstreams(config.upstreams, {
    limits: config.limits,
    client: { name: 'eclusa', version: version() },
    say: io.err,
    principals: 'one',
    environment: io.env,
  })
  try {
    const [name = ''] = upstreams.names
    // A program that is fetched first needs longer to start than a list may take.
    if ((await upstreams.hello(name)) === null) {
      const why = upstreams.explain(name) ?? 'it does not answer'
      throw new Fault('upstream_failed', `${command[0]} does not run: ${why}`)
    }
    const { items, complete } = await upstreams.list(name, 'tools')
    if (!complete) {
      throw new Fault(
        'upstream_failed',
        `${command[0]} did not list its tools; see its words above`,
      )
    }
    return items.map((definition) => ({
      name: definition.name,
      does: guess(definition),
      definition,
    }))
  } finally {
    await upstreams.stop()
  }
}

const DESTROYS =
  /(?:^|[_.\-/ ])(?:delete|remove|rm|drop|wipe|purge|destroy|kill|reset|truncate|erase)/i
const READS =
  /(?:^|[_.\-/ ])(?:get|list|read|search|find|show|describe|query|fetch|count|status|view|lookup|info|tree|stat)/i

/** What a tool seems to do, by its annotations and its name. */
export function guess({ name, value }: Pick<Definition, 'name' | 'value'>): Found['does'] {
  const annotations = value['annotations']
  if (member(annotations, 'readOnlyHint') === true) return 'read'
  const spaced = name.replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
  if (DESTROYS.test(spaced)) return 'destructive'
  if (member(annotations, 'destructiveHint') === true) return 'destructive'
  if (member(annotations, 'readOnlyHint') === undefined && READS.test(spaced)) return 'read'
  return 'write'
}

/** An argument as a POSIX shell takes it literally. */
export const quoted = (argument: string): string =>
  /^[A-Za-z0-9_./:=@%+,-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`

/** The command that would put a client before these tools; destructive ones need a file and are left out. */
export function shortCommand(found: readonly Found[], command: readonly string[]): string {
  const flag = (does: Found['does']): string => {
    const names = found.filter((one) => one.does === does).map((one) => one.name)
    return names.length === 0 ? '' : ` --${does} ${quoted(names.join(','))}`
  }
  return `eclusa stdio${flag('read')}${flag('write')} -- ${command.map(quoted).join(' ')}`
}
