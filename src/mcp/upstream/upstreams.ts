// All servers behind the gateway, as the hall sees them. One that is down or slow holds no other.

import type { JsonObject } from '../../json.ts'
import type { UpstreamConfig } from '../../policy/config.ts'
import type { ListKind, Upstreams } from '../../ports.ts'
import { parkingLot } from './park.ts'
import { server, type Server, type UpstreamsOptions } from './server.ts'
import { unsent } from './told.ts'

export type { UpstreamsOptions } from './server.ts'

/** The running servers. A `client` that a listener is given is the one whose own process or session of the
 *  server said it; null: it may concern everybody. */
export type RunningUpstreams = Upstreams & {
  /** `listener` is told that a list of an upstream may have changed; at most once in 700 ms a list. */
  readonly onChange: (listener: (upstream: string, kind: ListKind) => void) => void
  /** `listener` gets the log messages that belong to no single call in flight. With many clients only those
   *  of a process or session that is one client's alone. */
  readonly onLog: (
    listener: (upstream: string, params: JsonObject, client: string | null) => void,
  ) => void
  /** `listener` is told that a resource has changed, which may be a part of one that was subscribed to. */
  readonly onUpdated: (
    listener: (upstream: string, params: JsonObject, client: string | null) => void,
  ) => void
  /** Why the upstream is not running, in one sentence with the next step; null while it runs or starts. */
  readonly explain: (upstream: string) => string | null
  /** Ends every server: stdin is closed, then the group is terminated, then killed. At most about 5 s. */
  readonly stop: () => Promise<void>
}

/** With several servers, how long a list or a greeting waits for one that is only starting. */
const START_GRACE_MS = 1500

type Told = (upstream: string, params: JsonObject, client: string | null) => void
type Listeners = {
  readonly change: ((upstream: string, kind: ListKind) => void)[]
  readonly log: Told[]
  readonly updated: Told[]
}

/** Starts every server at once and returns before any of them runs. */
export function startUpstreams(
  configs: readonly UpstreamConfig[],
  options: UpstreamsOptions,
): RunningUpstreams {
  const listeners: Listeners = { change: [], log: [], updated: [] }
  const lot = parkingLot()
  const servers = new Map<string, Server>()
  for (const config of configs) {
    const hearers = hearersOf(config.name, listeners)
    servers.set(config.name, server(config, options, { hearers, lot }))
  }
  const alone = configs.length === 1

  const find = (name: string): Server => {
    const found = servers.get(name)
    if (found === undefined) throw new TypeError(`no upstream is named ${name}`)
    return found
  }
  return {
    names: configs.map((config) => config.name),
    async list(name, kind, client) {
      const { offer, config } = find(name)
      const { lists, upstream } = offer(client)
      const waitMs = alone ? config.listMs : Math.min(config.listMs, START_GRACE_MS)
      return lists.list(kind, await upstream.reach(waitMs))
    },
    isUp: (name, client) => find(name).offer(client).upstream.connection() !== null,
    async definition(name, tool, client) {
      const { offer, startMs } = find(name)
      const { lists, upstream } = offer(client)
      const connection = upstream.connection() ?? (await upstream.reach(startMs))
      return connection === null ? 'down' : lists.definition(tool, connection)
    },
    async hello(name) {
      const { base, startMs } = find(name)
      const connection = await base().reach(alone ? startMs : START_GRACE_MS)
      return connection?.hello ?? null
    },
    async expect(capabilities) {
      await Promise.all(
        [...servers.values()].map((one) =>
          one.expect(capabilities, alone ? one.startMs : START_GRACE_MS),
        ),
      )
    },
    attempt: (ticket, send) => find(send.target.upstream).attempt(ticket, send),
    resume: (_ticket, parked, line) =>
      lot.take(parked)?.resume(line) ?? Promise.resolve(NOT_PARKED),
    drop: (parked, why) => lot.take(parked)?.refuse(why),
    release: (name, uri, client) => find(name).release(uri, client),
    onChange: (listener) => void listeners.change.push(listener),
    onLog: (listener) => void listeners.log.push(listener),
    onUpdated: (listener) => void listeners.updated.push(listener),
    explain: (name) => find(name).death(),
    async stop() {
      lot.clear()
      await Promise.all([...servers.values()].map((one) => one.stop()))
    },
  }
}

const NOT_PARKED = unsent('state_invalid', 'no call waits under this name')

const hearersOf = (
  name: string,
  listeners: Listeners,
): Parameters<typeof server>[2]['hearers'] => ({
  changed: (kind) => listeners.change.forEach((tell) => tell(name, kind)),
  logged: (params, client) => listeners.log.forEach((tell) => tell(name, params, client)),
  updated: (params, client) => listeners.updated.forEach((tell) => tell(name, params, client)),
})
