// What the matrix calls, on the SDK before this one (1.x), legacy only: `fixture-v1.ts [--http]`.

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { parseArgs } from 'node:util'

import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  type CallToolResult,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'

const { values } = parseArgs({ options: { http: { type: 'boolean', default: false } } })

const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const waits = { begun: 0, cancelled: 0 }

function made(): McpServer {
  const server = new McpServer(
    { name: 'fixture-v1', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
      },
    },
  )
  const watched = new Set<string>()
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
    watched.add(params.uri)
    return {}
  })
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
    watched.delete(params.uri)
    return {}
  })
  tools(server)
  waiting(server)
  server.registerTool(
    'test_trigger_resource_update',
    { description: 'tells watchers' },
    async () => {
      const uri = 'test://watched-resource'
      if (watched.has(uri)) await server.server.sendResourceUpdated({ uri })
      return said('changed')
    },
  )
  things(server)
  return server
}

function tools(server: McpServer): void {
  server.registerTool('test_simple_text', { description: 'says one sentence' }, () =>
    said('This is a simple text response for testing.'),
  )
  server.registerTool(
    'test_sum',
    { description: 'adds two numbers', inputSchema: { a: z.number(), b: z.number() } },
    ({ a, b }) => said(String(a + b)),
  )
  server.registerTool('test_error_handling', { description: 'fails always' }, () => {
    throw new Error('This tool intentionally returns an error for testing')
  })
  server.registerTool(
    'test_tool_with_progress',
    { description: 'tells how far it is' },
    async ({ _meta, sendNotification }) => {
      const progressToken = _meta?.progressToken
      for (const progress of [0, 50, 100]) {
        if (progress > 0) await pause(50)
        if (progressToken === undefined) continue
        const params = { progressToken, progress, total: 100 }
        await sendNotification({ method: 'notifications/progress', params })
      }
      return said('done')
    },
  )
  server.registerTool(
    'test_elicitation',
    { description: 'asks who is there', inputSchema: { message: z.string() } },
    async ({ message }, { sendRequest }) => {
      const requestedSchema = {
        type: 'object' as const,
        properties: { username: { type: 'string' as const }, email: { type: 'string' as const } },
        required: ['username', 'email'],
      }
      const response = await sendRequest(
        { method: 'elicitation/create', params: { message, requestedSchema } },
        z.looseObject({ action: z.string() }),
      )
      return said(`User response: ${JSON.stringify(response)}`)
    },
  )
}

function waiting(server: McpServer): void {
  server.registerTool(
    'test_wait',
    {
      description: 'works until it is cancelled, and tells so to whoever asks with status',
      inputSchema: { ms: z.number().int().optional(), status: z.boolean().optional() },
    },
    async ({ ms, status }, { signal }) => {
      if (status === true) return said(JSON.stringify(waits))
      waits.begun += 1
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms ?? 0)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          waits.cancelled += 1
          resolve()
        })
      })
      return said('waited')
    },
  )
}

function things(server: McpServer): void {
  const text = (name: string, uri: string, words: string): void => {
    server.registerResource(name, uri, { description: name, mimeType: 'text/plain' }, () => ({
      contents: [{ uri, mimeType: 'text/plain', text: words }],
    }))
  }
  text('static-text', 'test://static-text', 'This is the content of the static text resource.')
  text('watched', 'test://watched-resource', 'This is watched.')
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'data by id', mimeType: 'application/json' },
    ({ href }, { id }) => ({
      contents: [{ uri: href, mimeType: 'application/json', text: JSON.stringify({ id }) }],
    }),
  )
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'a sentence with two arguments',
      argsSchema: { arg1: z.string(), arg2: z.string() },
    },
    ({ arg1, arg2 }) => ({
      messages: [
        {
          role: 'user',
          content: { type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
        },
      ],
    }),
  )
}

async function serveHttp(): Promise<void> {
  const open = new Map<string, StreamableHTTPServerTransport>()
  const transportOf = async (
    request: IncomingMessage,
  ): Promise<StreamableHTTPServerTransport | null> => {
    const id = request.headers['mcp-session-id']
    if (id !== undefined) return open.get(String(id)) ?? null
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => void open.set(session, transport),
      onsessionclosed: (session) => void open.delete(session),
    })
    await made().connect(transport)
    return transport
  }
  const serve = async (request: IncomingMessage, reply: ServerResponse): Promise<void> => {
    const transport = await transportOf(request)
    if (transport === null) reply.writeHead(404).end('{}')
    else await transport.handleRequest(request, reply)
  }
  const server = createServer((request, reply) => {
    void serve(request, reply).catch(() => reply.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp\n`)
}

await (values.http ? serveHttp() : made().connect(new StdioServerTransport()))
