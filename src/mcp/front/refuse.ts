// What is refused without a decision: malformed messages, methods that are not served, missing servers.

import type { Code } from '../../decision.ts'
import { recordRefusal } from '../../gateway.ts'
import { type JsonObject, object } from '../../json.ts'
import type { Reply } from '../../refusal.ts'
import { type Said, STATUS } from './channel.ts'
import type { Face } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import { type Id, type Request, RPC } from '../wire/message.ts'
import { errorText, refusalData, refusalResult, resultText } from './render.ts'
import type { Stage, Told } from './stage.ts'

/** A response that HTTP carries as a success. */
export const said = (text: string): Said => ({ text, status: STATUS.ok })

/** Records a request that is no valid message and gives its error. */
export async function invalid(
  { scene, transport }: Pick<Stage, 'scene' | 'transport'>,
  what: { readonly id: Id | null; readonly method: string; readonly bytes?: number },
  told: Told,
  status: number = STATUS.request,
): Promise<Said> {
  const { id, method, bytes } = what
  await recordRefusal(scene.doors, scene.client, {
    kind: 'malformed',
    code: 'malformed',
    method,
    name: '',
    transport,
    more: bytes === undefined ? { problem: told.problem } : { problem: told.problem, bytes },
  })
  const data = object({ ...told.data, ...refusalData({ code: 'malformed' }, {}) })
  return { text: errorText(id, { code: told.rpc, message: told.message, data }), status }
}

/** As `invalid`, for params of a well-formed request that its method cannot take. */
export const invalidParams = (
  stage: Stage,
  request: Request,
  { problem, message }: { readonly problem: string; readonly message: string },
): Promise<Said> =>
  invalid(stage, request, { problem, rpc: RPC.params, message, data: null }, STATUS.ok)

/** The response of a reply that refuses. Codes of the modern hop are never shown to a legacy client. */
export function refusedText(
  id: Id | null,
  face: Face,
  given: Extract<Reply, { kind: 'refused' }>,
  more: JsonObject,
): Said {
  const { refusal, sentence } = given
  if (given.as === 'result') return said(resultText(id, refusalResult(face, sentence, refusal)))
  const isHop = HOP_CODES.has(given.rpc)
  const code = isHop && face.era === 'legacy' ? RPC.internal : given.rpc
  const text = errorText(id, {
    code,
    message: sentence,
    data: refusalData(refusal, object({ ...more, ...given.data })),
  })
  return { text, status: isHop && face.era === 'modern' ? STATUS.request : STATUS.ok }
}

/** A method that does not exist in the request's revision, or of a capability that nobody offers. */
export const unknownMethod = (stage: Stage, { request, face }: Flight): Promise<Said> =>
  refuseMethod(stage, request, {
    code: 'method_unknown',
    rpc: RPC.method,
    message: 'method not found; ask for the capabilities to see what is served',
    status: face.era === 'modern' ? STATUS.method : STATUS.ok,
  })

/** No server could be asked. */
export const allDown = (stage: Stage, { request }: Flight): Promise<Said> =>
  refuseMethod(stage, request, {
    code: 'upstream_down',
    rpc: RPC.internal,
    message: 'no server is available; try again',
    status: STATUS.ok,
  })

/** So much is open already that no more is begun. */
export const tooMany = (stage: Stage, { request }: Flight, what: string): Promise<Said> =>
  refuseMethod(stage, request, {
    code: 'too_many_calls',
    rpc: RPC.internal,
    message: `too many ${what} at once; end one and try again`,
    status: STATUS.ok,
  })

/** The request did not declare what its method or its params need. `needed`: as the client would declare it. */
export const capabilityMissing = (
  stage: Stage,
  { request }: Flight,
  needed: JsonObject,
): Promise<Said> =>
  refuseMethod(stage, request, {
    code: 'capability_missing',
    rpc: CAPABILITY_MISSING,
    message: 'declare what data.requiredCapabilities names with the request, then send it again',
    status: STATUS.request,
    more: object({ requiredCapabilities: needed }),
  })

const CAPABILITY_MISSING = -32021
const HOP_CODES: ReadonlySet<number> = new Set([-32020, CAPABILITY_MISSING, -32022])

/** Records a request that reaches no call and gives its error. */
async function refuseMethod(
  { scene, transport }: Stage,
  { id, method }: Request,
  told: {
    readonly code: Code
    readonly rpc: number
    readonly message: string
    readonly status: number
    readonly more?: JsonObject
  },
): Promise<Said> {
  const { code, rpc, message, status, more = object({}) } = told
  await recordRefusal(scene.doors, scene.client, {
    kind: 'call',
    code,
    method,
    name: '',
    transport,
    more: {},
  })
  return { text: errorText(id, { code: rpc, message, data: refusalData({ code }, more) }), status }
}
