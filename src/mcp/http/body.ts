// The body of one request, whole or not at all: no length and no chunking grows memory beyond the limit.

import type { IncomingMessage } from 'node:http'

/** What came of reading a body. `bytes`: as many as came in, or were announced. cut: the client went away;
 *  crowded: there was no room for more of it. */
export type Body =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'too_long'; readonly bytes: number }
  | { readonly kind: 'cut' | 'crowded' }

/** Bytes of a refused body that are still read: a client that is cut off while it writes may never see the
 *  refusal. */
const LINGER_BYTES = 8 * 1024 * 1024

/** Reads a body of at most `limitBytes`; the callback is called once. `hold` is asked for the room of every
 *  piece before it is kept. */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  hold: (bytes: number) => boolean,
  done: (body: Body) => void,
): void {
  const held = gather()
  let size = 0
  let isDone = false
  const finish = (body: Body): void => {
    if (isDone) return
    isDone = true
    // The connection may stay open, and with it whatever its listeners hold.
    held.drop()
    done(body)
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (isDone) return
    if (size > limitBytes) finish({ kind: 'too_long', bytes: size })
    else if (hold(chunk.length)) held.add(chunk)
    else finish({ kind: 'crowded' })
  })
  request.on('end', () => finish({ kind: 'body', bytes: held.all() }))
  request.on('close', () => finish({ kind: 'cut' }))
  request.on('error', () => finish({ kind: 'cut' }))
}

/** The pieces of one body: a single one as it came, several in one growing buffer. Kept as a list, pieces of
 *  one byte would take a hundred times their size. */
function gather(): {
  readonly add: (piece: Buffer) => void
  readonly all: () => Buffer
  readonly drop: () => void
} {
  let room: Buffer = NOTHING
  let size = 0
  return {
    add(piece) {
      if (size === 0) {
        room = piece
        size = piece.length
        return
      }
      if (size + piece.length > room.length) {
        const next = Buffer.allocUnsafe(Math.max(2 * room.length, size + piece.length))
        room.copy(next, 0, 0, size)
        room = next
      }
      piece.copy(room, size)
      size += piece.length
    },
    all: () => room.subarray(0, size),
    drop() {
      room = NOTHING
      size = 0
    },
  }
}

const NOTHING: Buffer = Buffer.alloc(0)

/** The length that a request announces; null when it announces none. */
export function announced(length: string | undefined): number | null {
  if (length === undefined) return null
  return /^[0-9]{1,15}$/.test(length) ? Number(length) : Number.MAX_SAFE_INTEGER
}

/** Lets the rest of a refused body pass by, up to a limit; beyond it the connection is cut. */
export function discard(request: IncomingMessage): void {
  if (request.complete) return
  let size = 0
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size > LINGER_BYTES) request.destroy()
  })
  request.on('error', () => undefined)
  request.resume()
}
