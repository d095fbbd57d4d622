// What would let a refused call pass: the command, or the line to write and the command that proves it.

import { type Client, type Identity, qualified } from '../call.ts'
import type { Code, Failure } from '../decision.ts'
import { admits } from '../policy/decide.ts'
import {
  changedNote,
  command,
  explainCommand,
  fileName,
  type Ground,
  type Line,
  placeOf,
  setFlags,
  stateEnv,
  whichFile,
  words,
} from './policy-ground.ts'
import { nameSteps } from './policy-name.ts'
import { shortCommand } from './policy-short.ts'
import { at, notPolicy } from './policy-words.ts'

/** What would let the call pass this failure. Never empty. Every command is one that exists, with the exact
 *  arguments; every line to write has been tried: with it, the name is allowed. */
export async function stepsFor(ground: Ground, failure: Failure): Promise<readonly Line[]> {
  const { call, set } = ground
  if (ground.cut) return [words('its name is longer than a record keeps: no command can be given')]
  switch (failure.code) {
    case 'client_unknown':
    case 'client_revoked':
      return strangerSteps(ground, failure.code)
    case 'tool_denied':
    case 'resource_denied':
    case 'prompt_denied':
      return deniedSteps(ground, failure)
    case 'tool_unknown':
      return unknownSteps(ground)
    case 'definition_waits':
    case 'definition_changed':
      return pinSteps(ground)
    case 'arguments_denied':
    case 'number_not_exact':
      return argumentSteps(ground, failure)
    default:
      return [words(notPolicy(failure, set, call))]
  }
}

const deniedSteps = (
  ground: Ground,
  failure: Failure,
): readonly Line[] | Promise<readonly Line[]> =>
  ground.call.target === null
    ? [words(`nothing that a server could have is called ${ground.call.asked}; check the name`)]
    : nameSteps(ground, failure, ground.call.target)

// Profiles and tokens.

function strangerSteps(ground: Ground, code: Code): readonly Line[] {
  const { call, set, origin } = ground
  if (code === 'client_revoked') {
    return tokenSteps(ground, `client ${call.client.name} was revoked, or is past its expiry`)
  }
  const known = set.profiles.get(call.client.profile)
  const why =
    known === undefined
      ? `no profile is called \`${call.client.profile}\``
      : `profile \`${known.name}\` asks for a token, and none was shown that is good`
  if (call.transport === 'http') return tokenSteps(ground, why)
  const fitting = fittingProfiles(ground, 'declared')
  if (fitting.length === 0) {
    const names = [...set.profiles.keys()].join(', ')
    return [words(`${why}; no profile allows this without a token; profiles: ${names}`)]
  }
  const start = fitting
    .map((profile) => startCommand(ground, profile))
    .filter((one) => one !== null)
  const may = `${why}; without a token it is allowed under: ${fitting.join(', ')}`
  if (start.length === 0) return [words(may), ...whichFile(ground)]
  const which = origin.kind === 'changed' ? ' (by the text that was in force)' : ''
  return [words(`${may}${which}; to start so, run:`), ...start.slice(0, MAX_COMMANDS)]
}

/** The profiles under which the name would be allowed. */
function fittingProfiles({ call, set }: Ground, identity: Identity): readonly string[] {
  const { target, client } = call
  if (target === null) return []
  return [...set.profiles.keys()].filter((profile) => {
    const as: Client = { ...client, name: profile, profile, identity }
    return admits(set, as, target) === null
  })
}

/** Over HTTP a client is what its token says, for good: it needs another. */
function tokenSteps(ground: Ground, why: string): readonly Line[] {
  const { call, origin, recorded } = ground
  const fitting = fittingProfiles(ground, 'token')
  if (fitting.length === 0) return [words(`${why}; no profile allows this`)]
  const { name } = call.client
  const other = /^[a-z0-9][a-z0-9._-]{0,61}$/.test(name) ? `${name}-2` : 'agent'
  const file = origin.kind === 'file' || origin.kind === 'changed' ? origin.file : null
  const where = [
    ...(file === null ? [] : ['--config', file]),
    ...(recorded === null ? [] : ['--state', recorded.dir]),
  ]
  return [
    words(`${why}; to give the client a token that allows it (it is shown once), run:`),
    ...fitting
      .slice(0, MAX_COMMANDS)
      .map((profile) =>
        command([
          'eclusa',
          'client',
          'add',
          other,
          '--profile',
          profile,
          ...setFlags(call.client),
          ...where,
        ]),
      ),
  ]
}

const MAX_COMMANDS = 5

function startCommand(ground: Ground, profile: string): Line | null {
  const { origin, call } = ground
  if (origin.kind === 'unknown') return null
  if (origin.kind === 'short') return shortCommand(ground, origin.flags, {})
  const argv = ['eclusa', 'stdio', '--config', origin.file, '--profile', profile]
  return command([...argv, ...setFlags(call.client)], stateEnv(ground, origin.file))
}

// Definitions.

function unknownSteps({ call, origin }: Ground): readonly Line[] {
  const name = call.target === null ? call.asked : qualified(call.target)
  const start = `no server has a tool ${name}: no command allows it`
  if (origin.kind !== 'short') return [words(`${start}; check the name`)]
  const { env, command: server } = origin.flags
  const flags = env.flatMap((one) => ['--env', one])
  return [
    words(`${start}; to see what the server has, run:`),
    command(['eclusa', 'stdio', ...flags, '--', ...server]),
  ]
}

function pinSteps({ call, facts, pins, recorded }: Ground): readonly Line[] {
  const { target } = call
  const tool = target === null ? call.asked : qualified(target)
  const pin = pins.find((one) => one.tool === tool)
  const refused = facts.definition?.hash ?? null
  if (pin?.waiting === null) {
    const which = pin.hash === refused ? 'its definition' : 'another definition'
    return [words(`${which} has been approved since, and nothing waits: call it again`)]
  }
  const state = recorded === null ? [] : ['--state', recorded.dir]
  const hash = pin?.waiting ?? refused
  // With the hash, so that what is approved is what was looked at.
  const only = hash === null ? [] : ['--hash', hash]
  const waits = hash === refused ? 'its definition waits' : 'another definition waits by now'
  return [
    words(`${waits}; to look at it, run:`),
    command(['eclusa', 'pin', 'diff', tool, ...state]),
    words('to use it, run:'),
    command(['eclusa', 'pin', 'approve', tool, ...only, ...state]),
  ]
}

// Arguments.

function argumentSteps(ground: Ground, failure: Failure): readonly Line[] {
  const { origin, call, set } = ground
  const { target } = call
  const where = placeOf(ground, failure.rule)
  const field = at(failure.field)
  if (!failure.rule.startsWith('/') || target === null) {
    return [words(`send other arguments${field}: this limit is built in`)]
  }
  const rule = set.place(failure.rule)
  const source = origin.sources.find(({ file }) => file === fileName(rule.file, origin.sources))
  const line = source?.text.split('\n')[rule.line - 1]
  const shown = line === undefined || origin.kind === 'short' ? [] : [words(`  ${line.trim()}`)]
  const start = [
    words(
      `no command changes a rule: to allow it, change the rule at ${where}, or send other arguments${field}`,
    ),
    ...shown,
    ...changedNote(ground),
  ]
  if (origin.kind === 'unknown' || origin.kind === 'short') return [...start, ...whichFile(ground)]
  const { argv, note } = explainCommand(ground, target, true)
  return [...start, words(`then this proves it, exit status 0${note}:`), command(argv)]
}
