// The fixture over HTTP: modern requests one by one, legacy sessions with streams that can be resumed.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import {
  localhostHostValidation,
  localhostOriginValidation,
  NodeStreamableHTTPServerTransport,
  toNodeHandler,
} from '@modelcontextprotocol/node'
import {
  createMcpHandler,
  type EventStore,
  isInitializeRequest,
  type JSONRPCMessage,
} from '@modelcontextprotocol/server'

import type { Fixture } from './fixture-server.ts'
import { taskTable, type Tasks } from './fixture-tasks.ts'

/** Where and for which clients. Port 0: any that is free. */
export type FixtureDoor = { readonly eras: string; readonly port: number }

/** Serves until the process ends; resolves with the URL of the endpoint. */
export async function serveFixtureHttp(
  made: Fixture,
  { eras, port }: FixtureDoor,
): Promise<string> {
  const modern = createMcpHandler(made.make, { legacy: 'reject', keepAliveMs: 1000 })
  made.listen({
    tools: () => modern.notify.toolsChanged(),
    prompts: () => modern.notify.promptsChanged(),
    updated: (uri) => modern.notify.resourceUpdated(uri),
  })
  const serveModern = toNodeHandler(modern)
  const serveLegacy = sessions(made)
  const tasks = taskTable()
  const isHost = localhostHostValidation()
  const isOrigin = localhostOriginValidation()
  const server = createServer((request, reply) => {
    void serve(request, reply).catch(() => reply.destroy())
  })
  const serve = async (request: IncomingMessage, reply: ServerResponse): Promise<void> => {
    if (!isHost(request, reply) || !isOrigin(request, reply)) return
    const body = request.method === 'POST' ? await bodyOf(request) : undefined
    const isModern = eras === 'modern' || (eras !== 'legacy' && looksModern(request, body))
    if (!isModern) return serveLegacy(request, reply, body)
    if (answered(tasks, { request, reply, body })) return
    // @ts-expect-error -- the SDK's types are not exact about optional properties
    await serveModern(request, reply, body)
  }
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
}

const VERSION = 'io.modelcontextprotocol/protocolVersion'

/** An envelope, or a header that names a revision which has no sessions. */
function looksModern(request: IncomingMessage, body: unknown): boolean {
  const params = (body as { readonly params?: { readonly _meta?: Record<string, unknown> } } | null)
    ?.params
  if (params?._meta?.[VERSION] !== undefined) return true
  const version = request.headers['mcp-protocol-version']
  return typeof version === 'string' && version >= '2026'
}

/** Answers a request of the tasks extension; false: it is none. */
function answered(
  tasks: Tasks,
  { request, reply, body }: { request: IncomingMessage; reply: ServerResponse; body: unknown },
): boolean {
  const { method, params } = (body ?? {}) as {
    readonly method?: string
    readonly params?: Record<string, unknown>
  }
  const isOurs = method?.startsWith('tasks/') === true
  const name = isOurs ? params?.['taskId'] : params?.['name']
  const agrees = request.headers['mcp-method'] === method && request.headers['mcp-name'] === name
  // A call whose headers disagree is refused by the SDK, with its own words.
  if (!agrees && !isOurs) return false
  const said = tasks(body)
  if (said === undefined) return false
  const error = { code: -32020, message: 'headers and body disagree' }
  const told: JSONRPCMessage = agrees
    ? said
    : { jsonrpc: '2.0', id: (body as { readonly id: string }).id, error }
  const code = 'error' in told ? told.error.code : 0
  reply.writeHead(code === -32020 || code === -32021 ? 400 : 200, {
    'Content-Type': 'application/json',
  })
  reply.end(JSON.stringify(told))
  return true
}

function sessions(
  made: Fixture,
): (request: IncomingMessage, reply: ServerResponse, body: unknown) => Promise<void> {
  const open = new Map<string, NodeStreamableHTTPServerTransport>()
  return async (request, reply, body) => {
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? open.get(id) : undefined
    if (known !== undefined) return known.handleRequest(request, reply, body)
    if (id !== undefined || !isInitializeRequest(body)) {
      const status = id === undefined ? 400 : 404
      const error = { code: -32_000, message: status === 404 ? 'no such session' : 'no session' }
      reply.writeHead(status, { 'Content-Type': 'application/json' })
      reply.end(JSON.stringify({ jsonrpc: '2.0', id: null, error }))
      return
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      eventStore: eventStore(),
      retryInterval: 50,
      onsessioninitialized: (session) => void open.set(session, transport),
      onsessionclosed: (session) => void open.delete(session),
    })
    await made.make().connect(transport)
    await transport.handleRequest(request, reply, body)
  }
}

/** Events of one session in memory, for streams that are resumed. */
function eventStore(): EventStore {
  const events: { readonly stream: string; readonly message: JSONRPCMessage }[] = []
  return {
    storeEvent: async (stream, message) => {
      events.push({ stream, message })
      return String(events.length - 1)
    },
    getStreamIdForEventId: async (id) => events[Number(id)]?.stream,
    replayEventsAfter: async (last, { send }) => {
      const stream = events[Number(last)]?.stream ?? ''
      for (const [at, event] of events.entries()) {
        if (at > Number(last) && event.stream === stream) await send(String(at), event.message)
      }
      return stream
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  try {
    return JSON.parse(Buffer.concat(parts).toString()) as unknown
  } catch {
    return undefined
  }
}
