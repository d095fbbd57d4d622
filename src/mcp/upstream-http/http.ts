// One server over HTTP: greeted, kept in its session, given up with growing patience, left in order.

import {
  type Connection,
  connectionOf,
  type ServerOptions,
  type Upstream,
  within,
} from '../upstream/upstream.ts'
import type { Mode } from '../upstream/era.ts'
import { floodgate } from '../upstream/flood.ts'
import { greetHttp, type HttpGreeter, type HttpGreeting, initialize, probe } from './era.ts'
import type { HeaderSet } from './headers.ts'
import {
  type Health,
  httpHealth,
  lost,
  type Member,
  type Shared,
  strike,
  trust,
  well,
} from './health.ts'
import { type Keeper, type Link, type Session, sessionHeaders } from './link.ts'
import { send } from './send.ts'
import type { Resolve } from './site.ts'
import { listenOn, type Stream } from './stream.ts'
import { httpWire, retire, sever } from './wire.ts'
import { askAll } from '../upstream/pages.ts'

/** How one server over HTTP is reached and spoken to. `say` takes one line for the operator. */
export type HttpOptions = ServerOptions & {
  readonly url: string
  readonly headers: HeaderSet
  readonly allowRedirects: boolean
  readonly allowPrivate: boolean
  readonly say: (text: string) => void
  /** What all sessions with this server know of it together; without it, this one is alone. */
  readonly shared?: Shared
  /** Another session of the same server stays in touch with it. This one is made when it is wanted, and what
   *  befalls all of them is told by the other. */
  readonly isPeer?: boolean
  /** How names are looked up; the system's way where it is left out. */
  readonly resolve?: Resolve
}

/** An attempt that is due so soon is waited for. */
const PATIENCE_MS = 1000
/** With nothing said against it, a server that was just reached is trusted after so long. */
const TRUST_MS = 1000
/** How long a server that cut its replies is listened to with no stream, unless it answers a call. */
const DOUBT_MS = 5000
/** How long the end of a session is waited for. */
const FAREWELL_MS = 1000
/** Between two questions whether a server still speaks what it spoke. */
const CHECK_GAP_MS = 5000
const REFRESH_MS = 10_000
const REFRESH_PAGES = 100
const REFRESH_ITEMS = 10_000

type Life = {
  readonly options: HttpOptions
  readonly health: Health
  readonly member: Member
  state: 'starting' | 'up' | 'down' | 'stopped'
  link: Link | null
  connection: Connection | null
  stream: Stream | null
  /** Resolves with the end of the attempt that is under way or comes next. */
  next: PromiseWithResolvers<Connection | null>
  renewing: Promise<boolean> | null
  timer: NodeJS.Timeout | undefined
  trusting: NodeJS.Timeout | undefined
  /** Until the stream of the session is opened. */
  listening: NodeJS.Timeout | undefined
  mode: Mode
  checkedAt: number
  lastId: number
  epoch: number
}

/** Reaches the server and stays in touch with it until `stop`. */
export function startHttpUpstream(options: HttpOptions): Upstream {
  const { shared = { health: null } } = options
  const health = (shared.health ??= httpHealth(options))
  const life: Life = {
    options,
    health,
    member: { fall: (why) => fall(life, why), recheck: () => void recheck(life) },
    state: 'starting',
    link: null,
    connection: null,
    stream: null,
    next: Promise.withResolvers(),
    renewing: null,
    timer: undefined,
    trusting: undefined,
    listening: undefined,
    mode: options.era === 'auto' ? 'probe' : options.era,
    checkedAt: -CHECK_GAP_MS,
    lastId: 0,
    epoch: 0,
  }
  health.members.add(life.member)
  void begin(life)
  return {
    connection: () => life.connection,
    async reach(waitMs) {
      if (life.connection !== null) return life.connection
      if (life.state === 'stopped') return null
      if (life.state === 'down' && !isDueSoon(life)) return null
      return within(life.next.promise, waitMs)
    },
    stop: () => stop(life),
  }
}

const greeterOf = ({ epoch, options }: Life): HttpGreeter => ({
  client: options.client,
  capabilities: options.capabilities,
  waitMs: options.probeMs,
  epoch,
})

/** Read anew after each wait: `stop` may have come meanwhile. */
const stopped = (life: Life): boolean => life.state === 'stopped'

/** True when an attempt comes so soon that it is waited for; who is only made when wanted is wanted now. */
function isDueSoon(life: Life): boolean {
  const { health } = life
  const waitMs = health.healthy ? 0 : health.dueAt - performance.now()
  if (waitMs > PATIENCE_MS) return false
  if (life.timer === undefined) arm(life, waitMs)
  return true
}

function arm(life: Life, waitMs: number): void {
  clearTimeout(life.timer)
  life.timer = setTimeout(() => void begin(life), Math.max(0, waitMs))
}

/** One attempt, and while the server is not known to be well only one by all. Never rejects. */
async function begin(life: Life): Promise<void> {
  const { health } = life
  life.timer = undefined
  life.state = 'starting'
  if (!health.healthy && health.attempt !== null) await health.attempt
  if (stopped(life)) return
  if (!health.healthy && (health.attempt !== null || performance.now() < health.dueAt)) {
    rest(life)
    return
  }
  if (health.healthy) return attempt(life)
  const made = attempt(life).finally(() => {
    health.attempt = null
  })
  health.attempt = made
  await made
}

async function attempt(life: Life): Promise<void> {
  const { health, options } = life
  const link = linkOf(life)
  life.link = link
  const wasWell = health.healthy
  const greeting = await greetHttp(link, life.mode, greeterOf(life))
  if (stopped(life)) return
  if (greeting.kind === 'hello') return settle(life, link, greeting)
  // A verdict that was right once is never turned round unsaid: it is dropped, and found anew next time.
  if (greeting.about === 'era' && options.era === 'auto') life.mode = 'probe'
  strike(health)
  rest(life)
  if (options.isPeer !== true || wasWell) options.failed(greeting.why)
}

type Greeted = Extract<HttpGreeting, { kind: 'hello' }>

function settle(life: Life, link: Link, greeted: Greeted): void {
  life.state = 'up'
  well(life.health)
  if (life.options.era === 'auto') life.mode = greeted.hello.era
  life.trusting = setTimeout(() => trust(life.health.gate), TRUST_MS).unref()
  enter(life, link, greeted)
  life.next.resolve(life.connection)
}

/** From now on this is what the server says of itself, and the session it is spoken to in. */
function enter(life: Life, link: Link, { hello, session }: Greeted): void {
  link.session = session
  if (session !== null) life.epoch = session.epoch
  const connection = connectionOf(hello, httpWire(link), life.options)
  life.connection = connection
  unlisten(life)
  // A connection more for a server that may cut the first call again would be one too many.
  if (life.health.cuts) life.listening = setTimeout(() => listen(life), DOUBT_MS).unref()
  else listen(life)
  life.options.ready(connection)
}

/** Opens the stream of the session, where there is one. */
function listen(life: Life): void {
  unlisten(life)
  const { link } = life
  const session = link?.session ?? null
  if (link === null || session === null) return
  life.stream = listenOn(link, session, () => void renew(life, session.epoch))
}

function unlisten(life: Life): void {
  clearTimeout(life.listening)
  life.listening = undefined
  life.stream?.stop()
  life.stream = null
}

function linkOf(life: Life): Link {
  const { health, options } = life
  const link: Link = {
    name: options.name,
    ground: {
      site: health.site,
      own: named(options),
      limits: options.limits,
      flood: floodgate(),
      counts: { junk: 0, stray: 0, asked: 0, flood: 0 },
      batches: false,
    },
    keeper: keeperOf(life, () => link),
    nextId: () => ++life.lastId,
    notified: options.notified,
    say: options.say,
    flights: new Set(),
    abandoned: new Set(),
    mirrors: new Map(),
    warned: life.link?.warned ?? new Set(),
    gate: health.gate,
    words: new Set(),
    session: null,
    open: true,
  }
  return link
}

/** The configured headers, and who we are where they do not say. */
function named({ client, headers }: HttpOptions): HeaderSet {
  const says = Object.keys(headers).some((name) => name.toLowerCase() === 'user-agent')
  return says ? headers : { ...headers, 'User-Agent': `${client.name}/${client.version}` }
}

/** What is left of an earlier link says nothing of this one. */
function keeperOf(life: Life, own: () => Link): Keeper {
  return {
    lost(how, why) {
      if (life.link === own() && life.state === 'up') lost(life.health, how, why)
    },
    alive() {
      const { health, link } = life
      if (link === null || link !== own()) return
      health.broken = 0
      if (health.cuts && !hasAnswered(link)) return
      health.cuts = false
      trust(health.gate)
      if (life.listening !== undefined) listen(life)
    },
    // A session that was made for one era cannot find another; the one that probes can.
    outdated: () => life.health.members.forEach((one) => one.recheck()),
    renew: (epoch) => renew(life, epoch),
    renewing: () => life.renewing,
    refresh: () => refresh(life),
  }
}

/** True when a reply has begun to something else than a list. */
function hasAnswered({ flights }: Link): boolean {
  for (const { state, silent, method } of flights)
    if (state === 'out' && !silent && !method.endsWith('/list')) return true
  return false
}

/** One new session for all who met the loss of this one; false when there is none. */
function renew(life: Life, epoch: number): Promise<boolean> {
  if (life.state !== 'up' || life.link === null) return Promise.resolve(false)
  if (epoch < life.epoch) return life.renewing ?? Promise.resolve(true)
  life.renewing ??= renewNow(life, life.link).finally(() => {
    life.renewing = null
  })
  return life.renewing
}

async function renewNow(life: Life, link: Link): Promise<boolean> {
  const greeting = await initialize(link, greeterOf(life))
  if (life.state !== 'up' || life.link !== link) return false
  if (greeting.kind === 'hello') {
    enter(life, link, greeting)
    return true
  }
  if (life.options.era === 'auto') life.mode = 'probe'
  strike(life.health)
  fall(life, greeting.why)
  return false
}

/** Asks anew what the server speaks, while it is still spoken to as before: who is turned away may have
 *  caused that himself, and must not take the server from the others. */
async function recheck(life: Life): Promise<void> {
  const { connection, link } = life
  const now = performance.now()
  if (life.options.era !== 'auto' || connection === null || link === null) return
  if (now - life.checkedAt < CHECK_GAP_MS) return
  life.checkedAt = now
  const said = await probe(link, greeterOf(life))
  if (life.connection !== connection || said.kind === 'failed') return
  if ((said.kind === 'legacy' ? 'legacy' : 'modern') === connection.hop.era) return
  life.mode = 'probe'
  strike(life.health)
  fall(life, 'it speaks another era now')
}

/** Asks for the list of tools for what its headers mirror; the wire reads it on the way. */
async function refresh({ connection }: Life): Promise<void> {
  if (connection === null) return
  await askAll('tools', connection, {
    waitMs: REFRESH_MS,
    maxItems: REFRESH_ITEMS,
    maxPages: REFRESH_PAGES,
    warn: () => {},
  })
}

/** The server is not spoken to until the next attempt. */
function fall(life: Life, why: string): void {
  if (life.state !== 'up') return
  rest(life)
  if (life.link !== null) retire(life.link, why)
  if (life.options.isPeer !== true) life.options.failed(why)
}

function rest(life: Life): void {
  clearTimeout(life.timer)
  clearTimeout(life.trusting)
  life.timer = undefined
  life.state = 'down'
  life.connection = null
  unlisten(life)
  life.next.resolve(null)
  life.next = Promise.withResolvers()
  if (life.options.isPeer !== true) arm(life, life.health.dueAt - performance.now())
}

async function stop(life: Life): Promise<void> {
  if (life.state === 'stopped') return
  life.state = 'stopped'
  clearTimeout(life.timer)
  clearTimeout(life.trusting)
  life.connection = null
  unlisten(life)
  life.next.resolve(null)
  const { health, link, member } = life
  if (link !== null) {
    sever(link)
    if (link.session !== null) await farewell(link, link.session)
  }
  health.members.delete(member)
  if (health.members.size === 0) health.site.close()
}

/** Tells a legacy server that its session is over. Whether it listens is its own affair. */
function farewell(link: Link, session: Session): Promise<void> {
  if (session.id === null) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const sending = send(
    link.ground.site,
    {
      method: 'DELETE',
      headers: { ...sessionHeaders(session) },
      own: link.ground.own,
      body: null,
      limitBytes: FAREWELL_BYTES,
      long: false,
    },
    { end: () => resolve() },
  )
  const timer = setTimeout(() => {
    sending.stop()
    resolve()
  }, FAREWELL_MS)
  return promise.finally(() => clearTimeout(timer))
}

const FAREWELL_BYTES = 64 * 1024
