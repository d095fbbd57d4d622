// A guarded SDK server in this process, for the tests of its layers.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

import { createGate, type Gate, type GateOptions } from '../../src/index.ts'
import type { Message } from '../examples/peer.ts'
import { type Peer, peerOf } from './wire.ts'

const POLICY = JSON.stringify({
  version: 1,
  allow: ['write_note', 'read_ledger', 'slow'],
  deny: ['rm_rf'],
  arg_rules: { write_note: { request_id: { min_len: 8 }, text: { max_len: 20 } } },
})

export const TOOLS: GateOptions['tools'] = {
  write_note: { effect: 'write', key: { at: '/request_id' } },
  read_ledger: { effect: 'read' },
}

export type Layers = (server: McpServer, gate: Gate) => void

export type Bench = {
  readonly gate: Gate
  readonly peer: Peer
  /** Names of the callbacks that ran, with the text they got. */
  readonly ran: readonly string[]
  /** The server that the last connection was made for. */
  readonly server: McpServer
  call(name: string, args: unknown): Promise<Message>
  records(): readonly Record<string, unknown>[]
}

const dirs: string[] = []
const open: { stop(): Promise<void> }[] = []
after(async () => {
  for (const one of open) await one.stop()
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
})

/** A server behind these layers, a client of it, and what the callbacks and the ledger saw. */
export async function bench(
  layers: Layers,
  more: { readonly era?: 'modern' | 'legacy'; readonly options?: Partial<GateOptions> } = {},
): Promise<Bench> {
  const state = mkdtempSync(join(tmpdir(), 'eclusa-sdk-'))
  dirs.push(state)
  const gate = await createGate({
    policy: { text: POLICY },
    tools: TOOLS,
    state: join(state, 'ledger'),
    server: 'notes',
    say: () => {},
    ...more.options,
  })
  const ran: string[] = []
  const servers: McpServer[] = []
  const peer = await peerOf(() => {
    const server = new McpServer({ name: 'guarded', version: '1' })
    layers(server, gate)
    register(server, ran)
    servers.push(server)
    return server
  }, more.era)
  open.push({
    async stop() {
      await peer.close()
      await gate.stop()
    },
  })
  return {
    gate,
    peer,
    ran,
    get server() {
      const server = servers.at(-1)
      assert.ok(server)
      return server
    },
    call: (name, args) => peer.ask('tools/call', { name, arguments: args }),
    records: () =>
      readFileSync(join(state, 'ledger', 'audit.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ kind }) => ['call', 'intent', 'outcome', 'malformed'].includes(String(kind))),
  }
}

/** write_note, read_ledger, rm_rf, and slow, which ends when it is cancelled. */
export function register(server: McpServer, ran: string[]): void {
  const note = z.object({ request_id: z.string(), text: z.string() })
  server.registerTool('write_note', { inputSchema: note }, ({ text }) => {
    ran.push(`write_note ${text}`)
    return { content: [{ type: 'text', text: `wrote ${text}` }] }
  })
  server.registerTool('read_ledger', {}, () => {
    ran.push('read_ledger')
    return { content: [{ type: 'text', text: 'nothing' }] }
  })
  server.registerTool('rm_rf', { inputSchema: z.object({ path: z.string() }) }, ({ path }) => {
    ran.push(`rm_rf ${path}`)
    return { content: [{ type: 'text', text: 'removed' }] }
  })
  server.registerTool('slow', {}, async (ctx) => {
    ran.push('slow')
    await new Promise((resolve) => ctx.mcpReq.signal.addEventListener('abort', resolve))
    ran.push('slow ended')
    return { content: [] }
  })
}

export const textOf = ({ result }: Message): string => result?.content?.[0]?.text ?? ''

/** The built-in code of a refusal, wherever it stands. */
export const codeOf = ({ result, error }: Message): string | undefined =>
  (error?.data ?? result?.['_meta'])?.['eclusa/refusal']?.code

export const short = (records: readonly Record<string, unknown>[]): string[] =>
  records.map(({ kind, name, decision, outcome }) => [kind, name, decision, outcome].join(' '))

export async function until(holds: () => boolean): Promise<void> {
  const deadline = Date.now() + 10_000
  while (!holds()) {
    assert.ok(Date.now() < deadline, 'in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
