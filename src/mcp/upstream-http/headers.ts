// The headers of a message to a server over HTTP: made from the body that is sent, and from nothing else.

import { isExact, type Json, type JsonObject, member } from '../../json.ts'
import { PROTOCOL } from '../wire/era.ts'
import { type Mirror, NAMED } from '../wire/mirrors.ts'

/** Headers by name, as they are written. */
export type HeaderSet = Readonly<Record<string, string>>

const VERSION = `${PROTOCOL}protocolVersion`

/** The revision that a body names in its envelope; null for a legacy one. */
export function versionIn(params: JsonObject): string | null {
  const version = member(params['_meta'], VERSION)
  return typeof version === 'string' ? version : null
}

/** The headers of a modern request with this body. `mirrors`: those of the tool that it calls. `passed`: of a
 *  client, as `Send.headers`; what is no `Mcp-Param-*`, or is mirrored, is left out. */
export function headersOf(
  method: string,
  params: JsonObject,
  more: { readonly mirrors: readonly Mirror[]; readonly passed: HeaderSet },
): Record<string, string> {
  const made: Record<string, string> = { 'Mcp-Method': method }
  const version = versionIn(params)
  if (version !== null) made['MCP-Protocol-Version'] = version
  const field = NAMED.get(method)
  const name = field === undefined ? undefined : params[field]
  if (typeof name === 'string') made['Mcp-Name'] = encoded(name)
  if (method !== 'tools/call') return made
  for (const { header, path } of more.mirrors) {
    const text = textOf(valueAt(params['arguments'], path))
    if (text !== null) made[header] = encoded(text)
  }
  const mirrored = new Set(more.mirrors.map(({ header }) => header.toLowerCase()))
  for (const [key, value] of Object.entries(more.passed)) {
    if (!PASSED.test(key) || mirrored.has(key.toLowerCase()) || !PLAIN.test(value)) continue
    made[key] = value
  }
  return made
}

const PASSED = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/i
const PLAIN = /^[\u0020-\u007e]*$/
const SENTINEL = /^=\?base64\?.*\?=$/s
const EDGES = /^[ \t]|[ \t]$/

/** A text as a header value: as it is, or in base64 where it would not arrive as it is. */
export function encoded(text: string): string {
  if (PLAIN.test(text) && !EDGES.test(text) && !SENTINEL.test(text)) return text
  return `=?base64?${Buffer.from(text, 'utf8').toString('base64')}?=`
}

function valueAt(args: Json | undefined, path: readonly string[]): Json | undefined {
  let value = args
  for (const key of path) value = member(value, key)
  return value
}

/** Null for what has no header: absent, null, or of a type that the schema does not promise. */
function textOf(value: Json | undefined): string | null {
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return String(value)
  if (isExact(value)) return value.rawJSON
  return typeof value === 'number' ? String(value) : null
}
