// Long work in pieces: of all that is under way, one piece goes on in a turn of the event loop.

import type { Turn } from '../ports.ts'

/** Turns of this process. What waits in it is bounded by the calls in flight. */
export function turns(): Turn {
  const waiting: (() => void)[] = []
  const next = (): void => {
    waiting.shift()?.()
    if (waiting.length > 0) setImmediate(next)
  }
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve)
      if (waiting.length === 1) setImmediate(next)
    })
}
