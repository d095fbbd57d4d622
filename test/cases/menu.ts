// Servers with tools of the test's own making, and what the log and their side say of each call.

import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import type { Entry } from '../../src/ledger/entry.ts'
import type { Menu } from '../servers/menu.ts'
import type { Gate, Upstream } from './harness.ts'
import { type Bag, type Era, type Message, request } from './wire.ts'

/** A server that serves this menu; `flags` are further ones of scripted.ts. */
export const serving = (menu: Menu, ...flags: readonly string[]): Upstream => ({
  flags: ['--menu', JSON.stringify(menu), ...flags],
})

/** A tool without properties of its own. A call of it is answered with `text`, or with its own line. */
export const plainTool = (name: string, text?: string): { definition: Bag; result?: Bag } => ({
  definition: { name, inputSchema: { type: 'object' } },
  ...(text === undefined ? {} : { result: { content: [{ type: 'text', text }] } }),
})

/** The lines that an upstream received, byte for byte, oldest first; of one method when it is given. */
export function received(gate: Gate, method?: string, upstream = 'up'): readonly string[] {
  const trace = join(gate.folder, `${upstream}.trace`)
  // The first line makes the file: a server that has only just begun has received nothing.
  const lines = existsSync(trace) ? readFileSync(trace, 'utf8').split('\n').slice(0, -1) : []
  return method === undefined ? lines : lines.filter((line) => methodOf(line) === method)
}

const methodOf = (line: string): string | undefined => (JSON.parse(line) as Message).method

/** The names of the tools that an upstream was told to run. */
export const ran = (gate: Gate, upstream = 'up'): readonly unknown[] =>
  received(gate, 'tools/call', upstream).map(
    (line) => (JSON.parse(line) as Message).params?.['name'],
  )

/** A request as its text, in which `"@"` stands for `source`: what no JSON writer would write. */
export function rawRequest(
  era: Era,
  id: number,
  method: string,
  { params, source }: { readonly params: Bag; readonly source: string },
): string {
  return `${JSON.stringify(request(era, id, method, params)).replace('"@"', () => source)}\n`
}

/** The name of a record as the client sent it, as far as the log keeps it. */
export const nameIn = (entry: Entry): string =>
  entry['name_b64'] === true ? Buffer.from(entry.name, 'base64').toString('utf8') : entry.name

/** The records of calls with this name, whole: a mutation's outcome, not its intent. */
export const callsOf = (gate: Gate, name: string): readonly Entry[] =>
  gate
    .audit()
    .filter(({ kind }) => kind === 'call' || kind === 'outcome')
    .filter((entry) => nameIn(entry) === name)

/** Asserts that the call was refused as every hidden or unknown tool is. */
export function assertDenied(message: Message, name: string): void {
  assert.deepEqual(
    [message.error?.code, message.error?.message],
    [-32602, `tool denied: ${name}`],
    JSON.stringify(message).slice(0, 400),
  )
}
