// Which revision of the protocol a request speaks, read from its own envelope and nothing else.

import type { Era } from '../../call.ts'
import { isObject, type Json, type JsonObject, object } from '../../json.ts'
import { RPC } from './message.ts'

/** The revision of 2026-07-28, whose requests carry their envelope in `params._meta`. */
export const MODERN_VERSION = '2026-07-28'
/** Revisions with a handshake, newest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2025-11-25', '2025-06-18', '2025-03-26']
/** The only revision with batches. */
export const BATCH_VERSION = '2025-03-26'

/** The prefix of the protocol's own `_meta` names. */
export const PROTOCOL = 'io.modelcontextprotocol/'
const VERSION = `${PROTOCOL}protocolVersion`
const CAPABILITIES = `${PROTOCOL}clientCapabilities`
const CLIENT_INFO = `${PROTOCOL}clientInfo`
/** Where a modern request says its log level. */
export const LOG_LEVEL: string = `${PROTOCOL}logLevel`

/** The tasks extension of modern requests. */
export const TASKS: string = `${PROTOCOL}tasks`

/** Severities, mildest first. */
export const LEVELS: readonly string[] = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]

/** What the hop to this client needs for one request. `level`: the mildest log message it wants; null for
 *  none (modern), or for what the server sends unasked (legacy). `token`: its progress token with its type, null for none. */
export type Face = {
  readonly era: Era
  readonly version: string
  readonly level: string | null
  readonly token: string | number | null
  /** What the client says it can do for servers, cut to what its revision knows. */
  readonly capabilities: JsonObject
}

/** What a legacy client agreed on with `initialize`. `level`: what it set with `logging/setLevel`, or null. */
export type Session = {
  readonly version: string
  readonly level: string | null
  readonly capabilities: JsonObject
}

/** The revision in which a request is to be served, or why it cannot be. */
export type Faced =
  | { readonly kind: 'face'; readonly face: Face }
  /** `problem` is recorded; the rest is told. */
  | {
      readonly kind: 'refused'
      readonly problem: string
      readonly rpc: number
      readonly message: string
      readonly data: JsonObject | null
    }

const UNSUPPORTED_VERSION = -32022
/** Characters of a progress token. */
const MAX_TOKEN = 256

/** True for a request that names a revision in its envelope. */
export const isModern = (params: JsonObject | null): boolean =>
  metaOf(params)?.[VERSION] !== undefined

/** `params._meta` when it is an object. */
export function metaOf(params: JsonObject | null): JsonObject | null {
  const meta = params?.['_meta']
  return isObject(meta) ? meta : null
}

/** The face of one request: modern by its envelope, legacy by the session, otherwise refused. A session
 *  never lends its revision to a request that names another one. */
export function readFace(params: JsonObject | null, session: Session | null): Faced {
  const meta = metaOf(params)
  if (params?.['_meta'] !== undefined && meta === null) {
    return invalid('meta', 'params._meta must be an object')
  }
  const token = readToken(meta?.['progressToken'])
  if (token === undefined) {
    return invalid(
      'progress_token',
      `progressToken must be a string of at most ${MAX_TOKEN} characters or an integer`,
    )
  }
  const version = meta?.[VERSION]
  if (meta !== null && version !== undefined) return readEnvelope(meta, version, token)
  if (session !== null) return { kind: 'face', face: { era: 'legacy', ...session, token } }
  return invalid(
    'envelope',
    `params._meta lacks ${VERSION}; send it with every request, or initialize first`,
  )
}

/** True when capabilities, of a client or of a server, declare an extension. */
export function isDeclared(capabilities: JsonObject, extension: string): boolean {
  const { extensions } = capabilities
  return isObject(extensions) && isObject(extensions[extension])
}

/** The revision to agree on when a client asks for `asked`. */
export const negotiated = (asked: string): string =>
  LEGACY_VERSIONS.includes(asked) ? asked : '2025-11-25'

/** True when a message of this level is at least as severe as `least`. Unknown levels never are. */
export function atLeast(level: Json | undefined, least: string): boolean {
  return typeof level === 'string' && LEVELS.indexOf(level) >= LEVELS.indexOf(least)
}

/** True for a log message that a session at this level is told; without a level, what the server sends. */
export const isWanted = (params: JsonObject, level: string | null): boolean =>
  atLeast(params['level'], level ?? 'debug')

/** What a session's client can do for servers: of what it declared, only what its revision knows, so that no
 *  server is promised more. */
export function capabilitiesOf(version: string, declared: Json | undefined): JsonObject {
  if (!isObject(declared)) return object({})
  const { elicitation, sampling, roots } = declared
  const isNewest = version >= '2025-11-25'
  const forms = version >= '2025-06-18' && isObject(elicitation)
  return object({
    roots: isObject(roots) ? object({}) : undefined,
    sampling: !isObject(sampling) ? undefined : isNewest ? sampling : object({}),
    elicitation: !forms ? undefined : isNewest ? elicitation : object({}),
  })
}

function readEnvelope(meta: JsonObject, version: Json, token: Face['token']): Faced {
  if (typeof version !== 'string') return invalid('envelope', `${VERSION} must be a string`)
  if (version !== MODERN_VERSION) {
    return {
      kind: 'refused',
      problem: 'protocol_version',
      rpc: UNSUPPORTED_VERSION,
      message: 'this protocol version is not spoken here; use one of data.supported',
      data: object({ supported: [MODERN_VERSION], requested: version }),
    }
  }
  const capabilities = meta[CAPABILITIES]
  if (!isObject(capabilities)) {
    return invalid('envelope', `params._meta lacks ${CAPABILITIES}; send {} for none`)
  }
  const info = meta[CLIENT_INFO]
  if (info !== undefined && !isImplementation(info)) {
    return invalid('envelope', `${CLIENT_INFO} must be an object with name and version`)
  }
  const level = meta[LOG_LEVEL]
  if (level !== undefined && !atLeast(level, 'debug')) {
    return invalid('log_level', `${LOG_LEVEL} must be one of ${LEVELS.join(', ')}`)
  }
  const wanted = typeof level === 'string' ? level : null
  return { kind: 'face', face: { era: 'modern', version, level: wanted, token, capabilities } }
}

const isImplementation = (info: Json): boolean =>
  isObject(info) && typeof info['name'] === 'string' && typeof info['version'] === 'string'

// undefined: a token that cannot be used. It comes back with every report of progress, so it is short.
function readToken(token: Json | undefined): string | number | null | undefined {
  if (token === undefined) return null
  if (typeof token === 'number') return Number.isSafeInteger(token) ? token : undefined
  return typeof token === 'string' && token.length <= MAX_TOKEN ? token : undefined
}

const invalid = (problem: string, message: string): Faced => ({
  kind: 'refused',
  problem,
  rpc: RPC.params,
  message,
  data: null,
})
