// A server over HTTP whose answer to a call is a gigabyte; its address goes to the thread that started it.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parentPort } from 'node:worker_threads'

import { flood } from './raw.ts'

const GIB = 1024 * 1024 * 1024
const MODERN = '2026-07-28'
const TOOLS = [{ name: 'put', inputSchema: { type: 'object', properties: {} } }]

const resultOf = (method: string): object =>
  method === 'tools/list'
    ? { tools: TOOLS, ttlMs: 600_000, cacheScope: 'public' }
    : { supportedVersions: [MODERN], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'public' }

const server = createServer((request, reply) => {
  let text = ''
  request.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  request.on('end', () => {
    const { id, method } = JSON.parse(text) as { readonly id: unknown; readonly method: string }
    reply.writeHead(200, { 'content-type': 'application/json' })
    if (method === 'tools/call') {
      reply.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"a":"`)
      flood(reply, GIB)
      return
    }
    const result = { resultType: 'complete', ...resultOf(method) }
    reply.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
})
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo
  parentPort?.postMessage(`http://127.0.0.1:${port}/mcp`)
})
