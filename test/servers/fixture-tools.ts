// The tools of the fixture that ask nothing of the client, as the conformance suite and the matrix call them.

import {
  type CallToolResult,
  type JsonSchemaType,
  type ServerContext,
} from '@modelcontextprotocol/server'

import { IMAGE, said, type Stage } from './fixture-stage.ts'

/** One tool of the fixture. `schema` is advertised as it stands. */
export type FixtureTool = {
  readonly name: string
  readonly description: string
  readonly schema: JsonSchemaType
  readonly run: (
    args: Record<string, unknown>,
    ctx: ServerContext,
    stage: Stage,
  ) => Promise<CallToolResult> | CallToolResult
}

const NONE: JsonSchemaType = { type: 'object', properties: {} }
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA='

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const plain = (name: string, result: CallToolResult): FixtureTool => ({
  name,
  description: `answers always the same: ${name}`,
  schema: NONE,
  run: () => result,
})

const CONTENTS: readonly FixtureTool[] = [
  plain('test_simple_text', said('This is a simple text response for testing.')),
  plain('test_image_content', { content: [{ type: 'image', ...IMAGE }] }),
  plain('test_audio_content', {
    content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }],
  }),
  plain('test_embedded_resource', {
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  plain('test_multiple_content_types', {
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', ...IMAGE },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
]

const LOGGING: FixtureTool = {
  name: 'test_tool_with_logging',
  description: 'says three things to the log while it works',
  schema: NONE,
  run: async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'Tool execution started')
    await pause(50)
    await ctx.mcpReq.log('info', 'Tool processing data')
    await pause(50)
    await ctx.mcpReq.log('info', 'Tool execution completed')
    return said('logged three times')
  },
}

const PROGRESS: FixtureTool = {
  name: 'test_tool_with_progress',
  description: 'tells how far it is, three times',
  schema: NONE,
  run: async (_args, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await pause(50)
      if (progressToken === undefined) continue
      await ctx.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      })
    }
    return said('done')
  },
}

const ERROR: FixtureTool = {
  name: 'test_error_handling',
  description: 'fails always',
  schema: NONE,
  run: () => {
    throw new Error('This tool intentionally returns an error for testing')
  },
}

const SCHEMA: FixtureTool = {
  name: 'json_schema_2020_12_tool',
  description: 'has an input schema with what JSON Schema 2020-12 offers',
  schema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'addressDef',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    // oxlint-disable-next-line unicorn/no-thenable -- `then` is a keyword of JSON Schema
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  },
  run: (args) => said(JSON.stringify(args)),
}

const mirrored = (type: 'string' | 'integer', header: string): JsonSchemaType => ({
  type,
  ...{ 'x-mcp-header': header },
})

const HEADER: FixtureTool = {
  name: 'test_header_tool',
  description: 'has a parameter that clients mirror into a header',
  schema: {
    type: 'object',
    properties: {
      region: mirrored('string', 'Region'),
      count: mirrored('integer', 'Count'),
    },
    required: ['region'],
  },
  run: ({ region }) => said(`region ${String(region)}`),
}

const RECONNECTION: FixtureTool = {
  name: 'test_reconnection',
  description: 'closes its stream and answers on the one that the client resumes',
  schema: NONE,
  run: async (_args, ctx) => {
    ctx.http?.closeSSE?.()
    await pause(200)
    return said('answered after the stream was closed')
  },
}

const QUIET: FixtureTool = {
  name: 'test_logging_tool',
  description: 'says one thing to the log',
  schema: NONE,
  run: async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'a thing for the log')
    return said('logged')
  },
}

const trigger = (name: string, turn: (stage: Stage) => void): FixtureTool => ({
  name,
  description: 'changes what the server offers',
  schema: NONE,
  run: (_args, _ctx, stage) => {
    turn(stage)
    return said('changed')
  },
})

const WAITING: FixtureTool = {
  name: 'test_wait',
  description: 'works until it is cancelled, and tells so to whoever asks with status',
  schema: {
    type: 'object',
    properties: { ms: { type: 'integer' }, status: { type: 'boolean' } },
  },
  run: async ({ ms, status }, ctx, { waits }) => {
    if (status === true) return said(JSON.stringify(waits))
    waits.begun += 1
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Number(ms ?? 0))
      ctx.mcpReq.signal.addEventListener('abort', () => {
        clearTimeout(timer)
        waits.cancelled += 1
        resolve()
      })
    })
    return said('waited')
  },
}

const SUM: FixtureTool = {
  name: 'test_sum',
  description: 'adds two numbers',
  schema: {
    type: 'object',
    properties: { a: { type: 'number' }, b: { type: 'number' } },
    required: ['a', 'b'],
  },
  run: ({ a, b }) => said(String(Number(a) + Number(b))),
}

/** Tools that ask nothing. The first can be called without arguments. */
export const TOOLS: readonly FixtureTool[] = [
  ...CONTENTS,
  LOGGING,
  PROGRESS,
  ERROR,
  SCHEMA,
  HEADER,
  RECONNECTION,
  QUIET,
  trigger('test_trigger_tool_change', (stage) => stage.toggleTool()),
  trigger('test_trigger_prompt_change', (stage) => stage.togglePrompt()),
  trigger('test_trigger_resource_update', (stage) => stage.update('test://watched-resource')),
  WAITING,
  SUM,
]
