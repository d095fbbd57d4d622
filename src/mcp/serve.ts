// The methods that a client may ask for, each from its request to the text of its response.

import { type Answer, type Call, isFailure, type Transport } from '../call.ts'
import { handle, recordRefusal, turnAway } from '../gateway.ts'
import { type JsonObject, object } from '../json.ts'
import type { ListKind, Watch } from '../ports.ts'
import type { Reply } from '../refusal.ts'
import { isCall, readCall } from './calls.ts'
import type { Changes } from './changes.ts'
import { atLeast, type Face, LEVELS, type Session } from './era.ts'
import {
  errorText,
  answerText,
  blocksOf,
  noticeText,
  cleanNotice,
  refusalData,
  refusalResult,
  resultText,
} from './render.ts'
import { type Id, type Request, RPC } from './message.ts'
import type { Routes } from './routes.ts'
import type { Tally } from './tally.ts'
import { type Capability, discover, offer, type Scene, view } from './views.ts'

/** How urgent a message is: a notice may be dropped when the client does not read. */
export type Weight = 'response' | 'notice'

/** What serving needs of the session it happens in. */
export type Stage = {
  readonly scene: Scene
  readonly routes: Routes
  readonly changes: Changes
  readonly tally: Tally
  readonly transport: Transport
  readonly write: (message: string, weight: Weight) => boolean
  readonly session: () => Session | null
  readonly setLevel: (level: string) => void
}

/** One request on its way. `cancelled`: nothing more is said of it. `refuse`: the call is turned away.
 *  `counts`: it takes a place of those that may be in flight at once. */
export type Flight = {
  readonly request: Request
  readonly face: Face
  readonly receivedUs: number
  readonly stop: AbortController
  readonly refuse: 'too_many_calls' | 'draining' | null
  readonly counts: boolean
  cancelled: boolean
}

/** The text of the response, or null when there is none to give. Records come first: what is refused here
 *  is in the ledger when this resolves. Rejects with a `Fault` of the store. */
export async function serve(stage: Stage, flight: Flight): Promise<string | null> {
  const { request, face } = flight
  if (isCall(request.method)) return serveCall(stage, flight)
  const serves = METHODS[face.era].get(request.method)
  return serves === undefined ? unknownMethod(stage, request) : serves(stage, flight)
}

/** Records a request that is no valid message and gives its error. `problem`: for the record. */
export async function invalid(
  { scene, transport }: Stage,
  {
    id,
    method,
    bytes,
  }: { readonly id: Id | null; readonly method: string; readonly bytes?: number },
  told: {
    readonly problem: string
    readonly rpc: number
    readonly message: string
    readonly data: JsonObject | null
  },
): Promise<string> {
  await recordRefusal(scene.doors, scene.client, {
    kind: 'malformed',
    code: 'malformed',
    method,
    name: '',
    transport,
    more: bytes === undefined ? { problem: told.problem } : { problem: told.problem, bytes },
  })
  const data = object({ ...told.data, ...refusalData({ code: 'malformed' }, {}) })
  return errorText(id, { code: told.rpc, message: told.message, data })
}

/** The error of a reply that refuses. */
export function refusedText(
  id: Id | null,
  face: Face,
  given: Extract<Reply, { kind: 'refused' }>,
  uri?: string,
): string {
  const { refusal, sentence } = given
  if (given.as === 'result') return resultText(id, refusalResult(face, sentence, refusal))
  const data = refusalData(refusal, uri === undefined ? {} : { uri })
  return errorText(id, { code: given.rpc, message: sentence, data })
}

type Serves = (stage: Stage, flight: Flight) => Promise<string>

/** A longer URI is not said again. */
const MAX_URI_ECHO = 2_048

const listing = (kind: ListKind, capability: Capability): Serves => {
  return async (stage, { request, face }) => {
    const { scene, changes } = stage
    if (request.params?.['cursor'] !== undefined) {
      const message = 'params.cursor is not one of ours; lists come whole, ask without it'
      return invalidParams(stage, request, { problem: 'cursor', message })
    }
    const offered = await offer(scene.doors, capability)
    if (offered === 'absent') return unknownMethod(stage, request)
    const seen = await view(scene, face, kind)
    if (offered === 'down' && seen.view === '') return allDown(stage, request)
    if (face.era === 'legacy') changes.shown(kind, seen.view)
    return resultText(request.id, seen.text)
  }
}

const LISTS: readonly (readonly [string, Serves])[] = [
  ['tools/list', listing('tools', 'tools')],
  ['prompts/list', listing('prompts', 'prompts')],
  ['resources/list', listing('resources', 'resources')],
  ['resources/templates/list', listing('templates', 'resources')],
]

const METHODS: Readonly<Record<Face['era'], ReadonlyMap<string, Serves>>> = {
  modern: new Map([
    ...LISTS,
    [
      'server/discover',
      async ({ scene }, { request, face }) => resultText(request.id, await discover(scene, face)),
    ],
  ]),
  legacy: new Map([
    ...LISTS,
    [
      'ping',
      async ({ tally }, { request }) => {
        tally.add('pings')
        return resultText(request.id, '{}')
      },
    ],
    ['logging/setLevel', setLevel],
  ]),
}

const NEEDS = {
  'tools/call': null,
  'resources/read': 'resources',
  'prompts/get': 'prompts',
  'completion/complete': 'completions',
} as const satisfies Record<Call['method'], Capability | null>

async function serveCall(stage: Stage, flight: Flight): Promise<string | null> {
  const { request, receivedUs, face } = flight
  const { scene, routes, transport } = stage
  const { method } = request
  if (!isCall(method)) return unknownMethod(stage, request)
  const need = NEEDS[method]
  if (need !== null && (await offer(scene.doors, need)) === 'absent') {
    return unknownMethod(stage, request)
  }
  const level = stage.session()?.level ?? null
  const read = await readCall(request, method, {
    desk: scene,
    routes,
    transport,
    receivedUs,
    level: face.era === 'legacy' ? level : null,
  })
  if (read.kind === 'invalid') return invalidParams(stage, request, read)
  if (read.ambiguous) {
    scene.say('a call by a name or URI that two things share is refused; rename one of them')
  }
  return replyText(stage, flight, read.call, await reply(stage, flight, read.call))
}

function reply(stage: Stage, flight: Flight, call: Call): Promise<Reply> {
  const { doors } = stage.scene
  if (flight.refuse !== null) return turnAway(call, flight.refuse, doors)
  return handle(call, doors, { watch: watch(stage, flight), signal: flight.stop.signal })
}

function replyText(
  stage: Stage,
  { request, face }: Flight,
  call: Call,
  given: Reply,
): string | null {
  const { id } = request
  const { method, asked, target } = call
  if (given.kind === 'silent') return null
  if (given.kind === 'refused') {
    const isEchoed = method === 'resources/read' && asked.length <= MAX_URI_ECHO
    return refusedText(id, face, given, isEchoed ? asked : undefined)
  }
  if (target !== null) stage.routes.learn(target.upstream, given.answer)
  const answer = given.replayed ? withHint(given.answer) : given.answer
  return answerText(id, answer, { face, method, asked })
}

const HINT =
  'This is what was answered before under the same key; use a new request_id to try again.'

/** A stored failure is final for its key, and says how to try again. */
function withHint(answer: Answer): Answer {
  if (!isFailure(answer)) return answer
  if (answer.kind === 'error') return { ...answer, message: `${answer.message} (${HINT})` }
  const content = [...blocksOf(answer.value['content']), object({ type: 'text', text: HINT })]
  const value = object({ ...answer.value, content })
  return { ...answer, value, text: null }
}

function watch({ write, session, tally }: Stage, flight: Flight): Watch {
  const { face } = flight
  return {
    progress(params) {
      if (face.token === null || flight.cancelled) return
      tally.add('progress')
      const told = cleanNotice(object({ ...params, progressToken: face.token }))
      write(noticeText('notifications/progress', told), 'notice')
    },
    log(params) {
      // A modern client that names no level wants none; a session is told what its server says unasked.
      const level = face.era === 'modern' ? face.level : (session()?.level ?? 'debug')
      if (level === null || flight.cancelled || !atLeast(params['level'], level)) return
      tally.add('logs')
      write(noticeText('notifications/message', cleanNotice(params)), 'notice')
    },
  }
}

async function setLevel(stage: Stage, { request }: Flight): Promise<string> {
  if ((await offer(stage.scene.doors, 'logging')) === 'absent') return unknownMethod(stage, request)
  const level = request.params?.['level']
  if (typeof level !== 'string' || !LEVELS.includes(level)) {
    const message = `params.level must be one of ${LEVELS.join(', ')}`
    return invalidParams(stage, request, { problem: 'log_level', message })
  }
  stage.setLevel(level)
  return resultText(request.id, '{}')
}

const invalidParams = (
  stage: Stage,
  request: Request,
  { problem, message }: { readonly problem: string; readonly message: string },
): Promise<string> => invalid(stage, request, { problem, rpc: RPC.params, message, data: null })

const unknownMethod = (stage: Stage, request: Request): Promise<string> =>
  refuseMethod(stage, request, {
    code: 'method_unknown',
    rpc: RPC.method,
    message: 'method not found; ask for the capabilities to see what is served',
  })

const allDown = (stage: Stage, request: Request): Promise<string> =>
  refuseMethod(stage, request, {
    code: 'upstream_down',
    rpc: RPC.internal,
    message: 'no server is available; try again',
  })

/** Records a request that reaches no call and gives its error. */
async function refuseMethod(
  { scene, transport }: Stage,
  { id, method }: Request,
  told: {
    readonly code: 'method_unknown' | 'upstream_down'
    readonly rpc: number
    readonly message: string
  },
): Promise<string> {
  const { code, rpc, message } = told
  await recordRefusal(scene.doors, scene.client, {
    kind: 'call',
    code,
    method,
    name: '',
    transport,
    more: {},
  })
  return errorText(id, { code: rpc, message, data: refusalData({ code }, {}) })
}
