// One call from its request through the hall to its response.

import { type Answer, type Call, isFailure, type Method } from '../../call.ts'
import { handle, turnAway } from '../../gateway.ts'
import { type JsonObject, object } from '../../json.ts'
import { admits } from '../../policy/decide.ts'
import type { Watch } from '../../ports.ts'
import type { Reply } from '../../refusal.ts'
import { forModern } from './ask-shapes.ts'
import { readCall } from './calls.ts'
import { type Said, STATUS } from './channel.ts'
import { atLeast, type Face, isDeclared, LEVELS, TASKS } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import type { Id } from '../wire/message.ts'
import {
  capabilityMissing,
  invalid,
  invalidParams,
  refusedText,
  said,
  tooMany,
  unknownMethod,
} from './refuse.ts'
import {
  answerText,
  asksText,
  blocksOf,
  cleanNotice,
  errorText,
  lacking,
  MISSING_CAPABILITY,
  noticeText,
  resultText,
  undeclared,
} from './render.ts'
import type { Stage } from './stage.ts'
import { type Capability, offer } from './views.ts'

const NEEDS = {
  'tools/call': null,
  'resources/read': 'resources',
  'prompts/get': 'prompts',
  'completion/complete': 'completions',
  'resources/subscribe': 'subscribe',
  'tasks/get': 'tasks',
  'tasks/update': 'tasks',
  'tasks/cancel': 'tasks',
} as const satisfies Record<Method, Capability | null>

/** A longer URI is not said again. */
const MAX_URI_ECHO = 2_048

/** The response of a call: decided, recorded, sent and answered, in this order. Null when the client
 *  cancelled it. */
export async function serveCall(
  stage: Stage,
  flight: Flight,
  method: Method,
): Promise<Said | null> {
  const { request, face } = flight
  const barred = await barrier(stage, flight, method)
  if (barred !== null) return barred
  const read = await readCall(request, method, {
    desk: stage.scene,
    routes: stage.routes,
    transport: stage.transport,
    receivedUs: flight.receivedUs,
    face,
    level: face.era === 'legacy' ? (stage.session()?.level ?? null) : null,
  })
  if (read.kind === 'invalid') return invalidParams(stage, request, read)
  if (read.ambiguous) {
    stage.scene.say('a call by a name or URI that two things share is refused; rename one of them')
  }
  const headed = await withHeaders(stage, flight, read.call)
  if (headed.kind === 'mismatch') {
    const told = { problem: 'header', rpc: HEADER_MISMATCH, message: headed.problem, data: null }
    return invalid(stage, request, told)
  }
  const { call } = headed
  return replyText(stage, flight, call, await reply(stage, flight, call))
}

const HEADER_MISMATCH = -32020

/** Why a method is not taken up at all: no server offers it, the request did not declare what it needs, or so
 *  much is open already. Null when it is. */
async function barrier(stage: Stage, flight: Flight, method: Method): Promise<Said | null> {
  const need = NEEDS[method]
  if (need !== null && (await offer(stage.scene.doors, need)) === 'absent') {
    return unknownMethod(stage, flight)
  }
  if (need === 'tasks' && !isDeclared(flight.face.capabilities, TASKS)) {
    return capabilityMissing(stage, flight, object({ extensions: object({ [TASKS]: object({}) }) }))
  }
  const isFull = need === 'subscribe' && !stage.subscriptions.hasRoom(1)
  return isFull ? tooMany(stage, flight, 'subscriptions') : null
}

/** The call with the headers that are passed on, or what is wrong with those that mirror its arguments. Only
 *  of a tool that the client may use is the schema asked for: a hidden one tells nothing by its headers. */
async function withHeaders(
  { scene }: Stage,
  { hop }: Flight,
  call: Call,
): Promise<
  | { readonly kind: 'headed'; readonly call: Call }
  | { readonly kind: 'mismatch'; readonly problem: string }
> {
  const { method, target, client, args } = call
  const { doors } = scene
  const isTool = method === 'tools/call' && hop !== null && target !== null
  if (!isTool || admits(doors.policy(), client, target) !== null) return { kind: 'headed', call }
  const { upstream, name } = target
  const definition = await doors.upstreams.definition(upstream, name, client.name)
  const schema = typeof definition === 'string' ? undefined : definition.value['inputSchema']
  const problem = hop.checkParams(schema, args)
  if (problem !== null) return { kind: 'mismatch', problem }
  return { kind: 'headed', call: { ...call, headers: hop.otherParams(schema) } }
}

function reply(stage: Stage, flight: Flight, call: Call): Promise<Reply> {
  const { doors } = stage.scene
  if (flight.refuse !== null) return turnAway(call, flight.refuse, doors)
  return handle(call, doors, {
    watch: watch(stage, flight),
    signal: flight.stop.signal,
    ask: flight.face.era === 'modern' ? null : (asks, signal) => stage.ask(flight, asks, signal),
  })
}

function replyText(stage: Stage, { request, face }: Flight, call: Call, given: Reply): Said | null {
  const { id } = request
  switch (given.kind) {
    case 'silent':
      return null
    case 'refused': {
      const isEchoed = URI_METHODS.has(call.method) && call.asked.length <= MAX_URI_ECHO
      return refusedText(id, face, given, object(isEchoed ? { uri: call.asked } : {}))
    }
    case 'asks':
      return said(asksText(id, given, forModern))
    case 'answered': {
      const answer = given.replayed ? withHint(given.answer) : given.answer
      const needed = given.lacks === undefined ? null : undeclared(given.lacks, face)
      if (needed !== null) return missing(id, needed)
      const text = answered(stage, { id, face }, call, answer)
      return lacking(answer, face) === null ? said(text) : { text, status: STATUS.request }
    }
  }
}

/** The server was left without an answer that this request did not let it have, and failed. */
const missing = (id: Id, needed: JsonObject): Said => ({
  text: errorText(id, {
    code: MISSING_CAPABILITY,
    message:
      'the call failed because the server could not ask for what data.requiredCapabilities names; declare it, check the state, then call again',
    data: object({ requiredCapabilities: needed }),
  }),
  status: STATUS.request,
})

const URI_METHODS: ReadonlySet<Method> = new Set(['resources/read', 'resources/subscribe'])

function answered(
  { routes, subscriptions }: Stage,
  to: { readonly id: Id; readonly face: Face },
  { method, asked, target }: Call,
  answer: Answer,
): string {
  if (target !== null) routes.learn(target.upstream, answer)
  if (method === 'resources/subscribe' && target !== null && answer.kind === 'result') {
    subscriptions.add(asked, target.upstream)
    return resultText(to.id, '{}')
  }
  return answerText(to.id, answer, { face: to.face, method, asked })
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

function watch({ tell, session, tally }: Stage, flight: Flight): Watch {
  const { face } = flight
  return {
    progress(params) {
      if (face.token === null || flight.cancelled) return
      tally.add('progress')
      const told = cleanNotice(object({ ...params, progressToken: face.token }))
      tell(flight, noticeText('notifications/progress', told))
    },
    log(params) {
      // A modern client that names no level wants none; a session is told what its server says unasked.
      const level = face.era === 'modern' ? face.level : (session()?.level ?? LEVELS[0] ?? '')
      if (level === null || flight.cancelled || !atLeast(params['level'], level)) return
      tally.add('logs')
      tell(flight, noticeText('notifications/message', cleanNotice(params)))
    },
  }
}
