// A real server of the product on a real socket, in front of real servers, a real policy and a real ledger.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

import type { Client } from '../../../src/call.ts'
import { knownClients } from '../../../src/cli/known.ts'
import { mint } from '../../../src/identity/tokens.ts'
import { serveHttp } from '../../../src/mcp/http/http.ts'
import type { HttpOptions, HttpTimes } from '../../../src/mcp/http/gate.ts'
import { addClientIn, revokeClientIn } from '../../../src/store/reader.ts'
import { compose, type Heard, META26, type Setup } from '../front/desk.ts'

/** How a server differs from the usual one. `clients`: profiles of clients with a token, by name; without
 *  this everybody is `agent`. */
export type HouseSetup = Setup & {
  readonly clients?: Readonly<Record<string, string>>
  readonly endpoints?: HttpOptions['endpoints']
  readonly origins?: readonly string[]
  readonly publicOrigin?: string
  readonly times?: Partial<HttpTimes>
  readonly requestBytes?: number
}

/** One HTTP answer. `events`: the messages of an event stream, in order. */
export type Got = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly message: Heard | null
}

/** The server and what may be asked of it. */
export type House = {
  readonly url: string
  readonly port: number
  readonly server: Awaited<ReturnType<typeof serveHttp>>
  /** The header of a client. */
  readonly as: (name: string) => Readonly<Record<string, string>>
  readonly revoke: (name: string) => void
  /** One POST, whatever it holds. */
  readonly post: (
    body: unknown,
    headers?: Readonly<Record<string, string>>,
    path?: string,
  ) => Promise<Got>
  /** One modern request with all its headers; `headers` replace, and '' removes. */
  readonly modern: (
    method: string,
    params?: Readonly<Record<string, unknown>>,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Got>
  /** A handshake; the headers of a request in that session. */
  readonly greet: (
    version?: string,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Record<string, string>>
  readonly audit: () => readonly Record<string, unknown>[]
  readonly said: () => readonly string[]
}

/** Who may come when the test says nothing else. */
export const AGENT: Client = {
  name: 'agent',
  profile: 'agent',
  identity: 'anonymous',
  attributes: {},
}

export const JSON_HEADERS: Readonly<Record<string, string>> = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
}

/** Opens one; it is closed with the test. */
export async function house(t: TestContext, setup: HouseSetup = {}): Promise<House> {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-http-'))
  const said: string[] = []
  const broken: unknown[] = []
  const { doors, upstreams, limits } = await compose(dir, setup, { said, broken })
  const tokens = addAll(join(dir, 'state'), setup.clients ?? {})
  await eventually('the clients are known', () => doors.store.clients().size === tokens.size)
  const anonymous = setup.clients === undefined ? AGENT : null
  const server = await serveHttp({
    doors: setup.coat?.(doors) ?? doors,
    upstreams,
    limits: {
      ...limits,
      calls: setup.calls ?? limits.calls,
      requestBytes: setup.requestBytes ?? limits.requestBytes,
    },
    version: '0.0.0',
    say: (line) => void said.push(line),
    listen: { host: '127.0.0.1', port: 0 },
    endpoints: setup.endpoints ?? new Map([['/mcp', null]]),
    posts: { hosts: [], origins: setup.origins ?? [] },
    publicOrigin: setup.publicOrigin ?? null,
    ...knownClients(doors.store, anonymous),
    ...(setup.times === undefined ? {} : { times: setup.times }),
  })
  t.after(async () => {
    const drained = server.drain()
    server.abandon()
    await upstreams.stop()
    await drained
    await server.close()
    await doors.store.stop()
    rmSync(dir, { recursive: true, force: true })
    if (setup.coat === undefined) assert.deepEqual(broken, [])
  })
  return {
    ...asking(server),
    server,
    ...heard(dir, said),
    as: (name) => ({ Authorization: `Bearer ${tokens.get(name) ?? name}` }),
    revoke: (name) => void revokeClientIn(join(dir, 'state'), name),
  }
}

function addAll(dir: string, clients: Readonly<Record<string, string>>): Map<string, string> {
  const tokens = new Map<string, string>()
  for (const [name, profile] of Object.entries(clients)) {
    const { token, digest } = mint()
    const rest = { person: false, attributes: {}, limit: null, expiresUs: null }
    assert.equal(addClientIn(dir, { name, profile, digest, ...rest }), 'added')
    tokens.set(name, token)
  }
  return tokens
}

const heard = (dir: string, said: readonly string[]): Pick<House, 'audit' | 'said'> => ({
  said: () => said,
  audit: () =>
    readFileSync(join(dir, 'state/audit.jsonl'), 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>),
})

function asking({
  url,
  port,
}: {
  readonly url: string
  readonly port: number
}): Pick<House, 'url' | 'port' | 'post' | 'modern' | 'greet'> {
  let id = 0
  const post: House['post'] = async (body, headers = JSON_HEADERS, path = '/mcp') => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return got(await fetch(url + path, { method: 'POST', headers, body: text }))
  }
  return {
    url,
    port,
    post,
    modern: (method, params = {}, headers = {}) =>
      post(
        { jsonrpc: '2.0', id: ++id, method, params: { _meta: META26, ...params } },
        modernHeaders(method, params, headers),
      ),
    async greet(version = '2025-11-25', headers = {}) {
      const hello = await post(handshake(version), { ...JSON_HEADERS, ...headers })
      assert.equal(hello.status, 200, hello.text)
      const session = hello.headers.get('mcp-session-id') ?? ''
      const mine = {
        ...JSON_HEADERS,
        ...headers,
        'Mcp-Session-Id': session,
        'MCP-Protocol-Version': version,
      }
      const told = await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, mine)
      assert.equal(told.status, 202, told.text)
      return mine
    },
  }
}

/** An `initialize` request. */
export const handshake = (version: string): object => ({
  jsonrpc: '2.0',
  id: 'hello',
  method: 'initialize',
  params: {
    protocolVersion: version,
    capabilities: {},
    clientInfo: { name: 't', version: '1' },
  },
})

/** The headers of a modern request. */
export function modernHeaders(
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  more: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const { name = params['uri'] ?? params['taskId'] } = params
  const all: Record<string, string> = {
    ...JSON_HEADERS,
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': method,
    ...(typeof name === 'string' ? { 'Mcp-Name': name } : {}),
    ...more,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}

async function got(response: Response): Promise<Got> {
  const text = await response.text()
  const type = response.headers.get('content-type') ?? ''
  const last = type.startsWith('text/event-stream') ? eventsOf(text).at(-1)?.message : parsed(text)
  return { status: response.status, headers: response.headers, text, message: last ?? null }
}

const parsed = (text: string): Heard | null => (text === '' ? null : (JSON.parse(text) as Heard))

/** One event of a stream. */
export type Event = { readonly id: string | null; readonly message: Heard | null }

/** The events of a finished or unfinished stream. */
export function eventsOf(text: string): readonly Event[] {
  return text
    .split('\n\n')
    .slice(0, -1)
    .flatMap((block) => {
      const lines = block.split('\n')
      if (lines.every((line) => line.startsWith(':'))) return []
      const field = (name: string): readonly string[] =>
        lines
          .filter((line) => line.startsWith(`${name}: `))
          .map((line) => line.slice(name.length + 2))
      const data = field('data').join('\n')
      return [{ id: field('id')[0] ?? null, message: parsed(data) }]
    })
}

/** A stream that is read as it comes. */
export type Reading = {
  readonly response: Response
  /** What came so far. */
  readonly text: () => string
  readonly events: () => readonly Event[]
  /** Resolves when `is` holds of what came so far. */
  readonly until: (is: (events: readonly Event[], text: string) => boolean) => Promise<void>
  /** Resolves when the stream ended, by whatever. */
  readonly ended: Promise<void>
  readonly close: () => void
}

/** Begins to read a stream. */
export async function reading(url: string, init: RequestInit): Promise<Reading> {
  const abort = new AbortController()
  const response = await fetch(url, { ...init, signal: abort.signal })
  let text = ''
  const waits = new Set<() => void>()
  const wake = (): void => {
    for (const one of waits) one()
  }
  const ended = pump(response, (piece) => {
    text += piece
    wake()
  }).then(wake, wake)
  const events = (): readonly Event[] => eventsOf(text)
  return {
    response,
    text: () => text,
    events,
    ended,
    close: () => abort.abort(),
    until: (is) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          reject(new Error(`not within ${PATIENCE_MS} ms; came: ${text.slice(0, 2_000)}`))
        }, PATIENCE_MS)
        const look = (): void => {
          if (!is(events(), text)) return
          clearTimeout(timer)
          waits.delete(look)
          resolve()
        }
        waits.add(look)
        look()
      }),
  }
}

export const PATIENCE_MS = 60_000

async function pump(response: Response, take: (piece: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  if (response.body === null) return
  for await (const chunk of response.body)
    take(decoder.decode(chunk as Uint8Array, { stream: true }))
}

/** What a raw connection was sent back until it was closed, or until `until` holds. */
export function raw(
  port: number,
  bytes: string | readonly string[],
  until: (text: string) => boolean = () => false,
): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket: Socket = connect(port, '127.0.0.1')
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`the connection stayed open; came: ${text.slice(0, 500)}`))
    }, PATIENCE_MS)
    const done = (): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(text)
    }
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (until(text)) done()
    })
    socket.on('close', done)
    socket.on('error', () => undefined)
    for (const piece of typeof bytes === 'string' ? [bytes] : bytes) socket.write(piece, 'latin1')
  })
}

/** Waits until `is` holds. */
export async function eventually(
  what: string,
  is: () => boolean | Promise<boolean>,
): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  while (!(await is())) {
    assert.ok(Date.now() < end, `not within ${PATIENCE_MS} ms: ${what}`)
    await new Promise((resolve) => {
      setTimeout(resolve, 10)
    })
  }
}
