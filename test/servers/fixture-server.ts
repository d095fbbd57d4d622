// What the fixture offers, registered anew for each connection or request, over a stage that all of them share.

import {
  completable,
  fromJsonSchema,
  type McpRequestContext,
  McpServer,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server'
import { z } from 'zod'

import { ASKING, askContext, contextOf, states } from './fixture-asks.ts'
import { IMAGE, type Stage } from './fixture-stage.ts'
import { TASK_TOOLS } from './fixture-tasks.ts'
import { TOOLS } from './fixture-tools.ts'

/** How a door tells its listeners of changes, if not through servers themselves. */
export type Notices = {
  readonly tools: () => void
  readonly prompts: () => void
  readonly updated: (uri: string) => void
}

/** A maker of servers with one stage. `made` receives every server's own way of telling. */
export type Fixture = {
  readonly make: (context?: McpRequestContext) => McpServer
  readonly stage: Stage
  readonly listen: (notices: Notices) => void
}

/** Begins a stage. */
export function fixture(): Fixture {
  let extraTool = false
  let extraPrompt = false
  const notices = new Set<Notices>()
  const tell = (one: (notice: Notices) => void): void => {
    for (const notice of notices) one(notice)
  }
  const open = new Set<Open>()
  const stage: Stage = {
    toggleTool: () => {
      extraTool = !extraTool
      for (const { tool } of open) if (extraTool) tool.enable()
      for (const { tool } of open) if (!extraTool) tool.disable()
      tell((notice) => notice.tools())
    },
    togglePrompt: () => {
      extraPrompt = !extraPrompt
      for (const { prompt } of open) if (extraPrompt) prompt.enable()
      for (const { prompt } of open) if (!extraPrompt) prompt.disable()
      tell((notice) => notice.prompts())
    },
    update: (uri) => {
      for (const { server, watched, listens } of open) {
        if (listens || watched.has(uri)) void server.server.sendResourceUpdated({ uri })
      }
      tell((notice) => notice.updated(uri))
    },
    waits: { begun: 0, cancelled: 0 },
  }
  return {
    stage,
    listen: (notice) => void notices.add(notice),
    make: (context) => {
      // Over stdio the SDK itself knows what a modern client listens for, and drops the rest.
      const listens = context?.era === 'modern' && context.requestInfo === undefined
      const one = { ...opened(stage), listens }
      if (!extraTool) one.tool.disable()
      if (!extraPrompt) one.prompt.disable()
      open.add(one)
      Object.assign(one.server.server, { onclose: () => void open.delete(one) })
      return one.server
    },
  }
}

type Open = {
  readonly server: McpServer
  readonly tool: ReturnType<McpServer['registerTool']>
  readonly prompt: ReturnType<McpServer['registerPrompt']>
  readonly watched: Set<string>
  readonly listens: boolean
}

const INFO = { name: 'fixture', version: '1.0.0' }

function opened(stage: Stage): Omit<Open, 'listens'> {
  const server = new McpServer(INFO, {
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
      logging: {},
      extensions: { 'io.modelcontextprotocol/tasks': {} },
    },
    requestState: { verify: (state, ctx) => states.verify(state, ctx) },
  })
  for (const { name, description, schema, run } of TOOLS) {
    server.registerTool(
      name,
      { description, inputSchema: fromJsonSchema<Record<string, unknown>>(schema) },
      (args, ctx) => run(args, ctx, stage),
    )
  }
  for (const { name, schema, run } of ASKING) {
    server.registerTool(
      name,
      {
        description: 'asks the client',
        inputSchema: fromJsonSchema<Record<string, unknown>>(schema),
      },
      run,
    )
  }
  for (const { name, description, schema, run } of TASK_TOOLS) {
    server.registerTool(
      name,
      { description, inputSchema: fromJsonSchema<Record<string, unknown>>(schema) },
      run,
    )
  }
  const tool = server.registerTool('test_changing_tool', { description: 'comes and goes' }, () => ({
    content: [{ type: 'text', text: 'here' }],
  }))
  resources(server)
  const watched = new Set<string>()
  server.server.setRequestHandler('resources/subscribe', ({ params }) => {
    watched.add(params.uri)
    return {}
  })
  server.server.setRequestHandler('resources/unsubscribe', ({ params }) => {
    watched.delete(params.uri)
    return {}
  })
  return { server, tool, prompt: prompts(server), watched }
}

function resources(server: McpServer): void {
  const text = (name: string, uri: string, words: string): void => {
    server.registerResource(
      name,
      uri,
      { description: `the resource ${name}`, mimeType: 'text/plain' },
      () => ({ contents: [{ uri, mimeType: 'text/plain', text: words }] }),
    )
  }
  text('static-text', 'test://static-text', 'This is the content of the static text resource.')
  text('watched', 'test://watched-resource', 'This is watched.')
  server.registerResource(
    'static-binary',
    'test://static-binary',
    { description: 'a picture', mimeType: IMAGE.mimeType },
    ({ href }) => ({
      contents: [{ uri: href, mimeType: IMAGE.mimeType, blob: IMAGE.data }],
    }),
  )
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'data by id', mimeType: 'application/json' },
    ({ href }, { id }) => {
      if (id === 'none') throw new ResourceNotFoundError(href)
      const body = { id, templateTest: true, data: `Data for ID: ${String(id)}` }
      const one = { uri: href, mimeType: 'application/json', text: JSON.stringify(body) }
      return { contents: [one] }
    },
  )
}

const user = <T>(content: T): { role: 'user'; content: T } => ({ role: 'user', content })

function prompts(server: McpServer): Open['prompt'] {
  const text = (words: string) => user({ type: 'text' as const, text: words })
  server.registerPrompt('test_simple_prompt', { description: 'one sentence' }, () => ({
    messages: [text('This is a simple prompt for testing.')],
  }))
  server.registerPrompt(
    'test_prompt_with_arguments',
    {
      description: 'a sentence with two arguments',
      argsSchema: z.object({
        arg1: completable(z.string().describe('First test argument'), (value) =>
          ['paris', 'park', 'party', 'test'].filter((word) => word.startsWith(value)),
        ),
        arg2: z.string().describe('Second test argument'),
      }),
    },
    ({ arg1, arg2 }) => ({
      messages: [text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)],
    }),
  )
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    {
      description: 'a resource and a sentence',
      argsSchema: z.object({ resourceUri: z.string().describe('URI of the resource to embed') }),
    },
    ({ resourceUri }) => ({
      messages: [
        user({
          type: 'resource' as const,
          resource: {
            uri: resourceUri,
            mimeType: 'text/plain',
            text: 'Embedded resource content for testing.',
          },
        }),
        text('Please process the embedded resource above.'),
      ],
    }),
  )
  server.registerPrompt(
    'test_prompt_with_image',
    { description: 'a picture and a sentence' },
    () => ({
      messages: [
        user({ type: 'image' as const, ...IMAGE }),
        text('Please analyze the image above.'),
      ],
    }),
  )
  server.registerPrompt(
    'test_input_required_result_prompt',
    { description: 'asks the client first' },
    (ctx) => {
      const context = contextOf(ctx)
      return context === null ? askContext() : { messages: [text(`In the context: ${context}`)] }
    },
  )
  return server.registerPrompt('test_changing_prompt', { description: 'comes and goes' }, () => ({
    messages: [text('here')],
  }))
}
