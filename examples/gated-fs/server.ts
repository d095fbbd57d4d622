// The notes server with its gate inside: `node examples/gated-fs/server.ts`, policy from POLICY_PATH, notes
// and ledger in LEDGER_DIR.

import { fileURLToPath } from 'node:url'

import { serveStdio } from '@modelcontextprotocol/server/stdio'

import { createGate, Fault } from '../../src/index.ts'
import { guard } from '../../src/sdk/guard.ts'
import { ledgerDir, newServer, openLedger, registerTools } from './tools.ts'

const POLICY = fileURLToPath(new URL('policy.json', import.meta.url))

async function main(): Promise<void> {
  // The policy is read once: a change of it takes a restart.
  const gate = await createGate({
    server: 'notes',
    policy: process.env['POLICY_PATH'] ?? POLICY,
    state: ledgerDir(),
    tools: {
      write_note: { effect: 'write', key: { at: '/request_id', honoured: true } },
      read_ledger: { effect: 'read' },
    },
  })
  const notes = await openLedger()
  const finish = onceOnly(() => void gate.stop().finally(() => process.exit()))
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, finish)
  process.stdin.once('end', finish)
  process.stdout.once('error', finish)
  serveStdio(() => {
    const server = newServer()
    guard(server, gate)
    registerTools(server, notes)
    return server
  })
}

function onceOnly(act: () => void): () => void {
  let done = false
  return () => {
    if (!done) act()
    done = true
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`gated-fs: ${error instanceof Fault ? error.message : String(error)}\n`)
  process.exitCode = 1
})
