// One client of the soak: calls over kept connections, some of which it cuts, cancels and sends again.

import { Agent, type ClientRequest, type IncomingMessage, request as begin } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { META26 } from '../cases/wire.ts'

/** What one call of one client came to. `ok`: its result; `code`: what the gateway refused it with; `gone`:
 *  the client did not wait for the end; `odd`: nothing of these, told in `text`. */
export type Told = {
  readonly kind: 'ok' | 'refused' | 'gone' | 'odd'
  readonly code: string
  readonly text: string
}

/** One call, and every answer that was ever given to it; a write may be sent several times under its key. */
export type Case = {
  readonly id: string
  readonly isRead: boolean
  /** How long its server takes. A write must be sent again as it was. */
  readonly ms: number
  readonly leaves: 'cuts' | 'cancels' | null
  readonly told: Told[]
}

/** What all clients share. `left`: calls still to be sent; `sent`: so many were. */
export type Work = {
  readonly port: number
  readonly upstreams: readonly string[]
  readonly cases: Map<string, Case>
  left: number
  sent: number
  cuts: number
  cancels: number
  sessions: number
}

/** Numbers from 0 to 1 that are the same for the same seed. */
export function numbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

type Client = {
  readonly era: 'legacy' | 'modern'
  readonly token: string
  readonly agent: Agent
  readonly work: Work
  readonly random: () => number
  readonly name: string
  session: string | null
  stream: ClientRequest | null
  last: number
}

const VERSION = '2025-11-25'
const PLAIN = { kind: 'odd', code: '', text: '' } as const
/** Calls of one client at once. */
const LANES = 2
/** How often a write is sent again before its end is known. */
const MAX_TRIES = 200

/** Runs one client until the work is done. `seed` decides all that it does of its own will. */
export async function runClient(
  work: Work,
  one: {
    readonly name: string
    readonly token: string
    readonly era: Client['era']
    readonly seed: number
  },
): Promise<void> {
  const client: Client = {
    ...one,
    agent: new Agent({ keepAlive: true, maxSockets: LANES + 4 }),
    work,
    random: numbers(one.seed),
    session: null,
    stream: null,
    last: 0,
  }
  while (work.left > 0) await shift(client)
  client.agent.destroy()
}

/** Some calls, of a legacy client in a session of their own. */
async function shift(client: Client): Promise<void> {
  if (client.era === 'legacy') await greet(client)
  const calls = 100 + Math.floor(client.random() * 400)
  await Promise.all(Array.from({ length: LANES }, () => lane(client, calls)))
  if (client.era === 'modern') return
  client.stream?.destroy()
  await exchange(client, { verb: 'DELETE', message: null })
  client.session = null
}

async function lane(client: Client, calls: number): Promise<void> {
  const { work, random } = client
  for (let at = 0; at < calls && work.left > 0; at++) {
    const isRead = random() < 0.65
    const id = `${isRead ? 'r' : 'w'}-${client.name}-${++client.last}`
    const dice = random()
    const leaves = dice < 0.02 ? 'cuts' : dice < 0.04 ? 'cancels' : null
    const ms = leaves === null ? (dice > 0.9 ? 3 : 0) : 25
    const found: Case = { id, isRead, ms, leaves, told: [] }
    work.cases.set(id, found)
    const upstream = work.upstreams[Math.floor(random() * work.upstreams.length)] ?? ''
    await settle(client, found, upstream)
  }
}

/** Sends a call; a write whose end the client did not hear is sent again under its key. */
async function settle(client: Client, one: Case, upstream: string): Promise<void> {
  const { work } = client
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    work.left--
    work.sent++
    const told = await call(client, { one, upstream, leaves: tries === 0 ? one.leaves : null })
    one.told.push(told)
    if (told.code === 'upstream_down') await sleep(20)
    if (one.isRead || !isOpen(one, told)) return
    await sleep(5)
  }
}

/** Whether a write may have been done although its client was not told. */
const isOpen = ({ told }: Case, { kind, code }: Told): boolean =>
  kind === 'gone' ||
  code === 'busy' ||
  (code === 'upstream_down' && told.some((earlier) => earlier.kind === 'gone'))

type Sent = Pick<Case, 'leaves'> & { readonly one: Case; readonly upstream: string }

async function call(client: Client, { one, upstream, leaves }: Sent): Promise<Told> {
  const { random, work } = client
  const { id, ms } = one
  const args = one.isRead ? { id, ms } : { request_id: id, ms }
  const requestId = `${one.id}.${one.told.length}`
  const params = {
    name: `${upstream}__${one.isRead ? 'get' : 'put'}`,
    arguments: args,
    ...(client.era === 'modern' ? { _meta: META26 } : {}),
  }
  const message = { jsonrpc: '2.0', id: requestId, method: 'tools/call', params }
  let request: ClientRequest | null = null
  const answer = exchange(client, { verb: 'POST', message, open: (made) => (request = made) })
  if (leaves !== null) {
    await Promise.race([sleep(random() * 15), answer])
    if (leaves === 'cancels' && client.era === 'legacy') {
      work.cancels++
      const cancel = { requestId, reason: 'soak' }
      await exchange(client, {
        verb: 'POST',
        message: { jsonrpc: '2.0', method: 'notifications/cancelled', params: cancel },
      })
    } else {
      if (leaves === 'cuts') work.cuts++
      else work.cancels++
      ;(request as ClientRequest | null)?.destroy()
    }
  }
  return toldOf(await answer, requestId, leaves !== null)
}

type Answered = { readonly status: number; readonly session: string | null; readonly text: string }

function exchange(
  client: Client,
  one: {
    readonly verb: 'POST' | 'DELETE'
    readonly message: { readonly [key: string]: unknown } | null
    readonly open?: (request: ClientRequest) => void
  },
): Promise<Answered | null> {
  const body = one.message === null ? '' : JSON.stringify(one.message)
  const { port } = client.work
  return new Promise((resolve) => {
    const request = begin({
      agent: client.agent,
      host: '127.0.0.1',
      port,
      path: '/mcp',
      method: one.verb,
      headers: { ...headersOf(client, one.message), 'content-length': Buffer.byteLength(body) },
    })
    one.open?.(request)
    request.on('error', () => resolve(null))
    request.on('response', (response) => {
      const session = response.headers['mcp-session-id']
      read(response, (text) => {
        if (text === null) return resolve(null)
        const found = typeof session === 'string' ? session : null
        resolve({ status: response.statusCode ?? 0, session: found, text })
      })
    })
    request.end(body)
  })
}

function read(response: IncomingMessage, done: (text: string | null) => void): void {
  let text = ''
  response.setEncoding('utf8')
  response.on('data', (piece: string) => (text += piece))
  response.on('end', () => done(text))
  response.on('error', () => done(null))
  response.on('close', () => done(null))
}

function headersOf(
  { era, token, session }: Client,
  message: { readonly [key: string]: unknown } | null,
): Record<string, string> {
  const common = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  if (era === 'legacy') {
    const greeted = { 'mcp-protocol-version': VERSION, 'mcp-session-id': session ?? '' }
    return session === null ? common : { ...common, ...greeted }
  }
  const name = (message?.['params'] as { readonly name?: string } | undefined)?.name
  return {
    ...common,
    'mcp-protocol-version': String(META26['io.modelcontextprotocol/protocolVersion']),
    'mcp-method': String(message?.['method']),
    ...(name === undefined ? {} : { 'mcp-name': name }),
  }
}

type Reply = {
  readonly id?: unknown
  readonly result?: {
    readonly isError?: boolean
    readonly content?: readonly { readonly text?: string }[]
    readonly _meta?: { readonly [key: string]: { readonly code?: string } }
  }
  readonly error?: { readonly data?: { readonly [key: string]: { readonly code?: string } } }
}

function toldOf(answered: Answered | null, requestId: string, isGone: boolean): Told {
  const gone = { ...PLAIN, kind: 'gone' } as const
  if (answered === null) return isGone ? gone : { ...PLAIN, text: 'the connection broke' }
  const { status, text } = answered
  const found = messages(text).find(({ id }) => id === requestId)
  if (found === undefined) return isGone ? gone : { ...PLAIN, text: `${status} ${text}` }
  const refusal = found.result?._meta?.['eclusa/refusal'] ?? found.error?.data?.['eclusa/refusal']
  if (refusal?.code !== undefined) return { kind: 'refused', code: refusal.code, text }
  const [block] = found.result?.content ?? []
  if (found.result === undefined || found.result.isError === true) return { ...PLAIN, text }
  return { kind: 'ok', code: '', text: block?.text ?? '' }
}

function messages(text: string): readonly Reply[] {
  if (text === '') return []
  if (text.startsWith('{')) return [JSON.parse(text) as Reply]
  return text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Reply)
}

async function greet(client: Client): Promise<void> {
  client.work.sessions++
  const params = {
    protocolVersion: VERSION,
    capabilities: {},
    clientInfo: { name: 'soak', version: '1' },
  }
  const message = { jsonrpc: '2.0', id: 'hello', method: 'initialize', params }
  const answered = await exchange(client, { verb: 'POST', message })
  if (answered?.session === null || answered === null) {
    throw new Error(`no session: ${JSON.stringify(answered)}`)
  }
  client.session = answered.session
  const told = { jsonrpc: '2.0', method: 'notifications/initialized' }
  await exchange(client, { verb: 'POST', message: told })
  listen(client)
}

/** The stream of a session, read and thrown away. */
function listen(client: Client): void {
  const headers = { ...headersOf(client, null), accept: 'text/event-stream' }
  const where = { host: '127.0.0.1', port: client.work.port, path: '/mcp', method: 'GET' }
  const request = begin({ agent: client.agent, headers, ...where })
  request.on('error', () => undefined)
  request.on('response', (response) => response.on('error', () => undefined).resume())
  request.end()
  client.stream = request
}
