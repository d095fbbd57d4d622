// Answers, refusals and notices as JSON-RPC text for one client. What nobody changed passes as it came.

import type { Answer, Ask, Asks, Method } from '../../call.ts'
import type { Refusal } from '../../decision.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  member,
  object,
  withMembers,
  writeJson,
} from '../../json.ts'
import { covers } from '../wire/capabilities.ts'
import type { Face } from '../wire/era.ts'
import { BATCH_VERSION, isDeclared, PROTOCOL, TASKS } from '../wire/era.ts'
import { type Id, RPC } from '../wire/message.ts'

/** An error as it goes out. `data` is null for none. */
export type Outgoing = {
  readonly code: number
  readonly message: string
  readonly data: Json | null
}

/** Names of ours in `_meta`; from anybody else they are dropped, or a server could forge a refusal. */
export const OURS = 'eclusa/'
/** Where a refusal stands: in `_meta` of results, in `data` of errors. */
const REFUSAL = 'eclusa/refusal'

/** A response around the text of its result. */
export const resultText = (id: Id | null, result: string): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`

/** An error response; `id` is null where the request's could not be known. */
export function errorText(id: Id | null, { code, message, data }: Outgoing): string {
  const error = writeJson(object({ code, message, data: data ?? undefined }))
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":${error}}`
}

/** A notification. */
export const noticeText = (method: string, params: JsonObject | null): string =>
  params === null
    ? `{"jsonrpc":"2.0","method":${JSON.stringify(method)}}`
    : `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${writeJson(params)}}`

/** A request of ours. */
export const requestText = (id: string, method: string, params: JsonObject): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":${JSON.stringify(method)},"params":${writeJson(params)}}`

/** The data of an error that refuses. */
export const refusalData = (
  refusal: Refusal,
  more: { readonly [key: string]: Json | undefined },
): JsonObject => object({ ...more, [REFUSAL]: told(refusal) })

/** The result that refuses a tool call. */
export const refusalResult = (face: Face, sentence: string, refusal: Refusal): string =>
  ownResult(
    face,
    {
      content: [object({ type: 'text', text: sentence })],
      isError: true,
      _meta: object({ [REFUSAL]: told(refusal) }),
    },
    'once',
  )

/** An upstream's answer in the client's revision. `asked`: the name or URI as the client sent it. */
export function answerText(
  id: Id,
  answer: Answer,
  to: { readonly face: Face; readonly method: Method; readonly asked: string },
): string {
  if (answer.kind === 'error') return errorText(id, translate(answer, to))
  if (isKnown(to, answer.value)) return resultText(id, dress(to.face, to.method, answer))
  const message = 'the server answered with a kind of result that this client did not ask for'
  const data = refusalData({ code: 'not_bridged' }, {})
  return errorText(id, { code: RPC.internal, message, data })
}

/** A kind of result that a client does not know must not be taken for a complete one. */
function isKnown(
  { face, method }: { readonly face: Face; readonly method: Method },
  { resultType }: JsonObject,
): boolean {
  if (resultType === undefined || resultType === 'complete') return true
  const isTask = resultType === TASK && method === 'tools/call'
  return isTask && face.era === 'modern' && isDeclared(face.capabilities, TASKS)
}

/** What a server asks, for a modern client, which makes the call again with its answers. */
export function asksText(
  id: Id,
  { asks, state }: { readonly asks: Asks; readonly state: string },
  shown: (ask: Ask) => Ask,
): string {
  const pairs = Object.entries(asks.asks).map(([key, ask]): readonly [string, JsonObject] => [
    key,
    object({ ...shown(ask) }),
  ])
  const inputRequests = pairs.length === 0 ? undefined : object(Object.fromEntries(pairs))
  const value = object({ resultType: 'input_required', inputRequests, requestState: state })
  return resultText(id, writeJson(value))
}

/** A result of our own making in the client's revision. `cacheable`: one of the results that must
 *  say how long they may be kept, which for ours is never, and by nobody else. */
export function ownResult(
  face: Face,
  members: { readonly [key: string]: Json | undefined },
  caching: 'cacheable' | 'once',
): string {
  if (face.era === 'legacy') return writeJson(object(members))
  const hints = caching === 'cacheable' ? NEVER_CACHED : {}
  return writeJson(object({ resultType: 'complete', ...members, ...hints }))
}

/** The items of an array; none of anything else. */
export const blocksOf = (value: Json | undefined): readonly Json[] => (isList(value) ? value : [])

/** The value without what only we may say, at the places where `_meta` stands: the top and content blocks.
 *  The same value when there is nothing to drop. */
export function withoutOurs(value: JsonObject): JsonObject {
  const { content, _meta: meta } = value
  const clean = isObject(meta) ? withoutNames(meta, isOurs) : meta
  const blocks = isList(content) ? cleanBlocks(content) : content
  if (clean === meta && blocks === content) return value
  return object({ ...value, _meta: clean, content: blocks })
}

/** The params of a notice without the `_meta` names of ours and of the server's hop. */
export function cleanNotice(params: JsonObject): JsonObject {
  const { _meta: meta } = params
  if (!isObject(meta)) return params
  return object({
    ...params,
    _meta: withoutNames(meta, (name) => isOurs(name) || HOP_NAMES.has(name)),
  })
}

type Result = Extract<Answer, { readonly kind: 'result' }>

const NEVER_CACHED = { ttlMs: 0, cacheScope: 'private' } as const
const TASK = 'task'
const COMPLETE_FIRST = '{"resultType":"complete",'
/** The protocol's own names in results and notices, which belong to the hop that set them. */
const HOP_NAMES: ReadonlySet<string> = new Set(
  [
    'protocolVersion',
    'clientInfo',
    'clientCapabilities',
    'logLevel',
    'serverInfo',
    'subscriptionId',
  ].map((name) => `${PROTOCOL}${name}`),
)

const told = ({ code, reason, retryAfterMs }: Refusal): JsonObject =>
  object({ code, reason, retryAfterMs })
const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
const isOurs = (name: string): boolean => name.startsWith(OURS)

function cleanBlocks(content: readonly Json[]): readonly Json[] {
  const clean = content.map((block) => {
    const meta = isObject(block) ? block['_meta'] : undefined
    if (!isObject(block) || !isObject(meta)) return block
    const kept = withoutNames(meta, isOurs)
    return kept === meta ? block : object({ ...block, _meta: kept })
  })
  return clean.some((block, at) => block !== content[at]) ? clean : content
}

function withoutNames(value: JsonObject, drops: (name: string) => boolean): JsonObject {
  const kept = Object.entries(value).filter(([name]) => !drops(name))
  return kept.length === Object.keys(value).length ? value : object(Object.fromEntries(kept))
}

/** The text of a result for this client: the admitted text with at most a prefix, or written anew. */
function dress(face: Face, method: Method, answer: Result): string {
  const value = withoutNested(withoutOurs(answer.value), method)
  // A line break inside would end the frame; the text of a stored answer might hold one.
  const text = value === answer.value && isOneLine(answer.text) ? answer.text : null
  return face.era === 'modern'
    ? forModern(method, value, text)
    : forLegacy(answer, { value, text, version: face.version })
}

/** The result of a task lies one level down, as what it asks and its error do, and passes like what it is. */
function withoutNested(value: JsonObject, method: Method): JsonObject {
  if (method !== 'tasks/get') return value
  const { result, error, inputRequests: asks } = value
  const data = member(error, 'data')
  const clean = {
    result: isObject(result) ? withoutOurs(result) : result,
    error: isObject(error) && isObject(data) ? withData(error, withoutNames(data, isOurs)) : error,
    inputRequests: isObject(asks) ? cleanAsks(asks) : asks,
  }
  const isSame = clean.result === result && clean.error === error && asks === undefined
  return isSame ? value : object({ ...value, ...clean })
}

const withData = (error: JsonObject, data: JsonObject): JsonObject =>
  data === error['data'] ? error : object({ ...error, data })

const cleanAsks = (asks: JsonObject): JsonObject =>
  object(
    Object.fromEntries(
      Object.entries(asks).map(([key, ask]) => {
        const params = member(ask, 'params')
        const isClean = !isObject(ask) || !isObject(params)
        return [key, isClean ? ask : object({ ...ask, params: cleanNotice(params) })]
      }),
    ),
  )

const isOneLine = (text: string | null): boolean =>
  text !== null && !text.includes('\n') && !text.includes('\r')

function forModern(method: Method, value: JsonObject, text: string | null): string {
  const { ttlMs = NEVER_CACHED.ttlMs } = value
  // What one client may see is nobody else's, whatever the server says of its own.
  const hints = method === 'resources/read' ? { ...NEVER_CACHED, ttlMs } : {}
  const wanted = { resultType: value['resultType'] ?? 'complete', ...hints }
  const missing = Object.entries(wanted).filter(([name, one]) => value[name] !== one)
  if (text !== null && missing.length === 0) return text
  if (text !== null && missing.every(([name]) => value[name] === undefined)) {
    const prefix = writeJson(object(Object.fromEntries(missing)))
    return Object.keys(value).length === 0 ? prefix : `${prefix.slice(0, -1)},${text.slice(1)}`
  }
  return writeJson(object({ ...value, ...wanted }))
}

function forLegacy(
  { era }: Result,
  {
    value,
    text,
    version,
  }: { readonly value: JsonObject; readonly text: string | null; readonly version: string },
): string {
  const plain = withoutHopNames(era === 'modern' ? withoutHints(value) : value)
  const shaped = withPlainLinks(withObjectOutput(plain), version)
  const passes = text !== null && shaped === value
  if (passes && shaped['resultType'] === undefined) return text
  // The usual place of the one member that must go; anywhere else the text is written anew.
  return passes && text.startsWith(COMPLETE_FIRST)
    ? `{${text.slice(COMPLETE_FIRST.length)}`
    : writeJson(withMembers(shaped, { resultType: undefined }))
}

function withoutHints(value: JsonObject): JsonObject {
  const { ttlMs, cacheScope } = value
  if (ttlMs === undefined && cacheScope === undefined) return value
  return withMembers(value, { ttlMs: undefined, cacheScope: undefined })
}

function withoutHopNames(value: JsonObject): JsonObject {
  const { _meta: meta } = value
  if (!isObject(meta)) return value
  const kept = withoutNames(meta, (name) => HOP_NAMES.has(name))
  if (kept === meta) return value
  return object({ ...value, _meta: Object.keys(kept).length === 0 ? undefined : kept })
}

/** Legacy clients expect an object; their list shows the schema of one, too. */
function withObjectOutput(value: JsonObject): JsonObject {
  const { structuredContent: result } = value
  if (result === undefined || isObject(result)) return value
  const { content } = value
  const isBare = content === undefined || (isList(content) && content.length === 0)
  const shown = isBare ? [object({ type: 'text', text: writeJson(result) })] : content
  return object({ ...value, content: shown, structuredContent: object({ result }) })
}

/** The first revision does not know links: a client of it would refuse the whole result. */
function withPlainLinks(value: JsonObject, version: string): JsonObject {
  const { content } = value
  if (version !== BATCH_VERSION || !isList(content)) return value
  const plain = content.map((block) => {
    if (!isObject(block) || block['type'] !== 'resource_link') return block
    const { name, uri } = block
    const text = [name, uri].filter((one) => typeof one === 'string').join(': ')
    return object({ type: 'text', text })
  })
  return plain.some((block, at) => block !== content[at])
    ? object({ ...value, content: plain })
    : value
}

/** What a client would have to declare for another answer than a server's error -32021, or null: it is another
 *  answer, or the client did declare it and it was not passed on, which is between us and the server. */
export function lacking(answer: Answer, face: Face): JsonObject | null {
  if (answer.kind !== 'error' || answer.code !== MISSING_CAPABILITY) return null
  const needed = member(answer.data ?? undefined, 'requiredCapabilities')
  return isObject(needed) ? undeclared(needed, face) : null
}

/** These capabilities, when a modern request did not declare them all; else null. Older clients do not know
 *  the error that says so. */
export const undeclared = (needed: JsonObject, { era, capabilities }: Face): JsonObject | null =>
  era === 'modern' && !covers(capabilities, needed) ? needed : null

/** MCP 2026-07-28. */
export const MISSING_CAPABILITY = -32021
/** Codes of the modern hop between us and a server; no client may take them for its own. */
const HOP_ERRORS: ReadonlySet<number> = new Set([-32020, MISSING_CAPABILITY, -32022])
const LEGACY_NOT_FOUND = -32002
const URL_ELICITATION = -32042

function translate(
  answer: Extract<Answer, { readonly kind: 'error' }>,
  { face, method, asked }: { readonly face: Face; readonly method: Method; readonly asked: string },
): Outgoing {
  const { code, message, data } = answer
  const needed = lacking(answer, face)
  if (needed !== null) return { code, message, data: object({ requiredCapabilities: needed }) }
  const kept = isObject(data) ? withoutNames(data, isOurs) : data
  if (HOP_ERRORS.has(code)) {
    const sentence = 'the server and the gateway do not agree on the protocol; ask the operator'
    return { code: RPC.internal, message: sentence, data: null }
  }
  if (code === URL_ELICITATION) {
    const sentence = 'the server asks for something that cannot be passed on yet'
    return { code: RPC.internal, message: sentence, data: refusalData({ code: 'not_bridged' }, {}) }
  }
  if (method !== 'resources/read') return { code, message, data: kept }
  return ofResource({ code, message, data: kept }, face, asked)
}

function ofResource({ code, message, data }: Outgoing, { era }: Face, asked: string): Outgoing {
  const kept = isObject(data) ? data : {}
  if (era === 'modern' && code === LEGACY_NOT_FOUND) {
    return { code: RPC.params, message, data: object({ uri: asked, ...kept }) }
  }
  const isNotFound = code === RPC.params && member(data ?? undefined, 'uri') !== undefined
  return { code: era === 'legacy' && isNotFound ? LEGACY_NOT_FOUND : code, message, data }
}
