// The headers of one request, and whether they say what its body says. No I/O.

import type { Era } from '../../call.ts'
import { isExact, isObject, type Json, type JsonObject, object } from '../../json.ts'
import type { Hop } from '../front/channel.ts'
import { LEGACY_VERSIONS, metaOf, MODERN_VERSION, PROTOCOL } from '../wire/era.ts'
import { RPC } from '../wire/message.ts'
import { type Mirror, mirrorsIn, NAMED } from '../wire/mirrors.ts'

/** The headers of one request by their names in lower case. `repeated`: names that stood more than once;
 *  their values are joined with a comma. */
export type Headers = {
  readonly values: Pick<ReadonlyMap<string, string>, 'get' | 'has'>
  /** Those whose names begin so. */
  readonly under: (prefix: string) => ReadonlyMap<string, string>
  readonly repeated: ReadonlySet<string>
}

/** Why a request is refused: `problem` is recorded, the rest told. */
export type Told = {
  readonly problem: string
  readonly rpc: number
  readonly message: string
  readonly data: JsonObject | null
}

/** The JSON-RPC code of headers that are missing, malformed or say something else than the body. */
export const HEADER_MISMATCH = -32020
const UNSUPPORTED_VERSION = -32022

/** The header that names the revision of a message. */
export const VERSION_HEADER = 'mcp-protocol-version'
const METHOD_HEADER = 'mcp-method'
const NAME_HEADER = 'mcp-name'
const PARAM_PREFIX = 'mcp-param-'

/** Headers in one request; what is beyond them is not read. Their bytes have a limit of their own. */
export const MAX_HEADERS = 100

/** Reads names and values as they came, in pairs. */
export function readHeaders(raw: readonly string[]): Headers {
  // So few are found sooner in a list than a map of them is made.
  const names: string[] = []
  const values: string[] = []
  let repeated: Set<string> | null = null
  const end = Math.min(raw.length, 2 * MAX_HEADERS)
  for (let at = 0; at + 1 < end; at += 2) {
    const name = (raw[at] ?? '').toLowerCase()
    const value = raw[at + 1] ?? ''
    const place = names.indexOf(name)
    if (place < 0) {
      names.push(name)
      values.push(value)
      continue
    }
    values[place] = `${values[place] ?? ''}, ${value}`
    repeated ??= new Set()
    repeated.add(name)
  }
  return {
    values: {
      get: (name) => values[names.indexOf(name)],
      has: (name) => names.includes(name),
    },
    under(prefix) {
      let found: Map<string, string> | null = null
      for (const [at, name] of names.entries()) {
        if (name.startsWith(prefix)) (found ??= new Map()).set(name, values[at] ?? '')
      }
      return found ?? EMPTY
    },
    repeated: repeated ?? NONE,
  }
}

const NONE: ReadonlySet<string> = new Set()
const EMPTY: ReadonlyMap<string, string> = new Map()

/** The meaning of a header value: itself, or what its sentinel `=?base64?...?=` holds. Null where it holds no
 *  text: characters that a header cannot carry, base64 that is not canonical, bytes that are not UTF-8. */
export function decodeValue(value: string): string | null {
  if (!value.startsWith(SENTINEL) || !value.endsWith('?=') || value.length < SENTINEL.length + 2) {
    return PLAIN.test(value) ? value : null
  }
  const inside = value.slice(SENTINEL.length, -2)
  const bytes = Buffer.from(inside, 'base64')
  // Of several spellings of the same bytes only one is taken: readers differ on the others.
  if (bytes.toString('base64') !== inside) return null
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return null
  }
}

const SENTINEL = '=?base64?'
const PLAIN = /^[\t\x20-\x7e]*$/

/** The era whose rules hold for a message: modern when its envelope names a revision, or its header names one
 *  that has no handshake. Either alone is enough, so that the other is then missed. */
export function eraOf(headers: Headers, params: JsonObject | null): Era {
  if (versionOf(params) !== undefined) return 'modern'
  const header = headers.values.get(VERSION_HEADER)
  return header === undefined || LEGACY_VERSIONS.includes(header) ? 'legacy' : 'modern'
}

/** What is wrong with the headers of a modern request, or null. A request without an envelope is left to
 *  whoever reads envelopes, unless its headers already disagree. */
export function ladder(
  headers: Headers,
  { method, params }: { readonly method: string; readonly params: JsonObject | null },
): Told | null {
  for (const name of headers.repeated) {
    if (name.startsWith('mcp-'))
      return mismatch(`the header ${spelled(name)} stands more than once`)
  }
  const wrong = versionProblem(headers, method, params)
  if (wrong !== null || versionOf(params) === undefined) return wrong
  const named = headers.values.get(METHOD_HEADER)
  if (named === undefined) return mismatch('the header Mcp-Method is missing')
  if (named !== method) return mismatch('the header Mcp-Method is not the method of the body')
  return nameProblem(headers, method, params)
}

function versionProblem(headers: Headers, method: string, params: JsonObject | null): Told | null {
  const header = headers.values.get(VERSION_HEADER)
  const inside = versionOf(params)
  if (header === undefined) return mismatch('the header MCP-Protocol-Version is missing')
  if (inside !== undefined) {
    if (inside === header) return null
    return mismatch('the header MCP-Protocol-Version is not the version in params._meta')
  }
  // A handshake has no envelope, and belongs to revisions that this header does not name.
  if (method === 'initialize') {
    return mismatch('initialize does not go with this header MCP-Protocol-Version')
  }
  return header === MODERN_VERSION ? null : unsupported(header)
}

/** The refusal of a revision that is not spoken here. */
export const unsupported = (asked: string): Told => ({
  problem: 'protocol_version',
  rpc: UNSUPPORTED_VERSION,
  message: 'this protocol version is not spoken here; use one of data.supported',
  data: object({ supported: [MODERN_VERSION], requested: asked.slice(0, MAX_ECHO) }),
})

/** Characters of a version that are said again. */
const MAX_ECHO = 64

function nameProblem(headers: Headers, method: string, params: JsonObject | null): Told | null {
  const field = NAMED.get(method)
  const name = field === undefined ? undefined : params?.[field]
  // A body without its name is refused for that.
  if (typeof name !== 'string') return null
  const header = headers.values.get(NAME_HEADER)
  if (header === undefined) return mismatch('the header Mcp-Name is missing')
  const meant = decodeValue(header)
  if (meant === null) return mismatch('the header Mcp-Name cannot be read')
  return meant === name ? null : mismatch(`the header Mcp-Name is not params.${field ?? ''}`)
}

const versionOf = (params: JsonObject | null): Json | undefined =>
  metaOf(params)?.[`${PROTOCOL}protocolVersion`]

/** A refusal of headers. */
export const mismatch = (what: string): Told => ({
  problem: 'headers',
  rpc: HEADER_MISMATCH,
  message: `${what}; send headers that say what the body says`,
  data: null,
})

/** The refusal of a message that is no request of its era. */
export const invalidRequest = (problem: string, message: string): Told => ({
  problem,
  rpc: RPC.request,
  message,
  data: null,
})

const spelled = (name: string): string =>
  name === VERSION_HEADER || name === METHOD_HEADER || name === NAME_HEADER ? name : 'Mcp-*'

/** The hop of a modern request: its `Mcp-Param-*` headers against the schema of the tool it calls. */
export function hopOf(headers: Headers): Hop {
  const params = headers.under(PARAM_PREFIX)
  return {
    checkParams(schema, args) {
      for (const { header, path } of mirrorsOf(schema)) {
        const problem = paramProblem(params.get(header.toLowerCase()), valueAt(args, path))
        if (problem !== null) return `the header ${header} ${problem}`
      }
      for (const [name, value] of params) {
        if (!PLAIN.test(value)) return `the header ${name} cannot be read`
      }
      return null
    },
    otherParams(schema) {
      if (params.size === 0) return NO_HEADERS
      const named = new Set(mirrorsOf(schema).map(({ header }) => header.toLowerCase()))
      return Object.fromEntries([...params].filter(([name]) => !named.has(name)))
    },
  }
}

const NO_HEADERS: Readonly<Record<string, string>> = {}

/** Found once a schema: definitions are shared by all the calls of a tool. */
const found = new WeakMap<JsonObject, readonly Mirror[]>()

/** What headers must mirror. An annotation that is not valid mirrors nothing. */
function mirrorsOf(schema: Json | undefined): readonly Mirror[] {
  if (!isObject(schema)) return []
  const before = found.get(schema)
  if (before !== undefined) return before
  const { mirrors } = mirrorsIn(schema)
  found.set(schema, mirrors)
  return mirrors
}

function valueAt(args: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = args
  for (const name of path) value = isObject(value) ? value[name] : undefined
  return value
}

function paramProblem(header: string | undefined, value: Json | undefined): string | null {
  const isExpected = value !== undefined && value !== null
  if (header === undefined) return isExpected ? 'is missing' : null
  if (!isExpected) return 'mirrors an argument that is not there'
  const meant = decodeValue(header)
  if (meant === null) return 'cannot be read'
  return says(meant, value) ? null : 'is not the argument that it mirrors'
}

/** Numbers of a header: an integer, however its fraction is written. */
const WHOLE = /^-?\d{1,32}(?:\.0{1,32})?$/

function says(header: string, value: Json): boolean {
  if (typeof value === 'string') return header === value
  if (typeof value === 'boolean') return header === String(value)
  const number = isExact(value) ? Number(value.rawJSON) : value
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) return false
  return WHOLE.test(header) && Number(header) === number
}
