// JSON-RPC with one server process: our ids, its answers, and what it may not do to us.

import { isExact, isObject, member, object, parseJson, writeJson } from '../json.ts'
import type { Json, JsonLimits, JsonObject } from '../json.ts'
import type { Child, Parcel } from './child.ts'
import type { Edges } from './lines.ts'

/** What came of one request. `refused`: an answer came and was not admissible. `gone`: the process
 *  ended first; `handed` says whether the request may have reached it. */
export type Heard =
  | { readonly kind: 'result'; readonly value: JsonObject; readonly text: string | null }
  | {
      readonly kind: 'error'
      readonly code: number
      readonly message: string
      readonly data: JsonObject | null
    }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'gone'; readonly handed: boolean }

/** Who waits for an answer. `heard` comes at most once; `progress` before it, with growing values. */
export type Waiter = {
  readonly heard: (heard: Heard) => void
  readonly progress?: (params: JsonObject) => void
}

/** One request under way. */
export type Exchange = {
  readonly id: number
  /** Asks the server to stop; the answer is still awaited. `unsent`: it had not left and is taken back. */
  readonly cancel: (reason: string) => 'told' | 'unsent'
  /** Nobody waits any more, but an answer that comes late is still heard, while there is room. */
  readonly abandon: () => void
  /** Nothing is heard of it any more. */
  readonly forget: () => void
}

/** The conversation with one process. `counts` are of messages that were dropped. */
export type Wire = {
  /** Sends a request whose params may hold its own id. Null: it cannot be sent now. */
  readonly request: (
    method: string,
    params: (id: number) => JsonObject,
    waiter: Waiter,
  ) => Exchange | null
  readonly notify: (method: string, params: JsonObject) => void
  readonly line: (line: Buffer) => void
  readonly tooLong: (bytes: number, edges: Edges) => void
  /** Every waiter hears that the process is gone. */
  readonly gone: () => void
  /** From now on an array is several messages: 2025-03-26 and before allow that. */
  readonly acceptBatches: () => void
  readonly counts: Readonly<Record<'junk' | 'stray' | 'asked' | 'flood', number>>
}

/** What a wire needs of its surroundings. `nextId` never gives an id twice, not even for another
 *  process of the same upstream: an answer can then only be the answer to what was asked of this one. */
export type WireOptions = {
  readonly child: Pick<Child, 'send' | 'withdraw'>
  readonly limits: JsonLimits
  readonly nextId: () => number
  readonly notified: (method: string, params: JsonObject) => void
}

/** Requests that wait for an answer; and of those that nobody waits for any more, the latest. */
const MAX_PENDING = 10_000
const MAX_ABANDONED = 1000
/** Messages a second that are no answers and are still read; more are dropped unread until the next. */
const UNASKED_A_SECOND = 2000
const UNASKED_BYTES_A_SECOND = 8 * 1024 * 1024
const METHOD_NOT_FOUND = -32601

type Pending = {
  readonly waiter: Waiter
  readonly parcel: Parcel
  last: number
  cancelled: boolean
}

/** A conversation over this child. */
export function wire({ child, limits, nextId, notified }: WireOptions): Wire {
  const pending = new Map<number, Pending>()
  const abandoned = new Set<number>()
  const counts = { junk: 0, stray: 0, asked: 0, flood: 0 }
  const flood = floodgate()
  let batches = false

  const post = (message: JsonObject): Parcel | null => child.send(`${writeJson(message)}\n`)
  const settle = (id: number, heard: Heard): void => {
    const waiting = pending.get(id)
    pending.delete(id)
    abandoned.delete(id)
    if (waiting === undefined) counts.stray++
    else waiting.waiter.heard(heard)
  }
  const progress = (params: JsonObject): void => {
    const token = params['progressToken']
    const waiting = typeof token === 'number' ? pending.get(token) : undefined
    const at = params['progress']
    const value = isExact(at) ? Number(at.rawJSON) : typeof at === 'number' ? at : Number.NaN
    // Unknown tokens, ended calls and values that do not grow are dropped: strict clients hang up on them.
    if (waiting === undefined || !(value > waiting.last)) return
    waiting.last = value
    waiting.waiter.progress?.(params)
  }
  const asked = (id: Json, method: string): void => {
    counts.asked++
    if (typeof id !== 'string' && typeof id !== 'number') return
    post(
      method === 'ping'
        ? object({ jsonrpc: '2.0', id, result: object({}) })
        : object({
            jsonrpc: '2.0',
            id,
            error: object({ code: METHOD_NOT_FOUND, message: `${method} is not offered` }),
          }),
    )
  }
  const take = (value: Json, text: (member: string) => string | null): void => {
    if (!isObject(value) || value['jsonrpc'] !== '2.0') {
      counts.junk++
      return
    }
    const { id, method, params } = value
    if (typeof method === 'string') {
      const given = isObject(params) ? params : object({})
      if (id !== undefined) asked(id, method)
      else if (method === 'notifications/progress') progress(given)
      else notified(method, given)
      return
    }
    const heard = answerOf(value, text)
    if (heard === null) counts.junk++
    else if (typeof id === 'number') settle(id, heard)
    else counts.stray++
  }
  /** An answer that was not admitted still ends the call it was for, when its id can be read. */
  const refuse = (edges: Edges, why: string): void => {
    const id = idOf(edges)
    if (id === null || !pending.has(id)) counts.junk++
    else settle(id, { kind: 'refused', why })
  }

  return {
    request(method, params, waiter) {
      if (pending.size >= MAX_PENDING) return null
      const id = nextId()
      const parcel = post(object({ jsonrpc: '2.0', id, method, params: params(id) }))
      if (parcel === null) return null
      const one = { waiter, parcel, last: Number.NEGATIVE_INFINITY, cancelled: false }
      pending.set(id, one)
      return {
        id,
        cancel(reason) {
          if (child.withdraw(parcel)) {
            pending.delete(id)
            return 'unsent'
          }
          if (pending.has(id) && !one.cancelled) {
            one.cancelled = true
            const told = object({ requestId: id, reason })
            post(object({ jsonrpc: '2.0', method: 'notifications/cancelled', params: told }))
          }
          return 'told'
        },
        abandon() {
          abandoned.add(id)
          const [oldest] = abandoned
          if (abandoned.size <= MAX_ABANDONED || oldest === undefined) return
          abandoned.delete(oldest)
          pending.delete(oldest)
        },
        forget: () => pending.delete(id),
      }
    },
    notify(method, params) {
      post(object({ jsonrpc: '2.0', method, params }))
    },
    line(line) {
      if (flood.closed(line)) {
        counts.flood++
        return
      }
      const parsed = parseJson(line, limits)
      if (parsed.kind === 'refused') {
        refuse({ head: line, tail: line }, `its answer is not admissible JSON (${parsed.problem})`)
        return
      }
      const { value, text, spans } = parsed
      if (!isAnswer(value)) flood.count(line.length)
      if (batches && isList(value)) {
        for (const one of value) take(one, () => null)
        return
      }
      take(value, (name) => {
        const span = spans.get(name)
        return span === undefined ? null : text.slice(...span)
      })
    },
    tooLong(bytes, edges) {
      refuse(edges, `its answer has ${bytes} bytes, the limit is ${limits.bytes}`)
    },
    gone() {
      const left = [...pending.values()]
      pending.clear()
      for (const { waiter, parcel } of left) {
        waiter.heard({ kind: 'gone', handed: parcel.state === 'handed' })
      }
    },
    acceptBatches() {
      batches = true
    },
    counts,
  }
}

const isList = (value: Json): value is readonly Json[] => Array.isArray(value)
const isAnswer = (value: Json): boolean =>
  isObject(value) && value['method'] === undefined && value['id'] !== undefined

/** The answer that this message is; null when it is no answer at all. */
function answerOf(value: JsonObject, text: (member: string) => string | null): Heard | null {
  const { result, error } = value
  if (result === undefined && error === undefined) return null
  // Some servers write the absent one of the two as null.
  if (isObject(result) && (error === undefined || error === null)) {
    return { kind: 'result', value: result, text: text('result') }
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
    const data = member(error, 'data')
    return { kind: 'error', code, message, data: isObject(data) ? data : null }
  }
  return { kind: 'refused', why: 'its answer is neither a result nor an error' }
}

const HEAD_ID = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\s*[,}]/
const TAIL_ID = /"id"\s*:\s*([0-9]{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/
const EDGE_BYTES = 256

/** The id of an answer that could not be read whole, where it stands at one of its ends: nothing that
 *  a nested value holds can stand there. */
function idOf({ head, tail }: Edges): number | null {
  const found =
    HEAD_ID.exec(head.toString('latin1', 0, EDGE_BYTES)) ??
    TAIL_ID.exec(tail.subarray(-EDGE_BYTES).toString('latin1'))
  return found?.[1] === undefined ? null : Number(found[1])
}

type Floodgate = {
  readonly count: (bytes: number) => void
  readonly closed: (line: Buffer) => boolean
}

/** Counts what nobody asked for. While it is closed, lines that cannot be answers are not even read. */
function floodgate(): Floodgate {
  let second = 0
  let messages = 0
  let bytes = 0
  const turn = (): void => {
    const now = Math.floor(performance.now() / 1000)
    if (now === second) return
    second = now
    messages = 0
    bytes = 0
  }
  return {
    count(length) {
      turn()
      messages++
      bytes += length
    },
    closed(line) {
      if (messages < UNASKED_A_SECOND && bytes < UNASKED_BYTES_A_SECOND) return false
      turn()
      if (messages < UNASKED_A_SECOND && bytes < UNASKED_BYTES_A_SECOND) return false
      return !line.includes('"id"')
    },
  }
}
