// Replies and values of the hall as a server of the official SDK takes them.

import type { Result } from '@modelcontextprotocol/server'

import { isExact, isObject, type Json, type JsonObject } from '../json.ts'
import type { Reply } from '../refusal.ts'

/** JSON-RPC codes that a gate answers with. */
export const RPC = { invalidParams: -32602, methodNotFound: -32601, internal: -32603 } as const

/** An error that the SDK puts on the wire with this code and this data. */
export const rpcError = (code: number, message: string, data?: unknown): Error =>
  Object.assign(new Error(message), data === undefined ? { code } : { code, data })

/** The value as ordinary objects and numbers, as the SDK's own parser would have made them. */
export const plain = (value: JsonObject): Record<string, unknown> =>
  Object.fromEntries(Object.entries(value).map(([key, one]) => [key, ordinary(one)]))

function ordinary(value: Json | undefined): unknown {
  if (isObject(value)) return plain(value)
  if (isExact(value)) return Number(value.rawJSON)
  return Array.isArray(value) ? value.map(ordinary) : value
}

/** The reply as the SDK takes it: a result, or an error thrown. A silent one is for a client that
 *  cancelled, to whom the SDK sends nothing. */
export function onTheWire(reply: Reply): Result {
  if (reply.kind === 'silent') throw rpcError(RPC.internal, 'cancelled')
  if (reply.kind === 'refused') {
    if (reply.as === 'result') return refusalResult(reply)
    throw rpcError(reply.rpc, reply.sentence, { [REFUSAL]: reply.refusal })
  }
  if (reply.kind === 'asks') {
    return {
      resultType: 'input_required',
      inputRequests: Object.fromEntries(
        Object.entries(reply.asks.asks).map(([key, { method, params }]) => [
          key,
          { method, params: plain(params) },
        ]),
      ),
      requestState: reply.state,
    }
  }
  const { answer } = reply
  if (answer.kind === 'result') return plain(answer.value)
  throw rpcError(
    answer.code,
    answer.message,
    answer.data === null ? undefined : ordinary(answer.data),
  )
}

const REFUSAL = 'eclusa/refusal'

/** A refusal as a tool's own failure. */
export const refusalResult = (reply: Extract<Reply, { readonly kind: 'refused' }>): Result => ({
  content: [{ type: 'text', text: reply.sentence }],
  isError: true,
  _meta: { [REFUSAL]: reply.refusal },
})
