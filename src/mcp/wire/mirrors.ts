// What headers mirror of the body of a request. No I/O.

import { isObject, type Json, type JsonObject } from '../../json.ts'

/** One property of a tool's arguments that a header mirrors: `header` is the whole name of the header. */
export type Mirror = { readonly header: string; readonly path: readonly string[] }

/** What headers mirror of a tool's arguments. `problem`, in words, when some annotation stands where a reader of
 *  headers could not follow it: no client may use such a tool over HTTP, and `mirrors` holds the others. */
export type Mirrors = { readonly mirrors: readonly Mirror[]; readonly problem: string | null }

/** The member of `params` that `Mcp-Name` mirrors, by method. Source: MCP 2026-07-28, Streamable HTTP. */
export const NAMED: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
])

const PARAM = 'Mcp-Param-'
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const PRIMITIVE: ReadonlySet<Json | undefined> = new Set(['string', 'integer', 'boolean'])
/** Properties that a header may mirror, and the depth to which they are looked for. */
const MAX_MIRRORS = 100
const MAX_DEPTH = 64

/** What headers mirror of the arguments that this schema describes. Source: MCP 2026-07-28, x-mcp-header. */
export function mirrorsIn(schema: Json | undefined): Mirrors {
  const found: Found = { mirrors: [], names: new Set(), problem: null }
  walk(found, schema, { path: [], reached: true })
  return { mirrors: found.mirrors, problem: found.problem }
}

type Found = { readonly mirrors: Mirror[]; readonly names: Set<string>; problem: string | null }
/** `reached`: only through `properties`. */
type Spot = { readonly path: readonly string[]; readonly reached: boolean }

function walk(found: Found, schema: Json | undefined, spot: Spot): void {
  if (spot.path.length > MAX_DEPTH) {
    found.problem ??= 'is nested too deeply'
    return
  }
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
  const key = typeof name === 'string' ? name.toLowerCase() : ''
  const problem = wrong(schema, name, reached && path.length > 0) ?? crowded(found, key)
  if (problem !== null || typeof name !== 'string') {
    found.problem ??= problem
    return
  }
  found.names.add(key)
  found.mirrors.push({ header: PARAM + name, path })
}

function crowded({ names, mirrors }: Found, key: string): string | null {
  if (names.has(key)) return 'names one header twice in x-mcp-header'
  return mirrors.length >= MAX_MIRRORS ? 'has too many x-mcp-header' : null
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
