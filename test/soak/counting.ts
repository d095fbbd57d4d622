// A small MCP server that writes down each call it executed, and dies in the middle of some.
//
//   node test/soak/counting.ts --era modern|legacy --log FILE --crash-every N [--port PORT]
//
// Over stdio, or with a port over HTTP there. Tools: get(id) and put(request_id), both with ms, a delay before
// the answer; the answer is the id again. The log has one line a call, `+ID`, written when it was executed. A
// crash adds `!ID ID ...`: executed and not answered. `?ID`: not answered, because a read was cancelled before,
// or because the stream on which the answer was due was closed. `~ID`: a write whose cancel closes its stream, so
// that nobody hears what became of it.

import { randomUUID } from 'node:crypto'
import { openSync, writeSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

type Json = { readonly [key: string]: unknown }

const { values: flags } = parseArgs({
  options: {
    era: { type: 'string', default: 'modern' },
    log: { type: 'string', default: '/dev/null' },
    'crash-every': { type: 'string', default: '0' },
    port: { type: 'string', default: '' },
  },
})
const isLegacy = flags.era === 'legacy'
const crashEvery = Number(flags['crash-every'])
const log = openSync(flags.log, 'a')
const pending = new Map<unknown, { readonly id: string; readonly isRead: boolean }>()
const INFO = { name: 'counting', version: '1' }
const MODERN = '2026-07-28'
let executed = 0

const note = (line: string): void => void writeSync(log, `${line}\n`)

/** Where the answer to one request goes. */
type Send = (message: Json) => void

function result(send: Send, id: unknown, value: Json): void {
  const era = isLegacy ? {} : { resultType: 'complete' }
  const meta = isLegacy ? {} : { _meta: { 'io.modelcontextprotocol/serverInfo': INFO } }
  send({ id, result: { ...era, ...value, ...meta } })
}

const tool = (name: string, key: string): Json => ({
  name,
  description: `counts ${name}`,
  inputSchema: {
    type: 'object',
    properties: { [key]: { type: 'string' }, ms: { type: 'integer' } },
    required: [key],
  },
})
const TOOLS = [tool('get', 'id'), tool('put', 'request_id')]

function call(send: Send, requestId: unknown, { name, arguments: args }: Json): void {
  const { id, request_id: key, ms = 0 } = args as Json
  const isRead = name === 'get'
  const mine = String(isRead ? id : key)
  note(`+${mine}`)
  if (!isRead && !isLegacy && flags.port !== '') note(`~${mine}`)
  pending.set(requestId, { id: mine, isRead })
  executed++
  if (crashEvery > 0 && executed % crashEvery === 0) {
    note(`!${[...pending.values()].map((one) => one.id).join(' ')}`)
    process.exit(1)
  }
  const answer = (): void => {
    if (!pending.delete(requestId)) return
    result(send, requestId, { content: [{ type: 'text', text: mine }] })
  }
  if (ms === 0) setImmediate(answer)
  else setTimeout(answer, Number(ms))
}

function cancelled(requestId: unknown): void {
  const one = pending.get(requestId)
  // A write has happened: its answer is worth more than the wish not to hear it. Over HTTP a legacy answer is
  // owed to its POST.
  if (one === undefined || !one.isRead || flags.port !== '') return
  unheard(requestId)
}

function unheard(requestId: unknown): void {
  const one = pending.get(requestId)
  if (one !== undefined && pending.delete(requestId)) note(`?${one.id}`)
}

function hello(send: Send, id: unknown, method: string, params: Json): boolean {
  if (isLegacy && method === 'initialize') {
    const { protocolVersion } = params
    result(send, id, { protocolVersion, capabilities: { tools: {} }, serverInfo: INFO })
    return true
  }
  if (isLegacy || method !== 'server/discover') return false
  const lasts = { ttlMs: 60_000, cacheScope: 'public' }
  result(send, id, { supportedVersions: [MODERN], capabilities: { tools: {} }, ...lasts })
  return true
}

type Message = { readonly [key: string]: Json }

function take({ id, method, params = {} }: Message, send: Send): void {
  const name = String(method)
  if (name === 'notifications/cancelled') cancelled(params['requestId'])
  if (id === undefined || hello(send, id, name, params)) return
  if (name === 'tools/call') call(send, id, params)
  else if (name === 'tools/list') {
    result(send, id, { tools: TOOLS, ...(isLegacy ? {} : { ttlMs: 60_000, cacheScope: 'public' }) })
  } else if (name === 'ping') result(send, id, {})
  else send({ id, error: { code: -32601, message: 'Method not found' } })
}

const textOf = (message: Json): string => JSON.stringify({ jsonrpc: '2.0', ...message })
const sessions = new Set<string>()
const SESSION = 'mcp-session-id'

function post(message: Message, request: IncomingMessage, reply: ServerResponse): void {
  const session = request.headers[SESSION]
  const isFirst = message['method'] === ('initialize' as unknown)
  // Another process knew it.
  if (isLegacy && !isFirst && !sessions.has(String(session))) {
    reply.writeHead(404).end()
    return
  }
  const made = isLegacy && isFirst ? randomUUID() : null
  if (made !== null) sessions.add(made)
  if (message['id'] === undefined) reply.writeHead(202).end()
  else if (!isLegacy) reply.on('close', () => unheard(message['id']))
  take(message, (answer) => {
    const headers = made === null ? {} : { [SESSION]: made }
    reply.writeHead(200, { 'Content-Type': 'application/json', ...headers }).end(textOf(answer))
  })
}

if (flags.port === '') {
  createInterface({ input: process.stdin }).on('line', (line) =>
    take(JSON.parse(line) as Message, (answer) => void process.stdout.write(`${textOf(answer)}\n`)),
  )
  process.stdin.on('end', () => process.exit(0))
} else {
  createServer((request, reply) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      if (request.method === 'POST') post(JSON.parse(body) as Message, request, reply)
      else reply.writeHead(405).end()
    })
  }).listen(Number(flags.port), '127.0.0.1')
}
