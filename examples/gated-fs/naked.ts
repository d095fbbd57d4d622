// The notes server with no gate at all: whoever reaches its stdin may call rm_rf. Run it behind
// `eclusa stdio --config examples/gated-fs/eclusa.yaml`, never by itself.

import { serveStdio } from '@modelcontextprotocol/server/stdio'

import { newServer, openLedger, registerTools } from './tools.ts'

process.stderr.write('gated-fs: NO GATE in this process; every tool can be called\n')

const notes = await openLedger()
serveStdio(() => {
  const server = newServer()
  registerTools(server, notes)
  return server
})
