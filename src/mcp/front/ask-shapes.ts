// What servers ask, in the shape that one revision can show, and which answers are shaped as they must be.

import type { Ask } from '../../call.ts'
import { isObject, type Json, type JsonObject, object } from '../../json.ts'
import { MODERN_VERSION } from '../wire/era.ts'
import { cleanNotice } from './render.ts'
import { sha256, canonical } from '../../canonical.ts'

/** An ask as a client can be shown it, or the answer that is given for a client which cannot. */
export type ShownAsk =
  | { readonly kind: 'shown'; readonly ask: Ask }
  | { readonly kind: 'declined'; readonly response: JsonObject }

const NEWEST_LEGACY = '2025-11-25'
const FIRST_WITH_FORMS = '2025-06-18'

/** The ask in the shapes of `version`. Revisions sort by their dates. */
export function shownAs(ask: Ask, version: string): ShownAsk {
  const params = bare(ask.params)
  switch (ask.method) {
    case 'roots/list':
      return { kind: 'shown', ask: { method: ask.method, params: object({}) } }
    case 'sampling/createMessage':
      return { kind: 'shown', ask: { method: ask.method, params } }
    case 'elicitation/create':
      return elicitation(params, version)
  }
}

/** The ask as a modern client is shown it. */
export function forModern(ask: Ask): Ask {
  const shown = shownAs(ask, MODERN_VERSION)
  return shown.kind === 'shown' ? shown.ask : ask
}

/** True for the result of an ask that has the members its method demands, of the right types. Whether a
 *  form's content fits its schema is for the server to say, which wrote it. */
export function isAdmissible(ask: Ask, result: JsonObject, version: string): boolean {
  switch (ask.method) {
    case 'roots/list':
      return isList(result['roots']) && result['roots'].every(isRoot)
    case 'sampling/createMessage':
      return isSampled(result, version)
    case 'elicitation/create':
      return isElicited(result)
  }
}

/** Without what belongs to the hop between us and the server. */
function bare(params: JsonObject): JsonObject {
  const { task: _task, ...rest } = cleanNotice(params)
  const { _meta: meta } = rest
  if (!isObject(meta)) return object(rest)
  const { progressToken: _token, [RELATED_TASK]: _related, ...kept } = meta
  return object({ ...rest, _meta: Object.keys(kept).length === 0 ? undefined : object(kept) })
}

const RELATED_TASK = 'io.modelcontextprotocol/related-task'

const DECLINED: ShownAsk = { kind: 'declined', response: object({ action: 'decline' }) }

function elicitation(params: JsonObject, version: string): ShownAsk {
  const method = 'elicitation/create'
  const { elicitationId: id, mode, ...rest } = params
  if (version < FIRST_WITH_FORMS) return DECLINED
  if (mode === 'url') {
    if (version < NEWEST_LEGACY) return DECLINED
    // Its end is never announced: the later revision has no such notice, so ours names nothing known.
    const named = version < MODERN_VERSION ? { elicitationId: id ?? idOf(rest) } : {}
    return { kind: 'shown', ask: { method, params: object({ mode, ...rest, ...named }) } }
  }
  if (version >= NEWEST_LEGACY) {
    const told = mode === undefined ? {} : { mode }
    return { kind: 'shown', ask: { method, params: object({ ...told, ...rest }) } }
  }
  const schema = plainForm(params['requestedSchema'])
  if (schema === null) return DECLINED
  return { kind: 'shown', ask: { method, params: object({ ...rest, requestedSchema: schema }) } }
}

const idOf = (params: JsonObject): string => sha256(canonical(params)).slice(0, 32)

/** The form with the field kinds of 2025-06-18, or null: it has a field of another kind. */
function plainForm(schema: Json | undefined): JsonObject | null {
  const fields = isObject(schema) ? schema['properties'] : undefined
  if (!isObject(schema) || !isObject(fields)) return null
  const made: [string, Json][] = []
  for (const [name, field] of Object.entries(fields)) {
    const plain = field === undefined ? null : plainField(field)
    if (plain === null) return null
    made.push([name, plain])
  }
  const { $schema: _dialect, ...rest } = schema
  return object({ ...rest, properties: object(Object.fromEntries(made)) })
}

const PLAIN_KINDS: ReadonlySet<Json | undefined> = new Set([
  'string',
  'number',
  'integer',
  'boolean',
])

function plainField(field: Json): JsonObject | null {
  if (!isObject(field) || !PLAIN_KINDS.has(field['type'])) return null
  const { oneOf: choices, default: preset, ...rest } = field
  // Only the default of a boolean is known there.
  const kept = typeof preset === 'boolean' ? { ...rest, default: preset } : rest
  if (choices === undefined) return object(kept)
  if (!isList(choices)) return null
  const named = choices.filter(isChoice)
  if (named.length < choices.length) return null
  const values = named.map((one) => one['const'] ?? null)
  const names = named.map((one) => one['title'] ?? null)
  return object({ ...kept, enum: values, enumNames: names })
}

const isChoice = (value: Json): value is JsonObject =>
  isObject(value) && typeof value['const'] === 'string' && typeof value['title'] === 'string'

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

function isRoot(root: Json): boolean {
  if (!isObject(root) || typeof root['uri'] !== 'string') return false
  return root['name'] === undefined || typeof root['name'] === 'string'
}

const ROLES: ReadonlySet<Json | undefined> = new Set(['user', 'assistant'])

function isSampled(result: JsonObject, version: string): boolean {
  const { content, model, role } = result
  if (typeof model !== 'string' || !ROLES.has(role)) return false
  return isList(content) ? version >= NEWEST_LEGACY && content.every(isBlock) : isBlock(content)
}

const isBlock = (block: Json | undefined): boolean =>
  isObject(block) && typeof block['type'] === 'string'

function isElicited({ action, content }: JsonObject): boolean {
  if (action === 'decline' || action === 'cancel') return true
  if (action !== 'accept') return false
  return content === undefined || (isObject(content) && Object.values(content).every(isFieldValue))
}

const isFieldValue = (value: Json | undefined): boolean =>
  isList(value) ? value.every((one) => typeof one === 'string') : !isObject(value) && value !== null
