// The calls that wait in this process for a client's answer, bounded in number and in time.

import type { Code } from '../../decision.ts'
import type { Attempt, Watch } from '../../ports.ts'
import type { Responses } from '../../call.ts'

/** Who takes up a parked call, and with which answers. */
export type Taker = {
  readonly responses: Responses
  readonly watch: Watch
  readonly signal: AbortSignal
}

/** One call that waits. Both end its waiting; one of them is called, once. */
export type Parked = {
  readonly client: string
  readonly resume: (taker: Taker) => Promise<Attempt>
  /** Its questions are refused and its server is told to stop. */
  readonly refuse: (code: Code) => void
}

/** The calls that wait. */
export type Lot = {
  /** The call waits under this name from now on, PARK_MS at most; false: there is no room. */
  readonly park: (name: string, call: Parked) => boolean
  /** The call of this name, which does not wait any more; null when none waits. */
  readonly take: (name: string) => Parked | null
  /** Refuses what waits. */
  readonly clear: () => void
}

/** How long a call waits for the client's answer. */
export const PARK_MS: number = 10 * 60_000
/** Calls that wait in one process. */
export const MAX_PARKED = 1000
/** Calls of one client that wait in one process. */
export const MAX_PARKED_CLIENT = 100

/** An empty lot. `parkMs` is PARK_MS but for tests of the time itself. */
export function parkingLot(parkMs: number = PARK_MS): Lot {
  const waiting = new Map<string, { readonly call: Parked; readonly timer: NodeJS.Timeout }>()
  const take = (name: string): Parked | null => {
    const found = waiting.get(name)
    if (found === undefined) return null
    clearTimeout(found.timer)
    waiting.delete(name)
    return found.call
  }
  return {
    park(name, call) {
      const own = [...waiting.values()].filter((one) => one.call.client === call.client)
      if (waiting.size >= MAX_PARKED || own.length >= MAX_PARKED_CLIENT) return false
      const timer = setTimeout(() => take(name)?.refuse('timeout'), parkMs).unref()
      waiting.set(name, { call, timer })
      return true
    },
    take,
    clear() {
      for (const name of waiting.keys()) take(name)?.refuse('draining')
    },
  }
}
