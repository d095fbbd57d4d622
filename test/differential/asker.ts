// Asks the same of a server again and again, by different ways, and keeps what comes back as it came.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport as OldHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'

import { COMPILED } from '../servers/compiled.ts'
import { type Heard, overhear, progressIn } from '../matrix/overheard.ts'

type Json = Record<string, unknown>

/** One request of a session. */
export type Deed = { readonly method: string; readonly params?: Json }

/** What one request brought: its progress, and its result or its error. */
export type Brought = {
  readonly progress: readonly Json[]
  readonly result?: Json
  readonly error?: { readonly code: unknown; readonly message: string; readonly data: unknown }
}

/** A session and its end. */
export type Asker = {
  readonly ask: (deed: Deed) => Promise<Brought>
  readonly close: () => Promise<void>
}

/** Where the server is: itself or a gateway. */
export type Place =
  | { readonly kind: 'program'; readonly command: readonly string[]; readonly env: Json }
  | { readonly kind: 'http'; readonly url: string; readonly era: 'modern' | 'legacy' }

const ANY = z.looseObject({})
const INFO = { name: 'differential', version: '1.0.0' }
const ANSWER = { action: 'accept' as const, content: { name: 'Ana', check: true, integer: 7 } }
const SAMPLE = {
  role: 'assistant' as const,
  model: 'none',
  content: { type: 'text' as const, text: 'a sample' },
}
const CAPABILITIES = { elicitation: {}, sampling: {} }

/** Opens a session there, as somebody who can be asked for forms and samples. */
export const asker = (place: Place): Promise<Asker> =>
  place.kind === 'http' && place.era === 'modern' ? modern(place.url) : legacy(place)

async function legacy(place: Place): Promise<Asker> {
  const client = new OldClient(INFO, { capabilities: CAPABILITIES })
  client.setRequestHandler(ElicitRequestSchema, async () => ANSWER)
  client.setRequestHandler(CreateMessageRequestSchema, async () => SAMPLE)
  const transport = transportOf(place)
  const heard = overhear(transport)
  await client.connect(transport)
  return {
    ask: async ({ method, params }) =>
      bare(await brought(heard, () => client.request({ method, params }, ANY, FOLLOWED))),
    close: () => client.close(),
  }
}

/** The old SDK's client puts the code before every message. */
function bare(one: Brought): Brought {
  if (one.error === undefined) return one
  const message = one.error.message.replace(`MCP error ${String(one.error.code)}: `, '')
  return { ...one, error: { ...one.error, message } }
}

function transportOf(place: Place): OldStdio | OldHttp {
  if (place.kind === 'http') return new OldHttp(new URL(place.url))
  const [command = '', ...args] = place.command
  const env = {
    PATH: process.env['PATH'] ?? '',
    ...COMPILED,
    ...(place.env as Record<string, string>),
  }
  return new OldStdio({ command, args, env, stderr: 'ignore' })
}

async function modern(url: string): Promise<Asker> {
  const client = new Client(INFO, {
    capabilities: CAPABILITIES,
    versionNegotiation: { mode: 'auto' },
  })
  client.setRequestHandler('elicitation/create', async () => ANSWER)
  client.setRequestHandler('sampling/createMessage', async () => SAMPLE)
  const transport = new StreamableHTTPClientTransport(new URL(url))
  const heard = overhear(transport)
  await client.connect(transport)
  return {
    ask: ({ method, params = {} }) =>
      brought(heard, () => client.request({ method, params }, ANY, FOLLOWED)),
    close: () => client.close(),
  }
}

/** Progress is asked for; what came of it is read from the wire. */
const FOLLOWED = { onprogress: (): void => undefined }

async function brought(heard: readonly Heard[], run: () => Promise<Json>): Promise<Brought> {
  const begun = heard.length
  const progress = (): readonly Json[] => progressIn(heard.slice(begun))
  try {
    const result = await run()
    return { progress: progress(), result }
  } catch (error) {
    const { code, message, data } = error as { code: unknown; message: string; data: unknown }
    return { progress: progress(), error: { code, message, data } }
  }
}
