// The writing end of a session: whole lines, and calm when nobody reads.

import type { Writable } from 'node:stream'

import type { Weight } from './channel.ts'

/** Lines to one client. */
export type Outlet = {
  /** Writes one message and its line end; false when it was dropped, as a notice is while the client does
   *  not keep up, and everything is once it is gone. */
  readonly write: (message: string, weight: Weight) => boolean
  /** True while the client reads slower than we write; then nothing more should be asked of us. */
  readonly isFull: () => boolean
  /** Resolves when all is written, the client is gone, or `waitMs` are over. */
  readonly flush: (waitMs: number) => Promise<void>
}

/** Waiting output, in UTF-16 units, from which on notices are dropped and no further line is read. What can
 *  still come is bounded by the requests in flight. */
const FULL = 1024 * 1024

/** The outlet on `output`. `closed` is called once, when the client cannot be reached any more; `drained`
 *  each time `isFull` becomes false. */
export function outlet(
  output: Writable,
  on: { readonly closed: (why: string) => void; readonly drained: () => void },
): Outlet {
  let open = true
  let burst = ''
  const close = (why: string): void => {
    if (!open) return
    open = false
    on.closed(why)
  }
  const writeOut = (): void => {
    const text = burst
    burst = ''
    if (text !== '') output.write(text)
  }
  const length = (): number => output.writableLength + burst.length
  output.on('error', (error: NodeJS.ErrnoException) => close(error.code ?? 'error'))
  output.on('close', () => close('closed'))
  output.on('drain', on.drained)
  return {
    write(message, weight) {
      if (!open || (weight === 'notice' && length() > FULL)) return false
      // What one turn of the event loop answers leaves in one write.
      if (burst === '') process.nextTick(writeOut)
      burst += `${message}\n`
      return true
    },
    isFull: () => open && length() > FULL,
    flush(waitMs) {
      writeOut()
      return flush(output, () => open, waitMs)
    },
  }
}

async function flush(output: Writable, isOpen: () => boolean, waitMs: number): Promise<void> {
  if (!isOpen() || output.writableLength === 0) return
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, waitMs)
    const done = (): void => {
      clearTimeout(timer)
      resolve()
    }
    output.once('close', done)
    output.once('error', done)
    output.write('', done)
  })
}
