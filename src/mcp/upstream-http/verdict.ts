// What a reply over HTTP means for the call: answered, refused unread, or to be sent again, and why that is safe.

import type { Heard } from '../upstream/heard.ts'
import type { Told } from './talk.ts'

/** end: this is what is heard; `outdated`: the server may not speak any more what it spoke.
 *  renew: the session is gone, and that proves that nothing was executed. headers: it refuses the headers
 *  that mirror the body, before it executes anything. */
export type Verdict =
  | { readonly kind: 'end'; readonly heard: Heard; readonly outdated: boolean }
  | { readonly kind: 'renew' }
  | { readonly kind: 'headers' }

/** How the request was sent. `session`: with the id of a session. */
export type Sent = {
  readonly name: string
  readonly method: string
  readonly era: 'modern' | 'legacy'
  readonly session: boolean
}

type Reply = Extract<Told, { kind: 'answer' | 'status' }>

const HEADER_MISMATCH = -32_020
const UNSUPPORTED_VERSION = -32_022
/** What is said of a session that is not known. Source: the official SDK. */
const SESSION_UNKNOWN = -32_001
const METHOD_NOT_FOUND = -32_601
/** By these HTTP says that the request was turned away for its form. Source: RFC 9110, 15.5; docs/decisions/0084. */
const UNREAD: ReadonlySet<number> = new Set([405, 411, 413, 414, 415, 417, 421, 426, 431])
/** What an endpoint says that does not know the era of a request, without an answer to it. */
const FOREIGN: ReadonlySet<number> = new Set([400, 404, 405])

const end = (heard: Heard, outdated = false): Verdict => ({ kind: 'end', heard, outdated })
const unsent = (why: string): Heard => ({ kind: 'unsent', code: 'upstream_down', why })

/** What this reply makes of the request. */
export function verdictOn(told: Reply, sent: Sent): Verdict {
  const { status } = told.head
  const error = errorOf(told)
  if (status === 401 || status === 403) {
    const why = `${sent.name} needs a login; set its header`
    return end({ kind: 'unsent', code: 'upstream_login', why })
  }
  if (sent.session && isSessionLost(status, error, told)) return { kind: 'renew' }
  if (sent.era === 'modern' && error?.code === HEADER_MISMATCH && status === 400) {
    return sent.method === 'tools/call'
      ? { kind: 'headers' }
      : end(unsent('it refuses the headers of the request'))
  }
  if (told.kind === 'answer') return end(told.heard, isOutdated(sent, error))
  return end(turnedAway(told), FOREIGN.has(status))
}

const errorOf = (told: Reply): Extract<Heard, { kind: 'error' }> | null => {
  if (told.kind === 'status') return told.error
  return told.heard.kind === 'error' ? told.heard : null
}

/** 404 by the specification; but a server that has no such method may say that with 404 too, and some say
 *  400 and, without the id of the request, that there is no such session. An error under that id is the word of
 *  whoever looked at the call, and may be what came of executing it. */
function isSessionLost(
  status: number,
  error: Extract<Heard, { kind: 'error' }> | null,
  told: Reply,
): boolean {
  const named = /session/i.test(error?.message ?? '')
  if (told.kind === 'answer') return status === 404 && error?.code === SESSION_UNKNOWN && named
  if (status === 404) return error?.code !== METHOD_NOT_FOUND
  return status === 400 && named
}

function isOutdated(sent: Sent, error: Extract<Heard, { kind: 'error' }> | null): boolean {
  if (error === null) return false
  if (error.code === UNSUPPORTED_VERSION) return true
  return sent.era === 'modern' && error.code === METHOD_NOT_FOUND && sent.method === 'tools/call'
}

/** A reply without an answer. 429 is said before anything is done; 503 may also come from a gateway that
 *  lost a server in the middle of the call, so nobody can say. Source: RFC 6585; docs/decisions/0084. */
function turnedAway({ head, why }: Extract<Told, { kind: 'status' }>): Heard {
  const { retryAfterMs, status } = head
  if (status === 307 || status === 308 || UNREAD.has(status)) return unsent(why)
  if (status !== 429) return { kind: 'refused', why }
  const when = retryAfterMs === null ? '' : `; try again in ${Math.ceil(retryAfterMs / 1000)} s`
  return unsent(`it takes no more requests now${when}`)
}
