// The three tools of the notes server, and the server they are on. Knows nothing of any gate.

import { writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import { McpServer, type CallToolResult } from '@modelcontextprotocol/server'
import { z } from 'zod'

import { NOTE, openNotes, type Notes } from './notes.ts'

/** The folder of notes and of the gate's own ledger: `LEDGER_DIR`, or `.ledger` here. */
export const ledgerDir = (): string => process.env['LEDGER_DIR'] ?? '.ledger'

const CRASH_WINDOW_MS = 30_000

/** The notes in `LEDGER_DIR`. With `CRASH_MARKER` each write stops between the sync of its temporary
 *  file and its publication: it touches the marker and sleeps, so that a test can kill it there. */
export function openLedger(): Promise<Notes> {
  const marker = process.env['CRASH_MARKER']
  if (!marker) return openNotes({ dir: ledgerDir() })
  const left = new AbortController()
  process.stdin.once('end', () => left.abort())
  return openNotes({
    dir: ledgerDir(),
    async beforePublishing() {
      await writeFile(marker, '')
      // The end of stdin ends the sleep, and with it the process; the note is then not published.
      await sleep(CRASH_WINDOW_MS, undefined, { signal: left.signal })
    },
  })
}

/** A server without tools yet, so that a gate can be put round it first. */
export const newServer = (): McpServer => new McpServer({ name: 'gated-fs', version: '1.0.0' })

/** Registers `write_note`, `read_ledger` and `rm_rf`. */
export function registerTools(server: McpServer, notes: Notes): void {
  server.registerTool(
    'write_note',
    {
      description: 'Write one note per request_id.',
      inputSchema: NOTE,
      outputSchema: z.object({ request_id: z.string(), status: z.enum(['committed', 'replay']) }),
      annotations: { idempotentHint: true, destructiveHint: false, readOnlyHint: false },
    },
    async ({ request_id, text }) => {
      const status = await notes.write({ request_id, text })
      if (status === 'conflict') return failed('request_id já usado com outro conteúdo')
      return structured({ request_id, status })
    },
  )
  server.registerTool(
    'read_ledger',
    {
      description: 'Observe committed notes.',
      inputSchema: z.object({}),
      outputSchema: z.object({ notes: z.array(NOTE) }),
      annotations: { idempotentHint: true, destructiveHint: false, readOnlyHint: true },
    },
    async () => structured({ notes: await notes.read() }),
  )
  // It works, below `scratch`: a proof that a file was not touched needs a tool that would touch it.
  server.registerTool(
    'rm_rf',
    {
      description: 'Registered to prove that list and call have gates of their own.',
      inputSchema: z.object({ path: z.string() }),
    },
    async ({ path }) => {
      await notes.remove(path)
      return { content: [{ type: 'text', text: 'removed' }] }
    },
  )
}

const structured = (value: Record<string, unknown>): CallToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(value) }],
  structuredContent: value,
})

const failed = (text: string): CallToolResult => ({
  content: [{ type: 'text', text }],
  isError: true,
})
