// All servers behind the gateway, as the hall sees them. One that is down or slow holds no other.

import type { JsonLimits, JsonObject } from '../json.ts'
import type { Limits } from '../policy/limits.ts'
import type { UpstreamConfig } from '../policy/config.ts'
import type { Attempt, ListKind, Send, Ticket, Upstreams } from '../ports.ts'
import { childEnvironment, type Environment } from './child-environment.ts'
import { type Shelf, shelf } from './shelf.ts'
import { attemptOn, unsent } from './upstream-attempt.ts'
import { CHANGES, listen } from './upstream-changes.ts'
import { coroner } from './upstream-death.ts'
import { type Lists, upstreamLists } from './upstream-lists.ts'
import type { Hop } from './upstream-meta.ts'
import { startUpstream, type Upstream } from './upstream.ts'

/** What the servers share. `client` is how we name ourselves; `say` takes one line for the operator;
 *  `environment` is ours, of which a server gets only what its configuration says and a short list. */
export type UpstreamsOptions = {
  readonly limits: Pick<
    Limits,
    'upstreamBytes' | 'depth' | 'keys' | 'nodes' | 'stderrLineBytes' | 'listItems' | 'listPages'
  >
  readonly client: Hop['client']
  readonly say: (line: string) => void
  readonly environment: Environment
}

/** The running servers. */
export type RunningUpstreams = Upstreams & {
  /** `listener` is told that a list of an upstream may have changed; at most once in 700 ms a list. */
  readonly onChange: (listener: (upstream: string, kind: ListKind) => void) => void
  /** `listener` gets the log messages that belong to no single call in flight. */
  readonly onLog: (listener: (upstream: string, params: JsonObject) => void) => void
  /** Why the upstream is not running, in one sentence with the next step; null while it runs or starts. */
  readonly explain: (upstream: string) => string | null
  /** Ends every server: stdin is closed, then the group is terminated, then killed. At most about 5 s. */
  readonly stop: () => Promise<void>
}

/** With several servers, how long a list or a greeting waits for one that is only starting. */
const START_GRACE_MS = 1500

/** Starts every server at once and returns before any of them runs. */
export function startUpstreams(
  configs: readonly UpstreamConfig[],
  options: UpstreamsOptions,
): RunningUpstreams {
  const listeners: Listeners = { change: [], log: [] }
  const servers = new Map<string, Server>()
  for (const config of configs) servers.set(config.name, server(config, options, listeners))
  const alone = configs.length === 1

  const find = (name: string): Server => {
    const found = servers.get(name)
    if (found === undefined) throw new TypeError(`no upstream is named ${name}`)
    return found
  }
  return {
    names: configs.map((config) => config.name),
    async list(name, kind) {
      const { upstream, config, lists } = find(name)
      const waitMs = alone ? config.listMs : Math.min(config.listMs, START_GRACE_MS)
      return lists.list(kind, await upstream.reach(waitMs))
    },
    async definition(name, tool) {
      const { upstream, lists, startMs } = find(name)
      const connection = upstream.connection() ?? (await upstream.reach(startMs))
      return connection === null ? 'down' : lists.definition(tool, connection)
    },
    async hello(name) {
      const { upstream, startMs } = find(name)
      const connection = await upstream.reach(alone ? startMs : START_GRACE_MS)
      return connection?.hello ?? null
    },
    attempt: (ticket, send) => attempt(find(send.target.upstream), ticket, send),
    resume: () => Promise.resolve(unsent('state_invalid', 'no call waits under this name')),
    drop: () => {},
    release: () => {},
    onChange: (listener) => void listeners.change.push(listener),
    onLog: (listener) => void listeners.log.push(listener),
    explain: (name) => find(name).death(),
    async stop() {
      await Promise.all([...servers.values()].map(({ upstream }) => upstream.stop()))
    },
  }
}

type Listeners = {
  readonly change: ((upstream: string, kind: ListKind) => void)[]
  readonly log: ((upstream: string, params: JsonObject) => void)[]
}

type Server = {
  readonly config: UpstreamConfig
  readonly upstream: Upstream
  readonly lists: Lists
  /** The calls in flight. */
  readonly flying: Shelf<number, Send>
  /** The number of the last call. */
  readonly calls: { last: number }
  /** How long a call waits for a start: the probe and the handshake after it. */
  readonly startMs: number
  readonly death: () => string | null
}

async function attempt(
  { config, upstream, flying, calls, startMs }: Server,
  ticket: Ticket,
  send: Send,
): Promise<Attempt> {
  const connection =
    upstream.connection() ?? (await unlessAborted(upstream.reach(startMs), send.signal))
  if (send.signal.aborted) return unsent('cancelled', 'it was cancelled before it was sent')
  if (connection === null) return unsent('upstream_down', `${config.name} is not running`)
  const number = ++calls.last
  flying.set(number, send)
  const made = await attemptOn(connection, { ticket, send }, config)
  flying.delete(number)
  return made
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

function server(config: UpstreamConfig, options: UpstreamsOptions, listeners: Listeners): Server {
  const { limits, environment } = options
  const say = (text: string): void => options.say(`${config.name}: ${text}`)
  const env = childEnvironment(environment, config, process.platform)
  const deaths = coroner(config, { environment, env, say })
  const flying = shelf<number, Send>()
  const lists = upstreamLists({
    waitMs: config.listMs,
    maxItems: limits.listItems,
    maxPages: limits.listPages,
    warn: say,
    onChange: (kind) => listeners.change.forEach((tell) => tell(config.name, kind)),
  })
  const notified = (method: string, params: JsonObject): void => {
    const changed = CHANGES.get(method)
    if (changed !== undefined) lists.changed(changed)
    else if (method === 'notifications/message') {
      // No field names the call: with one in flight it is that one, with several nobody can say.
      const [only] = flying.values()
      if (flying.size === 1 && only !== undefined) only.watch.log(params)
      else listeners.log.forEach((tell) => tell(config.name, params))
    }
  }
  const bounds: JsonLimits = { ...limits, bytes: limits.upstreamBytes }
  const upstream = startUpstream({
    ...config,
    env,
    client: options.client,
    limits: bounds,
    stderrLineBytes: limits.stderrLineBytes,
    words: deaths.words,
    failed: deaths.failed,
    ready(connection) {
      deaths.lives()
      lists.renewed()
      listen(connection)
    },
    notified,
  })
  return {
    config,
    upstream,
    lists,
    flying,
    calls: { last: 0 },
    startMs: 2 * config.probeMs,
    death: deaths.death,
  }
}
