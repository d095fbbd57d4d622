// What one client wants to hear of: the resources of a session, and the streams that listen.

import type { JsonObject } from '../../json.ts'
import { object } from '../../json.ts'
import { admits } from '../../policy/decide.ts'
import type { ListKind } from '../../ports.ts'
import type { Changes } from './changes.ts'
import type { Scene } from './views.ts'

/** One who listens. */
export type Listener = {
  /** The upstream of each URI. A URI stands for what lies under it too. */
  readonly uris: ReadonlyMap<string, string>
  /** How many tasks it hears of. */
  readonly tasks: number
  /** The lists it hears of; null for none. */
  readonly changes: Changes | null
  /** Says that a resource was updated: the params of the notice. */
  readonly tell: (params: JsonObject) => void
  /** The server ends the stream. */
  readonly end: () => void
}

/** The listeners of one front. */
export type Subscriptions = {
  /** True while `more` URIs and one stream more fit. */
  hasRoom(more: number): boolean
  /** Keeps room for a stream that is being opened with so many URIs and tasks, until the function that it gives is
   *  called; null where there is none. */
  hold(uris: number, tasks: number): (() => void) | null
  /** A session subscribed: from now on it hears of the URI. */
  add(uri: string, upstream: string): void
  /** A session hears of the URI no more. */
  remove(uri: string): void
  /** Hears until the function that it gives is called. */
  listen(listener: Listener): () => void
  /** A server's list may have changed. */
  changed(kind: ListKind): void
  /** A server says that a resource was updated. Whoever may not read it any more is not told. */
  updated(upstream: string, params: JsonObject): void
  /** Ends every stream from the server's side. */
  end(): void
  /** Nobody hears of anything any more, and the servers know it. */
  stop(): void
}

/** URIs one client hears of at once. */
export const MAX_URIS = 1_000
/** Streams one client listens on at once. */
export const MAX_LISTENERS = 64
/** Tasks one client hears of at once, over all its streams: each is asked for again and again. */
export const MAX_TASKS = 32
/** Longer URIs are not subscribed to. */
export const MAX_URI = 2_048

/** Nobody listens yet. `tell` says a session that a resource was updated. */
export function subscriptions(scene: Scene, tell: (params: JsonObject) => void): Subscriptions {
  const undo = (upstream: string, uri: string): void =>
    scene.doors.upstreams.release(upstream, uri, scene.client.name)
  const own = new Map<string, string>()
  const session: Listener = { uris: own, tasks: 0, changes: null, tell, end: () => undefined }
  const listeners = new Set<Listener>()
  const { hasRoom, hold } = roomFor(own, listeners)
  const release = ({ uris }: Listener): void => {
    for (const [uri, upstream] of uris) undo(upstream, uri)
  }
  return {
    hasRoom,
    hold,
    add(uri, upstream) {
      const known = own.get(uri)
      // The server counts each one; the session has it once.
      if (known !== undefined) undo(known, uri)
      own.set(uri, upstream)
    },
    remove(uri) {
      const upstream = own.get(uri)
      if (upstream === undefined) return
      own.delete(uri)
      undo(upstream, uri)
    },
    listen(listener) {
      listeners.add(listener)
      return () => {
        if (!listeners.delete(listener)) return
        listener.changes?.stop()
        release(listener)
      }
    },
    changed(kind) {
      for (const { changes } of listeners) changes?.changed(kind)
    },
    updated(upstream, params) {
      const { uri } = params
      if (typeof uri !== 'string' || !isReadable(scene, upstream, uri)) return
      for (const listener of [session, ...listeners]) {
        if (hears(scene, listener, { upstream, uri })) listener.tell(object({ uri }))
      }
    },
    end() {
      for (const listener of listeners) listener.end()
    },
    stop() {
      for (const listener of [session, ...listeners]) release(listener)
      own.clear()
      listeners.clear()
    },
  }
}

/** The room beside those who hear already. */
function roomFor(
  own: ReadonlyMap<string, string>,
  listeners: ReadonlySet<Listener>,
): Pick<Subscriptions, 'hasRoom' | 'hold'> {
  /** What the streams want that are being opened. */
  const opening = new Set<{ readonly uris: number; readonly tasks: number }>()
  const count = (): number => {
    const held = [...opening].reduce((sum, { uris }) => sum + uris, own.size)
    return [...listeners].reduce((sum, { uris }) => sum + uris.size, held)
  }
  const hasRoom = (more: number): boolean =>
    count() + more <= MAX_URIS && listeners.size + opening.size < MAX_LISTENERS
  const followed = (): number =>
    [...opening, ...listeners].reduce((sum, { tasks }) => sum + tasks, 0)
  return {
    hasRoom,
    hold(uris, tasks) {
      if (!hasRoom(uris) || followed() + tasks > MAX_TASKS) return null
      const one = { uris, tasks }
      opening.add(one)
      return () => void opening.delete(one)
    },
  }
}

/** True when one of the URIs is this one or lies over it, and may still be read: policy may have changed
 *  since the client subscribed. */
function hears(
  scene: Scene,
  { uris }: Listener,
  what: { readonly upstream: string; readonly uri: string },
): boolean {
  for (const [uri, upstream] of uris) {
    const covers = what.uri === uri || what.uri.startsWith(uri.endsWith('/') ? uri : `${uri}/`)
    if (covers && upstream === what.upstream && isReadable(scene, upstream, uri)) return true
  }
  return false
}

const isReadable = ({ doors, client }: Scene, upstream: string, name: string): boolean =>
  admits(doors.policy(), client, { kind: 'resource', upstream, name }) === null
