// Bytes to lines, with a ceiling: no length and no chunking of the input grows memory or time.

import { room } from './room.ts'

/** Takes the chunks of one stream, in order. */
export type Splitter = {
  /** Splits one chunk; the callbacks run before it returns. The splitter may keep `chunk`. */
  readonly push: (chunk: Buffer) => void
  /** The stream is at its end: what stands after the last LF is given as a line. */
  readonly end: () => void
}

/** The two ends of a line that was too long to keep, each at most 1 KiB; they may overlap. */
export type Edges = { readonly head: Buffer; readonly tail: Buffer }

/** Bytes of a dropped line that are kept at either end, to tell whose line it was. */
const EDGE_BYTES = 1024
const LF = 0x0a
const CR = 0x0d

/** A splitter that gives each line without its LF or CRLF, empty ones left out. The lines are the
 *  caller's to keep. A line of more than `limitBytes` is dropped as it comes in and reported once, at
 *  its end: `bytes` is how long it was. Time is linear in the input, also one byte at a time. */
export function lines(
  limitBytes: number,
  onLine: (line: Buffer) => void,
  onTooLong: (bytes: number, edges: Edges) => void,
): Splitter {
  // One more than the limit: a CR that belongs to the line end does not count.
  const held = gather(limitBytes + 1)

  const finish = (line: Buffer): void => {
    const whole = line.at(-1) === CR ? line.subarray(0, -1) : line
    if (whole.length > limitBytes) onTooLong(whole.length, edgesOf(whole))
    else if (whole.length > 0) onLine(whole)
  }
  const close = (): void => {
    if (held.dropped()) {
      const { bytes, edges } = held.takeDropped()
      const cr = edges.tail.at(-1) === CR ? 1 : 0
      onTooLong(bytes - cr, {
        head: edges.head,
        tail: edges.tail.subarray(0, edges.tail.length - cr),
      })
    } else if (held.size() > 0) finish(held.take())
  }

  return {
    push(chunk) {
      let from = 0
      for (let at = chunk.indexOf(LF); at >= 0; at = chunk.indexOf(LF, from)) {
        const piece = chunk.subarray(from, at)
        if (held.size() === 0) finish(piece)
        else {
          held.add(piece)
          close()
        }
        from = at + 1
      }
      if (from < chunk.length) held.add(from === 0 ? chunk : chunk.subarray(from))
    },
    end: close,
  }
}

type Gather = {
  add(piece: Buffer): void
  size(): number
  dropped(): boolean
  take(): Buffer
  takeDropped(): { readonly bytes: number; readonly edges: Edges }
}

/** The pieces of one unfinished line; beyond `limit` only count and edges. */
function gather(limit: number): Gather {
  const held = room()
  let edges: Edges | null = null
  let left = 0

  const drop = (piece: Buffer): void => {
    left += held.size() + piece.length
    const before = held.drop(EDGE_BYTES)
    const head = edges?.head ?? edgesOf(Buffer.concat([before.head, piece])).head
    const last = edges?.tail ?? before.tail
    const tail = Buffer.concat([last, piece.subarray(-EDGE_BYTES)]).subarray(-EDGE_BYTES)
    edges = { head, tail: Buffer.from(tail) }
  }

  return {
    add(piece) {
      if (edges !== null || held.size() + piece.length > limit) drop(piece)
      else held.add(piece)
    },
    size: () => left + held.size(),
    dropped: () => edges !== null,
    take: held.take,
    takeDropped() {
      const told = { bytes: left, edges: edges ?? edgesOf(Buffer.alloc(0)) }
      edges = null
      left = 0
      return told
    },
  }
}

// Copies: a view would keep the whole line alive.
const edgesOf = (line: Buffer): Edges => ({
  head: Buffer.from(line.subarray(0, EDGE_BYTES)),
  tail: Buffer.from(line.subarray(-EDGE_BYTES)),
})
