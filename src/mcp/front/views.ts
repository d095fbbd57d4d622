// What one client may know of the servers behind the gateway: capabilities, instructions and lists.

import type { Client } from '../../call.ts'
import { type Doors, list, recordView } from '../../gateway.ts'
import { isObject, type Json, type JsonObject, object, writeJson } from '../../json.ts'
import { grants } from '../../policy/asks.ts'
import type { PolicySet } from '../../policy/set.ts'
import type { Hello, ListKind, Shown } from '../../ports.ts'
import { visible } from '../wire/words.ts'
import {
  type Face,
  isDeclared,
  LEGACY_VERSIONS,
  MODERN_VERSION,
  PROTOCOL,
  TASKS,
} from '../wire/era.ts'
import { exposed, isDoubtful, resolve } from './names.ts'
import { ownResult, withoutOurs } from './render.ts'

/** Of whom and to whom. `say` takes one line for the operator; `version` is the gateway's own. */
export type Scene = {
  readonly client: Client
  readonly doors: Doors
  readonly version: string
  readonly say: (line: string) => void
}

/** The face of a look that is only compared, never sent. */
export const LOOK: Face = {
  era: 'legacy',
  version: LEGACY_VERSIONS[0] ?? '',
  level: null,
  token: null,
  capabilities: object({}),
}

/** A capability of the protocol that servers declare. `subscribe`: of resources; `tasks`: the extension. */
export type Capability =
  | 'tools'
  | 'prompts'
  | 'resources'
  | 'completions'
  | 'logging'
  | 'subscribe'
  | 'tasks'

/** down: no server could be asked. */
export type Offer = 'offered' | 'absent' | 'down'

/** Whether any server declares a capability. Servers that are down count as not declaring it, unless all
 *  are. */
export async function offer(doors: Doors, capability: Capability): Promise<Offer> {
  const hellos = await hellosOf(doors)
  const known = hellos.filter((hello) => hello !== null)
  if (known.length === 0) return 'down'
  return known.some((hello) => declares(hello, capability)) ? 'offered' : 'absent'
}

/** What this client is promised, as `server/discover` says it. */
export const capabilitiesFor = async (scene: Scene, face: Face): Promise<JsonObject> =>
  advertised(scene, face, await hellosOf(scene.doors))

function declares({ capabilities }: Hello, capability: Capability): boolean {
  if (capability === 'tasks') return isDeclared(capabilities, TASKS)
  if (capability !== 'subscribe') return isObject(capabilities[capability])
  const { resources } = capabilities
  return isObject(resources) && resources['subscribe'] === true
}

/** The result of `server/discover`; the view has its record. */
export async function discover(scene: Scene, face: Face): Promise<string> {
  const { capabilities, instructions } = await introduce(scene, face, 'server/discover')
  const meta = object({ [`${PROTOCOL}serverInfo`]: serverInfo(scene.version) })
  const members = {
    supportedVersions: [MODERN_VERSION],
    capabilities,
    ...instructions,
    _meta: meta,
  }
  return ownResult(face, members, 'cacheable')
}

/** The result of `initialize`; the view has its record. */
export async function initialize(scene: Scene, face: Face): Promise<string> {
  const { capabilities, instructions } = await introduce(scene, face, 'initialize')
  const members = {
    protocolVersion: face.version,
    capabilities,
    serverInfo: serverInfo(scene.version),
    ...instructions,
  }
  return ownResult(face, members, 'once')
}

/** A list as it goes out. `items`: their texts; `view`: what it shows, in order, so that two views can be
 *  compared; `complete`: false when a server could not be asked. */
export type View = {
  readonly items: readonly string[]
  readonly view: string
  readonly complete: boolean
}

/** All pages of one kind as this client may see them. A name or URI that two things share is withheld and
 *  said to the operator. */
export async function view(scene: Scene, face: Face, kind: ListKind): Promise<View> {
  await expectedOf(scene, face)
  const { shown, complete } = await list(scene.client, kind, scene.doors)
  const apart = await keepApart(scene, kind, shown)
  const items = apart.map(({ name, one }) => itemText(face, kind, name, one.definition.value))
  const text = apart.map(({ name, one }) => `${name} ${one.definition.hash}`).join('\n')
  return { items, view: text, complete }
}

/** Some servers offer more to those whom they may ask. */
const expectedOf = async ({ client, doors }: Scene, face: Face): Promise<void> =>
  doors.upstreams.expect?.(grants(doors.policy(), client, face.capabilities))

/** The result of a list with these items. `cursor` is null on the last page. */
export function listText(
  scene: Scene,
  face: Face,
  kind: ListKind,
  page: { readonly items: readonly string[]; readonly cursor: string | null },
): string {
  const members = {
    _meta: metaOf(scene, face),
    nextCursor: page.cursor ?? undefined,
    [MEMBERS[kind]]: [],
  }
  const own = ownResult(face, members, 'cacheable')
  const hole = `"${MEMBERS[kind]}":[`
  const at = own.lastIndexOf(hole) + hole.length
  return own.slice(0, at) + page.items.join(',') + own.slice(at)
}

const MEMBERS = {
  tools: 'tools',
  prompts: 'prompts',
  resources: 'resources',
  templates: 'resourceTemplates',
} as const satisfies Record<ListKind, string>

const hellosOf = (doors: Doors): Promise<readonly (Hello | null)[]> =>
  Promise.all(doors.upstreams.names.map((name) => doors.upstreams.hello(name)))

const serverInfo = (version: string): JsonObject =>
  object({ name: 'eclusa', title: 'Eclusa', version })

const metaOf = ({ version }: Scene, { era }: Face): JsonObject | undefined =>
  era === 'modern' ? object({ [`${PROTOCOL}serverInfo`]: serverInfo(version) }) : undefined

type Introduction = {
  readonly capabilities: JsonObject
  readonly instructions: { readonly instructions?: string }
}

async function introduce(scene: Scene, face: Face, method: string): Promise<Introduction> {
  const { doors, client } = scene
  await expectedOf(scene, face)
  const hellos = await hellosOf(doors)
  const capabilities = advertised(scene, face, hellos)
  const said = doors.upstreams.names.flatMap((name, at) => {
    const text = hellos[at]?.instructions ?? null
    return text === null ? [] : [hellos.length === 1 ? text : `${name}:\n${text}`]
  })
  const instructions = said.length === 0 ? {} : { instructions: said.join('\n\n') }
  const text = writeJson([capabilities, instructions.instructions ?? null])
  await recordView(doors, client, { method, text, items: Object.keys(capabilities).length })
  return { capabilities, instructions }
}

/** What some server declares and this client may use; a promise, so never more. */
function advertised(
  { client, doors }: Scene,
  { era }: Face,
  hellos: readonly (Hello | null)[],
): JsonObject {
  const some = (capability: Capability): boolean =>
    hellos.some((hello) => hello !== null && declares(hello, capability))
  const may = usesOf(doors.policy(), client)
  const prompts = may.prompts && some('prompts')
  const resources = may.resources && some('resources')
  const watched = some('subscribe') ? object({ subscribe: true, ...CHANGING }) : CHANGING
  const completes = some('completions') && (prompts || resources)
  return object({
    tools: when(some('tools') || hellos.every((hello) => hello === null), CHANGING),
    prompts: when(prompts, CHANGING),
    resources: when(resources, watched),
    completions: when(completes, object({})),
    logging: when(some('logging'), object({})),
    // A revision that does not know of extensions is told of none.
    extensions: when(era === 'modern' && some('tasks'), object({ [TASKS]: object({}) })),
  })
}

const when = (is: boolean, value: JsonObject): JsonObject | undefined => (is ? value : undefined)

/** Policy, pins and servers may each change what a client sees. */
const CHANGING: JsonObject = object({ listChanged: true })

/** Whether the client's profile lists anything of a kind. Costs no list of any server. */
function usesOf(
  set: PolicySet,
  { profile, identity }: Client,
): { readonly prompts: boolean; readonly resources: boolean } {
  const known = identity === 'unknown' ? undefined : set.profiles.get(profile)
  if (known === undefined) return { prompts: false, resources: false }
  const { exact, whole, any } = known.prompts
  return {
    prompts: exact.size > 0 || whole.size > 0 || any !== null,
    resources: known.resources.length > 0,
  }
}

/** Characters of a name that a server chose. */
const MAX_TOLD = 200

/** A name that a server chose, as the operator may see it. */
const told = (name: string): string => visible(name).slice(0, MAX_TOLD)

type Apart = { readonly name: string; readonly one: Shown }

async function keepApart(
  scene: Scene,
  kind: ListKind,
  shown: readonly Shown[],
): Promise<readonly Apart[]> {
  const { names } = scene.doors.upstreams
  if (names.length === 1) return shown.map((one) => ({ name: one.definition.name, one }))
  if (kind === 'resources' || kind === 'templates') return keepUrisApart(scene, shown)
  const apart = await Promise.all(
    shown.map(async (one): Promise<readonly Apart[]> => {
      const name = exposed(names, one.upstream, one.definition.name)
      if (!isDoubtful(names, name)) return [{ name, one }]
      const owner = await resolve(name, kind === 'tools' ? 'tool' : 'prompt', scene)
      // Shown only where a call would arrive: the list and the gate never disagree.
      const isOwner = owner !== null && owner !== 'ambiguous' && owner.upstream === one.upstream
      if (isOwner && owner.name === one.definition.name) return [{ name, one }]
      scene.say(`two things share the name ${told(name)} and are withheld; rename one of them`)
      return []
    }),
  )
  return apart.flat()
}

function keepUrisApart({ say }: Scene, shown: readonly Shown[]): readonly Apart[] {
  const owners = new Map<string, Set<string>>()
  for (const { upstream, definition } of shown) {
    owners.set(definition.name, (owners.get(definition.name) ?? new Set()).add(upstream))
  }
  return shown.flatMap((one): readonly Apart[] => {
    const { name } = one.definition
    if (owners.get(name)?.size === 1) return [{ name, one }]
    say(
      `the resource ${told(name)} is listed by two servers and is withheld; allow it to one of them only`,
    )
    return []
  })
}

/** Texts of items that go out as their server wrote them; a list is asked for more often than it changes. */
const texts = new WeakMap<JsonObject, string>()

function itemText(face: Face, kind: ListKind, name: string, value: JsonObject): string {
  const isOwnName = kind === 'resources' || kind === 'templates' || value['name'] === name
  const renamed = isOwnName ? value : object({ ...value, name })
  const plain = kind === 'tools' ? withoutExecution(renamed) : renamed
  const shaped = face.era === 'legacy' ? withObjectOutput(plain) : plain
  if (shaped !== value) return writeJson(withoutOurs(shaped))
  const known = texts.get(value)
  if (known !== undefined) return known
  const text = writeJson(withoutOurs(value))
  texts.set(value, text)
  return text
}

/** The tasks of 2025-11-25 are not offered, so no tool may ask for one. */
function withoutExecution(item: JsonObject): JsonObject {
  const { execution, ...rest } = item
  return execution === undefined ? item : object(rest)
}

/** Legacy clients expect an object schema; a result of another shape reaches them as `{ result }`. */
function withObjectOutput(item: JsonObject): JsonObject {
  const schema = item['outputSchema']
  if (!isObject(schema) || schema['type'] === 'object') return item
  // A reference would lead elsewhere one level down; no schema is better than a wrong one.
  const wrapped = hasReference(schema)
    ? undefined
    : object({ type: 'object', properties: object({ result: schema }), required: ['result'] })
  return object({ ...item, outputSchema: wrapped })
}

function hasReference(value: Json): boolean {
  if (Array.isArray(value)) return value.some(hasReference)
  if (!isObject(value)) return false
  return (
    '$ref' in value ||
    '$dynamicRef' in value ||
    Object.values(value).some((one) => one !== undefined && hasReference(one))
  )
}
