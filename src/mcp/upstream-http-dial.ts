// A new connection to a server over HTTP, in the clear or over TLS.

import type { LookupFunction, Socket } from 'node:net'
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

/** A connection that is being made; or why the runtime does not even try. */
export function dial(place: Place, session: Session): Socket | NodeJS.ErrnoException {
  try {
    return dialled(place, session)
  } catch (error) {
    return error instanceof Error ? error : new Error('no connection')
  }
}

function dialled(place: Place, session: Session): Socket {
  const { host, lookup, port, secure } = place
  const shared = {
    host,
    port,
    lookup,
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
