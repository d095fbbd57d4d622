// Bytes to lines, with a ceiling: no length and no chunking of the input grows memory or time.

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
const FIRST_CAPACITY = 4096
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

/** The pieces of one unfinished line in one growing buffer; beyond `limit` only count and edges. */
function gather(limit: number): Gather {
  let room: Buffer = Buffer.alloc(0)
  let size = 0
  let edges: Edges | null = null

  const grow = (wanted: number): void => {
    if (wanted <= room.length) return
    const capacity = Math.min(limit, Math.max(FIRST_CAPACITY, 2 * room.length, wanted))
    const next = Buffer.allocUnsafe(capacity)
    room.copy(next, 0, 0, size)
    room = next
  }
  const drop = (piece: Buffer): void => {
    const head = edges?.head ?? edgesOf(Buffer.concat([room.subarray(0, size), piece])).head
    const before = edges?.tail ?? room.subarray(Math.max(0, size - EDGE_BYTES), size)
    const tail = Buffer.concat([before, piece.subarray(-EDGE_BYTES)]).subarray(-EDGE_BYTES)
    edges = { head, tail: Buffer.from(tail) }
    room = Buffer.alloc(0)
  }

  return {
    add(piece) {
      if (edges !== null || size + piece.length > limit) drop(piece)
      else {
        grow(size + piece.length)
        piece.copy(room, size)
      }
      size += piece.length
    },
    size: () => size,
    dropped: () => edges !== null,
    take() {
      const line = room.subarray(0, size)
      room = Buffer.alloc(0)
      size = 0
      return line
    },
    takeDropped() {
      const told = { bytes: size, edges: edges ?? edgesOf(Buffer.alloc(0)) }
      edges = null
      size = 0
      return told
    },
  }
}

// Copies: a view would keep the whole line alive.
const edgesOf = (line: Buffer): Edges => ({
  head: Buffer.from(line.subarray(0, EDGE_BYTES)),
  tail: Buffer.from(line.subarray(-EDGE_BYTES)),
})
