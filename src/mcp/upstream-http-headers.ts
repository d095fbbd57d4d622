// The headers of a message to a server over HTTP: made from the body that is sent, and from nothing else.

import { isExact, isObject, type Json, type JsonObject, member } from '../json.ts'
import { PROTOCOL } from './era.ts'

/** Headers by name, as they are written. */
export type HeaderSet = Readonly<Record<string, string>>

/** One property of a tool's arguments that a header mirrors: `header` is the whole name of the header. */
export type Mirror = { readonly header: string; readonly path: readonly string[] }

const VERSION = `${PROTOCOL}protocolVersion`
const PARAM = 'Mcp-Param-'

/** What `Mcp-Name` mirrors, by method. Source: MCP 2026-07-28, Streamable HTTP. */
const NAMED: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

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

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const PRIMITIVE: ReadonlySet<Json | undefined> = new Set(['string', 'integer', 'boolean'])
/** Properties that a header may mirror, and the depth to which they are looked for. */
const MAX_MIRRORS = 100
const MAX_DEPTH = 64

/** What headers mirror of the arguments that this schema describes; or, in words, why no client may use the
 *  tool over HTTP: an annotation that stands where a reader of headers could not follow it. */
export function mirrorsIn(schema: Json | undefined): readonly Mirror[] | string {
  const found: Found = { mirrors: [], names: new Set(), problem: null }
  walk(found, schema, { path: [], reached: true })
  return found.problem ?? found.mirrors
}

type Found = { readonly mirrors: Mirror[]; readonly names: Set<string>; problem: string | null }
/** `reached`: only through `properties`. */
type Spot = { readonly path: readonly string[]; readonly reached: boolean }

function walk(found: Found, schema: Json | undefined, spot: Spot): void {
  if (spot.path.length > MAX_DEPTH) found.problem ??= 'is nested too deeply'
  if (found.problem !== null) return
  if (isList(schema)) {
    for (const one of schema) walk(found, one, { ...spot, reached: false })
    return
  }
  if (!isObject(schema)) return
  const name = schema['x-mcp-header']
  if (name !== undefined) annotate(found, schema, name, spot)
  walkMembers(found, schema, spot)
}

function walkMembers(found: Found, schema: JsonObject, spot: Spot): void {
  for (const [key, value] of Object.entries(schema)) {
    if (DATA.has(key)) continue
    if (key === 'properties' && isObject(value)) {
      for (const [property, one] of Object.entries(value)) {
        walk(found, one, { path: [...spot.path, property], reached: spot.reached })
      }
    } else walk(found, value, { path: [...spot.path, key], reached: false })
  }
}

/** Keywords whose value is data, not a schema. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'x-mcp-header'])

function annotate(found: Found, schema: JsonObject, name: Json, { path, reached }: Spot): void {
  const problem = wrong(schema, name, reached && path.length > 0)
  if (problem !== null || typeof name !== 'string') {
    found.problem = problem
    return
  }
  const key = name.toLowerCase()
  if (found.names.has(key)) found.problem = 'names one header twice in x-mcp-header'
  else if (found.mirrors.length >= MAX_MIRRORS) found.problem = 'has too many x-mcp-header'
  found.names.add(key)
  found.mirrors.push({ header: PARAM + name, path })
}

function wrong(schema: JsonObject, name: Json, reached: boolean): string | null {
  if (typeof name !== 'string' || !TOKEN.test(name)) {
    return 'has an x-mcp-header that is no name of a header'
  }
  if (!reached) return 'has an x-mcp-header where properties alone do not lead'
  return PRIMITIVE.has(schema['type'])
    ? null
    : 'has an x-mcp-header on what is no string, integer or boolean'
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
