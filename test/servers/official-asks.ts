// A server on the official SDK, both eras, whose tool `who` asks the client who it is.

import { acceptedContent, inputRequired, McpServer } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

const name = z.object({ name: z.string() })

serveStdio(() => {
  const server = new McpServer({ name: 'official-asks', version: '1.0.0' })
  server.registerTool('who', { description: 'asks' }, (ctx) => {
    const given = acceptedContent(ctx.mcpReq.inputResponses, 'who', name)
    if (given === undefined) {
      const who = inputRequired.elicit({ message: 'who are you?', requestedSchema: name })
      return inputRequired({ inputRequests: { who }, requestState: 'asked' })
    }
    return { content: [{ type: 'text', text: `hello ${given.name}` }] }
  })
  return server
})
