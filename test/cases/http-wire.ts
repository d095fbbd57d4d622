// The conversation of one client over HTTP, in wire form: POSTs, event streams and what came of them.

import assert from 'node:assert/strict'
import { Agent, type ClientRequest, type IncomingMessage, request as begin } from 'node:http'

import { conversation, type Era, type Id, type Message, type Wire } from './wire.ts'

/** One HTTP answer, whole. */
export type Answered = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

/** What one POST was answered; `method` and `id` of the message that was sent. */
export type Exchange = {
  readonly method: string | undefined
  readonly id: unknown
  readonly status: number
  readonly headers: IncomingMessage['headers']
}

/** Header names in lower case; undefined removes one that would be sent otherwise. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** One client. In the legacy era it keeps its session and, once initialised, a stream that it reads. */
export type HttpWire = Wire & {
  readonly port: number
  /** The id of its session, once it has one. */
  readonly session: () => string | undefined
  /** What its POSTs were answered, in the order of the answers. */
  readonly exchanges: readonly Exchange[]
  /** One HTTP request of its own making, with the headers of this client unless they are replaced. */
  readonly exchange: (one: {
    readonly verb?: string
    readonly path?: string
    readonly headers?: Headers
    readonly body?: string | Uint8Array
  }) => Promise<Answered>
  /** Opens the stream of the session; it is read until the server ends it or `close`. */
  readonly listen: (
    headers?: Headers,
  ) => Promise<{ readonly status: number; readonly close: () => void }>
  /** From now on no answer is read. */
  readonly deafen: () => void
  /** Whether the next request needs no new connection. */
  readonly isConnected: () => boolean
  /** Cuts every connection at once. */
  readonly vanish: () => void
}

/** Where and as whom. */
export type HttpClient = {
  readonly era: Era
  readonly port: number
  readonly path?: string
  /** Sent with every request. */
  readonly headers?: Headers
}

const MODERN = '2026-07-28'

/** What a client knows while it runs. */
type Desk = {
  readonly client: HttpClient
  readonly agent: Agent
  readonly take: (line: string) => void
  readonly exchanges: Exchange[]
  /** Requests without their whole answer, by the id of their message. */
  readonly open: Map<unknown, ClientRequest>
  session: string | undefined
  version: string | undefined
  isDeaf: boolean
}

/** A client that sends nothing yet. */
export function httpWire(client: HttpClient): HttpWire {
  const lines: string[] = []
  const listeners = new Set<(line: string) => void>()
  const desk: Desk = {
    client,
    agent: new Agent({ keepAlive: true, maxSockets: 256 }),
    take(line) {
      lines.push(line)
      for (const one of listeners) one(line)
    },
    exchanges: [],
    open: new Map(),
    session: undefined,
    version: undefined,
    isDeaf: false,
  }
  let rest = ''
  const write = async (bytes: string | Uint8Array): Promise<void> => {
    const ready = Buffer.concat([Buffer.from(rest, 'latin1'), Buffer.from(bytes)])
      .toString('latin1')
      .split('\n')
    rest = ready.pop() ?? ''
    for (const line of ready) await send(desk, Buffer.from(line, 'latin1'))
  }
  return {
    ...conversation(client.era, {
      incoming: { lines, rest: () => rest, listeners },
      write,
      cancel: (id, reason = 'user') => cancel(desk, id, reason),
    }),
    port: client.port,
    session: () => desk.session,
    exchanges: desk.exchanges,
    exchange: (one) => exchange(desk, one),
    listen: (headers) => listen(desk, headers),
    deafen: () => void (desk.isDeaf = true),
    isConnected: () => Object.values(desk.agent.freeSockets).some((all) => all?.length),
    vanish: () => desk.agent.destroy(),
  }
}

/** Begins a request with the headers of this client, unless they are replaced. */
function begun(
  { client, agent, session, version }: Desk,
  message: Message | null,
  more: { readonly verb?: string; readonly path?: string; readonly headers?: Headers } = {},
): ClientRequest {
  const { era, port, path = '/mcp' } = client
  const headers = clean({
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(era === 'modern' ? modernHeaders(message) : sessionHeaders(session, version)),
    ...client.headers,
    ...more.headers,
  })
  const where = { agent, port, host: '127.0.0.1', path: more.path ?? path }
  return begin({ ...where, method: more.verb ?? 'POST', headers })
}

/** One POST. Resolves when a request was written, and when anything else was answered. */
function send(desk: Desk, body: Buffer): Promise<void> {
  const message = read(body.toString('utf8'))
  const { method, id } = message ?? {}
  return new Promise((resolve) => {
    const request = begun(desk, message)
    desk.open.set(id, request)
    const over = (): void => {
      if (desk.open.get(id) === request) desk.open.delete(id)
      resolve()
    }
    request.on('error', over)
    request.on('response', (response) => {
      const { statusCode: status = 0, headers } = response
      if (desk.isDeaf) return
      desk.exchanges.push({ method, id, status, headers })
      const given = headers['mcp-session-id']
      if (typeof given === 'string') desk.session = given
      const take = (line: string): void => {
        if (method === 'initialize') desk.version ??= agreedOn(line)
        desk.take(line)
      }
      messagesOf(response, take).then(over, over)
    })
    if (method !== undefined && id !== undefined) request.on('finish', resolve)
    request.end(body)
  })
}

const exchange = (desk: Desk, { body, ...more }: Parameters<HttpWire['exchange']>[0]) =>
  new Promise<Answered>((resolve, reject) => {
    const request = begun(desk, typeof body === 'string' ? read(body) : null, more)
    request.on('error', reject)
    request.on('response', (response) => {
      const { statusCode: status = 0, headers } = response
      wholeOf(response).then((text) => resolve({ status, headers, text }), reject)
    })
    request.end(body)
  })

async function cancel(desk: Desk, id: Id, reason: string): Promise<void> {
  if (desk.client.era === 'modern') {
    desk.open.get(id)?.destroy()
    return
  }
  const params = { requestId: id, reason }
  await send(
    desk,
    Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })),
  )
}

const listen = (desk: Desk, headers: Headers = {}): ReturnType<HttpWire['listen']> =>
  new Promise((resolve, reject) => {
    const own = { accept: 'text/event-stream', 'content-type': undefined, ...headers }
    const request = begun(desk, null, { verb: 'GET', headers: own })
    request.on('error', reject)
    request.on('response', (response) => {
      const { statusCode: status = 0 } = response
      messagesOf(response, desk.take).catch(() => undefined)
      resolve({ status, close: () => request.destroy() })
    })
    request.end()
  })

const sessionHeaders = (id: string | undefined, version: string | undefined): Headers => ({
  ...(id === undefined ? {} : { 'mcp-session-id': id }),
  ...(version === undefined ? {} : { 'mcp-protocol-version': version }),
})

/** The headers that repeat what a modern message says. */
export function modernHeaders(message: Message | null): Headers {
  const { method, params } = message ?? {}
  const { name, uri, taskId } = params ?? {}
  const named = method === 'resources/read' ? uri : (taskId ?? name)
  return {
    'mcp-protocol-version': MODERN,
    ...(typeof method === 'string' ? { 'mcp-method': headerText(method) } : {}),
    ...(typeof named === 'string' && NAMED.has(String(method))
      ? { 'mcp-name': headerText(named) }
      : {}),
  }
}

const NAMED: ReadonlySet<string> = new Set([
  'tools/call',
  'prompts/get',
  'resources/read',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
])

/** A value as a header may hold it: what is not plain text, or looks as if it were encoded, is encoded. */
export function headerText(value: string): string {
  const isPlain = /^(?! )[ -~]*(?<! )$/.test(value) && !/^=\?base64\?.*\?=$/i.test(value)
  return isPlain ? value : `=?base64?${Buffer.from(value).toString('base64')}?=`
}

const clean = (headers: Headers): Record<string, string | string[]> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (value === undefined) return []
      return [[name, typeof value === 'string' ? value : [...value]] as const]
    }),
  )

/** The message that is meant; null where nobody could say. */
function read(text: string): Message | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Message)
      : null
  } catch {
    const method = /"method":"([^"\\]*)"/.exec(text)?.[1]
    const name = /"name":"([^"\\]*)"/.exec(text)?.[1]
    if (method === undefined) return null
    return { jsonrpc: '2.0', id: null, method, ...(name === undefined ? {} : { params: { name } }) }
  }
}

const agreedOn = (line: string): string | undefined => {
  const found = (JSON.parse(line) as Message).result?.['protocolVersion']
  return typeof found === 'string' ? found : undefined
}

async function wholeOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

/** Gives each message of an answer to `take` as soon as it is there. */
async function messagesOf(response: IncomingMessage, take: (line: string) => void): Promise<void> {
  const type = response.headers['content-type'] ?? ''
  if (!type.startsWith('text/event-stream')) {
    const text = await wholeOf(response)
    if (text === '' || !type.startsWith('application/json')) return
    const value: unknown = JSON.parse(text)
    if (Array.isArray(value)) for (const one of value) take(JSON.stringify(one))
    else take(text)
    return
  }
  let pending: Buffer = Buffer.alloc(0)
  for await (const chunk of response) {
    pending = pending.length === 0 ? (chunk as Buffer) : Buffer.concat([pending, chunk as Buffer])
    for (let end = pending.indexOf('\n\n'); end >= 0; end = pending.indexOf('\n\n')) {
      const data = dataOf(pending.toString('utf8', 0, end))
      pending = pending.subarray(end + 2)
      if (data !== '') take(data)
    }
  }
  assert.equal(pending.toString('utf8'), '', 'an event without its end')
}

/** The data of one event. Only what the gateway writes is read: LF, and a space after the colon. */
const dataOf = (event: string): string =>
  event
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => line.slice(6))
    .join('\n')
