// How much a server may say that nobody asked for.

/** Messages a second that are no answers and are still read; more are dropped unread until the next. */
const UNASKED_A_SECOND = 2000
const UNASKED_BYTES_A_SECOND = 8 * 1024 * 1024

/** Counts what nobody asked for. While it is closed, lines that cannot be answers are not even read. */
export type Floodgate = {
  readonly count: (bytes: number) => void
  readonly closed: (line: Buffer) => boolean
}

/** A gate for one server, open at first; its counts start anew each second. */
export function floodgate(): Floodgate {
  let second = 0
  let messages = 0
  let bytes = 0
  const turn = (): void => {
    const now = Math.floor(performance.now() / 1000)
    if (now === second) return
    second = now
    messages = 0
    bytes = 0
  }
  return {
    count(length) {
      turn()
      messages++
      bytes += length
    },
    closed(line) {
      if (messages < UNASKED_A_SECOND && bytes < UNASKED_BYTES_A_SECOND) return false
      turn()
      if (messages < UNASKED_A_SECOND && bytes < UNASKED_BYTES_A_SECOND) return false
      return !line.includes('"id"')
    },
  }
}
