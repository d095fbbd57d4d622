// Pieces of one message, however small, put together once it is whole.

/** Holds what came so far. */
export type Room = {
  /** The room may keep `piece`. */
  readonly add: (piece: Buffer) => void
  readonly size: () => number
  /** What came, the caller's to keep; the room is empty again. */
  readonly take: () => Buffer
  /** The room is empty again; gives the first and the last `bytes` of what came, which may overlap. */
  readonly drop: (bytes: number) => { readonly head: Buffer; readonly tail: Buffer }
}

/** Smaller pieces are copied: a view of a few bytes costs more than they do, and keeps all that was read with it. */
const LARGE_PIECE = 16 * 1024
const FIRST_BLOCK = 4 * 1024
const MAX_BLOCK = 64 * 1024
const NOTHING: Buffer = Buffer.alloc(0)

/** An empty room. */
export function room(): Room {
  let whole: Buffer[] = []
  let block = NOTHING
  /** What of the block is not among the whole yet: from `from` to `used`. */
  let from = 0
  let used = 0
  let size = 0
  // The rest of the block serves on: small pieces between large ones must not cost a block each.
  const seal = (): void => {
    if (used > from) whole.push(block.subarray(from, used))
    from = used
  }
  const renew = (next: Buffer): void => {
    block = next
    from = 0
    used = 0
  }
  const empty = (): void => {
    renew(NOTHING)
    whole = []
    size = 0
  }
  return {
    add(piece) {
      if (piece.length >= LARGE_PIECE) {
        seal()
        whole.push(piece)
      } else {
        if (used + piece.length > block.length) {
          seal()
          const wanted = Math.max(FIRST_BLOCK, piece.length, Math.min(size, MAX_BLOCK))
          renew(Buffer.allocUnsafeSlow(wanted))
        }
        piece.copy(block, used)
        used += piece.length
      }
      size += piece.length
    },
    size: () => size,
    take() {
      seal()
      const [first = NOTHING] = whole
      const all = whole.length > 1 ? Buffer.concat(whole, size) : first
      empty()
      return all
    },
    drop(bytes) {
      seal()
      const head = Buffer.concat(until(whole, bytes)).subarray(0, bytes)
      const tail = Buffer.concat(until(whole.toReversed(), bytes).reverse()).subarray(-bytes)
      empty()
      return { head, tail }
    },
  }
}

/** The first of `blocks` that hold `bytes` together. */
function until(blocks: readonly Buffer[], bytes: number): Buffer[] {
  const found: Buffer[] = []
  let size = 0
  for (const one of blocks) {
    if (size >= bytes) break
    found.push(one)
    size += one.length
  }
  return found
}
