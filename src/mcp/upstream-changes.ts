// What a server announces unasked, and how a modern one is asked to.

import { isObject, object } from '../json.ts'
import type { ListKind } from '../ports.ts'
import { outgoing } from './upstream-meta.ts'
import type { Connection } from './upstream.ts'

/** The list that a notification says has changed. */
export const CHANGES: ReadonlyMap<string, ListKind> = new Map([
  ['notifications/tools/list_changed', 'tools'],
  ['notifications/prompts/list_changed', 'prompts'],
  ['notifications/resources/list_changed', 'resources'],
])

/** Between the end of one listening and the next; it doubles. */
const MIN_LISTEN_MS = 1000
const MAX_LISTEN_MS = 60_000

/** Asks a modern server to announce changes of what it lists, for as long as this process of it lives;
 *  legacy ones do so unasked. Source: MCP 2026-07-28, subscriptions. */
export function listen(connection: Connection, waitMs: number = MIN_LISTEN_MS): void {
  const { hello, hop, wire } = connection
  if (hop.era === 'legacy') return
  const wants = (name: string): true | undefined => {
    const capability = hello.capabilities[name]
    return isObject(capability) && capability['listChanged'] === true ? true : undefined
  }
  const notifications = object({
    toolsListChanged: wants('tools'),
    promptsListChanged: wants('prompts'),
    resourcesListChanged: wants('resources'),
  })
  if (Object.keys(notifications).length === 0) return
  const params = object({ notifications })
  const again = (): void => {
    setTimeout(() => listen(connection, Math.min(2 * waitMs, MAX_LISTEN_MS)), waitMs).unref()
  }
  wire.request('subscriptions/listen', () => outgoing(params, hop, null), {
    // An error means that it cannot; a process that is gone listens anew when it is back.
    heard(said) {
      if (said.kind === 'result') again()
    },
    ended: again,
  })
}
