// The era-neutral form in which an answer is kept for replays, and the text its digest is over.

import type { Answer } from '../call.ts'
import {
  isObject,
  type Json,
  member,
  object,
  parseText,
  UPSTREAM_LIMITS,
  writeJson,
} from '../json.ts'
import type { Stored } from '../ports.ts'

/** The text a result digest is over: the answer's `result`, or its `error`, as it was admitted. */
export function sourceOf(answer: Answer): string {
  if (answer.kind === 'result') return answer.text ?? writeJson(answer.value)
  const { code, message, data } = answer
  return writeJson(object({ code, message, data: data ?? undefined }))
}

/** `{"result":...}` or `{"error":...}` without the members that belong to one era only. */
export function neutral(answer: Answer): string {
  if (answer.kind === 'error') return `{"error":${sourceOf(answer)}}`
  // What names a task is no result yet: all of it is the handle.
  const isTask = answer.value['resultType'] === 'task'
  if (answer.era === 'legacy' || isTask) return `{"result":${sourceOf(answer)}}`
  const { resultType: _type, ttlMs: _ttl, cacheScope: _scope, ...rest } = answer.value
  return `{"result":${writeJson(object(rest))}}`
}

/** The answer that `neutral` wrote, or null when the text is not its work. */
export function parseStored(text: string): Answer | null {
  const parsed = parseText(text, UPSTREAM_LIMITS)
  if (parsed.kind !== 'json') return null
  const result = member(parsed.value, 'result')
  if (isObject(result) && parsed.result !== null) {
    return { kind: 'result', era: 'legacy', value: result, text: text.slice(...parsed.result) }
  }
  return parseError(member(parsed.value, 'error'))
}

/** What is replayed for an answer that was too large to keep: that it is done, its size and digest. */
export function notKept(name: string, stored: Omit<Stored, 'answer'>): Answer {
  const text =
    `${name} is done under this key. The answer was too large to keep: ` +
    `${stored.bytes} bytes, digest ${stored.digest}. Read the state with another tool.`
  const value = object({ content: [object({ type: 'text', text })], isError: stored.failed })
  return { kind: 'result', era: 'legacy', value, text: null }
}

function parseError(error: Json | undefined): Answer | null {
  const code = member(error, 'code')
  const message = member(error, 'message')
  const data = member(error, 'data')
  if (typeof code !== 'number' || typeof message !== 'string') return null
  return { kind: 'error', code, message, data: data ?? null }
}
