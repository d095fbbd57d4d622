// Starts the real gateway as a child process in front of scripted servers, and looks at it from outside.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

import { verifier } from '../../src/ledger/chain.ts'
import type { Entry } from '../../src/ledger/entry.ts'
import { askTools } from '../servers/ask-tools.ts'
import { CASE_TOOLS } from '../servers/case-tools.ts'
import { COMPILED } from '../servers/compiled.ts'
import { TOOLS } from '../servers/scripted-tools.ts'
import { commandLine, isRunning } from './proc.ts'
import { type HttpClient, type HttpWire, httpWire } from './http-wire.ts'
import {
  type Bag,
  type Era,
  eventually,
  type Front,
  type Message,
  PATIENCE,
  type Wire,
  wire,
} from './wire.ts'

/** Full figures of the cases instead of the scaled ones. */
export const LONG: boolean = process.env['ECLUSA_LONG'] === '1'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = join(ROOT, 'src/cli/main.ts')
const SERVER = join(ROOT, 'test/servers/scripted.ts')
/** Bytes of stderr that are kept. */
const MAX_ERRORS = 4 * 1024 * 1024

/** One scripted server. `flags` are those of scripted.ts, `argv` what its tool argv shows; `wrap` is a
 *  program that gets the server's command as its arguments, `command` replaces the server by another
 *  program; `more` are further keys of the upstream's configuration. */
export type Upstream = {
  readonly flags?: readonly string[]
  readonly argv?: readonly string[]
  readonly wrap?: readonly string[]
  readonly command?: readonly string[]
  readonly more?: Bag
}

/** How the gateway is started. Without `allow`, every scripted tool of every upstream is allowed by its
 *  exact name, and every resource and prompt. Without `upstreams`, there is one, `up`. */
export type Setup = {
  readonly era: Era
  /** How the client comes in; without it over stdio. Over HTTP whoever sends no token is `agent`. */
  readonly front?: Front
  /** What the scripted servers speak; without it, what the client speaks. */
  readonly servers?: Era
  readonly upstreams?: Readonly<Record<string, Upstream>>
  readonly allow?: readonly string[]
  readonly tools?: Bag
  readonly profile?: Bag
  readonly config?: Bag
  readonly env?: Readonly<Record<string, string>>
  /** False: a legacy client is not initialised. */
  readonly handshake?: boolean
  /** The legacy revision to agree on. */
  readonly version?: string
  /** What a legacy client declares. */
  readonly capabilities?: Bag
  /** Flags of the short form: there is no file, and the one upstream's command stands at the end. */
  readonly short?: readonly string[]
  /** Folder of an earlier gate, to start again on its state. */
  readonly folder?: string
}

export type Exit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** A running gateway with one client. Everything it started is ended after the test. */
export type Gate = Wire & {
  readonly pid: number
  readonly child: ChildProcess
  /** Holds the configuration, the state directory `state` and the traces. Also the servers' folder. */
  readonly folder: string
  readonly exit: Promise<Exit>
  /** What came on stderr so far. */
  errors(): string
  /** Messages that this upstream received, oldest first, over all of its starts. */
  trace(upstream?: string): readonly Message[]
  /** Each start of this upstream. */
  starts(upstream?: string): readonly { readonly pid: number; readonly atMs: number }[]
  /** The records, after the whole chain was verified. */
  audit(): readonly Entry[]
  /** The first record of which `is` holds. */
  record(what: string, is: (entry: Entry) => boolean, withinMs?: number): Promise<Entry>
  /** Over stdio ends stdin, over HTTP sends SIGTERM, and waits for the exit. */
  stop(withinMs?: number): Promise<Exit>
  /** Another client over HTTP. */
  client(more?: Partial<HttpClient>): HttpWire
  /** The first client over HTTP; there is none over stdio. */
  readonly http: HttpWire
}

/** Starts a gateway and, in the legacy era, shakes hands. */
export async function startGate(t: TestContext, setup: Setup): Promise<Gate> {
  const folder = setup.folder ?? mkdtempSync(join(tmpdir(), 'eclusa-case-'))
  mkdirSync(folder, { recursive: true })
  const file = join(folder, 'eclusa.yaml')
  const config = configOf(setup, folder)
  writeFileSync(file, JSON.stringify(config, null, 1))
  const isHttp = setup.front === 'http'
  const child = spawn(process.execPath, [MAIN, ...argumentsOf(setup, folder, file)], {
    cwd: folder,
    // Its own group, so that nothing it starts without one outlives the test.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...plainEnvironment(), ECLUSA_STATE: join(folder, 'state'), ...setup.env },
  })
  const seen = processOf(child, folder)
  t.after(() => clean(seen, Object.keys(upstreamsOf(setup)), setup.folder === undefined))
  const gate = isHttp ? await overHttp(seen, setup) : overStdio(seen, setup)
  t.after(() => isHttp && gate.http.vanish())
  await ready(gate, setup)
  return gate
}

function argumentsOf(setup: Setup, folder: string, file: string): readonly string[] {
  if (setup.front === 'http') return ['serve', '--config', file, '--port', '0']
  if (setup.short === undefined) return ['stdio', '--config', file]
  return [
    'stdio',
    ...setup.short,
    '--',
    ...scripted(folder, 'up', upstreamsOf(setup)['up'] ?? {}, setup.servers ?? setup.era),
  ]
}

async function ready(gate: Gate, setup: Setup): Promise<void> {
  if (setup.handshake === false) return
  const died = gate.exit.then(({ code }) =>
    assert.fail(`the gateway ended with ${code} at its start: ${gate.errors()}`),
  )
  died.catch(() => undefined)
  await Promise.race([died, greet(gate, setup)])
  if (setup.front === 'http' && gate.era === 'legacy') await gate.http.listen()
}

/** Says hello: a handshake, or a modern request that shows that the other side is there. */
export async function greet(
  gate: Wire,
  { version = '2025-11-25', capabilities = {} }: Partial<Setup> = {},
): Promise<void> {
  if (gate.era === 'modern') {
    assert.ok((await gate.request('server/discover')).result, 'server/discover failed')
    return
  }
  const greeting = await gate.request('initialize', {
    protocolVersion: version,
    capabilities,
    clientInfo: { name: 't', version: '1' },
  })
  assert.equal(greeting.result?.['protocolVersion'], version, JSON.stringify(greeting))
  await gate.post({ jsonrpc: '2.0', method: 'notifications/initialized' })
}

function plainEnvironment(): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of ['PATH', 'HOME', 'TMPDIR', 'NODE_COMPILE_CACHE']) {
    const value = process.env[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

const upstreamsOf = (setup: Setup): Readonly<Record<string, Upstream>> =>
  setup.upstreams ?? { up: {} }

const traceFile = (folder: string, name: string): string => join(folder, `${name}.trace`)
const startsFile = (folder: string, name: string): string => join(folder, `${name}.starts`)

/** The command of a scripted server that tells what it receives. */
const scripted = (folder: string, name: string, upstream: Upstream, era: Era): string[] => [
  ...(upstream.wrap ?? []),
  process.execPath,
  SERVER,
  '--trace',
  traceFile(folder, name),
  '--starts',
  startsFile(folder, name),
  ...(era === 'legacy' ? ['--era', 'legacy'] : []),
  ...(upstream.flags ?? []),
  ...(upstream.argv === undefined ? [] : ['--', ...upstream.argv]),
]

/** The names of all scripted tools. */
const ALL: readonly string[] = [
  ...TOOLS,
  ...CASE_TOOLS,
  ...askTools({ listeners: new Map(), declared: () => null }),
].map(({ definition }) => String(definition['name']))

function configOf(setup: Setup, folder: string): Bag {
  const upstreams: Record<string, Bag> = {}
  const names = Object.keys(upstreamsOf(setup))
  for (const [name, one] of Object.entries(upstreamsOf(setup))) {
    const command = one.command ?? scripted(folder, name, one, setup.servers ?? setup.era)
    // A command is meant literally: only `more` may ask for a substitution.
    const literal = command.map((part) => part.replaceAll(/\$\{[^}]*\}/g, (found) => `$${found}`))
    const env = { ...COMPILED, ...(one.more?.['env'] as Bag | undefined) }
    const isFar = one.more?.['url'] !== undefined
    upstreams[name] = { command: literal, ...one.more, ...(isFar ? {} : { env }) }
  }
  const every = names.flatMap((name) => ALL.map((tool) => `${name}/${tool}`))
  return {
    version: 2,
    ...(setup.front === 'http' ? { anonymous: 'agent' } : {}),
    upstreams,
    ...(setup.tools === undefined ? {} : { tools: setup.tools }),
    profiles: {
      agent: {
        allow: setup.allow ?? every,
        resources: ['notes://*'],
        prompts: ['*'],
        ...setup.profile,
      },
    },
    ...setup.config,
  }
}

/** A gateway seen from outside, without its conversation. */
type Seen = Omit<Gate, keyof Wire | 'stop' | 'client' | 'http'>

function processOf(child: ChildProcess, folder: string): Seen {
  const { stdin, stdout, stderr, pid } = child
  assert.ok(stdin !== null && stdout !== null && stderr !== null && pid !== undefined)
  // After the gateway is gone, writing to it fails: the test looks at the exit instead.
  stdin.on('error', () => undefined)
  let errors = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < MAX_ERRORS) errors += text
  })
  const exit = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
  const audit = (): readonly Entry[] => readAudit(join(folder, 'state'))
  return {
    pid,
    child,
    folder,
    exit,
    errors: () => errors,
    trace: (name = 'up') =>
      linesOf(traceFile(folder, name)).map((line) => JSON.parse(line) as Message),
    starts: (name = 'up') => startsOf(folder, name),
    audit,
    record: (what, is, withinMs = PATIENCE) =>
      eventually(`the record of ${what}`, () => audit().find((entry) => is(entry)), withinMs),
  }
}

function overStdio(seen: Seen, setup: Setup): Gate {
  const { stdin, stdout } = seen.child
  assert.ok(stdin !== null && stdout !== null)
  return {
    ...seen,
    ...wire(setup.era, { input: stdin, output: stdout }),
    async stop(withinMs = PATIENCE) {
      stdin.end()
      return within('the exit of the gateway', seen.exit, withinMs)
    },
    client: () => assert.fail('there is one client only over stdio'),
    get http(): HttpWire {
      return assert.fail('there is no HTTP over stdio')
    },
  }
}

const LISTENS = /serving http:\/\/127\.0\.0\.1:(\d+)\//

async function overHttp(seen: Seen, setup: Setup): Promise<Gate> {
  let isOver = false
  void seen.exit.then(() => (isOver = true))
  const found = await eventually('it listens', () => LISTENS.exec(seen.errors()) ?? isOver)
  const port = found === true ? 0 : Number(found[1])
  const client: Gate['client'] = (more = {}) => httpWire({ era: setup.era, port, ...more })
  const http = client()
  return {
    ...seen,
    ...http,
    client,
    http,
    async stop(withinMs = PATIENCE) {
      seen.child.kill('SIGTERM')
      return within('the exit of the gateway', seen.exit, withinMs)
    },
  }
}

/** `promise`, or a failure that names `what` when it takes longer. */
export async function within<T>(what: string, promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms: ${what}`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Resolves when the gateway has said this on stderr, which is a pipe of its own: what comes on stdout, and the
 *  exit, may be seen before it. */
export const says = async (gate: Pick<Gate, 'errors'>, words: RegExp): Promise<void> => {
  await eventually(`it says ${words.source}`, () => words.test(gate.errors()))
}

const startsOf = (folder: string, name: string): { pid: number; atMs: number }[] =>
  linesOf(startsFile(folder, name)).map((line) => {
    const [pid, atMs] = line.split(' ').map(Number)
    return { pid: pid ?? 0, atMs: atMs ?? 0 }
  })

/** Whole lines only: the last one may still be on its way. */
function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** The records of a state directory, oldest first; fails at the first one that the chain does not hold. */
export function readAudit(state: string): readonly Entry[] {
  const chain = verifier()
  return linesOf(join(state, 'audit.jsonl')).map((line, at) => {
    const problem = chain.push(line)
    assert.equal(problem, null, `line ${at + 1} of the log: ${JSON.stringify(problem)}`)
    return JSON.parse(line) as Entry
  })
}

/** Every file of the state directory in this folder, whatever it is. */
export const stateFiles = (folder: string): readonly string[] =>
  readdirSync(join(folder, 'state'), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))

async function clean(gate: Seen, upstreams: readonly string[], remove: boolean): Promise<void> {
  if (isRunning(gate.pid)) {
    process.kill(-gate.pid, 'SIGKILL')
    await gate.exit
  }
  const ours = upstreams.flatMap((name) => gate.starts(name)).map(({ pid }) => pid)
  for (const pid of ours) endScripted(pid)
  if (remove) rmSync(gate.folder, { recursive: true, force: true, maxRetries: 5 })
}

// The number may be another process's by now: only a scripted server is ended.
function endScripted(pid: number): void {
  if (isRunning(pid) && commandLine(pid).includes(SERVER)) process.kill(pid, 'SIGKILL')
}
