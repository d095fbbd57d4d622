// A raw JSON-RPC line to an SDK server in this process: what goes in is exactly what a peer would send.

import { Duplex } from 'node:stream'

import type { McpServer } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'

import type { Message } from '../examples/peer.ts'

export const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

export type Peer = {
  /** Sends a request of this era and resolves with its answer. */
  ask(method: string, params?: Record<string, unknown>): Promise<Message>
  /** Sends one message as it is. */
  send(message: unknown): void
  /** All messages received so far. */
  readonly heard: readonly Message[]
  close(): Promise<void>
}

/** Serves what `factory` makes to a peer that speaks lines. `legacy` shakes hands at 2025-11-25 first. */
export async function peerOf(
  factory: () => McpServer,
  era: 'modern' | 'legacy' = 'modern',
): Promise<Peer> {
  const [near, far] = pair()
  const transport = new StdioServerTransport(far, far)
  const served = serveStdio(factory, { transport })
  const heard: Message[] = []
  const waiting = new Map<unknown, (message: Message) => void>()
  let rest = ''
  near.setEncoding('utf8')
  near.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = JSON.parse(line) as Message
      heard.push(message)
      waiting.get(message.id)?.(message)
    }
  })
  let last = 0
  const send = (message: unknown): void => void near.write(`${JSON.stringify(message)}\n`)
  const ask = (method: string, params: Record<string, unknown> = {}): Promise<Message> => {
    const id = ++last
    const answer = new Promise<Message>((resolve) => waiting.set(id, resolve))
    const full = era === 'modern' ? { _meta: MODERN, ...params } : params
    send({ jsonrpc: '2.0', id, method, params: full })
    return answer
  }
  if (era === 'legacy') {
    const clientInfo = { name: 'peer', version: '1' }
    await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo })
    send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  }
  return {
    ask,
    send,
    heard,
    async close() {
      await served.close()
      near.destroy()
    },
  }
}

function pair(): readonly [Duplex, Duplex] {
  const near: Duplex = end(() => far)
  const far: Duplex = end(() => near)
  return [near, far]
}

const end = (other: () => Duplex): Duplex =>
  new Duplex({
    read() {},
    write(chunk, _encoding, done) {
      other().push(chunk)
      done()
    },
  })
