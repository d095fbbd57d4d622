// The first words with a server over HTTP: which era it speaks, what it says of itself, and a legacy session.

import { type Json, type JsonObject, object, writeJson } from '../../json.ts'
import type { Hello } from '../../ports.ts'
import { MODERN_VERSION } from '../wire/era.ts'
import { hello, modern, type Mode, versionsOf } from '../upstream/era.ts'
import type { Heard } from '../upstream/heard.ts'
import { type HeaderSet, headersOf } from './headers.ts'
import { type Link, type Session, sessionHeaders } from './link.ts'
import { talk, type Told } from './talk.ts'
import { BATCHING_VERSIONS, type Hop, outgoing, SERVER_VERSIONS } from '../upstream/meta.ts'

/** The end of the first words. `session` is null for a modern server. `about`: what failed says something of
 *  the era that was tried; otherwise only that the server cannot be spoken to now. */
export type HttpGreeting =
  | { readonly kind: 'hello'; readonly hello: Hello; readonly session: Session | null }
  | { readonly kind: 'failed'; readonly why: string; readonly about: 'era' | 'server' }

/** Whom we are, what we let a legacy server ask, how long one request may take, and how many sessions there
 *  were before. */
export type HttpGreeter = {
  readonly client: Hop['client']
  readonly capabilities: JsonObject
  readonly waitMs: number
  readonly epoch: number
}

const HEADER_MISMATCH = -32_020
const MISSING_CAPABILITY = -32_021
/** Before a probe that was answered with a server's own failure is made once more. */
const AGAIN_MS = 250
/** A session id goes back as a header with every request. Source: MCP 2025-11-25, session management. */
const SESSION_ID = /^[\u0021-\u007e]{1,1024}$/

const failed = (why: string, about: 'era' | 'server' = 'server'): HttpGreeting => ({
  kind: 'failed',
  why,
  about,
})

/** Finds out how this server is spoken to. What says nothing of the era (no connection, a login, a failure of
 *  the server, silence) is told as it is and leads to no guess. Source: MCP 2026-07-28, Streamable HTTP. */
export async function greetHttp(
  link: Link,
  mode: Mode,
  greeter: HttpGreeter,
): Promise<HttpGreeting> {
  if (mode === 'legacy') return initialize(link, greeter)
  const said = await probe(link, greeter)
  if (said.kind !== 'legacy') return said
  if (mode === 'modern') return failed('it does not speak the modern era', 'era')
  return initialize(link, greeter)
}

/** What the answer to one question says of the era. */
export type Probed = HttpGreeting | { readonly kind: 'legacy' }

/** Asks what the server speaks. Begins no session. */
export async function probe(link: Link, greeter: HttpGreeter): Promise<Probed> {
  let told = await discover(link, greeter)
  if (deservesAnother(told)) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    told = await discover(link, greeter)
  }
  if (told.kind === 'timeout') return failed(SILENT)
  if (told.kind === 'none') return failed(told.why)
  return outage(link, told) ?? eraIn(told)
}

const SILENT = 'it does not answer; set `era: legacy` if it is an old server, or raise `probe`'

/** A failure of the server is no evidence, and a refusal of the very revision that it names may pass. */
function deservesAnother(told: Answered): boolean {
  if (told.kind === 'none' || told.kind === 'timeout') return false
  const heard = heardOf(told)
  if (heard?.kind === 'error' && versionsOf(heard)?.includes(MODERN_VERSION) === true) return true
  return told.head.status >= 500
}

const heardOf = (told: Reply): Heard | null => (told.kind === 'answer' ? told.heard : told.error)

type Answered = Told | { readonly kind: 'timeout' }
type Reply = Exclude<Told, { kind: 'none' }>

function discover(link: Link, { client, waitMs }: HttpGreeter): Promise<Answered> {
  const hop: Hop = { era: 'modern', version: MODERN_VERSION, client }
  const params = outgoing(object({}), hop, null)
  const headers = headersOf('server/discover', params, { mirrors: [], passed: {} })
  return ask(link, { method: 'server/discover', params, headers }, waitMs)
}

/** What the answer to the probe says. */
function eraIn(told: Reply): Probed {
  const heard = heardOf(told)
  const spoken = heard === null ? null : versionsOf(heard)
  const isModern = spoken?.includes(MODERN_VERSION) === true
  if (isModern && heard?.kind === 'result') {
    return { kind: 'hello', hello: modern(heard.value), session: null }
  }
  if (isModern) return failed(`it speaks ${MODERN_VERSION} and refuses it`)
  if (spoken !== null && !spoken.some((version) => SERVER_VERSIONS.includes(version))) {
    return failed(`it speaks ${spoken.join(', ').slice(0, 100)} only`, 'era')
  }
  return isModernRefusal(told, heard) ? failed('it refuses to be asked what it speaks') : LEGACY
}

const LEGACY = { kind: 'legacy' } as const

/** It knows the modern era's own errors, so it speaks it: initialize would be wrong. */
const isModernRefusal = ({ head }: Reply, heard: Heard | null): boolean =>
  head.status === 400 &&
  heard?.kind === 'error' &&
  (heard.code === HEADER_MISMATCH || heard.code === MISSING_CAPABILITY)

/** What says nothing of any era: a login, a redirect, a failure of the server. */
function outage(link: Link, told: Reply): HttpGreeting | null {
  const { status } = told.head
  if (status === 401 || status === 403) return failed(`${link.name} needs a login; set its header`)
  if (status === 429) return failed('it takes no more requests now')
  if (status >= 500) return failed(`it answered with HTTP status ${status}`)
  if (status >= 300 && status < 400 && told.kind === 'status') return failed(told.why)
  return null
}

/** A new session with a legacy server. Nothing of an earlier one is sent. */
export async function initialize(link: Link, greeter: HttpGreeter): Promise<HttpGreeting> {
  const params = object({
    protocolVersion: SERVER_VERSIONS[0],
    capabilities: greeter.capabilities,
    clientInfo: { ...greeter.client },
  })
  const told = await ask(link, { method: 'initialize', params, headers: {} }, greeter.waitMs)
  if (told.kind === 'timeout') return failed('it does not answer initialize')
  if (told.kind === 'none') return failed(told.why)
  const notNow = outage(link, told)
  if (notNow !== null) return notNow
  const { status } = told.head
  if (told.kind === 'status') return failed(nowhere(status), 'era')
  const { heard } = told
  if (heard.kind === 'error') {
    return failed(`it refuses initialize with error ${heard.code}`, 'era')
  }
  if (heard.kind !== 'result') return failed('its answer to initialize is not admissible', 'era')
  return begin(link, greeter, { result: heard.value, id: told.head.session })
}

const nowhere = (status: number): string =>
  `it has no MCP endpoint there (HTTP status ${status}); check the url, and if it speaks the old HTTP+SSE ` +
  'transport of 2024-11-05, ask for its Streamable HTTP address'

async function begin(
  link: Link,
  { epoch, waitMs }: HttpGreeter,
  { result, id }: { readonly result: JsonObject; readonly id: string | null },
): Promise<HttpGreeting> {
  const version = result['protocolVersion']
  if (typeof version !== 'string') return failed('its answer to initialize names no version', 'era')
  if (!SERVER_VERSIONS.includes(version)) {
    const named = version.slice(0, 40)
    return failed(`it answers initialize with ${named}, which is not spoken here`, 'era')
  }
  if (id !== null && !SESSION_ID.test(id)) return failed('the id of its session is not admissible')
  link.ground.batches = BATCHING_VERSIONS.includes(version)
  const session: Session = { id, version, epoch: epoch + 1 }
  // It has to come before anything else that is sent on the session.
  const headers = sessionHeaders(session)
  const told = await post(
    link,
    { method: 'notifications/initialized', params: object({}), headers },
    waitMs,
  )
  if (told.kind === 'none' && !told.handed) return failed(told.why)
  const info = result['serverInfo']
  return { kind: 'hello', hello: hello(result, { era: 'legacy', version, info }), session }
}

type Words = {
  readonly method: string
  readonly params: JsonObject
  readonly headers: HeaderSet
}

/** One request of our own. */
const ask = (link: Link, words: Words, waitMs: number): Promise<Answered> => {
  const id = link.nextId()
  return exchange(link, { id, headers: words.headers, text: textOf(words, id) }, waitMs)
}

/** One notification: any reply ends it. */
const post = (link: Link, words: Words, waitMs: number): Promise<Answered> =>
  exchange(link, { id: -1, headers: words.headers, text: textOf(words, null) }, waitMs)

function textOf({ method, params }: Words, id: number | null): string {
  const members: Record<string, Json> = { jsonrpc: '2.0', method, params }
  return writeJson(object(id === null ? members : { ...members, id }))
}

function exchange(
  link: Link,
  {
    id,
    headers,
    text,
  }: { readonly id: number; readonly headers: HeaderSet; readonly text: string },
  waitMs: number,
): Promise<Answered> {
  const { promise, resolve } = Promise.withResolvers<Answered>()
  const done = (what: Answered): void => {
    clearTimeout(timer)
    link.words.delete(giveUp)
    resolve(what)
  }
  const giveUp = (): void => {
    talking.stop()
    done({ kind: 'timeout' })
  }
  const timer = setTimeout(giveUp, waitMs)
  link.words.add(giveUp)
  const talking = talk(
    link.ground,
    { id, body: text, headers, byItems: false, resume: null, long: false },
    {
      asked: () => {},
      notice: () => {},
      told: done,
    },
  )
  return promise
}
