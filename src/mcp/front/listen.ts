// `subscriptions/listen`: one stream of a modern client, from its acknowledgement to its end.

import { handle } from '../../gateway.ts'
import { isObject, type Json, type JsonObject, object } from '../../json.ts'
import type { ListKind } from '../../ports.ts'
import { readCall } from './calls.ts'
import { type Changes, changes } from './changes.ts'
import type { Said } from './channel.ts'
import { isDeclared, metaOf, PROTOCOL, TASKS } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import { followTasks, tasksAmong } from './listen-tasks.ts'
import { capabilityMissing, invalidParams, said, tooMany } from './refuse.ts'
import { noticeText, ownResult, resultText } from './render.ts'
import type { Stage } from './stage.ts'
import { MAX_TASKS, MAX_URI, MAX_URIS } from './subscriptions.ts'
import { capabilitiesFor, LOOK, view } from './views.ts'

/** Serves one stream until its client or the gateway ends it: the first message on it says what of the wish
 *  is honoured. Each resource is decided and recorded as a read, each look at a task as one of its client. */
export async function listen(stage: Stage, flight: Flight): Promise<Said | null> {
  const { request, face } = flight
  const read = readWish(request.params)
  if (read.kind === 'invalid') return invalidParams(stage, request, read)
  const { wish } = read
  if (wish.tasks !== null && !isDeclared(face.capabilities, TASKS)) {
    return capabilityMissing(stage, flight, object({ extensions: object({ [TASKS]: object({}) }) }))
  }
  const opened = stage.subscriptions.hold(wish.uris.length, wish.tasks?.length ?? 0)
  if (opened === null) return tooMany(stage, flight, 'resources, tasks or streams')
  const over = Promise.withResolvers<'client' | 'server'>()
  const { told, go, end } = await begin(stage, flight, { wish, end: () => over.resolve('server') })
    // Only now: until it is counted itself, another one must not take its room.
    .finally(opened)
  flight.stop.signal.addEventListener('abort', () => over.resolve('client'))
  if (flight.cancelled || stage.isDraining()) over.resolve('server')
  else {
    stage.begin(flight, noticeText(ACKNOWLEDGED, named(flight, { notifications: told })))
    go()
  }
  const by = await over.promise
  end()
  return by === 'client' ? null : said(resultText(request.id, endOf(flight)))
}

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged'

/** From now on what is honoured of the wish is heard of, its tasks from `go` on, until `end` is called. */
async function begin(
  stage: Stage,
  flight: Flight,
  { wish, end }: { readonly wish: Wish; readonly end: () => void },
): Promise<{ readonly told: JsonObject; readonly go: () => void; readonly end: () => void }> {
  const { uris, tasks: names, changes: lists, told } = await honour(stage, flight, wish)
  const tell = (params: JsonObject): boolean =>
    notify(stage, flight, 'notifications/resources/updated', params)
  const leave = stage.subscriptions.listen({ uris, tasks: names.length, changes: lists, tell, end })
  const over = new AbortController()
  return {
    told,
    go() {
      followTasks(stage, flight, {
        names,
        tell: (params) => notify(stage, flight, 'notifications/tasks', params),
        signal: over.signal,
      })
    },
    end() {
      over.abort()
      leave()
    },
  }
}

/** What a client wants to hear of. */
type Wish = {
  readonly lists: ReadonlySet<ListMember>
  /** Without repetitions. */
  readonly uris: readonly string[]
  readonly subscribes: boolean
  /** Null: nothing is said of tasks. */
  readonly tasks: readonly string[] | null
}

type ListMember = keyof typeof LISTS
const LISTS = {
  toolsListChanged: { capability: 'tools', kinds: ['tools'] },
  promptsListChanged: { capability: 'prompts', kinds: ['prompts'] },
  resourcesListChanged: { capability: 'resources', kinds: ['resources', 'templates'] },
} as const satisfies Record<string, { capability: string; kinds: readonly ListKind[] }>
const LIST_MEMBERS: readonly ListMember[] = [
  'toolsListChanged',
  'promptsListChanged',
  'resourcesListChanged',
]

type Read =
  | { readonly kind: 'wish'; readonly wish: Wish }
  | { readonly kind: 'invalid'; readonly problem: string; readonly message: string }

function readWish(params: JsonObject | null): Read {
  const asked = params?.['notifications']
  if (!isObject(asked)) return wrong('params.notifications must be an object')
  const odd = LIST_MEMBERS.find((member) => !isFlag(asked[member]))
  if (odd !== undefined) return wrong(`params.notifications.${odd} must be true or false`)
  const lists = new Set(LIST_MEMBERS.filter((member) => asked[member] === true))
  const { resourceSubscriptions: uris = [], taskIds = [] } = asked
  if (!isTexts(uris) || !isTexts(taskIds)) {
    return wrong('resourceSubscriptions and taskIds must be arrays of strings')
  }
  if (uris.length > MAX_URIS || uris.some((uri) => uri.length > MAX_URI)) {
    return wrong(`at most ${MAX_URIS} resources of at most ${MAX_URI} characters; ask for fewer`)
  }
  const subscribes = asked['resourceSubscriptions'] !== undefined
  if (taskIds.length > MAX_TASKS) return wrong(`at most ${MAX_TASKS} tasks; ask for fewer`)
  const tasks = asked['taskIds'] === undefined ? null : [...new Set(taskIds)]
  return { kind: 'wish', wish: { lists, uris: [...new Set(uris)], subscribes, tasks } }
}

const isFlag = (value: Json | undefined): boolean =>
  value === undefined || typeof value === 'boolean'
const isTexts = (value: Json): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

const wrong = (message: string): Read => ({ kind: 'invalid', problem: 'notifications', message })

type Honoured = {
  readonly uris: ReadonlyMap<string, string>
  readonly tasks: readonly string[]
  readonly changes: Changes | null
  readonly told: JsonObject
}

/** The part of the wish that this client gets: lists and resources that it may see, tasks of its own. */
async function honour(stage: Stage, flight: Flight, wish: Wish): Promise<Honoured> {
  const may = await capabilitiesFor(stage.scene, flight.face)
  const { resources } = may
  const subscribes = wish.subscribes && isObject(resources) && resources['subscribe'] === true
  const uris = subscribes ? await subscribeAll(stage, flight, wish.uris) : new Map<string, string>()
  const tasks = tasksAmong(stage, wish.tasks ?? [])
  const lists = [...wish.lists].filter((member) => isObject(may[LISTS[member].capability]))
  const told = object({
    ...Object.fromEntries(lists.map((member) => [member, true])),
    resourceSubscriptions: subscribes ? [...uris.keys()] : undefined,
    taskIds: wish.tasks === null ? undefined : tasks,
  })
  const kinds = lists.flatMap((member): readonly ListKind[] => LISTS[member].kinds)
  return { uris, tasks, changes: await changesOf(stage, flight, kinds), told }
}

/** The URIs that the client may hear of, with their upstreams. What was subscribed is undone when a record
 *  fails. */
async function subscribeAll(
  stage: Stage,
  flight: Flight,
  uris: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const made = await Promise.allSettled(uris.map((uri) => subscribe(stage, flight, uri)))
  const pairs = made.flatMap((one) =>
    one.status === 'fulfilled' && one.value !== null ? [one.value] : [],
  )
  const failed = made.find((one) => one.status === 'rejected')
  if (failed === undefined) return new Map(pairs)
  const { doors, client } = stage.scene
  for (const [uri, upstream] of pairs) doors.upstreams.release(upstream, uri, client.name)
  throw failed.reason
}

/** The URI with its upstream when the client may hear of it; null when not. The read has its record. */
async function subscribe(
  stage: Stage,
  flight: Flight,
  uri: string,
): Promise<readonly [string, string] | null> {
  const { scene, routes, transport } = stage
  const { receivedUs, face, request } = flight
  const _meta = metaOf(request.params) ?? undefined
  const read = await readCall(
    { ...request, params: object({ uri, _meta }) },
    'resources/subscribe',
    { desk: scene, routes, transport, receivedUs, face, level: null },
  )
  if (read.kind === 'invalid') return null
  const { signal } = flight.stop
  const silent = { progress: () => undefined, log: () => undefined }
  const reply = await handle(read.call, scene.doors, { watch: silent, signal, ask: null })
  const { target } = read.call
  const is = reply.kind === 'answered' && reply.answer.kind === 'result' && target !== null
  return is ? [uri, target.upstream] : null
}

/** Tells of changes from the view of now on: what came before is not news to a stream. */
async function changesOf(
  stage: Stage,
  flight: Flight,
  kinds: readonly ListKind[],
): Promise<Changes | null> {
  if (kinds.length === 0) return null
  const { scene } = stage
  const look = async (kind: ListKind): Promise<string> => (await view(scene, LOOK, kind)).view
  const made = changes({
    look,
    tell: (method) => notify(stage, flight, method, object({})),
    failed: () => scene.say('a changed list could not be recorded and is not announced'),
  })
  const views = await Promise.all(kinds.map(look))
  for (const [at, kind] of kinds.entries()) made.shown(kind, views[at] ?? '')
  return made
}

const SUBSCRIPTION = `${PROTOCOL}subscriptionId`

/** Params that say of which stream they are. The id keeps its type. */
const named = (
  { request }: Flight,
  params: { readonly [key: string]: Json | undefined },
): JsonObject => object({ ...params, _meta: object({ [SUBSCRIPTION]: request.id }) })

const notify = (stage: Stage, flight: Flight, method: string, params: JsonObject): boolean =>
  stage.tell(flight, noticeText(method, named(flight, params)))

const endOf = (flight: Flight): string =>
  ownResult(flight.face, { _meta: object({ [SUBSCRIPTION]: flight.request.id }) }, 'once')
