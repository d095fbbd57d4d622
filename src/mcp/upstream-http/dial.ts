// A new connection to a server over HTTP, in the clear or over TLS.

import type { LookupFunction, OnReadOpts, Socket } from 'node:net'
import type { ConnectionOptions } from 'node:tls'

/** Where a connection leads. `host`: a name or an address, one of IPv6 without its brackets. */
export type Place = {
  readonly secure: boolean
  readonly host: string
  readonly port: number
  readonly lookup: LookupFunction
}

/** The last session of TLS with a place, for the next connection. */
export type Session = { last: Buffer | undefined }

const TCP_ALIVE_MS = 1000
/** What is read at once. */
const READ_BYTES = 32 * 1024

/** A connection that is being made; or why the runtime does not even try. `take` gets what comes on it. */
export function dial(
  place: Place,
  session: Session,
  take: (chunk: Buffer) => void,
): Socket | NodeJS.ErrnoException {
  try {
    return dialled(place, session, readInto(take))
  } catch (error) {
    return error instanceof Error ? error : new Error('no connection')
  }
}

/** One buffer for all that is read, and what came copied out of it: a new one for each read costs more. */
const readInto = (take: (chunk: Buffer) => void): OnReadOpts => ({
  buffer: Buffer.allocUnsafeSlow(READ_BYTES),
  callback(bytes, buffer) {
    take(Buffer.from(buffer.subarray(0, bytes)))
    return true
  },
})

function dialled(place: Place, session: Session, onread: OnReadOpts): Socket {
  const { host, lookup, port, secure } = place
  const shared = {
    host,
    port,
    lookup,
    onread,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_ALIVE_MS,
  }
  const net = process.getBuiltinModule('node:net')
  if (!secure) return net.connect(shared)
  const secured: ConnectionOptions = {
    ...shared,
    ...(net.isIP(host) === 0 ? { servername: host } : {}),
    ...(session.last === undefined ? {} : { session: session.last }),
    ALPNProtocols: ['http/1.1'],
    // Whatever the environment of this process says of certificates.
    rejectUnauthorized: true,
  }
  const socket = process.getBuiltinModule('node:tls').connect(secured)
  socket.on('session', (made) => {
    session.last = made
  })
  socket.once('error', () => {
    session.last = undefined
  })
  return socket
}
