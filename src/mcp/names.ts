// The names under which clients see tools and prompts of several upstreams, and the way back.

import type { Client, Target } from '../call.ts'
import { byCodePoint, sha256 } from '../canonical.ts'
import type { Doors } from '../gateway.ts'
import { admits } from '../policy/decide.ts'

/** Between an upstream's name and the thing's own. */
export const SEPARATOR = '__'
/** Hosts compose names of at most 64 characters; design.md 6. */
export const MAX_NAME = 64
/** Hex digits of the digest that ends a name which was too long. */
const DIGEST = 8

/** Who asks, of what. */
export type Desk = { readonly client: Client; readonly doors: Doors }

/** ambiguous: more than one upstream could be meant, so nobody is asked; null: nobody could be. */
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

/** What a client means by a name. Never splits where it could split twice: every upstream that could own
 *  the name and that policy would let this client use is asked whether it has it, and one owner must be
 *  left. Does not depend on the order of the configuration. A name that policy refuses costs no I/O. */
export async function resolve(asked: string, kind: Named, desk: Desk): Promise<Route> {
  const { names } = desk.doors.upstreams
  const [only] = names
  if (names.length === 1 && only !== undefined) return { kind, upstream: only, name: asked }
  const claims = claimsOf(names, asked).map((one): Target => ({ kind, ...one }))
  const cut = asked.length === MAX_NAME ? await findCut(asked, kind, desk) : []
  const admitted = [...claims.filter((one) => isAdmitted(desk, one)), ...cut]
  if (admitted.length <= 1) return admitted[0] ?? firstOf(claims)
  const owned = await Promise.all(admitted.map((one) => isOwned(one, desk)))
  const owners = admitted.filter((_, at) => owned[at])
  if (owners.length > 1) return 'ambiguous'
  return owners[0] ?? null
}

/** True when the name alone does not tell its owner, so that `resolve` must be asked before it is shown. */
export const isDoubtful = (upstreams: readonly string[], name: string): boolean =>
  upstreams.length > 1 && (name.length === MAX_NAME || claimsOf(upstreams, name).length > 1)

type Claim = { readonly upstream: string; readonly name: string }

function claimsOf(upstreams: readonly string[], asked: string): readonly Claim[] {
  const claims: Claim[] = []
  for (const upstream of upstreams) {
    const prefix = `${upstream}${SEPARATOR}`
    if (asked.length > prefix.length && asked.startsWith(prefix)) {
      claims.push({ upstream, name: asked.slice(prefix.length) })
    }
  }
  return claims
}

/** The admitted things whose own name was too long and whose cut name is this one. */
async function findCut(asked: string, kind: Named, desk: Desk): Promise<readonly Target[]> {
  const { names } = desk.doors.upstreams
  const kept = MAX_NAME - DIGEST - 1
  const near = names.filter((name) => asked.startsWith(`${name}${SEPARATOR}`.slice(0, kept)))
  const found = await Promise.all(
    near.map(async (upstream) => {
      const { items } = await desk.doors.upstreams.list(upstream, listOf(kind))
      return items
        .filter(({ name }) => isLong(upstream, name) && exposed(names, upstream, name) === asked)
        .map(({ name }): Target => ({ kind, upstream, name }))
    }),
  )
  return found.flat().filter((one) => isAdmitted(desk, one))
}

const isLong = (upstream: string, name: string): boolean =>
  upstream.length + SEPARATOR.length + name.length > MAX_NAME

// A server that cannot be asked might own the name: then nobody gets the call.
async function isOwned({ kind, upstream, name }: Target, { doors }: Desk): Promise<boolean> {
  if (kind === 'tool') return (await doors.upstreams.definition(upstream, name)) !== 'absent'
  const listed = await doors.upstreams.list(upstream, 'prompts')
  return !listed.complete || listed.items.some((one) => one.name === name)
}

// Which of several refused claims the record names: any, but always the same.
const firstOf = (claims: readonly Target[]): Target | null =>
  claims.toSorted((a, b) => byCodePoint(a.upstream, b.upstream))[0] ?? null

const listOf = (kind: Named): 'tools' | 'prompts' => (kind === 'tool' ? 'tools' : 'prompts')

const isAdmitted = ({ client, doors }: Desk, target: Target): boolean =>
  admits(doors.policy(), client, target) === null
