// The servers of a configuration: how each is reached, and what is checked of that before anything starts.

import { isObject, type Json, type JsonObject, object } from '../json.ts'
import { type Part, report, type Workshop } from './compile.ts'
import { durationOf } from './limits.ts'
import { pointer } from './position.ts'
import { bare, members, textOf, texts } from './value.ts'

/** What is written of any server. `share`: one process or session serves all clients. Times in ms: `callMs`
 *  is moved by progress up to `callMaxMs`. */
type Common = {
  readonly name: string
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly share: boolean
  readonly probeMs: number
  readonly callMs: number
  readonly callMaxMs: number
  readonly listMs: number
}

/** A server that we start. `command`: program and arguments, run without a shell. `cwd` is as written;
 *  relative to the file's folder. */
export type CommandUpstream = Common & {
  readonly kind: 'command'
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly passEnv: readonly string[]
  readonly cwd: string | null
}

/** A server that runs elsewhere. `url` is absolute, http or https, without user, password and fragment.
 *  `headers` go with every request to its origin and nowhere else; their names are unique but for case, and
 *  none is one that the protocol sets. `allowPrivate`: also addresses of private networks to which its
 *  name did not lead at first, or to which it redirects. */
export type UrlUpstream = Common & {
  readonly kind: 'url'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly allowRedirects: boolean
  readonly allowPrivate: boolean
}

/** One server behind the gateway. */
export type UpstreamConfig = CommandUpstream | UrlUpstream

/** Deadlines where none is written. Source: design.md 2. */
export const DEFAULT_TIMES: {
  readonly probeMs: number
  readonly callMs: number
  readonly callMaxMs: number
  readonly listMs: number
  readonly drainMs: number
} = {
  probeMs: 15_000,
  callMs: 300_000,
  callMaxMs: 1_800_000,
  listMs: 10_000,
  drainMs: 5_000,
}
/** Longest wait that may be written: timers hold 2^31-1 ms. */
const MAX_TIME_MS = 2_147_483_647

const COMMAND_KEYS = ['env', 'pass_env', 'cwd'] as const
const URL_KEYS = ['headers', 'allow_redirects', 'allow_private'] as const

/** The server of this name as it is written. What is wrong with it is reported. */
export function upstream(shop: Workshop, part: Part, name: string, value: Json): UpstreamConfig {
  const path = pointer('/upstreams', name)
  const given = isObject(value) ? value : object({})
  const { era } = given
  const common: Common = {
    name,
    era: era === 'modern' || era === 'legacy' ? era : 'auto',
    share: given['share'] === true,
    ...times(shop, part, path, given),
  }
  const url = textOf(given['url'])
  const command = texts(given['command'])
  if (url === null) {
    if (command.length === 0) {
      report(shop, part, path, { message: '`command` is missing' })
    }
    misplaced(shop, part, path, { given, keys: URL_KEYS, of: 'url' })
    const env = bare<string>()
    for (const [key, text] of members(given['env'])) if (typeof text === 'string') env[key] = text
    const cwd = textOf(given['cwd'])
    return { kind: 'command', ...common, command, env, passEnv: texts(given['pass_env']), cwd }
  }
  if (given['command'] !== undefined) {
    report(shop, part, `${path}/url`, { message: 'a server has a `command` or a `url`, not both' })
  }
  misplaced(shop, part, path, { given, keys: COMMAND_KEYS, of: 'command' })
  const headers = headersOf(shop, part, `${path}/headers`, given['headers'])
  checkUrl(shop, part, `${path}/url`, { url, sends: Object.keys(headers).length > 0 })
  return {
    kind: 'url',
    ...common,
    url,
    headers,
    allowRedirects: given['allow_redirects'] === true,
    allowPrivate: given['allow_private'] === true,
  }
}

/** A key that says nothing of this kind of server. */
function misplaced(
  shop: Workshop,
  part: Part,
  path: string,
  {
    given,
    keys,
    of,
  }: { readonly given: JsonObject; readonly keys: readonly string[]; readonly of: string },
): void {
  for (const key of keys) {
    if (given[key] === undefined) continue
    report(shop, part, `${path}/${key}`, {
      message: `\`${key}\` belongs to a server with a \`${of}\`; remove it`,
      on: 'key',
    })
  }
}

/** The messages never hold the text: it may hold a secret. */
function checkUrl(
  shop: Workshop,
  part: Part,
  path: string,
  { url, sends }: { readonly url: string; readonly sends: boolean },
): void {
  const parsed = URL.parse(url)
  const fault = (message: string, level: 'error' | 'warning' = 'error'): void =>
    report(shop, part, path, { message, level })
  if (parsed === null || (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')) {
    fault('expected an address that begins with http:// or https://')
  } else if (parsed.username !== '' || parsed.password !== '') {
    fault('an address holds no user and password; write them as a header')
  } else if (parsed.hash !== '') fault('an address holds no fragment; remove what begins with #')
  else if (sends && parsed.protocol === 'http:' && !LOOPBACK.test(parsed.hostname)) {
    fault('its headers can be read on the way; use https', 'warning')
  }
}

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/

/** RFC 9110, 5.6.2. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
/** A control character would end the header and begin another. */
const VALUE = /^[\u0021-\u007e](?:[\u0020-\u007e\t]*[\u0021-\u007e])?$/
/** What the transport and the protocol say of each message is never fixed beforehand. */
const SET_BY_US =
  /^(?:host|connection|keep-alive|proxy-connection|transfer-encoding|te|trailer|upgrade|expect|content-.*|accept|accept-encoding|last-event-id|mcp-.*)$/

function headersOf(
  shop: Workshop,
  part: Part,
  path: string,
  value: Json | undefined,
): Readonly<Record<string, string>> {
  const made = bare<string>()
  const seen = new Set<string>()
  for (const [name, text] of members(value)) {
    const at = pointer(path, name)
    const lower = name.toLowerCase()
    const fault = (message: string, on: 'key' | 'at' = 'key'): void =>
      report(shop, part, at, on === 'key' ? { message, on } : { message })
    if (!TOKEN.test(name)) fault('this is no name of a header')
    else if (SET_BY_US.test(lower)) fault('this header is set for each message; remove it')
    else if (seen.has(lower)) fault('this header stands here twice; names differ in more than case')
    else if (typeof text === 'string' && !VALUE.test(text)) {
      fault('the value of a header is printable ASCII, with no space at its ends', 'at')
    }
    seen.add(lower)
    if (typeof text === 'string') made[name] = text
  }
  return made
}

function times(
  shop: Workshop,
  part: Part,
  path: string,
  given: JsonObject,
): Pick<UpstreamConfig, 'probeMs' | 'callMs' | 'callMaxMs' | 'listMs'> {
  const of = (key: string): number | null => time(shop, part, `${path}/${key}`, given[key])
  const callMs = of('call') ?? DEFAULT_TIMES.callMs
  return {
    probeMs: of('probe') ?? DEFAULT_TIMES.probeMs,
    callMs,
    // Never less than what a call has from the start.
    callMaxMs: Math.max(of('call_max') ?? DEFAULT_TIMES.callMaxMs, callMs),
    listMs: of('list') ?? DEFAULT_TIMES.listMs,
  }
}

/** A written time in ms, or null when there is none or it is out of range, which is reported. */
export function time(
  shop: Workshop,
  part: Part,
  path: string,
  value: Json | undefined,
): number | null {
  if (typeof value !== 'string') return null
  const ms = durationOf(value)
  if (ms !== null && ms >= 1 && ms <= MAX_TIME_MS) return ms
  report(shop, part, path, { message: 'expected a time from 1ms to 24d' })
  return null
}
