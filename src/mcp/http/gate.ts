// What the server is made of and told, shared by the files that answer its requests.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

import type { Client } from '../../call.ts'
import type { Doors } from '../../gateway.ts'
import type { JsonObject } from '../../json.ts'
import type { ListKind } from '../../ports.ts'
import type { FrontLimits } from '../front/front.ts'
import type { Flood } from './flood.ts'
import type { Doorposts } from './guard.ts'
import type { Headers } from './headers.ts'
import type { Hall } from './post.ts'
import { type Seats, SESSION_IDLE_MS } from './seat.ts'

/** Times of the server, ms. `silent`: an event stream on which nothing was said gets a comment;
 *  `legacyStream`, `modernStream`: a response that takes so long becomes an event stream, which a legacy
 *  client can take up again. `headers`, `request`: until the headers, the whole request are there. */
export type HttpTimes = {
  readonly silent: number
  readonly legacyStream: number
  readonly modernStream: number
  readonly keepAlive: number
  readonly headers: number
  readonly request: number
  readonly sessionIdle: number
  /** How often all this is looked at. A revoked client is cut off within this time and the store's own. */
  readonly sweep: number
}

/** The times of a server that was told nothing else. */
export const HTTP_TIMES: HttpTimes = {
  silent: 15_000,
  legacyStream: 1_000,
  modernStream: 15_000,
  // Longer than clients and proxies keep idle connections, so that none writes into one that closes.
  keepAlive: 75_000,
  headers: 10_000,
  request: 60_000,
  sessionIdle: SESSION_IDLE_MS,
  sweep: 500,
}

/** What a server needs. */
export type HttpOptions = {
  readonly doors: Doors
  readonly upstreams: {
    onChange(listener: (upstream: string, kind: ListKind) => void): void
    onLog(listener: (upstream: string, params: JsonObject, client: string | null) => void): void
    onUpdated(listener: (upstream: string, params: JsonObject, client: string | null) => void): void
  }
  readonly limits: FrontLimits
  /** The gateway's own version. */
  readonly version: string
  readonly say: (line: string) => void
  readonly listen: { readonly host: string; readonly port: number }
  /** Profiles by path; null: all. */
  readonly endpoints: ReadonlyMap<string, ReadonlySet<string> | null>
  /** Hosts and origins beside those of the address itself. */
  readonly posts: { readonly hosts: readonly string[]; readonly origins: readonly string[] }
  /** The server's own origin as others see it, or null. */
  readonly publicOrigin: string | null
  /** Who sends this Authorization header. */
  readonly identify: (authorization: string | undefined) => Client | 'none' | 'bad'
  /** False once a client is revoked or past its expiry. */
  readonly isValid: (client: Client) => boolean
  readonly times?: Partial<HttpTimes>
}

/** One server while it runs. `posts`: whom it answers, known once it listens. */
export type Gate = {
  readonly options: HttpOptions
  readonly server: Server
  readonly times: HttpTimes
  readonly seats: Seats
  readonly flood: Flood
  readonly hall: Hall
  /** Answers of one connection that have not left yet. */
  readonly inWork: WeakMap<Socket, ServerResponse[]>
  posts: Doorposts
  draining: boolean
  /** What is still in work is given up. */
  abandoned: boolean
}

/** One request before its client is known. `extra`: headers that every answer to it bears, in pairs. */
export type Arrival = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly headers: Headers
  readonly extra: readonly string[]
}
