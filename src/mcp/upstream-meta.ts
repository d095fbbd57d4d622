// The `_meta` of one hop: the protocol's own keys are ours on the way to a server, all others pass.

import type { Era } from '../call.ts'
import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { BATCH_VERSION, LEGACY_VERSIONS, PROTOCOL } from './era.ts'

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

const PER_REQUEST = new Set(
  ['protocolVersion', 'clientCapabilities', 'clientInfo', 'logLevel'].map(
    (name) => PROTOCOL + name,
  ),
)

/** The params as they leave: `eclusa/` names dropped, the envelope of a modern server set (a legacy one
 *  gets none), and our own progress token, so that progress can extend the deadline. Without one
 *  (`token` null) no progress is asked for. */
export function outgoing(params: JsonObject, hop: Hop, token: number | null): JsonObject {
  const given = isObject(params['_meta']) ? params['_meta'] : NOTHING
  const meta: Record<string, Json | undefined> = {}
  for (const [key, value] of Object.entries(given)) {
    const ours = PER_REQUEST.has(key) || key === 'progressToken' || key.startsWith('eclusa/')
    if (!ours) meta[key] = value
  }
  if (hop.era === 'modern') Object.assign(meta, envelope(given, hop))
  if (token !== null) meta['progressToken'] = token
  const empty = Object.keys(meta).length === 0
  return object({ ...params, _meta: empty ? undefined : object(meta) })
}

const NOTHING: JsonObject = object({})

/** What a modern server demands of every request. What servers ask of clients is not bridged, so no
 *  capability is declared. */
const envelope = (given: JsonObject, hop: Hop): Record<string, Json | undefined> => ({
  [`${PROTOCOL}protocolVersion`]: hop.version,
  [`${PROTOCOL}clientInfo`]: given[`${PROTOCOL}clientInfo`] ?? { ...hop.client },
  [`${PROTOCOL}clientCapabilities`]: NOTHING,
  [`${PROTOCOL}logLevel`]: given[`${PROTOCOL}logLevel`],
})
