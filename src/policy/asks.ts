// What servers may ask of a client: its own capabilities, cut by what its profile grants. Pure and total.

import type { Ask, Client } from '../call.ts'
import type { Failure } from '../decision.ts'
import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { failure } from './judge.ts'
import { isRootAllowed } from './roots.ts'
import type { PolicySet, Profile } from './set.ts'

/** The one extension whose methods are decided here. */
const TASKS = 'io.modelcontextprotocol/tasks'
/** Roots that one answer may name; more are left out. */
export const MAX_ROOTS = 1_000
/** A page that a client is asked to open is at most so long. */
const MAX_URL = 8_192

/** The capabilities of a client that servers are told of: what it declared and its profile grants, in one
 *  form only. `elicitation: {}` means `{ form: {} }`; of extensions only tasks is passed; members that name no
 *  way of asking are dropped, so that equal grants are equal values. Empty for a client that is not known. */
export function grants(set: PolicySet, client: Client, capabilities: JsonObject): JsonObject {
  if (Object.keys(capabilities).length === 0) return NONE
  const profile = profileOf(set, client)
  if (profile === null) return NONE
  const granted: Record<string, JsonObject> = {}
  const elicitation = profile.client.elicitation ? elicitationOf(capabilities) : null
  if (elicitation !== null) granted['elicitation'] = elicitation
  const { sampling, roots, extensions } = capabilities
  if (profile.client.sampling && isObject(sampling))
    granted['sampling'] = cut(sampling, ['context', 'tools'])
  if (profile.client.roots !== null && isObject(roots)) granted['roots'] = NONE
  if (isObject(extensions) && isObject(extensions[TASKS])) {
    granted['extensions'] = object({ [TASKS]: NONE })
  }
  return object(granted)
}

/** Why this ask may not reach the client, or null. `ask_denied`: its profile does not grant it, or it is no
 *  ask that a client can be shown; `capability_missing`: the client did not declare it. */
export function admitsAsk(
  set: PolicySet,
  client: Client,
  capabilities: JsonObject,
  ask: Ask,
): Failure | null {
  const profile = profileOf(set, client)
  if (profile === null) return failure('ask_denied', 'client')
  const name = NAMES[ask.method]
  const grant = profile.client[name]
  if (grant === false || grant === null) return failure('ask_denied', `${profile.path}/client`)
  if (!isShowable(ask)) return failure('ask_denied', 'ask')
  const granted = grants(set, client, capabilities)
  return lacks(granted, requiredBy(ask)) ? failure('capability_missing', 'capabilities') : null
}

/** The client capabilities that an ask stands on, as `data.requiredCapabilities` tells them. */
export function requiredBy({ method, params }: Ask): JsonObject {
  if (method === 'roots/list') return object({ roots: NONE })
  if (method === 'sampling/createMessage') {
    const uses = params['tools'] !== undefined || params['toolChoice'] !== undefined
    return object({ sampling: uses ? object({ tools: NONE }) : NONE })
  }
  const mode = params['mode'] === 'url' ? 'url' : 'form'
  return object({ elicitation: object({ [mode]: NONE }) })
}

/** The answer as the server may have it: roots that the profile does not name are left out, each other one
 *  passes as it came, `MAX_ROOTS` at most. Other answers are not changed. Null for an answer without the form
 *  that its method demands. */
export function narrow(
  set: PolicySet,
  client: Client,
  { method }: Pick<Ask, 'method'>,
  response: JsonObject,
): JsonObject | null {
  if (!ADMISSIBLE[method](response)) return null
  if (method !== 'roots/list') return response
  const allowed = profileOf(set, client)?.client.roots ?? []
  const given: readonly Json[] = Array.isArray(response['roots']) ? response['roots'] : []
  const kept = given.filter((root) => {
    const uri = isObject(root) ? root['uri'] : undefined
    return typeof uri === 'string' && (allowed === 'any' || isRootAllowed(uri, allowed))
  })
  const passes = kept.length === given.length && kept.length <= MAX_ROOTS
  return passes ? response : object({ ...response, roots: kept.slice(0, MAX_ROOTS) })
}

const NONE: JsonObject = object({})

const NAMES = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
} as const satisfies Record<Ask['method'], string>

const ACTIONS: ReadonlySet<Json | undefined> = new Set(['accept', 'decline', 'cancel'])

const ADMISSIBLE: Readonly<Record<Ask['method'], (response: JsonObject) => boolean>> = {
  'elicitation/create': ({ action, content }) =>
    ACTIONS.has(action) && (content === undefined || isObject(content)),
  'sampling/createMessage': ({ role, content, model }) =>
    typeof role === 'string' &&
    typeof model === 'string' &&
    (isObject(content) || Array.isArray(content)),
  'roots/list': ({ roots }) => Array.isArray(roots),
}

/** The profile of a client that is who it must be; null for any other. */
function profileOf(set: PolicySet, client: Client): Profile | null {
  const profile = set.profiles.get(client.profile)
  if (profile === undefined || client.identity === 'unknown') return null
  return profile.token === 'required' && client.identity !== 'token' ? null : profile
}

function elicitationOf({ elicitation }: JsonObject): JsonObject | null {
  if (!isObject(elicitation)) return null
  const modes = cut(elicitation, ['form', 'url'])
  if (Object.keys(modes).length > 0) return modes
  // A client of an older revision declares the empty object and knows forms only.
  return Object.keys(elicitation).length === 0 ? object({ form: NONE }) : null
}

const cut = (value: JsonObject, names: readonly string[]): JsonObject =>
  object(
    Object.fromEntries(names.filter((name) => isObject(value[name])).map((name) => [name, NONE])),
  )

/** True where `wanted` has a member, at any level, that `granted` has not. */
function lacks(granted: JsonObject, wanted: JsonObject): boolean {
  return Object.entries(wanted).some(([name, inner]) => {
    const own = granted[name]
    return !isObject(own) || (isObject(inner) && lacks(own, inner))
  })
}

/** A page to open must be one of the web: other schemes run programs and scripts. */
function isShowable({ method, params }: Ask): boolean {
  if (method !== 'elicitation/create') return true
  const { mode, url } = params
  if (mode === undefined || mode === 'form') return true
  return mode === 'url' && typeof url === 'string' && url.length <= MAX_URL && isWeb(url)
}

const isWeb = (url: string): boolean =>
  /^https?:\/\/[^/]/i.test(url) && !/[\s\\\p{C}]/u.test(url) && URL.canParse(url)
