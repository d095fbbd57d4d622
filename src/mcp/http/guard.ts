// What is looked at before anybody is known: path, hosts, origins, and headers that may stand only once.

import type { IncomingMessage } from 'node:http'

import { type Headers, MAX_HEADERS } from './headers.ts'

/** Why a request was turned away before its client was known; the names under which such are counted. */
export type Knock =
  | 'headers'
  | 'host'
  | 'origin'
  | 'path'
  | 'method'
  | 'token_missing'
  | 'token_bad'
  | 'unreadable'
  | 'overload'

/** A refusal of HTTP itself. */
export type Turned = {
  readonly status: number
  readonly knock: Knock
  readonly message: string
}

/** Whom the server answers. `hosts`: host names without a port, or with one; `origins`: whole origins, of
 *  pages that may call; `own`: origins of the server itself. All in lower case. */
export type Doorposts = {
  readonly hosts: ReadonlySet<string>
  readonly origins: ReadonlySet<string>
  readonly own: ReadonlySet<string>
}

/** Headers of which a second one could be read by one reader and the first by another. */
const ONCE: readonly string[] = [
  'host',
  'authorization',
  'origin',
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
]

/** Why this request is not answered, or null. Nothing of it is believed before. */
export function guard(request: IncomingMessage, headers: Headers, posts: Doorposts): Turned | null {
  const shape = shapeProblem(request, headers)
  if (shape !== null) return shape
  if (!isHost(headers.values.get('host'), posts.hosts)) {
    return { status: 403, knock: 'host', message: 'this Host is not served here' }
  }
  const origin = headers.values.get('origin')?.toLowerCase()
  if (origin !== undefined && !posts.origins.has(origin) && !posts.own.has(origin)) {
    return { status: 403, knock: 'origin', message: 'this Origin may not call' }
  }
  return null
}

function shapeProblem(request: IncomingMessage, { values, repeated }: Headers): Turned | null {
  if (request.rawHeaders.length > 2 * MAX_HEADERS) {
    return { status: 431, knock: 'headers', message: 'too many headers' }
  }
  // Node reads a request line without a version as HTTP/0.9.
  if (request.httpVersion !== '1.1' && request.httpVersion !== '1.0') {
    return { status: 505, knock: 'headers', message: 'send HTTP/1.1' }
  }
  const coding = values.get('transfer-encoding')
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return { status: 501, knock: 'headers', message: 'no transfer coding but chunked is read' }
  }
  const twice = ONCE.find((name) => repeated.has(name))
  if (twice !== undefined) {
    return { status: 400, knock: 'headers', message: `the header ${twice} stands more than once` }
  }
  // A target with a host of its own would make the Host header a second opinion.
  if (request.url?.startsWith('/') !== true) {
    return { status: 400, knock: 'path', message: 'the target must be a path' }
  }
  return null
}

const HOST = /^(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(:[0-9]{1,5})?$/

// A name that an attacker's DNS leads here is not in the list, whatever address it leads to.
function isHost(host: string | undefined, hosts: ReadonlySet<string>): boolean {
  const [whole, name] = HOST.exec(host?.toLowerCase() ?? '') ?? []
  return name !== undefined && whole !== undefined && (hosts.has(name) || hosts.has(whole))
}

/** Which kinds of body a client takes. */
export type Accepts = { readonly json: boolean; readonly stream: boolean }

/** Reads `Accept`; without one, both. */
export function acceptsOf(header: string | undefined): Accepts {
  if (header === undefined) return { json: true, stream: true }
  // A client says the same in each request.
  if (header !== last.header) last = { header, accepts: readAccept(header) }
  return last.accepts
}

let last: { readonly header: string; readonly accepts: Accepts } = {
  header: '',
  accepts: { json: false, stream: false },
}

function readAccept(header: string): Accepts {
  const kinds = new Set(
    header
      .toLowerCase()
      .split(',')
      .filter((one) => !/;\s*q=0(?:\.0*)?\s*$/.test(one))
      .map((one) => (one.split(';')[0] ?? '').trim()),
  )
  const any = kinds.has('*/*')
  return {
    json: any || kinds.has('application/json') || kinds.has('application/*'),
    stream: any || kinds.has('text/event-stream') || kinds.has('text/*'),
  }
}

/** True for a body that is JSON in UTF-8 and nothing else: not compressed, not in another charset. */
export function isJson(headers: Headers): boolean {
  const encoding = headers.values.get('content-encoding') ?? 'identity'
  const type = headers.values.get('content-type') ?? ''
  return encoding === 'identity' && JSON_TYPE.test(type)
}

const JSON_TYPE = /^application\/json\s*(?:;\s*(?:charset="?utf-8"?)?\s*)?$/i

/** True for an address of this machine itself. */
export const isLoopback = (address: string | undefined): boolean =>
  address !== undefined &&
  (address === '::1' || address.startsWith('127.') || address.startsWith('::ffff:127.'))
