// One server behind the gateway: its lists, its processes or sessions, and the way of a call to it.

import { type JsonLimits, type JsonObject, member } from '../../json.ts'
import type { UpstreamConfig } from '../../policy/config.ts'
import type { Limits } from '../../policy/limits.ts'
import type { Attempt, ListKind, Send, Ticket } from '../../ports.ts'
import { childEnvironment, type Environment } from './child-environment.ts'
import { LOG_LEVEL } from '../wire/era.ts'
import { allAccepted } from './asks.ts'
import { attemptOn, type Way } from './attempt.ts'
import { CHANGES, type Listener, listener } from './changes.ts'
import { type Coroner, coroner } from './death.ts'
import { type Levels, upstreamLevels } from './levels.ts'
import { type Lists, upstreamLists } from './lists.ts'
import type { Shared } from '../upstream-http/health.ts'
import type { Hop } from './meta.ts'
import type { Lot } from './park.ts'
import { IDLE_PEER_MS, type Peers, type Seat, upstreamPeers, type Wish } from './peers.ts'
import { type Subscriptions, subscriptions } from './subscriptions.ts'
import { needsTask } from './tasks.ts'
import { unsent } from './told.ts'
import { type ServerOptions, startUpstream, type Upstream } from './upstream.ts'

/** What the servers share. `client` is how we name ourselves; `say` takes one line for the operator;
 *  `environment` is ours, of which a server gets only what its configuration says and a short list.
 *  `principals`: whether all calls are one client's (stdio) or many clients'. */
export type UpstreamsOptions = {
  readonly limits: Pick<
    Limits,
    'upstreamBytes' | 'depth' | 'keys' | 'nodes' | 'stderrLineBytes' | 'listItems' | 'listPages'
  >
  readonly client: Hop['client']
  readonly say: (line: string) => void
  readonly environment: Environment
  readonly principals: 'one' | 'many'
  /** How long a client's own process or session is kept unused; IDLE_PEER_MS but for tests of it. */
  readonly peerIdleMs?: number
}

/** Who hears of a server. `client`: whose own process or session said it; null: it is about everybody. */
export type Hearers = {
  readonly changed: (kind: ListKind) => void
  readonly logged: (params: JsonObject, client: string | null) => void
  readonly updated: (params: JsonObject, client: string | null) => void
}

/** One server. `startMs`: how long a call waits for a start, the probe and the handshake after it. */
export type Server = {
  readonly config: UpstreamConfig
  readonly base: () => Upstream
  /** What it offers to this client, or to nobody in particular, and who is asked for it. */
  readonly offer: (client: string | undefined) => Offer
  readonly startMs: number
  readonly death: () => string | null
  readonly attempt: (ticket: Ticket, send: Send) => Promise<Attempt>
  readonly expect: Peers['expect']
  readonly release: (uri: string, client: string) => void
  readonly stop: () => Promise<void>
}

/** Lists, and the process or session whose they are. */
type Offer = { readonly lists: Lists; readonly upstream: Upstream }

type Self = {
  readonly config: UpstreamConfig
  readonly options: UpstreamsOptions
  readonly hearers: Hearers
  readonly lot: Lot
  readonly lists: Lists
  readonly levels: Levels
  readonly listener: Listener
  readonly subs: Subscriptions
  /** What a client's own process offers, once it said that this is not what it was. */
  readonly own: Map<string, Offer>
  /** What all sessions with a server over HTTP know of it together. */
  readonly far: Shared
  /** What ended the base last. */
  deaths: Coroner | null
}

/** Whoever waits for a start waits for its failure too, and so hears why. */
const END_MS = 1000

/** Starts a server and returns before it runs. */
export function server(
  config: UpstreamConfig,
  options: UpstreamsOptions,
  { hearers, lot }: { readonly hearers: Hearers; readonly lot: Lot },
): Server {
  const lists = newLists(config, options, hearers)
  const heard = listener((method, params) => announced(self, { method, params, peer: null }))
  const subs = subscriptions(heard)
  const levels = upstreamLevels()
  const startMs = 2 * config.probeMs + END_MS
  const self: Self = {
    config,
    options,
    hearers,
    lot,
    lists,
    levels,
    listener: heard,
    subs,
    own: new Map(),
    far: { health: null },
    deaths: null,
  }
  const peers: Peers = upstreamPeers({
    name: config.name,
    principals: options.principals,
    share: config.share,
    startMs,
    start: (wish) => start(self, wish),
    isNeeded: subs.isWanted,
    ended: (upstream) => {
      for (const [client, offer] of self.own) {
        if (offer.upstream === upstream) self.own.delete(client)
      }
    },
    idleMs: options.peerIdleMs ?? IDLE_PEER_MS,
  })
  return {
    config,
    base: () => peers.base().upstream,
    offer: (client) => offerTo(self, peers, client),
    startMs,
    death: () => self.deaths?.death() ?? null,
    attempt: (ticket, send) => attempt(self, peers, { ticket, send }),
    expect: peers.expect,
    release: (uri, client) => subs.release(client, uri, peers.of(client)),
    stop: peers.stop,
  }
}

const newLists = (
  config: UpstreamConfig,
  { limits, say }: UpstreamsOptions,
  hearers: Hearers,
): Lists =>
  upstreamLists({
    waitMs: config.listMs,
    maxItems: limits.listItems,
    maxPages: limits.listPages,
    warn: (text) => say(`${config.name}: ${text}`),
    onChange: hearers.changed,
  })

/** The base's, but for a client whose own process has changed what it offers and still runs. */
function offerTo({ own, lists }: Self, peers: Peers, client: string | undefined): Offer {
  const offer = client === undefined ? undefined : own.get(client)
  if (offer !== undefined && offer.upstream.connection() !== null) return offer
  return { lists, upstream: peers.base().upstream }
}

/** Starts one process or session. */
function start(self: Self, wish: Wish): Upstream {
  const { config, options } = self
  const { limits, environment } = options
  const whose = wish.client === null ? '' : ` (for ${wish.client})`
  const say = (text: string): void => options.say(`${config.name}${whose}: ${text}`)
  const bounds: JsonLimits = { ...limits, bytes: limits.upstreamBytes }
  const peer: Speaker = { client: wish.client, isBase: wish.isBase, upstream: null }
  const begin = (deaths: Coroner): ServerOptions => ({
    name: config.name,
    probeMs: config.probeMs,
    era: wish.era ?? config.era,
    client: options.client,
    capabilities: wish.capabilities,
    limits: bounds,
    failed: deaths.failed,
    ready(connection) {
      deaths.lives()
      forget(self, peer)
      if (wish.isBase) self.lists.renewed()
      if (wish.isBase) self.listener.ready(connection)
      if (wish.serves) self.subs.renewed(wish.client, connection)
    },
    notified: (method, params) => announced(self, { method, params, peer }),
  })
  const isFar = config.kind === 'url'
  const env = isFar ? {} : childEnvironment(environment, config, process.platform)
  const given = isFar ? { env: config.headers, passEnv: [] } : config
  const deaths = coroner(given, { environment, env, say, isFar })
  if (wish.isBase) self.deaths = deaths
  if (config.kind === 'url') {
    const far = { ...config, ...begin(deaths), say, shared: self.far, isPeer: !wish.isBase }
    // A start with servers of our own machine alone does not pay for HTTP.
    peer.upstream = deferred(
      import('../upstream-http/http.ts').then(({ startHttpUpstream }) => startHttpUpstream(far)),
    )
    return peer.upstream
  }
  peer.upstream = startUpstream({
    ...config,
    ...begin(deaths),
    env,
    stderrLineBytes: limits.stderrLineBytes,
    words: deaths.words,
  })
  return peer.upstream
}

/** A server whose way of being reached is still being loaded. */
function deferred(loading: Promise<Upstream>): Upstream {
  let made: Upstream | null = null
  const loaded = loading.then((upstream) => (made = upstream))
  return {
    connection: () => made?.connection() ?? null,
    reach: async (waitMs) => (await loaded).reach(waitMs),
    stop: async () => (await loaded).stop(),
  }
}

type Announced = {
  readonly method: string
  readonly params: JsonObject
  /** Who said it; null: the subscription of a modern server. */
  readonly peer: Speaker | null
}

/** One process or session that says something. */
type Speaker = {
  readonly client: string | null
  readonly isBase: boolean
  upstream: Upstream | null
}

/** A process that is new offers again what any other one does. */
function forget({ own, hearers }: Self, { client, upstream }: Speaker): void {
  if (client === null || own.get(client)?.upstream !== upstream) return
  own.delete(client)
  for (const kind of new Set(CHANGES.values())) hearers.changed(kind)
}

/** What a server says that belongs to no call. */
function announced(self: Self, { method, params, peer }: Announced): void {
  const { hearers, options } = self
  const client = peer?.client ?? null
  const kind = CHANGES.get(method)
  if (kind !== undefined) changed(self, kind, peer)
  else if (method === 'notifications/resources/updated') hearers.updated(params, client)
  // With many clients nobody can say whose call it tells of, unless the whole process is one client's.
  else if (method === 'notifications/message') {
    if (options.principals === 'one' || client !== null) hearers.logged(params, client)
  }
}

/** What another process than the base announces is true of that one alone: from now on its client is shown its
 *  lists. */
function changed(self: Self, kind: ListKind, peer: Speaker | null): void {
  const { config, options, hearers, lists, own } = self
  if (peer === null || peer.isBase) return lists.changed(kind)
  const { client, upstream } = peer
  if (client === null || upstream === null) return
  const known = own.get(client)
  const offer =
    known?.upstream === upstream ? known : { upstream, lists: newLists(config, options, hearers) }
  own.set(client, offer)
  offer.lists.changed(kind)
}

type Wanted = { readonly ticket: Ticket; readonly send: Send }

async function attempt(self: Self, peers: Peers, wanted: Wanted): Promise<Attempt> {
  const { send } = wanted
  const { method, retry } = send
  const seat = await peers.take(send, send.signal)
  if ('kind' in seat) return seat
  const { hop } = seat.connection
  if (method === 'resources/subscribe') return subscribe(self, seat, wanted)
  // A legacy server asks only for URLs before it executes anything: who refused to open one is not asked for
  // it again and again.
  if (hop.era === 'legacy' && retry !== null && !allAccepted(retry.responses)) {
    seat.leave()
    return unsent('ask_denied', 'what the server needs first was not accepted')
  }
  return fly(self, seat, wanted)
}

/** Not every subscription is a request of its own. */
async function subscribe(self: Self, seat: Seat, wanted: Wanted): Promise<Attempt> {
  let isSent = false
  const made = await self.subs.add(wanted.send, seat.connection.hop.era, () => {
    isSent = true
    return fly(self, seat, wanted)
  })
  if (!isSent) seat.leave()
  return made
}

/** Sends the call on its way; the seat is left when it is over. */
async function fly(self: Self, seat: Seat, wanted: Wanted): Promise<Attempt> {
  const { config, lot, lists, levels } = self
  const { connection } = seat
  const { send } = wanted
  const quiet = await levels.enter(connection, member(send.params['_meta'], LOG_LEVEL))
  if (send.signal.aborted) {
    quiet()
    seat.leave()
    return unsent('cancelled', 'it was cancelled before it was sent')
  }
  const isTool = send.method === 'tools/call'
  const way: Way = {
    deadlines: config,
    lot,
    asTask: isTool && needsTask(connection.hello, lists.known(send.target.name)),
    over() {
      quiet()
      seat.leave()
    },
  }
  return attemptOn(connection, wanted, way)
}
