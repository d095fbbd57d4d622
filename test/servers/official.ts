// A server on the official SDK, both eras, whose tool `add(name)` registers one more tool.

import { McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const names: string[] = []
const open: McpServer[] = []

const register = (server: McpServer, name: string): void => {
  server.registerTool(name, { description: `the tool ${name}` }, () => ({
    content: [{ type: 'text', text: name }],
  }))
}

serveStdio(() => {
  const server = new McpServer({ name: 'official', version: '1.0.0' })
  server.registerTool(
    'add',
    { description: 'registers a tool', inputSchema: z.object({ name: z.string() }) },
    ({ name }) => {
      names.push(name)
      for (const one of open) register(one, name)
      return { content: [{ type: 'text', text: 'added' }] }
    },
  )
  server.registerTool(
    'sum',
    {
      description: 'adds',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
    },
    ({ a, b }) => ({
      content: [{ type: 'text', text: String(a + b) }],
      structuredContent: { sum: a + b },
    }),
  )
  for (const name of names) register(server, name)
  open.push(server)
  return server
})
