// What a message of a server is: an answer, an inadmissible one, or nothing.

import type { Code } from '../../decision.ts'
import { isObject, type Json, type JsonObject, member } from '../../json.ts'
import type { Edges } from '../wire/lines.ts'

/** What came of one request. `refused`: an answer came and was not admissible. `gone`: the process or the
 *  connection ended first; `handed` says whether the request may have reached it. `unsent`: it is certain
 *  that nothing was executed, since the connection was refused, or the server turned the request away
 *  before it looked at what it asks for. */
export type Heard =
  | { readonly kind: 'result'; readonly value: JsonObject; readonly text: string | null }
  | {
      readonly kind: 'error'
      readonly code: number
      readonly message: string
      readonly data: Json | null
    }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'gone'; readonly handed: boolean }
  | { readonly kind: 'unsent'; readonly code: Code; readonly why: string }

/** The answer that this message is; null when it is no answer at all. */
export function answerOf(value: JsonObject, text: string | null): Heard | null {
  const { result, error } = value
  if (result === undefined && error === undefined) return null
  // Some servers write the absent one of the two as null.
  if (isObject(result) && (error === undefined || error === null)) {
    return { kind: 'result', value: result, text }
  }
  const code = member(error, 'code')
  const message = member(error, 'message')
  const absent = result === undefined || result === null
  if (
    absent &&
    Number.isSafeInteger(code) &&
    typeof code === 'number' &&
    typeof message === 'string'
  ) {
    return { kind: 'error', code, message, data: member(error, 'data') ?? null }
  }
  return { kind: 'refused', why: 'its answer is neither a result nor an error' }
}

const HEAD_ID = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\s*[,}]/
const TAIL_ID = /"id"\s*:\s*([0-9]{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/
const EDGE_BYTES = 256

/** The id of an answer that could not be read whole, where it stands at one of its ends: nothing that
 *  a nested value holds can stand there. */
export function idOf({ head, tail }: Edges): number | null {
  const found =
    HEAD_ID.exec(head.toString('latin1', 0, EDGE_BYTES)) ??
    TAIL_ID.exec(tail.subarray(-EDGE_BYTES).toString('latin1'))
  return found?.[1] === undefined ? null : Number(found[1])
}
