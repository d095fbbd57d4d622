// A gate for a server in this process: the hall, with that server behind it.

import type { Call, Client, Method, Target } from '../call.ts'
import { Fault } from '../fault.ts'
import { type Doors, handle, list, recordRefusal, turnAway } from '../gateway.ts'
import { isObject, type Json, type JsonObject, member, object } from '../json.ts'
import type { ListKind } from '../ports.ts'
import { type Reply, unrecorded } from '../refusal.ts'
import { inProcess, type Inside } from './inside.ts'

/** One client's gate before servers of this process that bear one name. Made by `createGate`. */
export type Gate = {
  /** The server's name in policies and records. */
  readonly server: string
  /** Decides, records and, where allowed, runs one call. Never rejects for what policy, store or server do.
   *  `params` null: the request could not be admitted; it is recorded so and refused. */
  call(wish: Wish, inside: Inside): Promise<Reply>
  /** The items of this list that the client may see, as they are advertised to it. */
  list(kind: ListKind, inside: Inside): Promise<readonly JsonObject[]>
  /** Ends the gate: new calls are refused, running ones are waited for (5 s by default), the lease ends, the
   *  ledger closes. May be called again. A call that still runs then is found `unknown` by the next start. */
  stop(): Promise<void>
}

/** One request as it was admitted; `params` null when it could not be. */
export type Wish = {
  readonly method: Method
  readonly params: JsonObject | null
  readonly signal: AbortSignal
}

/** Whose gate it is, before which server, and how many `calls` may run in it at once. */
export type Post = {
  readonly server: string
  readonly client: Client
  readonly calls: number
  /** How long `stop` waits for running calls. */
  readonly drainMs: number
}

/** The gate of `post`, over doors that lack only the server itself. */
export function gateOf(post: Post, shared: Omit<Doors, 'upstreams'>): Gate {
  const { server, client } = post
  const doors = (inside: Inside): Doors => ({ ...shared, upstreams: inProcess(server, inside) })
  const running = new Set<Promise<Reply>>()
  let stopped: Promise<void> | undefined

  async function decided(wish: Wish, through: Doors): Promise<Reply> {
    const made = callOf(server, client, wish, shared.clock.nowUs())
    if (made === null) return malformed(wish.method, client, through)
    if (stopped !== undefined) return turnAway(made, 'draining', through)
    if (running.size >= post.calls) return turnAway(made, 'too_many_calls', through)
    const reply = handle(made, through, { watch: NOWHERE, signal: wish.signal, ask: null })
    running.add(reply)
    try {
      return await reply
    } finally {
      running.delete(reply)
    }
  }

  async function stop(): Promise<void> {
    await settledWithin(running, post.drainMs)
    await shared.store.stop()
  }

  return {
    server,
    async call(wish, inside) {
      try {
        return await decided(wish, doors(inside))
      } catch (error) {
        return unrecordedOr(error)
      }
    },
    async list(kind, inside) {
      const { shown } = await list(client, kind, doors(inside))
      return shown.map((one) => one.definition.value)
    },
    stop() {
      stopped ??= stop()
      return stopped
    },
  }
}

/** Resolves when all have settled, or when the time is up. */
async function settledWithin(all: Iterable<Promise<unknown>>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const up = new Promise((resolve) => (timer = setTimeout(resolve, ms)))
  await Promise.race([Promise.allSettled(all), up])
  clearTimeout(timer)
}

// Progress and logs of a callback go through the SDK itself: it holds the client's tokens and level.
const NOWHERE = { progress: (): void => {}, log: (): void => {} }

function unrecordedOr(error: unknown): Reply {
  if (error instanceof Fault) {
    return unrecorded(error.code === 'outcome_not_recorded' ? error.code : 'not_recorded')
  }
  throw error
}

async function malformed(method: Method, client: Client, through: Doors): Promise<Reply> {
  await recordRefusal(through, client, {
    kind: 'malformed',
    code: 'malformed',
    method,
    name: '',
    transport: 'library',
    more: {},
  })
  return {
    kind: 'refused',
    as: 'error',
    rpc: -32602,
    refusal: { code: 'malformed' },
    sentence: `invalid params of ${method}`,
  }
}

/** The wish as a call; null when its params do not say what is asked. */
function callOf(server: string, client: Client, wish: Wish, nowUs: number): Call | null {
  const { method, params } = wish
  if (params === null) return null
  const target = targetOf(server, method, params)
  const args = params['arguments'] ?? object({})
  const meta = params['_meta']
  if (target === null || !isObject(args)) return null
  return {
    method,
    client,
    asked: target.name,
    target,
    args,
    params,
    capabilities: object({}),
    retry: null,
    task: null,
    key: textOf(member(meta, 'eclusa/key')),
    transport: 'library',
    trace: traceOf(member(meta, 'traceparent')),
    receivedUs: nowUs,
  }
}

function targetOf(upstream: string, method: Method, params: JsonObject): Target | null {
  const named = (kind: Target['kind'], name: Json | undefined): Target | null =>
    typeof name === 'string' ? { kind, upstream, name } : null
  if (method === 'tools/call') return named('tool', params['name'])
  if (method === 'prompts/get') return named('prompt', params['name'])
  if (method === 'resources/read') return named('resource', params['uri'])
  // A completion is about the prompt or the template that it completes.
  const ref = params['ref']
  if (member(ref, 'type') === 'ref/prompt') return named('prompt', member(ref, 'name'))
  return named('resource', member(ref, 'uri'))
}

const textOf = (value: Json | undefined): string | null =>
  typeof value === 'string' ? value : null

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

const traceOf = (value: Json | undefined): string | null =>
  typeof value === 'string' && TRACEPARENT.test(value) ? value : null
