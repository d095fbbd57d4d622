// Raw JSON-RPC with one gateway: what was written, what came back, and waiting for it.

import assert from 'node:assert/strict'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'

/** The two families of revisions, as in src/call.ts. */
export type Era = 'legacy' | 'modern'
export const ERAS: readonly Era[] = ['legacy', 'modern']
/** How a client reaches the gateway. */
export type Front = 'stdio' | 'http'
export const FRONTS: readonly Front[] = ['stdio', 'http']
/** Each front in each era. */
export const SIDES: readonly (readonly [front: Front, era: Era])[] = FRONTS.flatMap((front) =>
  ERAS.map((era) => [front, era] as const),
)
/** What the client speaks and what its servers speak. */
export const PAIRS: readonly (readonly [client: Era, servers: Era])[] = ERAS.flatMap((client) =>
  ERAS.map((servers) => [client, servers] as const),
)
/** As `PAIRS`, over each front. */
export const WAYS: readonly (readonly [front: Front, client: Era, servers: Era])[] = FRONTS.flatMap(
  (front) => PAIRS.map(([client, servers]) => [front, client, servers] as const),
)

export type Bag = { readonly [key: string]: unknown }
export type Id = string | number
export type Block = { readonly type: string; readonly text?: string }
export type Result = Bag & {
  readonly content?: readonly Block[]
  readonly isError?: boolean
  readonly structuredContent?: Bag
  readonly tools?: readonly (Bag & { readonly name: string })[]
}
/** One message as it came from the gateway or as an upstream received it. */
export type Message = {
  readonly jsonrpc: '2.0'
  readonly id?: Id | null
  readonly method?: string
  readonly params?: Bag
  readonly result?: Result
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Bag }
}

const PROTOCOL = 'io.modelcontextprotocol/'
/** `$META26` of the cases. */
export const META26: Bag = {
  [`${PROTOCOL}protocolVersion`]: '2026-07-28',
  [`${PROTOCOL}clientInfo`]: { name: 't', version: '1' },
  [`${PROTOCOL}clientCapabilities`]: {},
}

/** A request in one era: modern ones carry the envelope. */
export function request(era: Era, id: Id, method: string, params: Bag = {}): Bag {
  const meta = { ...(era === 'modern' ? META26 : {}), ...(params['_meta'] as Bag | undefined) }
  const kept = Object.keys(meta).length === 0 ? params : { ...params, _meta: meta }
  return { jsonrpc: '2.0', id, method, params: kept }
}

/** Milliseconds after which an expected thing counts as missing. Long, for it costs nothing when the thing
 *  comes: on a crowded machine all that is waited for comes late. */
export const PATIENCE = 60_000

/** Resolves with the first value of `probe` that is neither undefined nor false. */
export async function eventually<T>(
  what: string,
  probe: () => T | undefined | false,
  withinMs: number = PATIENCE,
): Promise<T> {
  const end = Date.now() + withinMs
  for (;;) {
    const found = probe()
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) assert.fail(`not within ${withinMs} ms: ${what}`)
    await sleep(10)
  }
}

/** The messages of one conversation, a line each, as they come in; `rest` is what stands after the last line
 *  end, and `listeners` are told of each line. */
export type Incoming = {
  readonly lines: readonly string[]
  rest(): string
  readonly listeners: Set<(line: string) => void>
}

function gather(stream: Readable): Incoming {
  const lines: string[] = []
  const listeners = new Set<(line: string) => void>()
  let pieces: Buffer[] = []
  stream.on('data', (chunk: Buffer) => {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at))
      const line = Buffer.concat(pieces).toString('utf8')
      pieces = []
      from = at + 1
      lines.push(line)
      for (const one of listeners) one(line)
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  })
  return { lines, rest: () => Buffer.concat(pieces).toString('utf8'), listeners }
}

/** One conversation. Nothing is checked here but that every line is one JSON-RPC message. */
export type Wire = {
  readonly era: Era
  /** Writes bytes as they are. Resolves when the pipe has taken them. Over HTTP each line is a POST. */
  write(bytes: string | Uint8Array): Promise<void>
  /** Writes one message as a line. */
  post(message: Bag): Promise<void>
  /** Cancels a request as this client does: with a notification, or by closing its stream. */
  cancel(id: Id, reason?: string): Promise<void>
  /** Sends a request in this wire's era and waits for its answer. The id is made when none is given. */
  request(method: string, params?: Bag, more?: More): Promise<Message>
  /** As `request`, for one tool. */
  call(name: string, args?: Bag, more?: More): Promise<Message>
  /** The one answer with this id; fails when two came. */
  answer(id: Id | null, withinMs?: number): Promise<Message>
  /** The next line of which `is` holds, at the moment at which it comes. */
  next(is: (line: string) => boolean, withinMs?: number): Promise<string>
  /** Everything received so far. */
  messages(): readonly Message[]
  notifications(method: string): readonly Message[]
  /** The lines as they came. */
  readonly incoming: Incoming
}
export type More = { readonly id?: Id; readonly meta?: Bag; readonly withinMs?: number }

let lastId = 1_000

/** A conversation over two pipes. */
export function wire(
  era: Era,
  ends: { readonly input: Writable; readonly output: Readable },
): Wire {
  const write = (bytes: string | Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      ends.input.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  const cancel = (id: Id, reason = 'user'): Promise<void> => {
    const params = { requestId: id, reason }
    return write(
      `${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params })}\n`,
    )
  }
  return conversation(era, { incoming: gather(ends.output), write, cancel })
}

/** A conversation over any way in and out. */
export function conversation(
  era: Era,
  { incoming, write, cancel }: Pick<Wire, 'incoming' | 'write' | 'cancel'>,
): Wire {
  const parsed: Message[] = []
  const messages = (): readonly Message[] => {
    for (const line of incoming.lines.slice(parsed.length)) {
      const message = JSON.parse(line) as Message
      assert.equal(message.jsonrpc, '2.0', `no JSON-RPC message: ${line.slice(0, 200)}`)
      parsed.push(message)
    }
    return parsed
  }
  const next: Wire['next'] = (is, withinMs = PATIENCE) =>
    new Promise((resolve, reject) => {
      const look = (line: string): void => {
        if (is(line)) done(() => resolve(line))
      }
      const timer = setTimeout(() => {
        done(() => reject(new Error(`not within ${withinMs} ms: the awaited line`)))
      }, withinMs)
      const done = (settle: () => void): void => {
        clearTimeout(timer)
        incoming.listeners.delete(look)
        settle()
      }
      incoming.listeners.add(look)
    })
  const post = (message: Bag): Promise<void> => write(`${JSON.stringify(message)}\n`)
  const answersTo = (id: Id | null): readonly Message[] =>
    messages().filter((one) => one.method === undefined && one.id === id)
  const answer: Wire['answer'] = async (id, withinMs = PATIENCE) => {
    const end = Date.now() + withinMs
    while (answersTo(id).length === 0) {
      const left = Math.max(1, end - Date.now())
      await next(() => true, left).catch(() =>
        assert.fail(`not within ${withinMs} ms: an answer to ${JSON.stringify(id)}`),
      )
    }
    const [first, second] = answersTo(id)
    assert.equal(second, undefined, `more than one answer to ${JSON.stringify(id)}`)
    return first ?? assert.fail()
  }
  const ask: Wire['request'] = async (method, params = {}, more = {}) => {
    const { id = ++lastId, meta } = more
    await post(request(era, id, method, meta === undefined ? params : { ...params, _meta: meta }))
    return answer(id, more.withinMs)
  }
  return {
    era,
    write,
    post,
    cancel,
    request: ask,
    call: (name, args = {}, more) => ask('tools/call', { name, arguments: args }, more),
    answer,
    next,
    messages,
    notifications: (method) => messages().filter((one) => one.method === method),
    incoming,
  }
}

/** The text of the first content block. */
export function textOf(message: Message): string {
  const text = message.result?.content?.[0]?.text
  assert.equal(typeof text, 'string', `no text in ${JSON.stringify(message).slice(0, 400)}`)
  return text ?? ''
}

/** `eclusa/refusal.code` of a refused call, wherever it stands; undefined when it was not refused. */
export function refusalCode(message: Message): string | undefined {
  const meta = message.result?.['_meta'] as Bag | undefined
  const held = (message.error?.data ?? meta)?.['eclusa/refusal'] as Bag | undefined
  return held?.['code'] as string | undefined
}
