// The time that one call may take, which stands still while a client is asked.

/** How long a call may take: `callMs` from its start and from each progress, `callMaxMs` in all. */
export type Deadlines = { readonly callMs: number; readonly callMaxMs: number }

/** A clock that stands still until `go`. */
export type Deadline = {
  readonly go: () => void
  readonly pause: () => void
  readonly extend: () => void
}

/** Calls `expired` once, `callMs` of running after the start or the last `extend`, but after `callMaxMs` of
 *  running at the latest. */
export function deadline({ callMs, callMaxMs }: Deadlines, expired: () => void): Deadline {
  let pausedAt: number | null = performance.now()
  let last = pausedAt + callMaxMs
  let until = Math.min(last, pausedAt + callMs)
  let timer: NodeJS.Timeout | undefined
  // Progress only moves a number: re-arming a timer for each would cost more than the progress.
  const look = (): void => {
    const left = until - performance.now()
    if (left > 0) timer = setTimeout(look, left)
    else expired()
  }
  return {
    go() {
      if (pausedAt === null) return
      const stood = performance.now() - pausedAt
      pausedAt = null
      until += stood
      last += stood
      look()
    },
    pause() {
      clearTimeout(timer)
      pausedAt ??= performance.now()
    },
    extend() {
      until = Math.min(last, performance.now() + callMs)
    },
  }
}
