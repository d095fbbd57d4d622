// One server over HTTP: greeted, kept in its session, given up with growing patience, left in order.

import {
  type Connection,
  connectionOf,
  type ServerOptions,
  type Upstream,
  within,
} from './upstream.ts'
import type { Mode } from './upstream-era.ts'
import { floodgate } from './upstream-flood.ts'
import {
  greetHttp,
  type HttpGreeter,
  type HttpGreeting,
  initialize,
  probe,
} from './upstream-http-era.ts'
import type { HeaderSet } from './upstream-http-headers.ts'
import {
  FIRST_WINDOW,
  type Keeper,
  type Link,
  type Session,
  sessionHeaders,
} from './upstream-http-link.ts'
import { send } from './upstream-http-send.ts'
import { type Resolve, type Site, site } from './upstream-http-site.ts'
import { listenOn, type Stream } from './upstream-http-stream.ts'
import { httpWire, retire, sever, trust } from './upstream-http-wire.ts'
import { askAll } from './upstream-pages.ts'

/** How one server over HTTP is reached and spoken to. `say` takes one line for the operator. */
export type HttpOptions = ServerOptions & {
  readonly url: string
  readonly headers: HeaderSet
  readonly allowRedirects: boolean
  readonly allowPrivate: boolean
  readonly say: (text: string) => void
  /** How names are looked up; the system's way where it is left out. */
  readonly resolve?: Resolve
}

/** The wait before the first new attempt; it doubles with each that fails. Each wait is varied by a quarter,
 *  so that many gateways do not return to one server at the same time. */
const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000
const MAX_DOUBLINGS = 16
/** Only a server that was up for so long takes the growth of the waits back. */
const SUSTAINED_MS = 60_000
/** An attempt that is due so soon is waited for. */
const PATIENCE_MS = 1000
/** Replies in a row that did not come whole, until a server counts as down. One may be the call's own fault. */
const MAX_BROKEN = 3
/** With nothing said against it, a server that was just reached is trusted after so long. */
const TRUST_MS = 1000
/** How long the end of a session is waited for. */
const FAREWELL_MS = 1000
/** Between two questions whether a server still speaks what it spoke. */
const CHECK_GAP_MS = 5000
const REFRESH_MS = 10_000
const REFRESH_PAGES = 100
const REFRESH_ITEMS = 10_000

type Life = {
  readonly options: HttpOptions
  readonly place: Site
  state: 'starting' | 'up' | 'down' | 'stopped'
  link: Link | null
  connection: Connection | null
  stream: Stream | null
  /** Resolves with the end of the attempt that is under way or comes next. */
  next: PromiseWithResolvers<Connection | null>
  renewing: Promise<boolean> | null
  dueAt: number
  failures: number
  broken: number
  timer: NodeJS.Timeout | undefined
  trusting: NodeJS.Timeout | undefined
  mode: Mode
  checkedAt: number
  lastId: number
  epoch: number
}

/** Reaches the server and stays in touch with it until `stop`. */
export function startHttpUpstream(options: HttpOptions): Upstream {
  const life: Life = {
    options,
    place: site(options),
    state: 'starting',
    link: null,
    connection: null,
    stream: null,
    next: Promise.withResolvers(),
    renewing: null,
    dueAt: 0,
    failures: 0,
    broken: 0,
    timer: undefined,
    trusting: undefined,
    mode: options.era === 'auto' ? 'probe' : options.era,
    checkedAt: -CHECK_GAP_MS,
    lastId: 0,
    epoch: 0,
  }
  void begin(life)
  return {
    connection: () => life.connection,
    async reach(waitMs) {
      if (life.connection !== null) return life.connection
      if (life.state === 'stopped') return null
      if (life.state === 'down' && life.dueAt - performance.now() > PATIENCE_MS) return null
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

/** One attempt. Never rejects. */
async function begin(life: Life): Promise<void> {
  life.state = 'starting'
  const link = linkOf(life)
  life.link = link
  const greeting = await greetHttp(link, life.mode, greeterOf(life))
  if (stopped(life)) return
  if (greeting.kind === 'hello') settle(life, link, greeting)
  else {
    // A verdict that was right once is never turned round unsaid: it is dropped, and found anew next time.
    if (greeting.about === 'era' && life.options.era === 'auto') life.mode = 'probe'
    down(life, greeting.why)
  }
}

type Greeted = Extract<HttpGreeting, { kind: 'hello' }>

function settle(life: Life, link: Link, greeted: Greeted): void {
  life.state = 'up'
  life.broken = 0
  if (life.options.era === 'auto') life.mode = greeted.hello.era
  life.trusting = setTimeout(() => trust(link), TRUST_MS).unref()
  life.timer = setTimeout(() => {
    life.failures = 0
  }, SUSTAINED_MS).unref()
  enter(life, link, greeted)
  life.next.resolve(life.connection)
}

/** From now on this is what the server says of itself, and the session it is spoken to in. */
function enter(life: Life, link: Link, { hello, session }: Greeted): void {
  link.session = session
  if (session !== null) life.epoch = session.epoch
  const connection = connectionOf(hello, httpWire(link), life.options)
  life.connection = connection
  life.stream?.stop()
  life.stream =
    session === null ? null : listenOn(link, session, () => void renew(life, session.epoch))
  life.options.ready(connection)
}

function linkOf(life: Life): Link {
  const { options, place } = life
  const link: Link = {
    name: options.name,
    ground: {
      site: place,
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
    waiting: [],
    starting: 0,
    window: FIRST_WINDOW,
    silent: 0,
    careful: true,
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
      const link = own()
      if (life.link !== link || life.state !== 'up') return
      life.broken++
      link.window = FIRST_WINDOW
      if (how === 'unreached' || link.careful || life.broken >= MAX_BROKEN) down(life, why)
    },
    alive() {
      const link = own()
      if (life.link !== link) return
      life.broken = 0
      trust(link)
    },
    outdated: () => void recheck(life),
    renew: (epoch) => renew(life, epoch),
    renewing: () => life.renewing,
    refresh: () => refresh(life),
  }
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
  down(life, greeting.why)
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
  down(life, 'it speaks another era now')
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
function down(life: Life, why: string): void {
  clearTimeout(life.timer)
  clearTimeout(life.trusting)
  life.state = 'down'
  life.connection = null
  life.stream?.stop()
  life.stream = null
  const wait =
    Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** life.failures) * (0.75 + Math.random() / 2)
  life.failures = Math.min(life.failures + 1, MAX_DOUBLINGS)
  life.dueAt = performance.now() + wait
  life.next.resolve(null)
  life.next = Promise.withResolvers()
  life.timer = setTimeout(() => void begin(life), wait)
  if (life.link !== null) retire(life.link, why)
  life.options.failed(why)
}

async function stop(life: Life): Promise<void> {
  if (life.state === 'stopped') return
  life.state = 'stopped'
  clearTimeout(life.timer)
  clearTimeout(life.trusting)
  life.connection = null
  life.stream?.stop()
  life.next.resolve(null)
  const { link, place } = life
  if (link !== null) {
    sever(link)
    if (link.session !== null) await farewell(link, link.session)
  }
  place.close()
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
