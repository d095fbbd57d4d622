// The body of one request, whole or not at all: no length and no chunking grows memory beyond the limit.

import type { IncomingMessage } from 'node:http'

/** What came of reading a body. `bytes`: as many as came in, or were announced. cut: the client went away. */
export type Body =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'too_long'; readonly bytes: number }
  | { readonly kind: 'cut' }

/** Bytes of a refused body that are still read: a client that is cut off while it writes may never see the
 *  refusal. */
const LINGER_BYTES = 8 * 1024 * 1024

/** Reads a body of at most `limitBytes`; the callback is called once. */
export function readBody(
  request: IncomingMessage,
  limitBytes: number,
  done: (body: Body) => void,
): void {
  let chunks: Buffer[] = []
  let size = 0
  let isDone = false
  const finish = (body: Body): void => {
    if (isDone) return
    isDone = true
    chunks = []
    done(body)
  }
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (isDone) return
    if (size > limitBytes) finish({ kind: 'too_long', bytes: size })
    else chunks.push(chunk)
  })
  request.on('end', () => {
    const [first] = chunks
    const bytes = chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, size)
    finish({ kind: 'body', bytes })
  })
  request.on('close', () => finish({ kind: 'cut' }))
  request.on('error', () => finish({ kind: 'cut' }))
}

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
