// A server that sends much at once leaves others their turn.

import type { Readable } from 'node:stream'

/** Bytes of one read that found all that it could take, on a socket; on a pipe it is twice that. */
const FULL_READ = 32 * 1024
/** Bytes of full reads after which `stream` waits for a turn of the event loop: left to itself, one read follows
 *  another. */
const BURST_BYTES = 256 * 1024

/** To be told of each chunk of `stream`, last thing; a stream that is paused already is left alone. */
export function bursts(stream: Readable): (chunk: Buffer) => void {
  let bytes = 0
  return (chunk) => {
    if (chunk.length < FULL_READ) return
    bytes += chunk.length
    if (bytes < BURST_BYTES || stream.isPaused()) return
    bytes = 0
    stream.pause()
    setImmediate(() => stream.resume())
  }
}
