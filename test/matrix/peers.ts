// Clients on the official SDK, new and old, behind one face: what a leg of the matrix does with them.

import assert from 'node:assert/strict'

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'

import { COMPILED } from '../servers/compiled.ts'
import { type Heard, overhear } from './overheard.ts'

/** How a gateway is reached: an endpoint, or a command to start. */
export type Front =
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'stdio'; readonly command: readonly string[] }

/** What is done with one call beside waiting for it. */
export type CallOptions = {
  readonly signal?: AbortSignal
  readonly onprogress?: (told: { readonly progress: number }) => void
}

/** What a test does as a client. Results are as the SDK gives them. */
export type Peer = {
  readonly tools: () => Promise<readonly string[]>
  readonly call: (
    name: string,
    args?: Record<string, unknown>,
    options?: CallOptions,
  ) => Promise<Result>
  readonly read: (uri: string) => Promise<unknown>
  readonly prompt: (name: string, args: Record<string, string>) => Promise<unknown>
  /** Subscribes and resolves when the server's side stands. */
  readonly watch: (uri: string, updated: (uri: string) => void) => Promise<void>
  readonly close: () => Promise<void>
  /** Everything that came over the wire so far. */
  readonly heard: readonly Heard[]
}

/** A tool's result, as far as the matrix looks. */
export type Result = { readonly content?: unknown; readonly isError?: boolean | undefined }

/** What a peer answers when a server asks who is there. */
export const USER: Record<string, string> = { username: 'ana', email: 'ana@example.com' }

/** A client of the era: the new SDK speaks modern, the one before it legacy. */
export const peer = (era: 'modern' | 'legacy', front: Front): Promise<Peer> =>
  era === 'modern' ? modernPeer(front) : legacyPeer(front)

const INFO = { name: 'matrix', version: '1.0.0' }

async function modernPeer(front: Front): Promise<Peer> {
  const client = new Client(INFO, {
    capabilities: { elicitation: {} },
    versionNegotiation: { mode: 'auto' },
  })
  client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: USER }))
  const transport =
    front.kind === 'http'
      ? new StreamableHTTPClientTransport(new URL(front.url))
      : new StdioClientTransport(programOf(front.command))
  const heard = overhear(transport)
  await client.connect(transport)
  assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
  return {
    heard,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: (name, args = {}, options = {}) => client.callTool({ name, arguments: args }, options),
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    watch: async (uri, updated) => {
      client.setNotificationHandler('notifications/resources/updated', ({ params }) =>
        updated(params.uri),
      )
      await client.listen({ resourceSubscriptions: [uri] })
    },
    close: () => client.close(),
  }
}

async function legacyPeer(front: Front): Promise<Peer> {
  const client = new OldClient(INFO, { capabilities: { elicitation: {} } })
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: USER }))
  const transport =
    front.kind === 'http' ? new OldHttp(new URL(front.url)) : new OldStdio(programOf(front.command))
  const heard = overhear(transport)
  await client.connect(transport)
  return {
    heard,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, options = {}) =>
      (await client.callTool({ name, arguments: args }, undefined, options)) as Result,
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    watch: async (uri, updated) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
        updated(params.uri),
      )
      await client.subscribeResource({ uri })
    },
    close: async () => {
      if (transport instanceof OldHttp) await transport.terminateSession()
      await client.close()
    },
  }
}

const programOf = ([command = '', ...args]: readonly string[]): {
  command: string
  args: string[]
  stderr: 'ignore'
  env: Record<string, string>
} => ({
  command,
  args,
  stderr: 'ignore',
  env: COMPILED,
})
