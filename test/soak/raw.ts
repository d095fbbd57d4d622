// Requests as bytes on sockets of their own, for clients that do not behave.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { mint } from '../../src/identity/tokens.ts'
import { addClientIn } from '../../src/store/reader.ts'
import type { Gate } from '../cases/harness.ts'
import { modernHeaders } from '../cases/http-wire.ts'
import { type Bag, request } from '../cases/wire.ts'

/** One call of a tool. */
export type Call = { readonly name: string; readonly args: Bag; readonly token?: string }

/** The head and the body of one call; `announced` replaces the length of the body. */
export function post({ name, args, token }: Call, announced?: number): string {
  const message = {
    ...request('modern', 1, 'tools/call', { name, arguments: args }),
    jsonrpc: '2.0',
  } as const
  const body = JSON.stringify(message)
  const lines = [
    'POST /mcp HTTP/1.1',
    'Host: localhost',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    ...Object.entries(modernHeaders(message)).map(
      ([header, value]) => `${header}: ${String(value)}`,
    ),
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    `Content-Length: ${announced ?? Buffer.byteLength(body)}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** A connection that ends with the test. Nobody hears of its errors. */
export function dialled(t: TestContext, gate: Gate): Promise<Socket> {
  const port = Number(/http:\/\/127\.0\.0\.1:(\d+)/.exec(gate.errors())?.[1])
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket))
    // A gateway may cut it: that is for the test to see, if it wants to.
    socket.on('error', reject)
    t.after(() => socket.destroy())
  })
}

/** Adds a client of the one profile; its token, once the gateway knows it. */
export async function addClient(gate: Gate, name: string): Promise<string> {
  const { token, digest } = mint()
  const rest = { person: false, attributes: {}, limit: null, expiresUs: null }
  assert.equal(
    addClientIn(join(gate.folder, 'state'), { name, profile: 'agent', digest, ...rest }),
    'added',
  )
  const headers = { authorization: `Bearer ${token}` }
  const body = JSON.stringify(request('modern', 1, 'server/discover'))
  while ((await gate.http.exchange({ headers, body })).status === 401) await sleep(100)
  return token
}

/** Writes so many bytes as fast as they are taken, or until nobody reads. */
export function flood(reply: ServerResponse, bytes: number): void {
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  let left = bytes
  const more = (): void => {
    while (left > 0 && !reply.destroyed) {
      left -= chunk.length
      if (!reply.write(chunk)) return void reply.once('drain', more)
    }
    reply.end()
  }
  more()
}
