// The soak: many clients of both eras, a real `serve`, servers that crash, and what all of it came to.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { mint } from '../../src/identity/tokens.ts'
import { addClientIn } from '../../src/store/reader.ts'
import { children, cpuSeconds, descriptors, isRunning, peakRss, rss } from '../cases/proc.ts'
import { type Account, account, readDone, readOutcomes } from './account.ts'
import { COMPILED } from '../servers/compiled.ts'
import { liveHeap } from './heap.ts'
import { runClient, type Work } from './load.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const MAIN = join(ROOT, 'src/cli/main.ts')
const SERVER = join(ROOT, 'test/soak/counting.ts')
/** Characters of stderr that are kept. */
const MAX_ERRORS = 1024 * 1024
/** Samples of memory over one run. */
const SAMPLES = 200

/** `calls` in all by so many `clients`, half of them in each era; each of `servers` dies after every
 *  `crashEvery` calls it executed. */
export type Soak = {
  readonly calls: number
  readonly clients: number
  readonly servers: number
  readonly crashEvery: number
  readonly seed: number
  readonly environment?: Readonly<Record<string, string>>
  readonly nodeFlags?: readonly string[]
}

/** Memory and descriptors of the gateway when so many calls had been sent. */
export type Sample = { readonly calls: number; readonly rss: number; readonly descriptors: number }

/** What one run showed. `slope`: bytes of memory that 10,000 calls add, after a fifth of the calls;
 *  descriptors `before` the first client and `after` the last. */
export type Figures = {
  readonly account: Account
  readonly samples: readonly Sample[]
  readonly slope: number
  readonly peak: number
  /** Bytes alive in the main heap after a collection, once a tenth of the calls is done and at the end. */
  readonly alive: readonly [warm: number, end: number]
  /** Microseconds of the gateway's processor time a call. */
  readonly cpuUs: number
  readonly before: number
  readonly after: number
  readonly orphans: number
  readonly exit: number | null
  readonly verified: boolean
  readonly verdict: string
  readonly errors: string
  readonly ms: number
  readonly cuts: number
  readonly cancels: number
  readonly sessions: number
}

type Gateway = {
  readonly child: ChildProcess
  readonly pid: number
  readonly errors: () => string
  readonly exit: Promise<number | null>
  readonly port: number
}

/** One whole run in a directory of its own, which is gone afterwards. */
export async function soak(options: Soak): Promise<Figures> {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-soak-'))
  let gateway: Gateway | null = null
  const stops: (() => void)[] = []
  try {
    const names = Array.from({ length: options.servers }, (_, at) => `u${at}`)
    const servers = await Promise.all(names.map((name, at) => serverOf({ name, at, dir }, options)))
    stops.push(...servers.map(({ stop }) => stop))
    writeFileSync(join(dir, 'eclusa.yaml'), JSON.stringify(configOf(names, servers)))
    gateway = await start(dir, options)
    return await measured(gateway, { dir, names, options })
  } finally {
    for (const stop of stops) stop()
    if (gateway !== null && isRunning(gateway.pid)) process.kill(-gateway.pid, 'SIGKILL')
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 })
  }
}

type Ground = { readonly dir: string; readonly names: readonly string[]; readonly options: Soak }

async function measured(gateway: Gateway, ground: Ground): Promise<Figures> {
  const { dir, names, options } = ground
  const startMs = performance.now()
  const { pid } = gateway
  const startCpu = cpuSeconds(pid)
  const before = descriptors(pid).size
  const work: Work = {
    port: gateway.port,
    upstreams: names,
    cases: new Map(),
    left: options.calls,
    sent: 0,
    cuts: 0,
    cancels: 0,
    sessions: 0,
  }
  const samples: Sample[] = []
  const watch = watching(gateway, { work, samples, every: options.calls / SAMPLES })
  const warm = warmHeap(gateway, work, options)
  await Promise.race([load(dir, work, options), watch.died])
  watch.stop()
  const ms = performance.now() - startMs
  const cpuUs = ((cpuSeconds(pid) - startCpu) * 1e6) / work.sent
  const after = await settledDescriptors(pid, before)
  const alive = [await warm, await liveHeap(gateway.errors())] as const
  const peak = peakRss(pid)
  const kids = children(pid)
  gateway.child.kill('SIGTERM')
  const exit = await gateway.exit
  const orphans = kids.filter(isRunning).length
  const verdict = await verify(dir)
  const done = readDone(names.map((name) => join(dir, `${name}.log`)))
  const outcomes = await readOutcomes(join(dir, 'state', 'audit.jsonl'))
  const { cuts, cancels, sessions } = work
  return {
    account: account(work.cases.values(), done, outcomes),
    samples,
    slope: slopeOf(samples.filter(({ calls }) => calls >= options.calls / 5)) * 10_000,
    ...{ peak, alive, cpuUs, before, after, orphans, exit, ms, cuts, cancels, sessions },
    verified: verdict.code === 0,
    verdict: verdict.text,
    errors: gateway.errors(),
  }
}

/** One server as the configuration names it. */
type Served = { readonly entry: object; readonly stop: () => void }

/** Half of the servers in each era; of each era every second one over HTTP, begun anew when it dies. */
async function serverOf(
  { name, at, dir }: { readonly name: string; readonly at: number; readonly dir: string },
  { crashEvery }: Soak,
): Promise<Served> {
  const era = at % 2 === 0 ? 'modern' : 'legacy'
  const log = join(dir, `${name}.log`)
  writeFileSync(log, '')
  const flags = [SERVER, '--era', era, '--log', log, '--crash-every', String(crashEvery)]
  if (at % 4 < 2) {
    const command = [process.execPath, ...flags]
    return { entry: { command, env: COMPILED, era, share: true }, stop: () => undefined }
  }
  const port = await freePort()
  let child: ChildProcess | null = null
  let isOver = false
  const begin = (): void => {
    const environment = { ...process.env, ...COMPILED }
    const begun = spawn(process.execPath, [...flags, '--port', String(port)], {
      stdio: 'ignore',
      env: environment,
    })
    begun.once('exit', () => {
      if (!isOver) begin()
    })
    child = begun
  }
  begin()
  const stop = (): void => {
    isOver = true
    child?.kill('SIGKILL')
  }
  return { entry: { url: `http://127.0.0.1:${port}/mcp`, era, share: true }, stop }
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((ready) => void server.listen(0, '127.0.0.1', ready))
  const address = server.address()
  await new Promise((closed) => void server.close(closed))
  return typeof address === 'object' && address !== null ? address.port : 0
}

function configOf(names: readonly string[], servers: readonly Served[]): object {
  const upstreams = names.map((name, at) => [name, servers[at]?.entry] as const)
  const tools = names.flatMap((name) => [
    [`${name}/get`, { effect: 'read' }] as const,
    [`${name}/put`, { effect: 'write', key: { at: '/request_id' } }] as const,
  ])
  return {
    version: 2,
    listen: '127.0.0.1:0',
    upstreams: Object.fromEntries(upstreams),
    tools: Object.fromEntries(tools),
    profiles: { soak: { allow: tools.map(([name]) => name) } },
  }
}

async function start(dir: string, { environment = {}, nodeFlags = [] }: Soak): Promise<Gateway> {
  const file = join(dir, 'eclusa.yaml')
  const flags = ['--inspect=127.0.0.1:0', ...nodeFlags]
  const child = spawn(process.execPath, [...flags, MAIN, 'serve', '--config', file], {
    cwd: dir,
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...environment, ECLUSA_STATE: join(dir, 'state') },
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (errors.length < MAX_ERRORS) errors += text
  })
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  let hasEnded = false
  void exit.then(() => (hasEnded = true))
  for (;;) {
    const [, port] = /serving http:\/\/127\.0\.0\.1:(\d+)\//.exec(errors) ?? []
    if (port !== undefined && child.pid !== undefined) {
      return { child, pid: child.pid, errors: () => errors, exit, port: Number(port) }
    }
    if (hasEnded) throw new Error(`the gateway ended at its start: ${errors}`)
    await sleep(20)
  }
}

async function warmHeap(gateway: Gateway, work: Work, { calls }: Soak): Promise<number> {
  while (work.sent < calls / 10 && isRunning(gateway.pid)) await sleep(50)
  return liveHeap(gateway.errors())
}

async function load(dir: string, work: Work, { clients, seed }: Soak): Promise<void> {
  const all = Array.from({ length: clients }, (_, at) => {
    const { token, digest } = mint()
    const name = `c${at}`
    const rest = { person: false, attributes: {}, limit: null, expiresUs: null }
    const added = addClientIn(join(dir, 'state'), { name, profile: 'soak', digest, ...rest })
    if (added !== 'added') throw new Error(`${name} is ${added}`)
    const era = at % 2 === 0 ? ('modern' as const) : ('legacy' as const)
    return { name, token, era, seed: seed + at }
  })
  // A table of clients is read again at least so often.
  await sleep(1_500)
  await Promise.all(all.map((one) => runClient(work, one)))
}

type Watching = { readonly died: Promise<never>; readonly stop: () => void }

/** Samples the gateway as calls go by. `died` rejects when it ends before its time. */
function watching(
  { pid, exit, errors }: Gateway,
  to: { readonly work: Work; readonly samples: Sample[]; readonly every: number },
): Watching {
  let isOver = false
  const timer = setInterval(() => {
    const { work, samples, every } = to
    if (work.sent < samples.length * every || !isRunning(pid)) return
    samples.push({ calls: work.sent, rss: rss(pid), descriptors: descriptors(pid).size })
  }, 20)
  const died = exit.then((code) => {
    if (!isOver) throw new Error(`the gateway ended with ${code}: ${errors().slice(-4_000)}`)
    return new Promise<never>(() => undefined)
  })
  died.catch(() => undefined)
  return {
    died,
    stop() {
      isOver = true
      clearInterval(timer)
    },
  }
}

/** Descriptors once nobody is connected any more, or as many as there still are. */
async function settledDescriptors(pid: number, before: number): Promise<number> {
  for (let tries = 0; tries < 1_000 && descriptors(pid).size > before; tries++) await sleep(50)
  return descriptors(pid).size
}

async function verify(
  dir: string,
): Promise<{ readonly code: number | null; readonly text: string }> {
  const child = spawn(process.execPath, [MAIN, 'audit', 'verify', join(dir, 'state')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, text }
}

/** The slope of the line of least squares through memory over calls: bytes a call. */
export function slopeOf(samples: readonly Sample[]): number {
  const mean = (of: (one: Sample) => number): number =>
    samples.reduce((sum, one) => sum + of(one), 0) / samples.length
  const calls = mean((one) => one.calls)
  const bytes = mean((one) => one.rss)
  const across = samples.reduce((sum, one) => sum + (one.calls - calls) * (one.rss - bytes), 0)
  const along = samples.reduce((sum, one) => sum + (one.calls - calls) ** 2, 0)
  return across / along
}

/** Lines of stderr that tell of a fault of the gateway itself. */
export const faultsIn = (errors: string): readonly string[] =>
  errors.split('\n').filter((line) => FAULT.test(line))

const FAULT = /unhandled|uncaught|broke|internal|^\s+at |Warning/i
