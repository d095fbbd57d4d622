// Pieces of one message put together in one growing buffer: what is kept is what came, however small its pieces.

/** Holds what came so far. Add no more than the limit that it was made with. */
export type Room = {
  readonly add: (piece: Buffer) => void
  readonly size: () => number
  /** What came, the caller's to keep; the room is empty again. */
  readonly take: () => Buffer
}

const FIRST_CAPACITY = 4096
const NOTHING: Buffer = Buffer.alloc(0)

/** An empty room for up to `limit` bytes. */
export function room(limit: number): Room {
  let held: Buffer = NOTHING
  let size = 0
  return {
    add(piece) {
      const wanted = size + piece.length
      if (wanted > held.length) {
        const capacity = Math.min(limit, Math.max(FIRST_CAPACITY, 2 * held.length, wanted))
        const next = Buffer.allocUnsafe(capacity)
        held.copy(next, 0, 0, size)
        held = next
      }
      piece.copy(held, size)
      size = wanted
    },
    size: () => size,
    take() {
      const whole = held.subarray(0, size)
      held = NOTHING
      size = 0
      return whole
    },
  }
}
