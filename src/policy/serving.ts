// The part of a configuration that `serve` reads: addresses, endpoints, and who may call from where.

import { isObject, type JsonObject } from '../json.ts'
import { type Part, report, type Workshop } from './compile.ts'
import { pointer } from './position.ts'
import { time } from './upstream.ts'
import { items, members, textOf, texts } from './value.ts'

/** Where and for whom the gateway listens. `endpoints`: profiles by path; null: all. `hosts`, `origins`: those
 *  that are allowed beside the address itself. `publicOrigin`: scheme and host under which others reach it.
 *  `keepAliveMs`: a stream on which nothing was said for so long gets a comment. `sessionIdleMs`: a session
 *  that nobody used for so long is ended. */
export type Serving = {
  readonly listen: { readonly host: string; readonly port: number }
  readonly anonymous: string | null
  readonly publicOrigin: string | null
  readonly endpoints: ReadonlyMap<string, ReadonlySet<string> | null>
  readonly hosts: readonly string[]
  readonly origins: readonly string[]
  readonly keepAliveMs: number
  readonly sessionIdleMs: number
}

/** Where it listens when nothing else is written: this machine only. */
export const DEFAULT_LISTEN: Serving['listen'] = { host: '127.0.0.1', port: 8377 }
const DEFAULT_PATH = '/mcp'
const DEFAULT_KEEP_ALIVE_MS = 15_000
const DEFAULT_SESSION_IDLE_MS = 1_800_000
/** Paths of the server itself. */
const RESERVED: ReadonlySet<string> = new Set(['/health', '/ready'])
const LOOPBACK = /^(127\.[0-9.]+|::1|localhost)$/

/** Reads it. `profiles`: the names that the policy knows. */
export function serving(shop: Workshop, part: Part, profiles: ReadonlySet<string>): Serving {
  const root = part.value
  const listen = listenOf(shop, part, root)
  const anonymous = textOf(root['anonymous'])
  if (anonymous !== null) {
    checkProfile(shop, part, '/anonymous', { name: anonymous, profiles })
    if (!LOOPBACK.test(listen.host)) {
      report(shop, part, '/anonymous', {
        message: 'clients without a token are served on loopback only; remove it, or listen there',
      })
    }
  }
  const url = publicUrl(shop, part, textOf(root['public_url']))
  const hosts = texts(root['allowed_hosts'])
  return {
    listen,
    anonymous,
    publicOrigin: url?.origin ?? null,
    endpoints: endpointsOf(shop, part, profiles),
    hosts: url === null ? hosts : [...hosts, url.hostname],
    origins: originsOf(shop, part, texts(root['allowed_origins'])),
    keepAliveMs: time(shop, part, '/keepalive', root['keepalive']) ?? DEFAULT_KEEP_ALIVE_MS,
    sessionIdleMs:
      time(shop, part, '/session_idle', root['session_idle']) ?? DEFAULT_SESSION_IDLE_MS,
  }
}

const ADDRESS = /^(?:(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253}):)?([0-9]{1,5})$/

function listenOf(shop: Workshop, part: Part, root: JsonObject): Serving['listen'] {
  const given = root['listen']
  if (given === undefined) return DEFAULT_LISTEN
  const text = typeof given === 'number' ? String(given) : (textOf(given) ?? '')
  const [, name, digits] = ADDRESS.exec(text) ?? []
  const port = Number(digits)
  if (digits === undefined || port > MAX_PORT) {
    report(shop, part, '/listen', { message: 'expected HOST:PORT, such as 127.0.0.1:8377' })
    return DEFAULT_LISTEN
  }
  return { host: name?.replace(/^\[|\]$/g, '') ?? DEFAULT_LISTEN.host, port }
}

const MAX_PORT = 65_535

function publicUrl(shop: Workshop, part: Part, text: string | null): URL | null {
  if (text === null) return null
  const url = URL.parse(text)
  const isPlain =
    url !== null &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === ''
  if (isPlain) return url
  report(shop, part, '/public_url', {
    message: 'expected an http or https URL without user, query and fragment',
  })
  return null
}

function endpointsOf(
  shop: Workshop,
  part: Part,
  profiles: ReadonlySet<string>,
): Serving['endpoints'] {
  const given = members(part.value['endpoints'])
  if (given.length === 0) return new Map([[DEFAULT_PATH, null]])
  const made = new Map<string, ReadonlySet<string> | null>()
  for (const [path, value] of given) {
    const place = pointer('/endpoints', path)
    if (RESERVED.has(path)) {
      report(shop, part, place, { message: `${path} is the server's own; choose another path` })
    }
    const names = isObject(value) ? value['profiles'] : undefined
    for (const [at, name] of items(names).entries()) {
      const one = textOf(name)
      const where = `${place}/profiles/${at}`
      if (one !== null) checkProfile(shop, part, where, { name: one, profiles })
    }
    made.set(path, names === undefined ? null : new Set(texts(names)))
  }
  return made
}

function checkProfile(
  shop: Workshop,
  part: Part,
  path: string,
  { name, profiles }: { readonly name: string; readonly profiles: ReadonlySet<string> },
): void {
  if (profiles.has(name)) return
  const known = [...profiles].join(', ')
  report(shop, part, path, { message: `no profile is called \`${name}\`; known: ${known}` })
}

function originsOf(shop: Workshop, part: Part, given: readonly string[]): readonly string[] {
  for (const [at, text] of given.entries()) {
    const url = URL.parse(text)
    if (url?.origin.toLowerCase() === text.toLowerCase() && text !== 'null') continue
    report(shop, part, `/allowed_origins/${at}`, {
      message: 'expected an origin: scheme, host and port if it is not the usual one, nothing more',
    })
  }
  return given
}
