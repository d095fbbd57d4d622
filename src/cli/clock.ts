// The clock of records: wall time with microseconds.

import type { Clock } from '../ports.ts'

/** How far the fine clock may be from the wall clock before it is set again. */
const MAX_DRIFT_MS = 1_000

/** Microseconds since 1970. Advances evenly between corrections of the wall clock of more than a second. */
export function wallClock(): Clock {
  let origin = performance.timeOrigin
  return {
    nowUs() {
      const wall = Date.now()
      const fine = origin + performance.now()
      if (Math.abs(fine - wall) > MAX_DRIFT_MS) origin += wall - fine
      return Math.floor((origin + performance.now()) * 1_000)
    },
  }
}
