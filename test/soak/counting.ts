// A small MCP server over stdio that writes down each call it executed, and dies in the middle of some.
//
//   node test/soak/counting.ts --era modern|legacy --log FILE --crash-every N
//
// Tools: get(id) and put(request_id), both with ms, a delay before the answer; the answer is the id again.
// The log has one line a call, `+ID`, written when it was executed. A crash adds `!ID ID ...`: executed and
// not answered. Reads that are cancelled before their answer are not answered: `?ID`.

import { openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

type Json = { readonly [key: string]: unknown }

const { values: flags } = parseArgs({
  options: {
    era: { type: 'string', default: 'modern' },
    log: { type: 'string', default: '/dev/null' },
    'crash-every': { type: 'string', default: '0' },
  },
})
const isLegacy = flags.era === 'legacy'
const crashEvery = Number(flags['crash-every'])
const log = openSync(flags.log, 'a')
const pending = new Map<unknown, { readonly id: string; readonly isRead: boolean }>()
const INFO = { name: 'counting', version: '1' }
const MODERN = '2026-07-28'
let executed = 0

const note = (line: string): void => void writeSync(log, `${line}\n`)
const send = (message: Json): void =>
  void process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)

function result(id: unknown, value: Json): void {
  const era = isLegacy ? {} : { resultType: 'complete' }
  const meta = isLegacy ? {} : { _meta: { 'io.modelcontextprotocol/serverInfo': INFO } }
  send({ id, result: { ...era, ...value, ...meta } })
}

const tool = (name: string, key: string): Json => ({
  name,
  description: `counts ${name}`,
  inputSchema: {
    type: 'object',
    properties: { [key]: { type: 'string' }, ms: { type: 'integer' } },
    required: [key],
  },
})
const TOOLS = [tool('get', 'id'), tool('put', 'request_id')]

function call(requestId: unknown, { name, arguments: args }: Json): void {
  const { id, request_id: key, ms = 0 } = args as Json
  const isRead = name === 'get'
  const mine = String(isRead ? id : key)
  note(`+${mine}`)
  pending.set(requestId, { id: mine, isRead })
  executed++
  if (crashEvery > 0 && executed % crashEvery === 0) {
    note(`!${[...pending.values()].map((one) => one.id).join(' ')}`)
    process.exit(1)
  }
  const answer = (): void => {
    if (!pending.delete(requestId)) return
    result(requestId, { content: [{ type: 'text', text: mine }] })
  }
  if (ms === 0) setImmediate(answer)
  else setTimeout(answer, Number(ms))
}

function cancelled(requestId: unknown): void {
  const one = pending.get(requestId)
  // A write has happened: its answer is worth more than the wish not to hear it.
  if (one === undefined || !one.isRead) return
  pending.delete(requestId)
  note(`?${one.id}`)
}

function hello(id: unknown, method: string, params: Json): boolean {
  if (isLegacy && method === 'initialize') {
    const { protocolVersion } = params
    result(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: INFO })
    return true
  }
  if (isLegacy || method !== 'server/discover') return false
  const lasts = { ttlMs: 60_000, cacheScope: 'public' }
  result(id, { supportedVersions: [MODERN], capabilities: { tools: {} }, ...lasts })
  return true
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line) as { readonly [key: string]: Json }
  const name = String(method)
  if (name === 'notifications/cancelled') cancelled(params['requestId'])
  if (id === undefined || hello(id, name, params)) return
  if (name === 'tools/call') call(id, params)
  else if (name === 'tools/list') {
    result(id, { tools: TOOLS, ...(isLegacy ? {} : { ttlMs: 60_000, cacheScope: 'public' }) })
  } else if (name === 'ping') result(id, {})
  else send({ id, error: { code: -32601, message: 'Method not found' } })
})
process.stdin.on('end', () => process.exit(0))
