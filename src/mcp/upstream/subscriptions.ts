// Who wants to hear of which resource: counted a client, and asked of the server once.

import type { Era } from '../../call.ts'
import { object } from '../../json.ts'
import type { Attempt, Send } from '../../ports.ts'
import type { Listener } from './changes.ts'
import { unknown, unsent } from './told.ts'
import type { Peer } from './peers.ts'
import { outgoing } from './meta.ts'
import type { Connection } from './upstream.ts'

/** The subscriptions of one server. */
export type Subscriptions = {
  /** One more wish of this client, sent to a legacy server by `attempt`. */
  readonly add: (send: Send, era: Era, attempt: () => Promise<Attempt>) => Promise<Attempt>
  /** One wish less. The last one for a resource tells those of `peers`, which are this client's. */
  readonly release: (client: string, uri: string, peers: readonly Peer[]) => void
  /** This process or session is new: what is wanted of it is asked for again. */
  readonly renewed: (client: string | null, connection: Connection) => void
  /** True while this client waits for changes. */
  readonly isWanted: (client: string | null) => boolean
}

/** Resources that one client may wait for changes of. */
export const MAX_SUBSCRIBED_CLIENT = 1000
/** Resources that all clients together may wait for changes of. */
export const MAX_SUBSCRIBED = 10_000

type Counts = Map<string, Map<string, number>>

/** No subscriptions. `listener` is that of a modern server. */
export function subscriptions(listener: Listener): Subscriptions {
  const counts: Counts = new Map()
  /** What is wanted of a process or session of this client, or of everybody. */
  const urisOf = (client: string | null): ReadonlySet<string> =>
    new Set(
      [...counts].flatMap(([name, uris]) =>
        client === null || client === name ? [...uris.keys()] : [],
      ),
    )
  return {
    async add(send, era, attempt) {
      const uri = send.target.name
      if (!count(counts, send.client, uri)) return FULL
      const made = era === 'modern' ? await listened(listener, uri) : await attempt()
      const isHeld = made.kind === 'answered' && made.answer.kind === 'result'
      if (!isHeld && uncount(counts, send.client, uri)) drop(counts, listener, uri)
      return made
    },
    release(client, uri, peers) {
      if (!uncount(counts, client, uri)) return
      drop(counts, listener, uri)
      for (const peer of peers) {
        const connection = peer.upstream.connection()
        if (connection?.hop.era === 'legacy' && !urisOf(peer.client).has(uri)) {
          tell(connection, 'resources/unsubscribe', uri)
        }
      }
    },
    renewed(client, connection) {
      if (connection.hop.era === 'modern') return
      for (const uri of urisOf(client)) tell(connection, 'resources/subscribe', uri)
    },
    isWanted: (client) => (client === null ? counts.size > 0 : counts.has(client)),
  }
}

const FULL = unsent('too_many_calls', 'it is waited for changes of too many resources')

const tell = ({ wire, hop }: Connection, method: string, uri: string): void =>
  void wire.request(method, () => outgoing(object({ uri }), hop, null), { heard: () => undefined })

function drop(counts: Counts, listener: Listener, uri: string): void {
  if (![...counts.values()].some((uris) => uris.has(uri))) listener.drop(uri)
}

/** A modern server is not asked by a request of its own: the answer is what its acknowledgement makes of it. */
async function listened(listener: Listener, uri: string): Promise<Attempt> {
  const said = await listener.add(uri)
  if (said === 'down') return unknown('upstream_down', 'it did not acknowledge the subscription')
  return {
    kind: 'answered',
    answer:
      said === 'honoured'
        ? { kind: 'result', era: 'modern', value: object({ resultType: 'complete' }), text: null }
        : {
            kind: 'error',
            code: NOT_ANNOUNCED,
            message: 'the server does not announce changes of this resource',
            data: object({ uri }),
          },
  }
}

const NOT_ANNOUNCED = -32_602

/** False when there is no room. */
function count(counts: Counts, client: string, uri: string): boolean {
  const uris = counts.get(client) ?? new Map<string, number>()
  const all = [...counts.values()].reduce((sum, one) => sum + one.size, 0)
  if (!uris.has(uri) && (uris.size >= MAX_SUBSCRIBED_CLIENT || all >= MAX_SUBSCRIBED)) return false
  uris.set(uri, (uris.get(uri) ?? 0) + 1)
  counts.set(client, uris)
  return true
}

/** True when this was the client's last wish for the resource. */
function uncount(counts: Counts, client: string, uri: string): boolean {
  const uris = counts.get(client)
  const left = uris?.get(uri)
  if (uris === undefined || left === undefined) return false
  if (left > 1) {
    uris.set(uri, left - 1)
    return false
  }
  uris.delete(uri)
  if (uris.size === 0) counts.delete(client)
  return true
}
