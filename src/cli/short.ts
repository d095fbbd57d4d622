// The short form: a configuration made from flags, so that `eclusa stdio --read a -- COMMAND` needs no file.

import { basename } from 'node:path'

import { canonical, sha256 } from '../canonical.ts'
import { Fault } from '../fault.ts'
import { isObject, type Json, member, object, parseText, REQUEST_LIMITS } from '../json.ts'
import type { Source } from '../policy/position.ts'

/** The flags of the short form. Lists are tool names; `env` holds `NAME=VALUE` or `NAME`. */
export type Flags = {
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly env: readonly string[]
  readonly command: readonly string[]
}

/** The configuration text, and the values given on the command line: those stay out of the text, since the
 *  text is kept in the ledger. */
export type Short = { readonly source: Source; readonly values: ReadonlyMap<string, string> }

/** The configuration that the flags stand for: one upstream, one profile, every tool by its exact name. */
export function shortForm(flags: Flags): Short {
  const values = new Map<string, string>()
  const env: Record<string, Json> = {}
  for (const one of flags.env) {
    const { name, value } = assignment(one)
    if (value !== null) values.set(name, value)
    env[name] = `\${${name}}`
  }
  const upstream = upstreamName(flags.command)
  const tools: Record<string, Json> = {}
  for (const name of flags.read) tools[`${upstream}/${name}`] = object({ effect: 'read' })
  for (const name of flags.write) tools[`${upstream}/${name}`] = object({ effect: 'write' })
  const config = object({
    version: 2,
    upstreams: object({
      // A reference that the operator typed is no reference of the file.
      [upstream]: object({ command: flags.command.map(literal), env: object(env) }),
    }),
    tools: object(tools),
    profiles: object({ default: object({ allow: Object.keys(tools) }) }),
  })
  return { source: { file: '(command line)', text: canonical(config) }, values }
}

/** The flags that a text was made of, or null: it is no text of the short form. Values of the environment
 *  are not in it, so that `env` holds names. */
export function flagsOf(text: string): Flags | null {
  const parsed = parseText(text, REQUEST_LIMITS)
  const config = parsed.kind === 'json' ? parsed.value : undefined
  const upstreams = member(config, 'upstreams')
  const [name, ...others] = isObject(upstreams) ? Object.keys(upstreams) : []
  if (name === undefined || others.length > 0) return null
  const upstream = member(upstreams, name)
  const env = member(upstream, 'env')
  const allow = texts(member(member(member(config, 'profiles'), 'default'), 'allow'))
  const named = (effect: string): readonly string[] =>
    allow
      .filter((tool) => member(member(member(config, 'tools'), tool), 'effect') === effect)
      .map((tool) => tool.slice(name.length + 1))
  const flags: Flags = {
    read: named('read'),
    write: named('write'),
    env: isObject(env) ? Object.keys(env) : [],
    command: texts(member(upstream, 'command')).map(unliteral),
  }
  if (flags.env.some((one) => !NAME.test(one))) return null
  // Only a text that these flags make again is theirs.
  return shortForm(flags).source.text === text ? flags : null
}

const texts = (value: Json | undefined): readonly string[] =>
  Array.isArray(value) ? value.filter((one: Json) => typeof one === 'string') : []

const unliteral = (text: string): string => text.replaceAll(/\$(\$\{[^}]*\})/g, '$1')

/** The text as a configuration must write it, so that no reference in it is replaced. */
export const literal = (text: string): string =>
  text.replaceAll(/\$\{[^}]*\}/g, (reference) => `$${reference}`)

const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

function assignment(text: string): { readonly name: string; readonly value: string | null } {
  const at = text.indexOf('=')
  const name = at < 0 ? text : text.slice(0, at)
  if (!NAME.test(name)) {
    throw new Fault('usage', `--env ${name}: write --env NAME or --env NAME=VALUE`)
  }
  return { name, value: at < 0 ? null : text.slice(at + 1) }
}

/** A name that tells one command from another: all short forms of a user share one state directory, and
 *  what was pinned for one server must not be taken for another. */
export function upstreamName(command: readonly string[]): string {
  const last = command.findLast((part) => !part.startsWith('-')) ?? 'server'
  const slug = basename(last)
    .toLowerCase()
    .replace(/\.[a-z]+$/, '')
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, SLUG_CHARACTERS)
  return `${slug === '' ? 'server' : slug}-${sha256(canonical([...command])).slice(0, HASH_DIGITS)}`
}

const SLUG_CHARACTERS = 11
const HASH_DIGITS = 8
