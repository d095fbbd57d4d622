// `eclusa serve`: the composition of one gateway between clients over HTTP and its servers.

import { parseArgs } from 'node:util'

import type { Client } from '../call.ts'
import { EXIT, Fault } from '../fault.ts'
import { type HttpServer, serveHttp } from '../mcp/http/http.ts'
import { startUpstreams } from '../mcp/upstream/upstreams.ts'
import type { Config } from '../policy/config.ts'
import type { Store } from '../ports.ts'
import { warmSqlite } from '../store/sqlite.ts'
import { doorsOf, fileConfig, openLedger } from './compose.ts'
import type { Io } from './io.ts'
import { knownClients } from './known.ts'
import { placed, stateDir } from './place.ts'
import { version } from './version.ts'
import { tellingWaits } from './waiting.ts'
import { boundYoung } from './young.ts'

/** Serves clients over HTTP until SIGTERM, SIGINT or SIGHUP. Exit statuses: 0 after a clean end, 2 for a
 *  configuration or an address that cannot be used, 70 when the ledger broke, 73 when its directory is
 *  refused. */
export async function serve(args: string[], io: Io): Promise<number> {
  const { path, port } = wishOf(args)
  boundYoung()
  warmSqlite()
  const { config, file } = await fileConfig(path, io)
  const say = (line: string): void => io.err(`eclusa: ${line}`)
  const dir = stateDir(io, { file, dir: config.state.dir })
  const anonymous = anonymousOf(config)
  const upstreams = startUpstreams(placed(config.upstreams, file), {
    limits: config.limits,
    client: { name: 'eclusa', version: version() },
    say,
    environment: io.env,
    principals: 'many',
  })
  let store: Store | null = null
  let server: HttpServer
  try {
    store = tellingWaits(await openLedger(config, dir, say), say)
    const doors = doorsOf(config, { store, upstreams }, say)
    const { listen, endpoints, publicOrigin, hosts, origins } = config.serving
    const { keepAliveMs, sessionIdleMs } = config.serving
    server = await serveHttp({
      doors,
      upstreams,
      limits: config.limits,
      version: version(),
      say,
      listen: { host: listen.host, port: port ?? listen.port },
      endpoints,
      publicOrigin,
      posts: { hosts, origins },
      // A response that takes longer than that begins as a stream, or nothing could be said in time.
      times: {
        silent: keepAliveMs,
        modernStream: keepAliveMs,
        sessionIdle: sessionIdleMs,
      },
      ...knownClients(store, anonymous),
    })
  } catch (error) {
    await upstreams.stop()
    await store?.stop()
    throw error
  }
  const ending = endings()
  say(startLine(config, server, dir))
  for (const line of warnings(config, anonymous, store)) say(line)
  await ending.first
  say('stopping: new requests are refused, what is in flight may finish')
  const drained = server.drain()
  await Promise.race([drained, ending.second, wait(config.drainMs)])
  server.abandon()
  await upstreams.stop()
  await drained
  await server.close()
  await store.stop()
  return EXIT.ok
}

const MAX_PORT = 65_535

function wishOf(args: string[]): { readonly path: string; readonly port: number | null } {
  const { values } = parseArgs({
    args,
    options: { config: { type: 'string' }, port: { type: 'string' } },
  })
  if (values.config === undefined) {
    throw new Fault('usage', 'say what to serve: eclusa serve --config FILE [--port N]')
  }
  const port = values.port === undefined ? null : Number(values.port)
  if (port !== null && !(Number.isInteger(port) && port >= 0 && port <= MAX_PORT)) {
    throw new Fault('usage', `--port ${values.port ?? ''}: write a number from 0 to ${MAX_PORT}`)
  }
  return { path: values.config, port }
}

/** The client that everybody without a token is, or null. Its name is none that a client with a token can have:
 *  keys, and the processes and sessions of servers, belong to names. */
function anonymousOf({ serving, policy }: Config): Client | null {
  const { anonymous } = serving
  if (anonymous === null) return null
  if (policy.profiles.get(anonymous)?.token === 'required') {
    throw new Fault(
      'config_invalid',
      `anonymous: ${anonymous} asks for a token (token: required); choose another profile`,
    )
  }
  const name = `anonymous:${anonymous}`
  return { name, profile: anonymous, identity: 'anonymous', attributes: {} }
}

const startLine = ({ serving, policy }: Config, { url }: HttpServer, dir: string): string =>
  `serving ${[...serving.endpoints.keys()].map((path) => url + path).join(', ')}; ` +
  `policy ${policy.digest.slice(0, 12)}, state ${dir}; ` +
  'results pass whole: field selection is not built yet'

function warnings({ serving }: Config, anonymous: Client | null, store: Store): readonly string[] {
  const { listen, hosts } = serving
  const { host } = listen
  const isAny = host === '0.0.0.0' || host === '::'
  const isLocal = /^(127\.|::1$|localhost$)/.test(host)
  const nobody = anonymous === null && store.clients().size === 0
  return [
    ...(anonymous === null
      ? []
      : [
          `whoever reaches this address is served as profile ${anonymous.profile}, without a token`,
        ]),
    ...(nobody ? ['no client is known yet; run: eclusa client add NAME --profile P'] : []),
    ...(isAny && hosts.length === 0
      ? ['only requests for this machine itself are answered; name others under allowed_hosts']
      : []),
    ...(isLocal
      ? []
      : [
          `listening on ${host} without TLS; put a proxy with TLS before it, or tokens can be read`,
        ]),
  ]
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** The first signal asks for an orderly end, the second for a quick one. */
function endings(): { readonly first: Promise<void>; readonly second: Promise<void> } {
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  let heard = false
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (heard) second.resolve()
      heard = true
      first.resolve()
    })
  }
  return { first: first.promise, second: second.promise }
}

const wait = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms).unref()
  })
