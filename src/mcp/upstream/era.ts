// The first words with a server process: which era it speaks, and what it says of itself.

import { isObject, type Json, type JsonObject, member, object } from '../../json.ts'
import type { Hello } from '../../ports.ts'
import { MODERN_VERSION, PROTOCOL } from '../wire/era.ts'
import type { Heard } from './heard.ts'
import { BATCHING_VERSIONS, type Hop, outgoing, SERVER_VERSIONS } from './meta.ts'
import type { Wire } from './wire.ts'

/** `probe`: find out; the others are settled by the configuration or by an earlier start. */
export type Mode = 'probe' | 'modern' | 'legacy'

/** The end of the first words. `died`: the process ended meanwhile; on a probe that is how some legacy
 *  servers say that they are one. `silent`: it answered nothing. */
export type Greeting =
  | { readonly kind: 'hello'; readonly hello: Hello }
  | {
      readonly kind: 'failed'
      readonly why: string
      readonly died: boolean
      readonly silent?: 'silent'
    }

/** Whom we are, what a legacy server may ask, and how long each of the two first requests may take. */
export type Greeter = {
  readonly client: Hop['client']
  readonly capabilities: JsonObject
  readonly waitMs: number
}

const UNSUPPORTED_VERSION = -32022
const failed = (why: string, died = false): Greeting => ({ kind: 'failed', why, died })
const unanswered = (why: string): Greeting => ({
  kind: 'failed',
  why,
  died: false,
  silent: 'silent',
})

/** Finds out how this process is spoken to, by `server/discover` first; what that is answered with, or that
 *  it is not, tells the era. Source: MCP 2026-07-28, lifecycle; the specification leaves a timeout, an
 *  error and nonsense to mean legacy. */
export async function greet(wire: Wire, mode: Mode, greeter: Greeter): Promise<Greeting> {
  if (mode === 'legacy') return initialize(wire, greeter)
  const hop: Hop = { era: 'modern', version: MODERN_VERSION, client: greeter.client }
  const heard = await ask(
    wire,
    { method: 'server/discover', params: outgoing(object({}), hop, null) },
    greeter,
  )
  if (heard.kind === 'gone') return failed('it ended when it was asked what it speaks', true)
  const spoken = versionsOf(heard)
  if (spoken?.includes(MODERN_VERSION) === true) {
    if (heard.kind === 'result') return { kind: 'hello', hello: modern(heard.value) }
    return failed(`it speaks ${MODERN_VERSION} and refuses it`)
  }
  const old = spoken === null || spoken.some((version) => SERVER_VERSIONS.includes(version))
  if (old && mode === 'probe') return initialize(wire, greeter)
  if (spoken !== null) return failed(`it speaks ${spoken.join(', ').slice(0, 100)} only`)
  return heard.kind === 'timeout'
    ? unanswered('it does not answer')
    : failed('it does not speak the modern era')
}

/** The revisions a server named, or null when it named none. */
export function versionsOf(heard: Heard | Timeout): readonly string[] | null {
  const named =
    heard.kind === 'result'
      ? heard.value['supportedVersions']
      : heard.kind === 'error' && heard.code === UNSUPPORTED_VERSION
        ? member(heard.data ?? undefined, 'supported')
        : undefined
  if (!Array.isArray(named) || named.length === 0) return null
  return named.filter((one): one is string => typeof one === 'string')
}

/** What a server said of itself in its answer to `server/discover`. */
export function modern(result: JsonObject): Hello {
  const named = member(result['_meta'], `${PROTOCOL}serverInfo`) ?? result['serverInfo']
  return hello(result, { era: 'modern', version: MODERN_VERSION, info: named })
}

/** What a server said of itself, with what its revision says elsewhere. */
export function hello(
  result: JsonObject,
  said: { readonly era: Hello['era']; readonly version: string; readonly info: Json | undefined },
): Hello {
  const { capabilities, instructions } = result
  return {
    era: said.era,
    version: said.version,
    capabilities: isObject(capabilities) ? capabilities : object({}),
    info: isObject(said.info) ? said.info : null,
    instructions: typeof instructions === 'string' ? instructions : null,
  }
}

async function initialize(wire: Wire, greeter: Greeter): Promise<Greeting> {
  const params = object({
    protocolVersion: SERVER_VERSIONS[0],
    capabilities: greeter.capabilities,
    clientInfo: { ...greeter.client },
  })
  const heard = await ask(wire, { method: 'initialize', params }, greeter)
  switch (heard.kind) {
    case 'gone':
      return failed('it ended during initialize', true)
    case 'timeout':
      return unanswered('it does not answer initialize')
    case 'unsent':
    case 'refused':
      return failed(`initialize: ${heard.why}`)
    case 'error':
      return failed(`it refuses initialize with error ${heard.code}`)
    case 'result':
      return legacy(wire, heard.value)
  }
}

function legacy(wire: Wire, result: JsonObject): Greeting {
  const version = result['protocolVersion']
  if (typeof version !== 'string') return failed('its answer to initialize names no version')
  if (!SERVER_VERSIONS.includes(version)) {
    return failed(`it answers initialize with ${version.slice(0, 40)}, which is not spoken here`)
  }
  if (BATCHING_VERSIONS.includes(version)) wire.acceptBatches()
  wire.notify('notifications/initialized', object({}))
  const info = result['serverInfo']
  return { kind: 'hello', hello: hello(result, { era: 'legacy', version, info }) }
}

type Timeout = { readonly kind: 'timeout' }

/** One request of our own, with a deadline and without progress. Neither of the first two is cancelled. */
function ask(
  wire: Wire,
  { method, params }: { readonly method: string; readonly params: JsonObject },
  { waitMs }: Greeter,
): Promise<Heard | Timeout> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      exchange?.forget()
      resolve({ kind: 'timeout' })
    }, waitMs)
    const exchange = wire.request(method, () => params, {
      heard: (heard) => {
        clearTimeout(timer)
        resolve(heard)
      },
    })
    if (exchange === null) {
      clearTimeout(timer)
      resolve({ kind: 'gone', handed: false })
    }
  })
}
