// The `_meta` of one hop: the protocol's own keys are ours on the way to a server, all others pass.

import type { Era } from '../../call.ts'
import { isObject, type Json, type JsonObject, object, withMembers } from '../../json.ts'
import { BATCH_VERSION, LEGACY_VERSIONS, PROTOCOL } from '../wire/era.ts'

/** The legacy revisions that are understood, the one we ask for first. The last is only ever answered to
 *  us: on stdio its messages are a part of those of 2025-03-26. */
export const SERVER_VERSIONS: readonly string[] = [...LEGACY_VERSIONS, '2024-11-05']
/** The legacy revisions in which a server may send several messages as one array. */
export const BATCHING_VERSIONS: readonly string[] = [BATCH_VERSION, '2024-11-05']

/** How one server is spoken to. `client` names us where the request does not name its own client. */
export type Hop = {
  readonly era: Era
  readonly version: string
  readonly client: { readonly name: string; readonly version: string }
}

const VERSION = `${PROTOCOL}protocolVersion`
const CAPABILITIES = `${PROTOCOL}clientCapabilities`
const CLIENT = `${PROTOCOL}clientInfo`
const LEVEL = `${PROTOCOL}logLevel`
const PER_REQUEST: ReadonlySet<string> = new Set([
  VERSION,
  CAPABILITIES,
  CLIENT,
  LEVEL,
  'progressToken',
])

/** The params as they leave: `eclusa/` names dropped, the envelope of a modern server set (a legacy one
 *  gets none), and our own progress token, so that progress can extend the deadline. Without one
 *  (`token` null) no progress is asked for. `capabilities`: what the server may ask during this request. */
export function outgoing(
  params: JsonObject,
  hop: Hop,
  token: number | null,
  capabilities: JsonObject = NOTHING,
): JsonObject {
  const given = isObject(params['_meta']) ? params['_meta'] : NOTHING
  const meta: Record<string, Json | undefined> = {}
  let empty = true
  for (const key of Object.keys(given)) {
    if (PER_REQUEST.has(key) || key.startsWith('eclusa/')) continue
    meta[key] = given[key]
    empty = false
  }
  if (hop.era === 'modern') {
    setEnvelope(meta, given, hop)
    meta[CAPABILITIES] = capabilities
  }
  if (token !== null) meta['progressToken'] = token
  const isBare = empty && token === null && hop.era === 'legacy'
  return withMembers(params, { _meta: isBare ? undefined : object(meta) })
}

const NOTHING: JsonObject = object({})

/** What a modern server demands of every request, but for what it may ask. */
function setEnvelope(meta: Record<string, Json | undefined>, given: JsonObject, hop: Hop): void {
  meta[VERSION] = hop.version
  meta[CLIENT] = given[CLIENT] ?? { ...hop.client }
  meta[LEVEL] = given[LEVEL]
}
