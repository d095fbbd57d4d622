// One server behind the gateway: kept running, greeted, restarted with growing patience, ended.

import type { JsonLimits, JsonObject } from '../../json.ts'
import type { Hello } from '../../ports.ts'
import { type Child, type End, startChild } from './child.ts'
import { greet, type Greeting, type Mode } from './era.ts'
import type { Source, Timeout } from './pages.ts'
import { type Hop, outgoing } from './meta.ts'
import type { Heard } from './heard.ts'
import { type Wire, wire } from './wire.ts'

/** One process of a server that has greeted us. */
export type Connection = Source & { readonly wire: Wire; readonly hop: Hop }

/** How any server is spoken to. `capabilities`: what a legacy server is told that it may ask. */
export type ServerOptions = {
  readonly name: string
  readonly era: 'auto' | 'modern' | 'legacy'
  readonly client: Hop['client']
  readonly capabilities: JsonObject
  readonly probeMs: number
  readonly limits: JsonLimits
  /** A process or session of it ended or would not start; `why` is a clause about the server. `silent`: it
   *  answered nothing. */
  readonly failed: (why: string, silent?: 'silent') => void
  /** A process or session of it is ready. */
  readonly ready: (connection: Connection) => void
  /** What it says that belongs to no request. */
  readonly notified: (method: string, params: JsonObject) => void
}

/** How one server process is started and spoken to. `env` is its whole environment. */
export type UpstreamOptions = ServerOptions & {
  readonly command: readonly string[]
  readonly cwd: string | null
  readonly env: Readonly<Record<string, string>>
  readonly stderrLineBytes: number
  /** One clean line of its stderr. */
  readonly words: (line: string) => void
}

/** A server, whatever its processes do. */
export type Upstream = {
  /** The running process, or null. */
  readonly connection: () => Connection | null
  /** The running process; waits for a start that is under way or due within a second, at most `waitMs`.
   *  Null: it is down. */
  readonly reach: (waitMs: number) => Promise<Connection | null>
  readonly stop: () => Promise<void>
}

/** The wait before the first restart; it doubles with each that fails. */
const FIRST_WAIT_MS = 200
const MAX_WAIT_MS = 60_000
const MAX_DOUBLINGS = 16
/** Only a process that ran for so long takes the growth of the waits back. */
const SUSTAINED_MS = 60_000
/** A restart that is due so soon is waited for. */
const PATIENCE_MS = 1000

type Life = {
  state: 'starting' | 'up' | 'down' | 'stopped'
  child: Child | null
  connection: Connection | null
  /** Resolves with the end of the start that is under way or comes next. */
  next: PromiseWithResolvers<Connection | null>
  dueAt: number
  failures: number
  timer: NodeJS.Timeout | undefined
  mode: Mode
  /** A probe killed it once since it last ran: then the respawn is at once, but only then. */
  probed: boolean
  lastId: number
}

/** Starts the server and keeps it running until `stop`. */
export function startUpstream(options: UpstreamOptions): Upstream {
  const life: Life = {
    state: 'starting',
    child: null,
    connection: null,
    next: Promise.withResolvers(),
    dueAt: 0,
    failures: 0,
    timer: undefined,
    mode: options.era === 'auto' ? 'probe' : options.era,
    probed: false,
    lastId: 0,
  }
  void begin(life, options)
  return {
    connection: () => life.connection,
    async reach(waitMs) {
      if (life.connection !== null) return life.connection
      if (life.state === 'stopped') return null
      if (life.state === 'down' && life.dueAt - performance.now() > PATIENCE_MS) return null
      return within(life.next.promise, waitMs)
    },
    async stop() {
      life.state = 'stopped'
      clearTimeout(life.timer)
      life.next.resolve(null)
      await life.child?.stop()
    },
  }
}

/** One start: a process is spawned and greeted. Never rejects. */
async function begin(life: Life, options: UpstreamOptions): Promise<void> {
  life.state = 'starting'
  const launched = launch(life, options)
  const { mode } = life
  const { client, capabilities, probeMs: waitMs } = options
  const greeting = await greet(launched.wire, mode, { client, capabilities, waitMs })
  if (stopped(life)) return
  if (greeting.kind === 'hello' && !launched.ended()) {
    settle(life, options, connectionOf(greeting.hello, launched.wire, options))
    return
  }
  // A process that failed to greet us is of no use; its end brings the next start.
  launched.fail(greeting.kind === 'failed' ? greeting : null)
}

/** Read anew after each wait: `stop` may have come meanwhile. */
const stopped = (life: Life): boolean => life.state === 'stopped'

function settle(life: Life, options: UpstreamOptions, connection: Connection): void {
  life.state = 'up'
  life.connection = connection
  life.probed = false
  // What it speaks is known now; only a failed start makes us ask again.
  if (options.era === 'auto') life.mode = connection.hop.era === 'legacy' ? 'legacy' : 'probe'
  life.timer = setTimeout(() => {
    life.failures = 0
  }, SUSTAINED_MS).unref()
  options.ready(connection)
  life.next.resolve(connection)
}

type Launched = {
  readonly wire: Wire
  readonly ended: () => boolean
  readonly fail: (greeting: Extract<Greeting, { kind: 'failed' }> | null) => void
}

function launch(life: Life, options: UpstreamOptions): Launched {
  let end: End | null = null
  let greeting: Extract<Greeting, { kind: 'failed' }> | null = null
  let greeted = false
  const over = (): void => {
    if (end === null || !greeted || stopped(life)) return
    retire(life, options, { end, greeting })
  }
  const child = startChild(
    {
      command: options.command,
      cwd: options.cwd,
      env: options.env,
      lineBytes: options.limits.bytes,
      stderrLineBytes: options.stderrLineBytes,
    },
    {
      line: (line) => spoken.line(line),
      tooLong: (bytes, edges) => spoken.tooLong(bytes, edges),
      words: options.words,
      gone(how) {
        end = how
        greeted ||= life.connection !== null
        life.connection = null
        spoken.gone()
        over()
      },
    },
  )
  life.child = child
  const spoken = wire({
    child,
    limits: options.limits,
    nextId: () => ++life.lastId,
    notified: options.notified,
  })
  return {
    wire: spoken,
    ended: () => end !== null,
    fail(how) {
      greeting = how
      greeted = true
      child.kill()
      over()
    },
  }
}

type Death = {
  readonly end: End
  readonly greeting: Extract<Greeting, { kind: 'failed' }> | null
}

/** After the end of a process: when the next one starts, and how it will be greeted. */
function retire(life: Life, options: UpstreamOptions, { end, greeting }: Death): void {
  const wasUp = life.state === 'up'
  clearTimeout(life.timer)
  if (options.era === 'auto' && !wasUp) {
    const killed = life.mode === 'probe' && greeting?.died === true && end.kind === 'exited'
    // Some legacy servers end at a request before initialize; others just crash: so it alternates.
    life.mode = killed ? 'legacy' : 'probe'
    if (killed && !life.probed) {
      life.probed = true
      void begin(life, options)
      return
    }
  }
  if (greeting === null || greeting.died) options.failed(whyEnded(end))
  else options.failed(greeting.why, greeting.silent)
  life.state = 'down'
  life.next.resolve(null)
  life.next = Promise.withResolvers()
  const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** life.failures)
  life.failures = Math.min(life.failures + 1, MAX_DOUBLINGS)
  life.dueAt = performance.now() + wait
  life.timer = setTimeout(() => void begin(life, options), wait)
}

function whyEnded(end: End): string {
  if (end.kind === 'not_started') return end.why
  return end.signal === null
    ? `it ended with status ${end.code}`
    : `it was ended by signal ${end.signal}`
}

/** The connection over this conversation, of which the server said this. */
export function connectionOf(
  hello: Hello,
  spoken: Wire,
  options: Pick<ServerOptions, 'client'>,
): Connection {
  const hop: Hop = { era: hello.era, version: hello.version, client: options.client }
  return {
    hello,
    wire: spoken,
    hop,
    ask(method, params, waitMs) {
      const { promise, resolve } = Promise.withResolvers<Heard | Timeout>()
      const timer = setTimeout(() => {
        exchange?.cancel('timeout')
        exchange?.forget()
        resolve({ kind: 'timeout' })
      }, waitMs)
      const heard = (said: Heard): void => {
        clearTimeout(timer)
        resolve(said)
      }
      // All that is asked here are lists.
      const waiter = { heard, byItems: true }
      const exchange = spoken.request(method, () => outgoing(params, hop, null), waiter)
      if (exchange === null) heard({ kind: 'gone', handed: false })
      return promise
    },
  }
}

/** The value, or null when it takes longer. */
export async function within<T>(promise: Promise<T | null>, waitMs: number): Promise<T | null> {
  const { promise: late, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(() => resolve(null), waitMs)
  const first = await Promise.race([promise, late])
  clearTimeout(timer)
  return first
}
