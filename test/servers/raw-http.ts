// A server that speaks HTTP byte by byte as a test says, on plain sockets.

import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** One request as it came. `on`: which connection it came on, from 0. */
export type RawRequest = { readonly head: string; readonly body: string; readonly on: number }

export type RawServer = {
  readonly url: string
  readonly requests: RawRequest[]
  /** Every connection that was made, and what came on it. */
  readonly sockets: Socket[]
  readonly bytes: string[]
}

/** What happens with a request that is whole; `at` counts them from 0. */
export type RawAnswer = (socket: Socket, request: RawRequest, at: number) => void

/** Starts a server that ends with the test. `begun` sees each connection first; true: it is dealt with.
 *  `server`: one that decides what a connection is, as one of TLS. */
export async function rawServer(
  t: TestContext,
  answer: RawAnswer,
  more: {
    readonly begun?: (socket: Socket, on: number) => boolean
    readonly server?: Server
    readonly event?: 'connection' | 'secureConnection'
  } = {},
): Promise<RawServer> {
  const made: RawServer = { url: '', requests: [], sockets: [], bytes: [] }
  const server = more.server ?? createServer()
  server.on(more.event ?? 'connection', (socket: Socket) => {
    const on = made.sockets.push(socket) - 1
    made.bytes.push('')
    socket.on('error', () => {})
    if (more.begun?.(socket, on) === true) return
    let come = ''
    socket.on('data', (chunk) => {
      const text = chunk.toString('latin1')
      made.bytes[on] += text
      come += text
      for (;;) {
        const end = come.indexOf('\r\n\r\n')
        if (end < 0) return
        const head = come.slice(0, end)
        const length = Number(/^content-length: (\d+)$/im.exec(head)?.[1] ?? 0)
        if (come.length < end + 4 + length) return
        const body = come.slice(end + 4, end + 4 + length)
        come = come.slice(end + 4 + length)
        const request = { head, body, on }
        answer(socket, request, made.requests.push(request) - 1)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  Object.assign(made, { url: `http://127.0.0.1:${port}/mcp` })
  t.after(() => {
    server.close()
    for (const socket of made.sockets) socket.destroy()
  })
  return made
}

/** A whole reply. */
export const said = (body: string, headers = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
