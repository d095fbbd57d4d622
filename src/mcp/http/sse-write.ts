// The writing end of one event stream over HTTP: whole events, and calm when nobody reads.

import type { ServerResponse } from 'node:http'

import type { Weight } from '../front/channel.ts'

/** One open event stream to one client. */
export type EventLine = {
  /** Writes one event; false when it was dropped, as a notice is while the client does not keep up, and
   *  everything is once the stream is closed. */
  readonly send: (event: string, weight: Weight) => boolean
  /** Writes a comment when nothing was written for `silentMs`. */
  readonly keepAlive: (nowMs: number, silentMs: number) => void
  /** Nothing more comes; what was written still goes out. */
  readonly end: () => void
}

/** What waits for a client to read it, in UTF-16 units, over all its streams and answers. */
export type Load = { readonly unread: () => number; readonly add: (units: number) => void }

/** Unread output of one stream from which on notices are dropped. */
const FULL = 256 * 1024
/** Unread output of one client from which on its streams are cut rather than filled. */
export const MAX_UNREAD: number = 64 * 1024 * 1024
/** How long a client may read nothing of what was written for it. */
export const STALL_MS = 60_000

/** The text of one event. A line break inside a message would end its field, so each line is a field. */
export function eventText(message: string, id: string | null): string {
  const data = /[\r\n]/.test(message) ? message.split(/\r\n|\r|\n/).join('\ndata: ') : message
  return id === null ? `data: ${data}\n\n` : `id: ${id}\ndata: ${data}\n\n`
}

/** An event without a message, from which a stream can be taken up again, and after how long. */
export const primingText = (id: string, retryMs: number): string =>
  `id: ${id}\nretry: ${retryMs}\ndata: \n\n`

/** Begins an event stream as the body of this response. `closed` is called once, when the client closed it
 *  or it was cut because nobody reads; not after `end`. */
export function eventLine(
  response: ServerResponse,
  options: {
    readonly headers: readonly string[]
    readonly load: Load
    readonly nowMs: () => number
    readonly closed: () => void
  },
): EventLine {
  const { load, nowMs } = options
  let open = true
  let unread = 0
  let lastMs = nowMs()
  const shut = (): void => {
    load.add(-unread)
    unread = 0
    if (!open) return
    open = false
    options.closed()
  }
  const write = (text: string): void => {
    unread += text.length
    load.add(text.length)
    lastMs = nowMs()
    response.write(text, () => {
      const read = Math.min(unread, text.length)
      unread -= read
      load.add(-read)
    })
  }
  response.on('close', shut)
  response.on('error', shut)
  response.writeHead(200, [...STREAM_HEADERS, ...options.headers])
  response.flushHeaders()
  response.setTimeout(STALL_MS, () => response.destroy())
  return {
    send(event, weight) {
      if (!open || (weight === 'notice' && unread > FULL)) return false
      if (load.unread() > MAX_UNREAD) {
        response.destroy()
        return false
      }
      write(event)
      return true
    },
    keepAlive(now, silentMs) {
      // What still waits to be read keeps the stream alive, or shows that it is dead.
      if (open && unread === 0 && now - lastMs >= silentMs) write(':\n\n')
    },
    end() {
      open = false
      response.end()
    },
  }
}

const STREAM_HEADERS: readonly string[] = [
  'Content-Type',
  'text/event-stream',
  'Cache-Control',
  'no-store',
  'X-Accel-Buffering',
  'no',
  'X-Content-Type-Options',
  'nosniff',
]
