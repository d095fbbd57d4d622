// What is counted and not recorded one by one: pings, progress, logs, notifications that nobody acts on.

/** What is counted; the names are those of the record. */
export type Counted = 'pings' | 'progress' | 'logs' | 'notifications' | 'responses'

/** Counts of one session. `add` never fails. */
export type Tally = {
  readonly add: (what: Counted) => void
  /** Hands over what was counted since the last time, now; resolves when it has its record. */
  readonly flush: () => Promise<void>
}

/** How long counts wait for their record. */
const COUNT_MS = 60_000

/** Counts, and hands the counts to `record` a minute after the first of them. `failed` is told when a
 *  record of counts could not be made; they are kept for the next. */
export function tally(
  record: (counts: Readonly<Record<string, number>>) => Promise<void>,
  failed: () => void,
): Tally {
  const counts = new Map<Counted, number>()
  let timer: NodeJS.Timeout | null = null

  async function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    if (counts.size === 0) return
    const told = new Map(counts)
    counts.clear()
    try {
      await record(Object.fromEntries(told))
    } catch {
      for (const [what, count] of told) counts.set(what, count + (counts.get(what) ?? 0))
      failed()
    }
  }

  return {
    add(what) {
      counts.set(what, (counts.get(what) ?? 0) + 1)
      if (timer !== null) return
      timer = setTimeout(() => void flush(), COUNT_MS)
      // Counts never hold a process that has nothing else to do.
      timer.unref()
    },
    flush,
  }
}
