// What a server announces unasked, and the one subscription by which a modern one is asked to.

import { isObject, type Json, type JsonObject, member, object } from '../../json.ts'
import type { ListKind } from '../../ports.ts'
import { outgoing } from './meta.ts'
import type { Exchange } from './wire.ts'
import type { Connection } from './upstream.ts'

/** The list that a notification says has changed. */
export const CHANGES: ReadonlyMap<string, ListKind> = new Map([
  ['notifications/tools/list_changed', 'tools'],
  ['notifications/prompts/list_changed', 'prompts'],
  ['notifications/resources/list_changed', 'resources'],
])

/** What became of asking for the changes of a resource. */
export type Subscribed = 'honoured' | 'refused' | 'down'

/** The subscription of a modern server: one for all that is wanted of it. */
export type Listener = {
  /** Another process or session answers from now on. */
  readonly ready: (connection: Connection) => void
  /** Resolves when the server has said whether it will announce changes of this resource. */
  readonly add: (uri: string) => Promise<Subscribed>
  readonly drop: (uri: string) => void
}

/** Between the end of one listening and the next; it doubles. */
const MIN_LISTEN_MS = 1000
const MAX_LISTEN_MS = 60_000
/** A listening that lasted so long takes the growth back. */
const SUSTAINED_MS = 60_000
/** How long the server may take to acknowledge. */
const ACK_MS = 10_000

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

type Stream = {
  readonly exchange: Exchange
  readonly honoured: ReadonlySet<Json>
  readonly since: number
}

type Self = {
  readonly notified: (method: string, params: JsonObject) => void
  readonly wanted: Set<string>
  connection: Connection | null
  stream: Stream | null
  renewing: Promise<void> | null
  /** What is wanted is not what the renewal under way began with. */
  stale: boolean
  waitMs: number
  timer: NodeJS.Timeout | undefined
}

/** Listens to a modern server whenever it is `ready`: to changes of what it lists, if it announces them, and
 *  of the resources that were added. A filter cannot be changed, so a new subscription is opened and
 *  acknowledged before the old one is closed. Source: MCP 2026-07-28, subscriptions. */
export function listener(notified: (method: string, params: JsonObject) => void): Listener {
  const self: Self = {
    notified,
    wanted: new Set(),
    connection: null,
    stream: null,
    renewing: null,
    stale: false,
    waitMs: MIN_LISTEN_MS,
    timer: undefined,
  }
  return {
    ready(connection) {
      self.connection = connection.hop.era === 'modern' ? connection : null
      self.stream = null
      self.waitMs = MIN_LISTEN_MS
      clearTimeout(self.timer)
      if (self.connection !== null) void renew(self)
    },
    async add(uri) {
      self.wanted.add(uri)
      if (self.stream?.honoured.has(uri) === true) return 'honoured'
      await renew(self)
      if (self.stream === null) return self.connection === null ? 'down' : 'refused'
      return self.stream.honoured.has(uri) ? 'honoured' : 'refused'
    },
    drop(uri) {
      if (self.wanted.delete(uri)) void renew(self)
    },
  }
}

/** Resolves when what is wanted now has been asked for. */
function renew(self: Self): Promise<void> {
  self.stale = true
  self.renewing ??= (async () => {
    while (self.stale) {
      self.stale = false
      await replace(self)
    }
    self.renewing = null
  })()
  return self.renewing
}

async function replace(self: Self): Promise<void> {
  const { connection, stream: old } = self
  if (connection === null) return
  clearTimeout(self.timer)
  const filter = filterOf(self, connection)
  const made = filter === null ? null : await open(self, connection, filter)
  if (self.connection !== connection) return
  // Without an answer the old one is better than none.
  if (made === null && filter !== null && old !== null) return
  self.stream = made
  old?.exchange.cancel('replaced')
  old?.exchange.forget()
}

/** What is asked for; null when nothing is wanted that the server announces. */
function filterOf({ wanted }: Self, { hello }: Connection): JsonObject | null {
  const changes = (name: string): true | undefined => {
    const capability = hello.capabilities[name]
    return isObject(capability) && capability['listChanged'] === true ? true : undefined
  }
  const filter = object({
    toolsListChanged: changes('tools'),
    promptsListChanged: changes('prompts'),
    resourcesListChanged: changes('resources'),
    resourceSubscriptions: wanted.size === 0 ? undefined : [...wanted],
  })
  return Object.keys(filter).length === 0 ? null : filter
}

/** One subscription, once the server has acknowledged it; null when it refuses it or does not answer. */
function open(self: Self, connection: Connection, filter: JsonObject): Promise<Stream | null> {
  const { promise, resolve } = Promise.withResolvers<Stream | null>()
  let isOpen = false
  const over = (isLost: boolean): void => {
    clearTimeout(timer)
    if (!isOpen) resolve(null)
    // An error says that it cannot; a process that is gone listens anew when it is back.
    if (isLost && self.connection === connection && isCurrent()) again(self)
  }
  const isCurrent = (): boolean => !isOpen || self.stream?.exchange === exchange
  const exchange = connection.wire.request(
    'subscriptions/listen',
    () => outgoing(object({ notifications: filter }), connection.hop, null),
    {
      heard: (said) => over(said.kind !== 'error'),
      ended: () => over(true),
      notice(method, params) {
        if (method !== ACKNOWLEDGED) return self.notified(method, params)
        clearTimeout(timer)
        isOpen = true
        const uris = member(params['notifications'], 'resourceSubscriptions')
        const honoured = new Set(Array.isArray(uris) ? uris : [])
        if (exchange !== null) resolve({ exchange, honoured, since: performance.now() })
      },
    },
  )
  const timer = setTimeout(() => {
    exchange?.cancel('timeout')
    exchange?.forget()
    over(true)
  }, ACK_MS)
  if (exchange === null) over(true)
  return promise
}

function again(self: Self): void {
  const lasted = self.stream === null ? 0 : performance.now() - self.stream.since
  if (lasted > SUSTAINED_MS) self.waitMs = MIN_LISTEN_MS
  self.stream = null
  clearTimeout(self.timer)
  self.timer = setTimeout(() => void renew(self), self.waitMs).unref()
  self.waitMs = Math.min(2 * self.waitMs, MAX_LISTEN_MS)
}
