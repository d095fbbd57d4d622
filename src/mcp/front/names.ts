// The names under which clients see tools and prompts of several upstreams, and the way back.

import type { Client, Target } from '../../call.ts'
import { sha256 } from '../../canonical.ts'
import type { Doors } from '../../gateway.ts'
import { admits } from '../../policy/decide.ts'

/** Between an upstream's name and the thing's own. */
export const SEPARATOR = '__'
/** Hosts compose names of at most 64 characters; design.md 6. */
export const MAX_NAME = 64
/** Hex digits of the digest that ends a name which was too long. */
const DIGEST = 8

/** Who asks, of what. */
export type Desk = { readonly client: Client; readonly doors: Doors }

/** ambiguous: more than one thing could be meant, so none is; null: nothing could be. */
export type Route = Target | 'ambiguous' | null

type Named = 'tool' | 'prompt'

/** The one name a client sees. Unchanged with a single upstream; otherwise `upstream__name`, cut at 64
 *  characters and closed with a digest of the whole. Two things may share it: `resolve` then serves
 *  neither. */
export function exposed(upstreams: readonly string[], upstream: string, name: string): string {
  if (upstreams.length === 1) return name
  const whole = `${upstream}${SEPARATOR}${name}`
  if (whole.length <= MAX_NAME) return whole
  const kept = whole.slice(0, MAX_NAME - DIGEST - 1).toWellFormed()
  return `${kept}_${sha256(whole).slice(0, DIGEST)}`
}

/** What a client means by a name. The first separator is the border, since no server's name holds one (the
 *  configuration refuses it); a cut name leads back through the lists, never by its text. Costs no I/O but
 *  for names of exactly 64 characters. */
export async function resolve(asked: string, kind: Named, desk: Desk): Promise<Route> {
  const { names } = desk.doors.upstreams
  const [only] = names
  if (names.length === 1 && only !== undefined) return { kind, upstream: only, name: asked }
  const at = asked.indexOf(SEPARATOR)
  const upstream = names.find((name) => name.length === at && asked.startsWith(name))
  if (upstream === undefined) return null
  const plain = { kind, upstream, name: asked.slice(at + SEPARATOR.length) }
  return asked.length === MAX_NAME ? resolveCut(asked, plain, desk) : plain
}

/** True when the name alone does not tell its owner, so that `resolve` must be asked before it is shown. */
export const isDoubtful = (upstreams: readonly string[], name: string): boolean =>
  upstreams.length > 1 && name.length === MAX_NAME

// A server could name one tool as another one's cut name, or make two that are cut alike.
async function resolveCut(
  asked: string,
  plain: Target & { readonly kind: Named },
  { client, doors }: Desk,
): Promise<Route> {
  const { kind, upstream } = plain
  const { items } = await doors.upstreams.list(upstream, listOf(kind), client.name)
  const owners = items
    .filter(({ name }) => exposed(doors.upstreams.names, upstream, name) === asked)
    .map(({ name }): Target => ({ kind, upstream, name }))
    .filter((one) => admits(doors.policy(), client, one) === null)
  if (owners.length > 1) return 'ambiguous'
  return owners[0] ?? plain
}

const listOf = (kind: Named): 'tools' | 'prompts' => (kind === 'tool' ? 'tools' : 'prompts')
