// A scriptable MCP server over HTTP in this process, both eras, misbehaving on demand.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { TestContext } from 'node:test'

type Json = Record<string, unknown>

/** One request as it came. */
export type Seen = {
  readonly verb: string
  readonly headers: IncomingMessage['headers']
  readonly rawHeaders: readonly string[]
  readonly body: Json
  readonly at: number
}

/** What a test may do with one message. `event` writes one event of a stream, beginning it if need be. */
export type Turn = {
  readonly seen: Seen
  readonly reply: ServerResponse
  readonly request: IncomingMessage
  readonly json: (status: number, value: unknown, headers?: Record<string, string>) => void
  readonly result: (value: Json) => void
  readonly error: (status: number, code: number, message: string, data?: unknown) => void
  readonly stream: (headers?: Record<string, string>) => void
  readonly event: (value: unknown, id?: string) => void
  readonly finish: (value: Json) => void
}

/** True: the message was dealt with. */
export type Script = (turn: Turn) => boolean | void

export type HttpServer = {
  readonly url: string
  readonly port: number
  readonly seen: Seen[]
  readonly sockets: Set<Socket>
  /** Connections that were ever made. */
  connections: number
  /** Sessions by id; a test may forget them. */
  readonly sessions: Set<string>
  /** Answers of the client to what the server asked, by id. */
  readonly answers: Map<unknown, Json>
  /** The open GET streams of sessions. */
  readonly streams: Set<ServerResponse>
  script: Script
  era: 'modern' | 'legacy' | 'dual'
  tools: Json[]
  readonly of: (method: string) => Seen[]
  readonly announce: (value: Json, id?: string) => void
  readonly close: () => Promise<void>
  readonly listen: () => Promise<void>
}

const MODERN = '2026-07-28'
const VERSION = 'io.modelcontextprotocol/protocolVersion'
const OBJECT = { type: 'object', properties: {} }

export const TOOLS: Json[] = [
  { name: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } },
  { name: 'get', inputSchema: OBJECT, annotations: { readOnlyHint: true } },
  { name: 'put', inputSchema: OBJECT },
]

/** Starts a server that ends with the test. `script` sees every message first. */
export async function httpServer(
  t: TestContext,
  options: {
    readonly era?: HttpServer['era']
    readonly script?: Script
    readonly get?: boolean
  } = {},
): Promise<HttpServer> {
  const made: HttpServer = {
    url: '',
    port: 0,
    seen: [],
    sockets: new Set(),
    connections: 0,
    sessions: new Set(),
    answers: new Map(),
    streams: new Set(),
    script: options.script ?? (() => false),
    era: options.era ?? 'modern',
    tools: TOOLS,
    of: (method) => made.seen.filter(({ body }) => body['method'] === method),
    announce(value, id) {
      for (const one of made.streams) writeEvent(one, { jsonrpc: '2.0', ...value }, id)
    },
    close: () => close(server, made),
    listen: () => listen(server, made.port),
  }
  const server = createServer(
    (request, reply) => void receive(made, request, reply, options.get !== false),
  )
  server.keepAliveTimeout = 60_000
  server.on('connection', (socket) => {
    made.connections++
    made.sockets.add(socket)
    socket.once('close', () => made.sockets.delete(socket))
  })
  await listen(server, 0)
  const { port } = server.address() as AddressInfo
  Object.assign(made, { port, url: `http://127.0.0.1:${port}/mcp` })
  t.after(() => close(server, made))
  return made
}

const listen = (server: Server, port: number): Promise<void> =>
  new Promise((resolve) => server.listen(port, '127.0.0.1', resolve))

function close(server: Server, { sockets }: HttpServer): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })
}

export function writeEvent(reply: ServerResponse, value: unknown, id?: string): void {
  reply.write(`${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`)
}

async function receive(
  made: HttpServer,
  request: IncomingMessage,
  reply: ServerResponse,
  get: boolean,
): Promise<void> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return
  }
  const text = Buffer.concat(chunks).toString('utf8')
  const seen: Seen = {
    verb: request.method ?? '',
    headers: request.headers,
    rawHeaders: request.rawHeaders,
    body: text === '' ? {} : (JSON.parse(text) as Json),
    at: performance.now(),
  }
  made.seen.push(seen)
  const turn = turnOf(seen, request, reply)
  if (made.script(turn) === true) return
  if (seen.verb === 'GET') openStream(made, turn, get)
  else if (seen.verb === 'DELETE') {
    made.sessions.delete(String(seen.headers['mcp-session-id']))
    turn.json(200, {})
  } else answer(made, turn)
}

function turnOf(seen: Seen, request: IncomingMessage, reply: ServerResponse): Turn {
  const { id } = seen.body
  const json = (status: number, value: unknown, headers: Record<string, string> = {}): void => {
    reply.writeHead(status, { 'content-type': 'application/json', ...headers })
    reply.end(JSON.stringify(value))
  }
  const stream = (headers: Record<string, string> = {}): void => {
    reply.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
    reply.flushHeaders()
  }
  const event = (value: unknown, eventId?: string): void => {
    if (!reply.headersSent) stream()
    writeEvent(reply, value, eventId)
  }
  return {
    seen,
    reply,
    request,
    json,
    result: (value) => json(200, { jsonrpc: '2.0', id, result: value }),
    error: (status, code, message, data) =>
      json(status, { jsonrpc: '2.0', id, error: { code, message, data } }),
    stream,
    event,
    finish(value) {
      event({ jsonrpc: '2.0', id, result: value })
      reply.end()
    },
  }
}

function openStream(made: HttpServer, turn: Turn, get: boolean): void {
  const id = String(turn.seen.headers['mcp-session-id'])
  if (!get || made.era === 'modern') return turn.json(405, {})
  if (!made.sessions.has(id)) return turn.json(404, {})
  turn.stream()
  made.streams.add(turn.reply)
  turn.reply.once('close', () => made.streams.delete(turn.reply))
}

function answer(made: HttpServer, turn: Turn): void {
  const { body, headers } = turn.seen
  const params = (body['params'] ?? {}) as Json
  const modern = ((params['_meta'] ?? {}) as Json)[VERSION] === MODERN
  if (body['method'] === undefined) made.answers.set(body['id'], body)
  if (body['id'] === undefined || body['method'] === undefined) {
    turn.reply.writeHead(202)
    turn.reply.end()
    return
  }
  if (modern && made.era !== 'legacy') return modernRequest(made, turn, params)
  if (modern || made.era === 'modern') {
    return turn.json(400, {
      jsonrpc: '2.0',
      id: null,
      error: { code: -32000, message: 'Bad Request: Server not initialized' },
    })
  }
  if (body['method'] === 'initialize') return initialize(made, turn, params)
  const id = headers['mcp-session-id']
  if (typeof id !== 'string') return turn.error(400, -32600, 'a session is needed')
  if (!made.sessions.has(id)) {
    return turn.json(404, {
      jsonrpc: '2.0',
      id: null,
      error: { code: -32001, message: 'Session not found' },
    })
  }
  turn.result(resultOf(made, body['method'] as string, params))
}

function initialize(made: HttpServer, turn: Turn, params: Json): void {
  const id = randomUUID()
  made.sessions.add(id)
  const result = {
    protocolVersion: params['protocolVersion'],
    capabilities: { tools: { listChanged: true }, resources: {} },
    serverInfo: { name: 'http-scripted', version: '1' },
  }
  turn.json(200, { jsonrpc: '2.0', id: turn.seen.body['id'], result }, { 'mcp-session-id': id })
}

function modernRequest(made: HttpServer, turn: Turn, params: Json): void {
  const { body, headers } = turn.seen
  const method = body['method'] as string
  if (headers['mcp-protocol-version'] !== MODERN || headers['mcp-method'] !== method) {
    return turn.error(400, -32020, 'Header mismatch')
  }
  if (method === 'subscriptions/listen') {
    const ack = {
      notifications: params['notifications'],
      _meta: { 'io.modelcontextprotocol/subscriptionId': body['id'] },
    }
    turn.event({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: ack })
    made.streams.add(turn.reply)
    turn.reply.once('close', () => made.streams.delete(turn.reply))
    return
  }
  if (method === 'server/discover') {
    return turn.result({
      resultType: 'complete',
      supportedVersions: [MODERN],
      capabilities: { tools: {}, resources: {} },
      ttlMs: 0,
      cacheScope: 'private',
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'http-scripted', version: '1' } },
    })
  }
  turn.result({ resultType: 'complete', ...resultOf(made, method, params) })
}

function resultOf(made: HttpServer, method: string, params: Json): Json {
  if (method === 'tools/list') return { tools: made.tools, ttlMs: 60_000, cacheScope: 'private' }
  const args = (params['arguments'] ?? {}) as Json
  const text = params['name'] === 'echo' ? String(args['text']) : String(params['name'] ?? method)
  return { content: [{ type: 'text', text }] }
}
