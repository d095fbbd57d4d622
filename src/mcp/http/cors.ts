// What a browser must be told before a page of an allowed origin may call.

import type { Headers } from './headers.ts'

/** Headers that a page may send. `Mcp-Param-*` are named one by one, as they are asked for. */
const SENT: readonly string[] = [
  'accept',
  'authorization',
  'content-type',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
]
const PARAM = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]{1,128}$/
/** Parameters that one preflight may name. */
const MAX_PARAMS = 32
/** How long a browser may remember the answer, in seconds. */
const MAX_AGE_S = 600

/** Headers, in pairs, of every answer to a page of an allowed origin; none for any other. */
export function corsHeaders(headers: Headers, origins: ReadonlySet<string>): readonly string[] {
  const origin = headers.values.get('origin')
  if (origin === undefined || !origins.has(origin.toLowerCase())) return NONE
  return [
    'Access-Control-Allow-Origin',
    origin,
    'Access-Control-Expose-Headers',
    'Mcp-Session-Id, WWW-Authenticate, Retry-After',
    'Vary',
    'Origin',
  ]
}

const NONE: readonly string[] = []

/** Headers, in pairs, of the answer to a preflight. */
export function preflightHeaders(headers: Headers): readonly string[] {
  const asked = (headers.values.get('access-control-request-headers') ?? '')
    .toLowerCase()
    .split(',')
    .map((name) => name.trim())
    .filter((name) => PARAM.test(name))
  return [
    'Access-Control-Allow-Methods',
    'POST, GET, DELETE',
    'Access-Control-Allow-Headers',
    [...SENT, ...asked.slice(0, MAX_PARAMS)].join(', '),
    'Access-Control-Max-Age',
    String(MAX_AGE_S),
  ]
}
