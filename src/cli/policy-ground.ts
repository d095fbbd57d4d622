// A refused call with all that is known around it, and the lines that tell an operator what to do.

import { dirname, join, resolve } from 'node:path'

import { type Call, type Client, qualified, type Target } from '../call.ts'
import { canonical } from '../canonical.ts'
import type { Facts } from '../decision.ts'
import type { JsonObject } from '../json.ts'
import { recordedTexts } from '../policy/config.ts'
import type { Source } from '../policy/position.ts'
import type { PolicySet } from '../policy/set.ts'
import type { Pin } from '../ports.ts'
import type { Io } from './io.ts'
import { stateDir } from './place.ts'
import type { Origin } from './policy-origin.ts'
import { commandLine } from './shell.ts'

/** A refused call and all that is known around it. `set`: the policy that refused it. `seq`, `dir`: its
 *  record and the state directory; null for a call that is in no ledger. `seen`: the definition of its tool
 *  that the ledger saw last. `cut`: a record held less than its whole name. */
export type Ground = {
  readonly call: Call
  readonly facts: Facts
  readonly set: PolicySet
  readonly origin: Origin
  readonly recorded: { readonly seq: number; readonly dir: string } | null
  readonly pins: readonly Pin[]
  readonly seen: JsonObject | null
  readonly cut: boolean
  readonly io: Io
}

/** One line for the operator; a `command` is to be run as it stands. */
export type Line = { readonly kind: 'words' | 'command'; readonly text: string }

/** A line of words. */
export const words = (text: string): Line => ({ kind: 'words', text })
/** A line that is to be run; `env` is set for it alone. */
export const command = (
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Line => ({
  kind: 'command',
  text: commandLine(argv, env),
})

/** `file:line:column` of a rule; what it is where it is a built-in check. */
export function placeText(
  set: PolicySet,
  rule: string,
  sources: readonly Source[] | null = null,
): string {
  if (!rule.startsWith('/')) return '(built in)'
  const { file, line, column } = set.place(rule)
  return `${fileName(file, sources)}:${line}:${column}`
}

/** A recorded text is spoken of by the name of the file that has it, where one has. */
export function fileName(name: string, sources: readonly Source[] | null): string {
  const index = RECORDED.indexOf(name)
  return (index < 0 ? null : sources?.[index]?.file) ?? name
}
const RECORDED = recordedTexts(canonical(['', ''])).map(({ file }) => file)

/** `file:line:column` of a rule of the policy that refused the call. */
export const placeOf = ({ set, origin }: Ground, rule: string): string =>
  placeText(set, rule, origin.sources)

/** The attributes of a client as flags. */
export const setFlags = ({ attributes }: Client): readonly string[] =>
  Object.entries(attributes).flatMap(([name, value]) => ['--set', `${name}=${value}`])

/** `ECLUSA_STATE` where the command would not find the state directory by itself. */
export function stateEnv(
  { recorded, io }: Ground,
  file: string | null,
): Readonly<Record<string, string>> {
  if (recorded === null) return {}
  const env = { ...io.env, ECLUSA_STATE: undefined }
  const own = file === null ? stateDir({ ...io, env }, null) : join(dirname(file), '.eclusa')
  return recorded.dir === resolve(own) ? {} : { ECLUSA_STATE: recorded.dir }
}

/** The command that shows what policy makes of a call; `reads`: it needs the arguments, which no ledger has. */
export function explainCommand(
  { origin, call }: Ground,
  target: Target,
  reads: boolean,
): { readonly argv: readonly string[]; readonly note: string } {
  const file = origin.kind === 'file' || origin.kind === 'changed' ? origin.file : 'FILE'
  const name = target.kind === 'resource' ? target.name : qualified(target)
  const { client } = call
  const argv = ['eclusa', 'policy', 'explain', file, '--profile', client.profile]
  const args = reads ? ['--args', 'args.json'] : []
  return {
    argv: [...argv, `--${target.kind}`, name, ...setFlags(client), ...args],
    note: reads ? ", with the call's arguments as JSON in args.json" : '',
  }
}

/** Said where the file has another text by now. */
export const changedNote = ({ origin }: Ground): readonly Line[] =>
  origin.kind === 'changed'
    ? [words(`${origin.file} has another text now; lines are those of the recorded one`)]
    : []

/** Where the file is not known its name is asked for. */
export function whichFile({ origin, recorded }: Ground): readonly Line[] {
  if (origin.kind !== 'unknown' || recorded === null) return []
  const argv = ['eclusa', 'explain', String(recorded.seq), '--state', recorded.dir, '--config']
  return [
    words(`no file here has the recorded text; to get its place and a command, name it:`),
    words(`  ${commandLine(argv)} FILE`),
  ]
}
