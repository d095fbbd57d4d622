// Where requests enter a server of the official SDK, and the only place that knows how.

import type {
  JSONRPCRequest,
  McpServer,
  Result,
  Server,
  ServerContext,
} from '@modelcontextprotocol/server'

import { Fault } from '../fault.ts'
import { RPC, rpcError } from './wire.ts'

/** One request answered as the SDK answers it: a result, or a rejection with an integer `code`. */
export type Dispatch = (request: JSONRPCRequest, ctx: ServerContext) => Promise<Result>

/** The methods that a gate may stand before. */
export type Gated =
  | 'tools/list'
  | 'tools/call'
  | 'prompts/list'
  | 'prompts/get'
  | 'resources/list'
  | 'resources/templates/list'
  | 'resources/read'
  | 'completion/complete'

/** A way into a server of the SDK, in front of all that it does with a request. */
export type Tap = {
  /** What the server itself does for this method, its own validation included; undefined when nothing is
   *  registered for it. */
  own(method: Gated): Dispatch | undefined
  /** From now on `first` is asked before any of the server's own checks, in place of the server. */
  before(method: Gated, first: Dispatch): void
  /** Another number after each change of the tools; null where changes cannot be seen. */
  version(): number | null
}

const GATED: ReadonlySet<string> = new Set<Gated>([
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
])

const taps = new WeakMap<Server, Tap>()

/** The tap of this server; made at the first asking, after which all gated methods enter through it. May be
 *  made before or after handlers are registered, but not twice with different effect.
 *  Errors: `Fault('usage')` when this SDK has no way in. */
export function tapOf(target: Server | McpServer): Tap {
  const server = 'server' in target ? target.server : target
  const known = taps.get(server)
  if (known !== undefined) return known
  const made = tap(server, 'server' in target ? changesOf(target) : () => null)
  taps.set(server, made)
  return made
}

// The SDK checks a message against its wire schema before any handler it holds, but hands a method that
// it holds no handler for to the fallback, unchecked. So the handlers are taken out and kept here.
function tap(server: Server, version: () => number | null): Tap {
  const own = new Map<string, Dispatch>()
  const first = new Map<string, Dispatch>()
  let theirs = server.fallbackRequestHandler

  const take = (method: string): void => {
    const handler = handlerOf(server, method)
    if (handler === undefined) return
    server.removeRequestHandler(method)
    own.set(method, handler)
  }
  for (const method of GATED) take(method)

  on(server, 'setRequestHandler', (method) => {
    if (GATED.has(method)) take(method)
  })
  on(server, 'removeRequestHandler', (method) => {
    own.delete(method)
  })
  on(server, 'assertCanSetRequestHandler', (method) => {
    if (!own.has(method)) return
    throw new Error(`A request handler for ${method} already exists, which would be overridden`)
  })
  const dispatch: Dispatch = async (request, ctx) => {
    const next = first.get(request.method) ?? own.get(request.method) ?? theirs
    if (next === undefined) throw rpcError(RPC.methodNotFound, 'Method not found')
    return await next(request, ctx)
  }
  Object.defineProperty(server, 'fallbackRequestHandler', {
    configurable: true,
    enumerable: true,
    get: () => dispatch,
    set(handler: Dispatch | undefined) {
      theirs = handler
    },
  })
  return {
    own: (method) => own.get(method),
    before(method, handler) {
      first.set(method, handler)
    },
    version,
  }
}

/** The SDK announces each change of its tools, also while nobody is connected. */
function changesOf(server: McpServer): () => number {
  let changes = 0
  around(server, 'sendToolListChanged', {
    after() {
      changes += 1
    },
  })
  return () => changes
}

/** Runs `then` with the first argument after each call of a registration method. */
function on(
  server: Server,
  method: 'setRequestHandler' | 'removeRequestHandler' | 'assertCanSetRequestHandler',
  then: (first: string) => void,
): void {
  around(server, method, {
    after([first]) {
      if (typeof first === 'string') then(first)
    },
  })
}

/** The handler that the SDK stored for a method, with its checks. `_getRequestHandler` is the accessor that
 *  the SDK declares for its own role classes. */
function handlerOf(server: Server, method: string): Dispatch | undefined {
  if (typeof server['_getRequestHandler'] !== 'function') {
    throw new Fault(
      'usage',
      'this version of @modelcontextprotocol/server cannot be guarded; install 2.4.0 or the version that eclusa names as its peer',
    )
  }
  return server['_getRequestHandler'](method)
}

/** What stands round one method: its arguments may be changed before, its result seen after. */
export type Turn = {
  readonly before?: (args: readonly unknown[]) => readonly unknown[]
  readonly after?: (args: readonly unknown[], result: unknown) => void
}

/** Puts `turn` round this method of this one object. */
export function around<T extends object>(target: T, method: keyof T & string, turn: Turn): void {
  const original: unknown = target[method]
  if (typeof original !== 'function') throw new Fault('usage', `the server has no ${method}`)
  const value = new Proxy(original, {
    apply(call, _self, given: unknown[]): unknown {
      const args = turn.before?.(given) ?? given
      const result: unknown = Reflect.apply(call, target, args)
      turn.after?.(args, result)
      return result
    },
  })
  Object.defineProperty(target, method, { configurable: true, writable: true, value })
}
