// Puts a gate round a server of the official SDK, in three layers of which each holds alone.

import type { JSONRPCRequest, McpServer, Server, ServerContext } from '@modelcontextprotocol/server'

import type { Method } from '../call.ts'
import { canonical } from '../canonical.ts'
import { Fault } from '../fault.ts'
import { type JsonObject, object } from '../json.ts'
import type { Listed, ListKind } from '../ports.ts'
import { admit } from './definition.ts'
import type { Gate } from './gate.ts'
import type { Inside } from './inside.ts'
import { type Asked, knownOf, listOf, LISTS } from './lists.ts'
import { takePass, withPass } from './pass.ts'
import { around, type Tap, tapOf } from './tap.ts'
import { onTheWire, plain, refusalResult, RPC, rpcError } from './wire.ts'

/** `server` shows, accepts and runs only what `gate` lets pass. Call it before the first `registerTool`.
 *  Errors: `Fault('usage')` when tools are registered already, or with an SDK that cannot be guarded. */
export function guard(server: McpServer, gate: Gate): void {
  guardHandlers(server, gate)
  guardCalls(server, gate)
  guardLists(server, gate)
}

/** Layer 1: lists show only what the client may use, in one page. */
export function guardLists(server: Server | McpServer, gate: Gate): void {
  const tap = tapOf(server)
  for (const kind of KINDS) {
    const { method, member } = LISTS[kind]
    tap.before(method, async (request, ctx) => {
      if (tap.own(method) === undefined) throw rpcError(RPC.methodNotFound, 'Method not found')
      if (request.params?.['cursor'] !== undefined) {
        throw rpcError(RPC.invalidParams, 'unknown cursor; ask again without one')
      }
      const list = (which: ListKind): Promise<Listed> => listOf(tap, which, { request, ctx })
      const shown = await gate.list(kind, { list, run: runNothing })
      return { [member]: shown.map(plain) }
    })
  }
}

/** Layer 2: a call is decided and recorded before the SDK looks at it, and refused calls never reach it. */
export function guardCalls(server: Server | McpServer, gate: Gate): void {
  const tap = tapOf(server)
  for (const method of CALLS) {
    tap.before(method, async (request, ctx) => {
      const own = tap.own(method)
      if (own === undefined) throw rpcError(RPC.methodNotFound, 'Method not found')
      const wish = { method, params: admit(request.params ?? {}), signal: ctx.mcpReq.signal }
      const reply = await gate.call(wish, {
        list: lister(tap, { request, ctx }),
        // What was decided on is what the SDK gets: written anew, not the object that came.
        run: (params) =>
          withPass(gate, nameOf(params), () => own({ ...request, params: plain(params) }, ctx)),
      })
      return onTheWire(reply)
    })
  }
}

/** Layer 3: no tool's callback runs without a pass of the call gate. One that is reached otherwise goes
 *  through the whole gate here, and a refusal is its result. */
export function guardHandlers(server: McpServer, gate: Gate): void {
  const tools: unknown = Reflect.get(server, '_registeredTools')
  if (typeof tools === 'object' && tools !== null && Object.keys(tools).length > 0) {
    throw new Fault('usage', 'tools are registered already; call guard before registerTool')
  }
  const tap = tapOf(server)
  const checked: Check = (name, callback) =>
    new Proxy(callback, {
      apply(run, self, given: unknown[]): unknown {
        const go = (): unknown => Reflect.apply(run, self, given) as unknown
        return takePass(gate, name) ? go() : regate({ name, gate, tap }, given, go)
      },
    })
  around(server, 'registerTool', {
    before: ([name, config, callback]) => [
      name,
      config,
      isCallback(callback) ? checked(String(name), callback) : callback,
    ],
    after([name], tool) {
      if (typeof tool !== 'object' || tool === null || !('update' in tool)) return
      around(tool, 'update', {
        before: ([changes]) => [recheck(String(name), changes, checked)],
      })
    },
  })
}

type Callback = (...given: never[]) => unknown
type Check = (name: string, callback: Callback) => Callback

const isCallback = (value: unknown): value is Callback => typeof value === 'function'

/** Changes to a registered tool, a new callback put behind the gate. */
function recheck(name: string, changes: unknown, checked: Check): unknown {
  if (typeof changes !== 'object' || changes === null) return changes
  if ('name' in changes && typeof changes.name === 'string' && changes.name !== name) {
    throw new Fault('usage', `a guarded tool keeps its name; register ${changes.name} anew`)
  }
  const callback = 'callback' in changes ? changes.callback : undefined
  return isCallback(callback) ? { ...changes, callback: checked(name, callback) } : changes
}

/** The whole gate, run where a callback was reached without a pass. Refusals are results: the SDK makes
 *  an `isError` result of whatever is thrown here, and would lose the code. */
async function regate(
  place: { readonly name: string; readonly gate: Gate; readonly tap: Tap },
  given: readonly unknown[],
  go: () => unknown,
): Promise<unknown> {
  const { name, gate, tap } = place
  const ctx = given.at(-1)
  if (!isContext(ctx)) throw new Fault('usage', `${name} was called without its context`)
  const args = given.length > 1 ? given[0] : {}
  const request: JSONRPCRequest = { jsonrpc: '2.0', id: 0, method: 'tools/call', params: {} }
  const params = admit({ name, arguments: args, _meta: ctx.mcpReq['_meta'] })
  const before = canonical(params?.['arguments'] ?? null)
  const wish = { method: 'tools/call', params, signal: ctx.mcpReq.signal } as const
  const reply = await gate.call(wish, {
    list: lister(tap, { request, ctx }),
    run: async (decided) => {
      // The callback runs on what it was called with; that is right only while nothing was changed.
      if (canonical(decided['arguments'] ?? object({})) !== before) {
        throw new Fault(
          'usage',
          `the policy sets arguments of ${name}; guardCalls is needed for that`,
        )
      }
      return await go()
    },
  })
  if (reply.kind === 'refused') return refusalResult(reply)
  return onTheWire(reply)
}

const isContext = (value: unknown): value is ServerContext =>
  typeof value === 'object' && value !== null && 'mcpReq' in value

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources', 'templates']

const CALLS = [
  'tools/call',
  'prompts/get',
  'resources/read',
  'completion/complete',
] as const satisfies readonly Method[]

const lister =
  (tap: Tap, asked: Asked): Inside['list'] =>
  (kind) =>
    knownOf(tap, kind, asked)

const runNothing = (): Promise<never> =>
  Promise.reject(new Fault('internal', 'a list was asked to run a call'))

const nameOf = (params: JsonObject): string => {
  const name = params['name']
  return typeof name === 'string' ? name : ''
}
