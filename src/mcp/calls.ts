// A request as a call: what it names, where that leads, under which key. Nothing here decides.

import type { Call, Method, Target, Transport } from '../call.ts'
import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { LOG_LEVEL, metaOf } from './era.ts'
import type { Request } from './message.ts'
import { type Desk, type Route, resolve } from './names.ts'
import type { Routes } from './routes.ts'

/** invalid: `problem` is recorded, `message` told; ambiguous: the name or URI of `call` is shared. */
export type CallRead =
  | { readonly kind: 'call'; readonly call: Call; readonly ambiguous: boolean }
  | { readonly kind: 'invalid'; readonly problem: string; readonly message: string }

/** The methods that are decided one by one. */
const CALLS: ReadonlySet<string> = new Set<string>([
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
])

/** True for a method that is decided as a call. */
export const isCall = (method: string): method is Method => CALLS.has(method)

/** Reads the call that a request makes, and finds its target. Costs no I/O for a name that policy refuses. */
export async function readCall(
  { params }: Request,
  method: Method,
  place: {
    readonly desk: Desk
    readonly routes: Routes
    readonly transport: Transport
    readonly receivedUs: number
    /** What a session set as its log level, for servers that want it with each request. */
    readonly level: string | null
  },
): Promise<CallRead> {
  const known = params ?? object({})
  const wish = readWish(method, known)
  if (wish.kind === 'invalid') return wish
  const { asked, args } = wish
  const key = metaOf(known)?.['eclusa/key'] ?? null
  if (key !== null && typeof key !== 'string') {
    return invalid('key', 'params._meta["eclusa/key"] must be a string')
  }
  const { desk } = place
  const route =
    wish.thing === 'resource'
      ? await place.routes.target(asked, desk)
      : await resolve(asked, wish.thing, desk)
  const target = targetOf(route)
  return {
    kind: 'call',
    ambiguous: route === 'ambiguous',
    call: {
      method,
      client: desk.client,
      asked,
      target,
      args,
      params: withLevel(withReference(known, method, target), place.level),
      key,
      transport: place.transport,
      trace: traceOf(known),
      receivedUs: place.receivedUs,
    },
  }
}

type Wish =
  | {
      readonly kind: 'wish'
      readonly thing: Target['kind']
      readonly asked: string
      readonly args: JsonObject
    }
  | Extract<CallRead, { readonly kind: 'invalid' }>

function readWish(method: Method, params: JsonObject): Wish {
  if (method === 'completion/complete') return readCompletion(params)
  const isRead = method === 'resources/read'
  const field = isRead ? 'uri' : 'name'
  const asked = params[field]
  if (typeof asked !== 'string' || asked === '') {
    return invalid(field, `params.${field} must be a string that is not empty`)
  }
  const args = isRead ? undefined : params['arguments']
  if (args !== undefined && !isObject(args)) {
    return invalid('arguments', 'params.arguments must be an object')
  }
  const thing = isRead ? 'resource' : method === 'prompts/get' ? 'prompt' : 'tool'
  return { kind: 'wish', thing, asked, args: args ?? object({}) }
}

function readCompletion(params: JsonObject): Wish {
  const { ref, argument } = params
  const isWhole =
    isObject(argument) && isText(argument['name']) && typeof argument['value'] === 'string'
  if (!isWhole) return invalid('argument', 'params.argument must hold name and value')
  if (isObject(ref) && ref['type'] === 'ref/prompt' && isText(ref['name'])) {
    return { kind: 'wish', thing: 'prompt', asked: ref['name'], args: object({}) }
  }
  if (isObject(ref) && ref['type'] === 'ref/resource' && isText(ref['uri'])) {
    return { kind: 'wish', thing: 'resource', asked: ref['uri'], args: object({}) }
  }
  return invalid('ref', 'params.ref must be a ref/prompt with a name or a ref/resource with a uri')
}

const isText = (value: Json | undefined): value is string =>
  typeof value === 'string' && value !== ''

const targetOf = (route: Route): Target | null => (route === 'ambiguous' ? null : route)

// The hall names the target in calls that carry a name; a completion carries it one level down.
function withReference(params: JsonObject, method: Method, target: Target | null): JsonObject {
  const { ref } = params
  if (method !== 'completion/complete' || target?.kind !== 'prompt' || !isObject(ref)) return params
  return object({ ...params, ref: object({ ...ref, name: target.name }) })
}

const withLevel = (params: JsonObject, level: string | null): JsonObject =>
  level === null
    ? params
    : object({ ...params, _meta: object({ ...metaOf(params), [LOG_LEVEL]: level }) })

const TRACE = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** W3C trace context, level 1: `traceparent` when it is well-formed. */
function traceOf(params: JsonObject): string | null {
  const trace = metaOf(params)?.['traceparent']
  return typeof trace === 'string' && TRACE.test(trace) ? trace : null
}

const invalid = (problem: string, message: string): Extract<CallRead, { kind: 'invalid' }> => ({
  kind: 'invalid',
  problem,
  message,
})
