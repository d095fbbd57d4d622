// Which upstream a resource URI leads to. URIs are never rewritten: links inside texts must stay true.

import type { Answer, Client, Target } from '../../call.ts'
import type { Doors } from '../../gateway.ts'
import { isObject, type Json } from '../../json.ts'
import { admits } from '../../policy/decide.ts'
import type { Desk, Route } from './names.ts'
import { blocksOf } from './render.ts'

/** What one session has learned of URIs that stand in no list. */
export type Routes = {
  /** The upstream of a URI: the one that lists it; else the one whose result linked to it; else the one
   *  with a template that fits; else the only one that policy admits. Two of a kind: `ambiguous`. */
  target(uri: string, desk: Desk): Promise<Route>
  /** Remembers the links and embedded resources of an answer that the client has seen. */
  learn(upstream: string, answer: Answer): void
}

/** URIs remembered a session; the oldest is forgotten first. */
const MAX_LINKS = 1_000
/** Longer URIs are not remembered. */
const MAX_URI = 2_048

/** Routes of a session that has seen nothing yet. */
export function routes(): Routes {
  // null: two servers linked to it.
  const links = new Map<string, string | null>()
  return {
    target: (uri, desk) => route(uri, desk, links),
    learn(upstream, answer) {
      if (answer.kind === 'error') return
      for (const uri of linksOf(answer.value['content'])) {
        const known = links.get(uri)
        links.set(uri, known === undefined || known === upstream ? upstream : null)
        if (links.size > MAX_LINKS) links.delete(links.keys().next().value ?? uri)
      }
    },
  }
}

async function route(
  uri: string,
  { client, doors }: Desk,
  links: ReadonlyMap<string, string | null>,
): Promise<Route> {
  const { names } = doors.upstreams
  const targets = names.map((upstream): Target => ({ kind: 'resource', upstream, name: uri }))
  const admitted = targets.filter((one) => isAdmitted(client, doors, one))
  // Refused for all: the first stands for them in the record, and no server is asked.
  if (admitted.length <= 1) return admitted[0] ?? targets[0] ?? null
  const listing = await owners(admitted, (one) => lists(doors, one, uri))
  if (listing.length > 0) return sole(listing)
  const link = links.get(uri)
  if (link === null) return 'ambiguous'
  const linked = admitted.filter(({ upstream }) => upstream === link)
  if (linked.length > 0) return sole(linked)
  return sole(await owners(admitted, (one) => hasTemplate(doors, one, uri)))
}

async function owners(
  targets: readonly Target[],
  owns: (target: Target) => Promise<boolean>,
): Promise<readonly Target[]> {
  const owned = await Promise.all(targets.map(owns))
  return targets.filter((_, at) => owned[at])
}

const sole = (targets: readonly Target[]): Route =>
  targets.length > 1 ? 'ambiguous' : (targets[0] ?? null)

async function lists(doors: Doors, { upstream }: Target, uri: string): Promise<boolean> {
  const { items } = await doors.upstreams.list(upstream, 'resources')
  return items.some(({ name }) => name === uri)
}

async function hasTemplate(doors: Doors, { upstream }: Target, uri: string): Promise<boolean> {
  const { items } = await doors.upstreams.list(upstream, 'templates')
  return items.some(({ name }) => name === uri || fits(name, uri))
}

const isAdmitted = (client: Client, doors: Doors, target: Target): boolean =>
  admits(doors.policy(), client, target) === null

/** True when `uri` could be an expansion of an RFC 6570 template. A plain variable stands for text without
 *  `/`, `?` and `#`; one with an operator for any text. Linear in both lengths: a template comes from a
 *  server, so it must not become a regular expression. */
export function fits(template: string, uri: string): boolean {
  const parts = template.split(/(\{[^{}]*\})/)
  const [head = '', ...rest] = parts
  if (!uri.startsWith(head)) return false
  let at = head.length
  for (let next = 0; next + 1 < rest.length; next += 2) {
    const variable = rest[next] ?? ''
    const literal = rest[next + 1] ?? ''
    const last = next + 2 >= rest.length
    const end = last ? lastAt(uri, literal, at) : uri.indexOf(literal, at)
    if (end < at) return false
    if (!isWide(variable) && /[/?#]/.test(uri.slice(at, end))) return false
    at = end + literal.length
  }
  return at === uri.length
}

/** Where the closing literal of a template must begin. */
const lastAt = (uri: string, literal: string, from: number): number =>
  uri.length - literal.length >= from && uri.endsWith(literal) ? uri.length - literal.length : -1

const isWide = (variable: string): boolean => /^\{[+#./;?&]/.test(variable)

function* linksOf(content: Json | undefined): Generator<string> {
  for (const block of blocksOf(content)) {
    if (!isObject(block)) continue
    const holder = block['type'] === 'resource' ? block['resource'] : block
    const uri = isObject(holder) && block['type'] !== 'text' ? holder['uri'] : undefined
    if (typeof uri === 'string' && uri.length <= MAX_URI) yield uri
  }
}
