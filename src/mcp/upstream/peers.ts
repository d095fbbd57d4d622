// Which process or session of a server a call goes to: one for all where the server keeps nothing, one a client where it does.

import { canonical } from '../../canonical.ts'
import type { Era } from '../../call.ts'
import { type JsonObject, object } from '../../json.ts'
import type { Attempt } from '../../ports.ts'
import { covers, joined } from '../wire/capabilities.ts'
import { legacyCapabilities } from './asks.ts'
import { unsent } from './told.ts'
import type { Connection, Upstream } from './upstream.ts'

/** One process or session that is kept, with what was declared to it. */
export type Peer = {
  readonly upstream: Upstream
  readonly capabilities: JsonObject
  /** Whose alone it is; null: everybody's. */
  readonly client: string | null
}

/** Who calls, and what the server may ask meanwhile. */
export type Caller = { readonly client: string; readonly capabilities: JsonObject }

/** A way to a server, held until `leave`, which may be called once. */
export type Seat = {
  readonly connection: Connection
  readonly leave: () => void
}

/** The processes or sessions of one server. */
export type Peers = {
  /** The one that is asked for lists and for what the server says of itself. */
  readonly base: () => Peer
  /** The one for this caller, started where there is none yet; `unsent` when it cannot be had. */
  readonly take: (caller: Caller, signal: AbortSignal) => Promise<Seat | Unsent>
  /** Resolves when lists are asked of a legacy server as somebody whom it may ask these, or after so long. */
  readonly expect: (capabilities: JsonObject, waitMs: number) => Promise<void>
  /** Those of this client, and everybody's. */
  readonly of: (client: string) => readonly Peer[]
  readonly stop: () => Promise<void>
}

/** A refusal to call. */
export type Unsent = Extract<Attempt, { kind: 'unsent' }>

/** How one process or session is started. `client`: whose alone it is; null: nobody's in particular. `era` is
 *  what is known of the server, null when nothing is. `isBase`: it is asked for lists. `serves`: calls go to it. */
export type Wish = {
  readonly capabilities: JsonObject
  readonly client: string | null
  readonly era: Era | null
  readonly isBase: boolean
  readonly serves: boolean
}

/** `start` begins one and returns before it is ready. `principals`: whether all calls are one client's. */
export type PeersOptions = {
  readonly name: string
  readonly principals: 'one' | 'many'
  readonly share: boolean
  /** How long a call waits for a start. */
  readonly startMs: number
  readonly start: (wish: Wish) => Upstream
  /** Not to be stopped though no call is in flight. */
  readonly isNeeded: (client: string | null) => boolean
  /** It is not used any more. */
  readonly ended: (upstream: Upstream) => void
  /** How long one beside the base is kept unused. */
  readonly idleMs: number
}

/** Processes or sessions of one server beside the base, and of those whose place was given away, how many may
 *  still be ending. */
export const MAX_PEERS = 32
const MAX_ENDING = 32
/** How long one is kept that nobody uses. */
export const IDLE_PEER_MS: number = 5 * 60_000

type Kept = Peer & {
  uses: number
  /** When it was used last. */
  leftAt: number
  idle: NodeJS.Timeout | undefined
  /** Another one took its place: it ends with its last call. */
  replaced: boolean
  /** The one whose place it takes as soon as it is ready. */
  former: Kept | null
}

type Pool = {
  readonly options: PeersOptions
  readonly peers: Map<string, Kept>
  base: Kept
  /** The era in which the base was last greeted. */
  era: Era | null
  readonly ending: Set<Promise<void>>
}

const NOTHING: JsonObject = object({})

/** Starts the base. */
export function upstreamPeers(options: PeersOptions): Peers {
  const serves = options.principals === 'one' || options.share
  const wish: Wish = { capabilities: NOTHING, client: null, era: null, isBase: true, serves }
  const base = begin(options, wish)
  const pool: Pool = { options, peers: new Map(), base, era: null, ending: new Set() }
  return {
    base: () => pool.base,
    take: (caller, signal) => take(pool, caller, signal),
    expect: (capabilities, waitMs) => expected(pool, capabilities, waitMs),
    of: (client) =>
      [...(serves ? [pool.base] : []), ...pool.peers.values()].filter(
        (one) => one.client === null || one.client === client,
      ),
    async stop() {
      const all = [pool.base, ...pool.peers.values()].flatMap((one) => [one, ...formersOf(one)])
      for (const { idle } of all) clearTimeout(idle)
      await Promise.all([...all.map(({ upstream }) => upstream.stop()), ...pool.ending])
    },
  }
}

const begin = ({ start }: PeersOptions, wish: Wish): Kept => ({
  upstream: start(wish),
  capabilities: wish.capabilities,
  client: wish.client,
  uses: 0,
  leftAt: 0,
  idle: undefined,
  replaced: false,
  former: null,
})

/** What a legacy server is told of whom it may ask, it is told once, and some offer more to those whom they
 *  may ask. Where all share one process it is left alone: it keeps what its calls have made of it. */
async function expected(pool: Pool, capabilities: JsonObject, waitMs: number): Promise<void> {
  const { options, base } = pool
  const wanted = legacyCapabilities(capabilities)
  if (covers(base.capabilities, wanted) || pool.era === 'modern') return
  if (options.principals === 'many' && options.share) return
  pool.era ??= (await base.upstream.reach(waitMs))?.hop.era ?? null
  // Another call may have come first meanwhile.
  if (pool.era === 'legacy' && !covers(pool.base.capabilities, wanted)) grow(pool, wanted)
}

async function take(pool: Pool, caller: Caller, signal: AbortSignal): Promise<Seat | Unsent> {
  const { name, startMs } = pool.options
  const first = pool.base.upstream.connection()
  if (first !== null) pool.era = first.hop.era
  // Whose process it is depends on what the server speaks, so that has to be known once.
  else if (pool.era === null) {
    const greeted = await unlessAborted(pool.base.upstream.reach(startMs), signal)
    if (signal.aborted) return CANCELLED
    if (greeted === null) return down(name)
    pool.era = greeted.hop.era
  }
  const peer = pool.era === 'modern' ? pool.base : peerOf(pool, caller)
  if (peer === null) return TOO_MANY
  use(peer)
  const leave = (): void => left(pool, peer)
  const { upstream } = peer
  const connection = upstream.connection() ?? (await unlessAborted(upstream.reach(startMs), signal))
  if (connection !== null && !signal.aborted) return { connection, leave }
  leave()
  return signal.aborted ? CANCELLED : down(name)
}

const unsentOf = (attempt: Attempt): Unsent => {
  if (attempt.kind !== 'unsent') throw new TypeError('not a refusal')
  return attempt
}
const CANCELLED = unsentOf(unsent('cancelled', 'it was cancelled before it was sent'))
const TOO_MANY = unsentOf(
  unsent('too_many_calls', 'too many clients have a session of their own with it'),
)
const down = (name: string): Unsent => unsentOf(unsent('upstream_down', `${name} is not running`))

/** The peer of a caller of a legacy server; null when there are too many. One process or session serves a client,
 *  so that what one of its calls changes is seen by the next. It is replaced by one that was told of more when
 *  a call comes with more; each call still lets the server ask only what it declares itself. */
function peerOf(pool: Pool, caller: Caller): Kept | null {
  const { options, peers, base, era } = pool
  const wanted = legacyCapabilities(caller.capabilities)
  if (options.principals === 'one')
    return ableOf(covers(base.capabilities, wanted) ? base : grow(pool, wanted), wanted)
  if (options.share) return sharedOf(pool, wanted)
  const { client } = caller
  const found = peers.get(client)
  if (found !== undefined && covers(found.capabilities, wanted)) return ableOf(found, wanted)
  if (found === undefined && !makeRoom(pool)) return null
  const capabilities = joined(found?.capabilities ?? NOTHING, wanted)
  const made = begin(options, { capabilities, client, era, isBase: false, serves: true })
  peers.set(client, made)
  if (found !== undefined) replace(pool, found, made)
  return made
}

/** Where all clients share a server, none of its processes is told of more than a call allows. */
function sharedOf(pool: Pool, wanted: JsonObject): Kept | null {
  const { options, peers, base, era } = pool
  const key = canonical(wanted)
  if (key === canonical(base.capabilities)) return base
  const found = peers.get(key)
  if (found !== undefined) return found
  if (!makeRoom(pool)) return null
  const wish: Wish = { capabilities: wanted, client: null, era, isBase: false, serves: true }
  const made = begin(options, wish)
  peers.set(key, made)
  return made
}

/** True when there is a place for one more: where all are taken, that of whoever was idle longest. None is idle
 *  that has a call under way or parked, or whose client waits for changes. */
function makeRoom(pool: Pool): boolean {
  const { peers, options, ending } = pool
  if (peers.size < MAX_PEERS) return true
  if (ending.size >= MAX_ENDING) return false
  let oldest: readonly [key: string, peer: Kept] | null = null
  for (const [key, peer] of peers) {
    const isIdle = [peer, ...formersOf(peer)].every(({ uses }) => uses === 0)
    if (!isIdle || options.isNeeded(peer.client)) continue
    if (oldest === null || peer.leftAt < oldest[1].leftAt) oldest = [key, peer]
  }
  if (oldest === null) return false
  const [key, peer] = oldest
  clearTimeout(peer.idle)
  peers.delete(key)
  end(pool, peer)
  return true
}

/** One takes the place of the other as soon as it is ready; until then the other goes on for calls that it can
 *  serve, then it ends with its last one. */
function replace(pool: Pool, former: Kept, made: Kept): void {
  clearTimeout(former.idle)
  made.former = former
  const { startMs } = pool.options
  void made.upstream.reach(startMs).finally(() => {
    made.former = null
    former.replaced = true
    if (former.uses === 0) end(pool, former)
  })
}

/** The peer, or while it starts the one whose place it takes. */
function ableOf(peer: Kept, wanted: JsonObject): Kept {
  if (peer.upstream.connection() !== null) return peer
  const able = formersOf(peer).find(
    ({ upstream, capabilities }) => upstream.connection() !== null && covers(capabilities, wanted),
  )
  return able ?? peer
}

const formersOf = ({ former }: Kept): readonly Kept[] =>
  former === null ? [] : [former, ...formersOf(former)]

/** Another base takes the place of the first, and was told of more. */
function grow(pool: Pool, wanted: JsonObject): Kept {
  const { base, options, era } = pool
  const capabilities = joined(base.capabilities, wanted)
  const serves = options.principals === 'one'
  pool.base = begin(options, { capabilities, client: null, era, isBase: true, serves })
  replace(pool, base, pool.base)
  return pool.base
}

function use(peer: Kept): void {
  peer.uses++
  clearTimeout(peer.idle)
}

function left(pool: Pool, peer: Kept): void {
  peer.leftAt = performance.now()
  if (--peer.uses > 0) return
  if (peer.replaced) end(pool, peer)
  else if ([...pool.peers.values()].includes(peer)) rest(pool, peer)
}

/** Stops a peer that stays unused. */
function rest(pool: Pool, peer: Kept): void {
  clearTimeout(peer.idle)
  peer.idle = setTimeout(() => {
    if (peer.uses > 0) return
    if (pool.options.isNeeded(peer.client)) return rest(pool, peer)
    for (const [key, one] of pool.peers) if (one === peer) pool.peers.delete(key)
    end(pool, peer)
  }, pool.options.idleMs).unref()
}

function end({ ending, options }: Pool, { upstream }: Kept): void {
  const stopped = upstream.stop().finally(() => ending.delete(stopped))
  ending.add(stopped)
  options.ended(upstream)
}

/** The value, or null once the signal is aborted. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | null> {
  const { promise: aborted, resolve } = Promise.withResolvers<null>()
  const stop = (): void => resolve(null)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  const first = await Promise.race([promise, aborted])
  signal.removeEventListener('abort', stop)
  return first
}
