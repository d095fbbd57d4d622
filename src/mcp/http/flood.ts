// Requests of nobody known: counted by kind and second, and slowed down by address.

import type { Knock } from './guard.ts'

/** The counts and the rate of requests that were turned away before their client was known. */
export type Flood = {
  /** Counts one; ms to wait before the next where its address is past the rate, else 0. */
  knock(kind: Knock, address: string | undefined): number
  /** Hands over what was counted; resolves when that has its record or could not be recorded. */
  flush(): Promise<void>
}

/** Turned-away requests of one address in a row, and a minute. */
export const KNOCKS_A_MINUTE = 120
const MINUTE_MS = 60_000
const EACH_MS = MINUTE_MS / KNOCKS_A_MINUTE
/** Addresses remembered; the one heard first is forgotten first. */
const MAX_ADDRESSES = 10_000
/** One record holds what came in so long. */
const RECORD_MS = 1_000

/** Counts, and hands the counts to `record` a second after the first of them. `nowMs`: a clock that never
 *  goes back. `failed` is told when a record could not be made; its counts go into the next. */
export function flood(options: {
  readonly record: (counts: Readonly<Record<string, number>>) => Promise<void>
  readonly failed: () => void
  readonly nowMs: () => number
}): Flood {
  const counts = new Map<string, number>()
  const due = new Map<string, number>()
  let timer: NodeJS.Timeout | null = null

  const add = (name: string, count: number): void =>
    void counts.set(name, (counts.get(name) ?? 0) + count)
  async function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (counts.size === 0) return
    const told = Object.fromEntries(counts)
    counts.clear()
    try {
      await options.record(told)
    } catch {
      for (const [name, count] of Object.entries(told)) add(name, count)
      options.failed()
    }
  }

  return {
    knock(kind, address) {
      add(`refused_${kind}`, 1)
      timer ??= setTimeout(() => void flush(), RECORD_MS).unref()
      return wait(due, placeOf(address ?? ''), options.nowMs())
    },
    flush,
  }
}

/** The generic cell rate algorithm: `due` holds when an address has paid for all it sent. */
function wait(due: Map<string, number>, place: string, nowMs: number): number {
  const paid = Math.max(due.get(place) ?? 0, nowMs) + EACH_MS
  if (paid - nowMs > MINUTE_MS) return Math.ceil(paid - nowMs - MINUTE_MS)
  due.delete(place)
  due.set(place, paid)
  if (due.size > MAX_ADDRESSES) due.delete(due.keys().next().value ?? place)
  return 0
}

/** One network of IPv6 is one place: whoever has one address of it has all of them. */
function placeOf(address: string): string {
  if (!address.includes(':') || address.includes('..')) return address
  const [head = ''] = address.split('::')
  return head.split(':').slice(0, 4).join(':')
}
