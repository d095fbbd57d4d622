// What would let a call pass that the short form refused: the same command with one more tool in it.

import type { Target } from '../call.ts'
import { object } from '../json.ts'
import { guess } from './discover.ts'
import { command, type Ground, type Line, setFlags, stateEnv, words } from './policy-ground.ts'
import type { Flags } from './short.ts'

/** The short form has tools only: anything else needs a file. */
export function shortSteps(ground: Ground, flags: Flags, target: Target): readonly Line[] {
  const { seen } = ground
  if (target.kind !== 'tool') {
    const env = flags.env.flatMap((one) => ['--env', one])
    return [
      words(`the short form lets only tools pass; to allow a ${target.kind}, draft a file, run:`),
      command(['eclusa', 'init', ...env, '--', ...flags.command]),
      words(
        `then write \`${target.kind}s: [ ${JSON.stringify(target.name)} ]\` in its profile (a prompt with the name of its server)`,
      ),
    ]
  }
  if (target.name.includes(',') || target.name === '') {
    return [words('a name with a comma cannot be given by flag; draft a file with: eclusa init')]
  }
  const does = guess({ name: target.name, value: seen ?? object({}) })
  const added = does === 'read' ? { read: target.name } : { write: target.name }
  const heard = {
    read: 'it seems to read only (a guess by its name; --write is the careful choice)',
    write: 'as a write, which is the careful choice',
    destructive:
      'its name says that it destroys: look at it before, and think of a file with rules',
  }[does]
  const env = flags.env.length === 0 ? [] : [words(valuesOf(flags.env))]
  return [words(`to allow it, run (${heard}):`), shortCommand(ground, flags, added), ...env]
}

const valuesOf = (names: readonly string[]): string =>
  `values of ${names.join(', ')} are not recorded: set them in the environment, or write --env NAME=VALUE`

/** The command of the short form with one more tool in it, or none. */
export function shortCommand(
  ground: Ground,
  flags: Flags,
  added: { readonly read?: string; readonly write?: string },
): Line {
  const argv = [
    ...listFlag('read', flags.read, added.read),
    ...listFlag('write', flags.write, added.write),
    ...flags.env.flatMap((one) => ['--env', one]),
    ...setFlags(ground.call.client),
  ]
  return command(['eclusa', 'stdio', ...argv, '--', ...flags.command], stateEnv(ground, null))
}

function listFlag(
  flag: string,
  names: readonly string[],
  more: string | undefined,
): readonly string[] {
  const list = [...names, ...(more === undefined ? [] : [more])].join(',')
  if (list === '') return []
  // A name that begins like a flag must not be taken for one.
  return list.startsWith('-') ? [`--${flag}=${list}`] : [`--${flag}`, list]
}
