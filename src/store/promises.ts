// The promises that wait for the writer's replies: bounded in number, size and time.

import type { Worker } from 'node:worker_threads'

import { Fault, type FaultCode } from '../fault.ts'
import { STORE_LIMITS } from './limits.ts'
import type { OpenDone, Reply } from './wire.ts'

/** What a promise is about. `code`: that of its rejection; `chars`: the size of its request; `late` gets
 *  what was done after all, once the wait was given up. */
export type About = {
  readonly code: FaultCode
  readonly chars: number
  readonly late: ((done: OpenDone) => void) | undefined
}

/** The promises of one writer, oldest first. */
export type Promises = {
  readonly nextId: () => number
  /** True when no more may be made to wait. */
  readonly full: () => boolean
  readonly wait: (id: number, about: About) => Promise<OpenDone | null>
  readonly settle: (replies: readonly Reply[]) => void
  /** Rejects those that have waited for too long; gives their number. */
  readonly rejectOld: (why: string) => number
  readonly rejectAll: (why: string) => void
}

type Waiting = {
  readonly resolve: (done: OpenDone | null) => void
  readonly reject: (fault: Fault) => void
  readonly about: About
  readonly since: number
}

/** An empty set of promises. While one waits, `worker` keeps the process alive. */
export function promisesOf(worker: Worker): Promises {
  const waiting = shelf()
  const lates = new Map<number, (done: OpenDone) => void>()
  let last = 0
  let chars = 0

  const remove = (id: number): Waiting | null => {
    const one = waiting.take(id)
    if (one === null) return null
    chars -= one.about.chars
    // The process may end while nothing waits; while something does, it must not.
    if (waiting.size() === 0) worker.unref()
    return one
  }
  const rejectOne = (id: number, why: string): void => {
    const one = remove(id)
    one?.reject(new Fault(one.about.code, `not recorded: ${why}`))
  }
  const settleOne = (id: number, done: OpenDone | undefined): void => {
    const one = remove(id)
    if (one !== null) return one.resolve(done ?? null)
    const late = lates.get(id)
    lates.delete(id)
    if (done !== undefined) late?.(done)
  }
  return {
    nextId: () => ++last,
    full: () => waiting.size() >= STORE_LIMITS.queue || chars >= STORE_LIMITS.queueChars,
    wait: (id, about) =>
      new Promise((resolve, reject) => {
        if (waiting.size() === 0) worker.ref()
        waiting.put(id, { resolve, reject, about, since: performance.now() })
        chars += about.chars
      }),
    settle(replies) {
      for (const reply of replies) {
        if ('why' in reply) {
          rejectOne(reply.id, reply.why)
          lates.delete(reply.id)
        } else settleOne(reply.id, reply.done)
      }
    },
    rejectOld(why) {
      let count = 0
      for (const [id, one] of waiting.all()) {
        if (performance.now() - one.since < STORE_LIMITS.hangMs) break
        if (one.about.late !== undefined) lates.set(id, one.about.late)
        rejectOne(id, why)
        count++
      }
      return count
    },
    rejectAll(why) {
      for (const [id] of waiting.all()) rejectOne(id, why)
    },
  }
}

type Shelf = {
  readonly size: () => number
  readonly put: (id: number, one: Waiting) => void
  readonly take: (id: number) => Waiting | null
  /** Oldest first. */
  readonly all: () => Generator<readonly [number, Waiting]>
}

/** What waits, by its number. A Map that is always in use keeps what it has held alive until the next full
 *  collection: this one holds numbers of places only, and a place is emptied when its value is taken. */
function shelf(): Shelf {
  const places = new Map<number, number>()
  const held: (Waiting | null)[] = []
  const free: number[] = []
  return {
    size: () => places.size,
    put(id, one) {
      const place = free.pop() ?? held.length
      held[place] = one
      places.set(id, place)
    },
    take(id) {
      const place = places.get(id)
      const one = place === undefined ? undefined : held[place]
      if (place === undefined || !one) return null
      held[place] = null
      free.push(place)
      places.delete(id)
      return one
    },
    *all() {
      for (const [id, place] of places) {
        const one = held[place]
        if (one) yield [id, one]
      }
    },
  }
}
