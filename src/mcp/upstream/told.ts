// What an answer of a server makes of the call it answers.

import type { Answer, Era, Method } from '../../call.ts'
import type { Code } from '../../decision.ts'
import type { JsonObject } from '../../json.ts'
import type { Attempt } from '../../ports.ts'
import { mayBeAsked, readAsks } from './asks.ts'
import type { Heard } from './heard.ts'

/** Certain: the server has executed nothing. */
export const unsent = (code: Code, why: string): Attempt => ({ kind: 'unsent', code, why })
/** Nobody can say what the server has executed. */
export const unknown = (code: Code, why: string, late: Promise<Answer> | null = null): Attempt => ({
  kind: 'unknown',
  code,
  why,
  late,
})

/** What a call may be answered with beside a complete result. */
export type Asked = { readonly method: Method; readonly tasks: boolean }

/** The attempt that this answer ends. */
export function attemptOf(heard: Heard, era: Era, asked: Asked): Attempt {
  switch (heard.kind) {
    case 'error':
      return errorOf(heard, era)
    case 'unsent':
      return unsent(heard.code, heard.why)
    case 'refused':
      return unknown('answer_refused', heard.why)
    case 'gone':
      return heard.handed
        ? unknown('upstream_down', 'it ended before it answered')
        : unsent('upstream_down', 'it ended before the request left')
    case 'result':
      return resultOf(heard, era, asked)
  }
}

const UNSUPPORTED_VERSION = -32_022

/** An error is an answer, but for one that is about our own hop and comes before anything is executed. */
function errorOf(heard: Extract<Heard, { kind: 'error' }>, era: Era): Attempt {
  return heard.code === UNSUPPORTED_VERSION && era === 'modern'
    ? unsent('upstream_down', 'it does not speak the revision any more that it had named')
    : { kind: 'answered', answer: heard }
}

/** A result of a kind that was not asked for is inadmissible, never half passed. Source: MCP 2026-07-28. */
function resultOf(
  heard: Extract<Heard, { kind: 'result' }>,
  era: Era,
  { method, tasks }: Asked,
): Attempt {
  const { value, text } = heard
  const whole: Attempt = { kind: 'answered', answer: { kind: 'result', era, value, text } }
  // A legacy server says nothing of the kind: what it says beside `complete` is not its to say.
  const type = value['resultType'] ?? (era === 'legacy' ? 'complete' : null)
  if (type === 'complete') return whole
  if (type === null) return unknown('answer_refused', 'its result does not say that it is complete')
  if (era === 'modern' && type === 'task' && tasks && method === 'tools/call') return whole
  if (era === 'modern' && type === 'input_required' && mayBeAsked(method)) return asksOf(value)
  return unknown('answer_refused', 'it answered with a kind of result that this call cannot have')
}

function asksOf(value: JsonObject): Attempt {
  const asks = readAsks(value)
  return typeof asks === 'string'
    ? unknown('answer_refused', asks)
    : { kind: 'asks', asks, parked: null, expired: null }
}
