// A scriptable MCP server over stdio, in raw JSON-RPC, for every test that needs a real server.
//
//   node test/servers/scripted.ts [flags] [anything else: shown by the tool argv]
//
//   --era ERA          dual (default) | modern | legacy: which requests it understands; or how it
//                      meets the probe: exits (dies on anything before initialize) | silent (never
//                      answers before initialize) | garbage (answers the probe with nonsense) |
//                      picky (-32022 naming legacy revisions only) | future (-32022 naming 2099-01-01)
//   --version V        the legacy revision it answers to initialize (default: the one asked for)
//   --menu JSON        other tools, prompts and resources than its own; told in menu.ts
//   --serve LIST       tools,prompts,resources,completions,logging (default: all of them), tasks
//   --no-list-changed  declares no listChanged
//   --honours URI      modern: the only resource whose changes it announces
//   --tools N          N further tools t000, t001, ...      --tool-bytes B  length of a description
//   --early            answers "early" to a tools/call as soon as it has seen its id
//   --page N           page size of every list        --ttl MS      ttlMs of modern lists (default 0)
//   --empty-for MS     tools/list is empty so long    --list-fails N  its first N answers are errors -32000
//   --start-delay MS   reads nothing for so long      --die-after MS  exits with 1 after so long
//   --deaf             ignores the end of stdin and SIGTERM
//   --crash-after N    exits with 1 after the answer to the Nth tools/call
//   --junk-first       valid JSON that is no message, and plain words, before the first answer
//   --dribble          writes every message in three pieces    --crlf  ends lines with CRLF
//   --answer MODE      for tools/call answers: twice (each answer twice) | stray (an answer to an
//                      unknown id before each)
//   --effects FILE     where the tool mutate appends one line `request_id<TAB>text` a call
//   --trace FILE       every line it received, appended before it is handled
//   --starts FILE      one line `pid milliseconds` a start     --stderr TEXT  said at the start
//   --name NAME        serverInfo.name                --instructions TEXT
//
// The tools are told in scripted-tools.ts, case-tools.ts, ask-tools.ts. Prompts: greet(name).
// Resources: notes://a, notes://public/1; template notes://{id}; every notes:// URI can be read.
// Completion answers [value + "1", value + "2"].

import { appendFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { acknowledgement, ASK_METHODS, askTools, honoured, isFor } from './ask-tools.ts'
import { CASE_TOOLS } from './case-tools.ts'
import { dribble } from './dribble.ts'
import { menuMethods, menuTools, readMenu } from './menu.ts'
import { type Context, type Json, TOOLS as PLAIN_TOOLS } from './scripted-tools.ts'

const MODERN = '2026-07-28'
const META = 'io.modelcontextprotocol/'

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    era: { type: 'string', default: 'dual' },
    menu: { type: 'string' },
    version: { type: 'string' },
    serve: { type: 'string', default: 'tools,prompts,resources,completions,logging' },
    honours: { type: 'string' },
    'no-list-changed': { type: 'boolean', default: false },
    tools: { type: 'string', default: '0' },
    'tool-bytes': { type: 'string', default: '500' },
    early: { type: 'boolean', default: false },
    page: { type: 'string', default: '1000000' },
    ttl: { type: 'string', default: '0' },
    'empty-for': { type: 'string', default: '0' },
    'list-fails': { type: 'string', default: '0' },
    'start-delay': { type: 'string', default: '0' },
    'die-after': { type: 'string' },
    deaf: { type: 'boolean', default: false },
    'crash-after': { type: 'string', default: '0' },
    'junk-first': { type: 'boolean', default: false },
    dribble: { type: 'boolean', default: false },
    crlf: { type: 'boolean', default: false },
    answer: { type: 'string', default: 'once' },
    effects: { type: 'string' },
    trace: { type: 'string' },
    starts: { type: 'string' },
    stderr: { type: 'string' },
    name: { type: 'string', default: 'scripted' },
    instructions: { type: 'string' },
  },
})

const menu = readMenu(flags.menu)
const listeners = new Map<string | number, Json>()
const ASKING = askTools({ listeners, declared: () => declared })
const TOOLS = menu === null ? [...PLAIN_TOOLS, ...CASE_TOOLS, ...ASKING] : menuTools(menu)
const startedAt = Date.now()
const serves = new Set(flags.serve.split(','))
let calls = 0
let listFails = Number(flags['list-fails'])
let initialized = false
let declared: unknown = null
let junkDue = flags['junk-first']
let extraTools: Json[] = Array.from({ length: Number(flags.tools) }, (_, n) => ({
  name: `t${String(n).padStart(3, '0')}`,
  description: `tool number ${n} of a long list; `.padEnd(
    Number(flags['tool-bytes']),
    'it does nothing. ',
  ),
  inputSchema: { type: 'object', properties: {} },
}))
let hidden = new Set<string>()
const asked = new Map<string, (answer: Json) => void>()

function sendText(line: string): void {
  const bytes = Buffer.from(line + (flags.crlf ? '\r\n' : '\n'))
  if (flags.dribble) dribble(bytes)
  else process.stdout.write(bytes)
}

function send(message: Json): void {
  if (junkDue) {
    junkDue = false
    const junk =
      '{"level":"info","msg":"up"}|42|null|["a"]|{"id":1}|plain words|{"jsonrpc":"1.0","id":1,"result":{}}'
    for (const line of junk.split('|')) sendText(line)
  }
  sendText(JSON.stringify({ jsonrpc: '2.0', ...message }))
}

/** Announces a change the way each era wants it. */
function changed(kind: string): void {
  const method = `notifications/${kind}/list_changed`
  if (initialized) send({ method })
  for (const [id, filter] of listeners) {
    if (filter[`${kind}ListChanged`] === true)
      send({ method, params: { _meta: { [`${META}subscriptionId`]: id } } })
  }
}

const capabilities = (): Json => {
  const changes = flags['no-list-changed'] ? {} : { listChanged: true }
  const made: Json = {}
  for (const one of serves) made[one] = one === 'completions' || one === 'logging' ? {} : changes
  if (serves.has('resources')) made['resources'] = { ...changes, subscribe: true }
  if (serves.has('tasks')) made['tasks'] = { requests: { tools: { call: {} } } }
  return made
}
const info = (): Json => ({ name: flags.name, version: '1.0.0' })
const instructions = flags.instructions === undefined ? {} : { instructions: flags.instructions }

type Reply = {
  result(value: Json): void
  error(code: number, message: string, data?: unknown): void
}

function page(all: readonly Json[], params: Json, key: string): Json {
  const size = Number(flags.page)
  const from = Number(((params['cursor'] ?? 'at:0') as string).slice(3))
  const more = from + size < all.length ? { nextCursor: `at:${from + size}` } : {}
  return {
    [key]: all.slice(from, from + size),
    ...more,
    ttlMs: Number(flags.ttl),
    cacheScope: 'public',
  }
}

function listTools(params: Json, reply: Reply): void {
  if (listFails > 0) {
    listFails--
    reply.error(-32000, 'not ready yet')
    return
  }
  const warm = Date.now() - startedAt >= Number(flags['empty-for'])
  const own = TOOLS.map((tool) => tool.definition).filter((one) => isFor(declared, one))
  const all = warm ? [...own, ...extraTools].filter((one) => !hidden.has(String(one['name']))) : []
  reply.result(page(all, params, 'tools'))
}

function callTool(id: string | number, params: Json, reply: Reply, line: string): void {
  const tool = TOOLS.find((one) => one.definition['name'] === params['name'])
  if (tool === undefined || hidden.has(String(params['name']))) {
    if (extraTools.some((one) => one['name'] === params['name']))
      reply.result({ content: [{ type: 'text', text: String(params['name']) }] })
    else reply.error(-32602, `Unknown tool: ${String(params['name'])}`)
    return
  }
  calls++
  if (flags.answer === 'stray') send({ id: 'never-asked', result: { content: [] } })
  const context: Context = {
    id,
    args: (params['arguments'] ?? {}) as Json,
    params,
    line,
    argv: positionals,
    effects: flags.effects,
    result: (value) => {
      reply.result(value)
      if (flags.answer === 'twice') reply.result(value)
      if (calls === Number(flags['crash-after'])) process.stdout.write('', () => process.exit(1))
    },
    error: (code, message, data) => reply.error(code, message, data),
    send,
    sendText,
    changed,
    setTools: (next, hide) => {
      extraTools = next
      hidden = new Set(hide)
    },
    ask: (method, asking, then) => {
      const key = `ask-${id}-${asked.size}`
      asked.set(key, then)
      send({ id: key, method, params: asking })
      return key
    },
  }
  tool.run(context)
}

const NOTES = ['notes://a', 'notes://public/1']
type Method = (id: string | number, params: Json, reply: Reply, line: string) => void
const METHODS: Record<string, Method> = {
  'tools/list': (_id, params, reply) => listTools(params, reply),
  'tools/call': callTool,
  'prompts/list': (_id, params, reply) =>
    reply.result(
      page([{ name: 'greet', arguments: [{ name: 'name', required: true }] }], params, 'prompts'),
    ),
  'prompts/get': (_id, params, reply) => {
    if (params['name'] !== 'greet') return reply.error(-32602, 'unknown prompt')
    const name = String(((params['arguments'] ?? {}) as Json)['name'])
    reply.result({ messages: [{ role: 'user', content: { type: 'text', text: `Hello ${name}` } }] })
  },
  'resources/list': (_id, params, reply) =>
    reply.result(
      page(
        NOTES.map((uri) => ({ uri, name: uri.slice(8) })),
        params,
        'resources',
      ),
    ),
  'resources/templates/list': (_id, params, reply) =>
    reply.result(
      page([{ uriTemplate: 'notes://{id}', name: 'note' }], params, 'resourceTemplates'),
    ),
  'resources/read': (_id, params, reply) => {
    const uri = String(params['uri'])
    if (!uri.startsWith('notes://')) return reply.error(-32002, 'Resource not found', { uri })
    reply.result({ contents: [{ uri, text: `text of ${uri}` }], ttlMs: 0, cacheScope: 'private' })
  },
  'completion/complete': (_id, params, reply) => {
    const value = String(((params['argument'] ?? {}) as Json)['value'])
    reply.result({ completion: { values: [`${value}1`, `${value}2`], total: 2 } })
  },
  ...ASK_METHODS,
  ping: (_id, _params, reply) => reply.result({}),
  ...menuMethods(menu, page),
}
const NEEDS: Record<string, string> = { completion: 'completions' }

function discover(reply: Reply): void {
  reply.result({
    supportedVersions: [MODERN],
    capabilities: {
      ...capabilities(),
      ...(serves.has('tasks') ? { extensions: { [`${META}tasks`]: {} } } : {}),
    },
    ...instructions,
    ttlMs: 0,
    cacheScope: 'public',
  })
}

function modernRequest(id: string | number, method: string, params: Json, line: string): void {
  const reply: Reply = {
    result: (value) =>
      send({
        id,
        result: {
          resultType: 'complete',
          ...value,
          _meta: { [`${META}serverInfo`]: info(), ...(value['_meta'] as Json) },
        },
      }),
    error: (code, message, data) =>
      send({ id, error: { code, message, ...(data === undefined ? {} : { data }) } }),
  }
  if (method === 'server/discover') return discover(reply)
  if (method === 'subscriptions/listen') {
    listeners.set(id, honoured(params, flags.honours))
    return send(acknowledgement(id, listeners.get(id)))
  }
  if (method === 'ping' || method === 'logging/setLevel')
    return reply.error(-32601, 'Method not found')
  serve(method, (known) => known(id, params, reply, line), reply)
}

function legacyRequest(id: string | number, method: string, params: Json, line: string): void {
  const reply: Reply = {
    result: (value) => {
      const { ttlMs: _ttl, cacheScope: _scope, ...rest } = value
      send({ id, result: rest })
    },
    error: (code, message, data) =>
      send({ id, error: { code, message, ...(data === undefined ? {} : { data }) } }),
  }
  if (method === 'initialize') {
    initialized = true
    declared = params['capabilities']
    return reply.result({
      protocolVersion: flags.version ?? params['protocolVersion'],
      capabilities: capabilities(),
      serverInfo: info(),
      ...instructions,
    })
  }
  if (!initialized) return reply.error(-32600, 'not initialized')
  serve(method, (known) => known(id, params, reply, line), reply)
}

function serve(method: string, run: (known: Method) => void, reply: Reply): void {
  const family = method.split('/')[0] ?? ''
  const known = METHODS[method]
  if (known === undefined || (family !== 'ping' && !serves.has(NEEDS[family] ?? family)))
    reply.error(-32601, 'Method not found')
  else run(known)
}

/** True when the message met the way this server treats probes. */
function metProbe(id: string | number, method: string): boolean {
  if (initialized || method === 'initialize') return false
  const refuse = (supported: string[]): void =>
    send({
      id,
      error: { code: -32022, message: 'unsupported', data: { supported, requested: MODERN } },
    })
  if (flags.era === 'exits') process.exit(1)
  if (flags.era === 'garbage') send({ id, result: 'nonsense' })
  if (flags.era === 'picky') refuse(['2025-11-25', '2025-06-18'])
  if (flags.era === 'future') refuse(['2099-01-01'])
  return ['garbage', 'picky', 'future', 'silent'].includes(flags.era)
}

/** True when the message was an answer or a notification: nothing is replied to those. */
function consumed(message: Json, params: Json): boolean {
  if (message['method'] === undefined) asked.get(message['id'] as string)?.(message)
  else if (message['method'] === 'notifications/cancelled') {
    listeners.delete(params['requestId'] as string)
  }
  const id = message['id'] as string | number | undefined
  return message['method'] === undefined || id === undefined || answeredEarly.has(id)
}

function receive(line: string): void {
  if (flags.trace !== undefined) appendFileSync(flags.trace, `${line}\n`)
  const message = JSON.parse(line) as Json
  const params = (message['params'] ?? {}) as Json
  if (consumed(message, params)) return
  const id = message['id'] as string | number
  const method = message['method'] as string
  if (metProbe(id, method)) return
  const modern = ((params['_meta'] ?? {}) as Json)[`${META}protocolVersion`] === MODERN
  if (modern && flags.era !== 'legacy') modernRequest(id, method, params, line)
  else if (!modern && flags.era !== 'modern') legacyRequest(id, method, params, line)
  else
    send({
      id,
      error: {
        code: modern ? -32601 : -32602,
        message: modern ? 'Method not found' : 'no envelope',
      },
    })
}

const answeredEarly = new Set<string | number>()
/** Answers a call of which only the beginning has come. */
function answerEarly(start: Buffer): void {
  const source = /"id":("[^"]*"|\d+),"method":"tools\/call"/.exec(
    start.toString('latin1', 0, 200),
  )?.[1]
  const id = source === undefined ? undefined : (JSON.parse(source) as string | number)
  if (id === undefined || answeredEarly.has(id)) return
  answeredEarly.add(id)
  const content = [{ type: 'text', text: 'early' }]
  send({ id, result: flags.era === 'legacy' ? { content } : { resultType: 'complete', content } })
}

function listenToStdin(): void {
  let rest: Buffer = Buffer.alloc(0)
  process.stdin.on('data', (chunk: Buffer) => {
    let from = 0
    const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let at = all.indexOf(10); at >= 0; at = all.indexOf(10, from)) {
      receive(all.toString('utf8', from, at))
      from = at + 1
    }
    rest = all.subarray(from)
    if (flags.early) answerEarly(rest)
  })
  process.stdin.on('end', () => {
    if (!flags.deaf) process.exit(0)
  })
}

if (flags.starts !== undefined) appendFileSync(flags.starts, `${process.pid} ${Date.now()}\n`)
if (flags.stderr !== undefined) process.stderr.write(`${flags.stderr}\n`)
process.stdout.on('error', () => process.exit(1))
if (flags.deaf) {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 60_000)
}
if (flags['die-after'] !== undefined) setTimeout(() => process.exit(1), Number(flags['die-after']))
setTimeout(listenToStdin, Number(flags['start-delay']))
