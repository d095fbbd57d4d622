// A session in front of real servers, a real policy and a real ledger, driven line by line.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

import type { Client } from '../../../src/call.ts'
import { sha256 } from '../../../src/canonical.ts'
import type { Doors } from '../../../src/gateway.ts'
import { turns } from '../../../src/cli/turns.ts'
import type { Channel, How } from '../../../src/mcp/front/channel.ts'
import { type Front, front, type FrontOptions } from '../../../src/mcp/front/front.ts'
import { type RunningUpstreams, startUpstreams } from '../../../src/mcp/upstream/upstreams.ts'
import { loadConfig } from '../../../src/policy/config.ts'
import { declared } from '../../../src/policy/decide.ts'
import type { Limits } from '../../../src/policy/limits.ts'
import { openSqlite } from '../../../src/store/sqlite.ts'
import { COMPILED } from '../../servers/compiled.ts'

export const SERVER: string = fileURLToPath(new URL('../../servers/scripted.ts', import.meta.url))

/** `$META26` of the cases. */
export const META26: Readonly<Record<string, unknown>> = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export type Heard = {
  readonly id?: string | number | null
  readonly method?: string
  readonly params?: Record<string, unknown>
  readonly result?: Record<string, unknown>
  readonly error?: { code: number; message: string; data?: Record<string, unknown> }
}

export type Setup = {
  /** Flags of scripted.ts by upstream. */
  readonly upstreams?: Readonly<Record<string, readonly string[]>>
  /** The profile; `allow` is every tool by default. */
  readonly profile?: Readonly<Record<string, unknown>>
  readonly tools?: Readonly<Record<string, unknown>>
  readonly calls?: number
  readonly ids?: FrontOptions['ids']
  readonly eras?: FrontOptions['eras']
  /** Makes the doors of the hall worse, to see the session meet a fault. */
  readonly coat?: (doors: Doors) => Doors
}

/** What came out on one channel. `done`: how often it was told that it is done. */
export type Post = Channel & {
  heard(): readonly (Heard & { readonly how: How })[]
  dones(): number
}

export type Desk = {
  readonly front: Front
  /** Gives one line: text as it is, anything else as JSON. Without a channel, on the session's own. */
  say(line: unknown, channel?: Channel): void
  /** A channel of its own, as one POST has. */
  channel(): Post
  /** All messages so far, parsed, and as they were written. */
  heard(): readonly Heard[]
  lines(): readonly string[]
  /** Waits for the first message of which `is` holds. */
  wait(is: (message: Heard) => boolean): Promise<Heard>
  /** Waits until `is` holds. */
  until(what: string, is: () => boolean): Promise<void>
  /** Sends a modern request and waits for its response. */
  modern(method: string, params?: object, meta?: object): Promise<Heard>
  /** Sends a request as it is and waits for its response. */
  legacy(method: string, params?: object): Promise<Heard>
  greet(version?: string): Promise<Heard>
  audit(): readonly Record<string, unknown>[]
  /** What the operator was told. */
  told(): readonly string[]
}

const PATIENCE_MS = 60_000

/** Opens a session. What it starts is ended with the test. */
export async function open(t: TestContext, setup: Setup = {}): Promise<Desk> {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-front-'))
  const said: string[] = []
  const broken: unknown[] = []
  const world = await compose(dir, setup, { said, broken })
  const { doors, upstreams, limits, client } = world
  const written: string[] = []
  const waiting = new Set<() => void>()
  const write = (message: string): true => {
    written.push(message)
    for (const wake of waiting) wake()
    return true
  }
  const session = front({
    client,
    doors: setup.coat?.(doors) ?? doors,
    transport: 'stdio',
    ids: setup.ids ?? 'session',
    eras: setup.eras ?? 'both',
    limits: { ...limits, calls: setup.calls ?? limits.calls },
    version: '0.0.0',
    write,
    say: (line) => void said.push(line),
    onReady: () => undefined,
  })
  upstreams.onUpdated((upstream, params) => session.updated(upstream, params, null))
  upstreams.onChange((_upstream, kind) => session.changed(kind))
  upstreams.onLog((_upstream, params) => session.logged(params, null))
  t.after(async () => {
    session.abandon()
    await upstreams.stop()
    await session.drain()
    await doors.store.stop()
    rmSync(dir, { recursive: true, force: true })
    if (setup.coat === undefined) assert.deepEqual(broken, [])
  })
  return driver(session, { written, waiting, said, dir, write })
}

/** All that a session stands on. */
export type World = {
  readonly doors: Doors
  readonly upstreams: RunningUpstreams
  readonly limits: Limits
  readonly client: Client
}

/** A real policy, ledger and servers in `dir`. */
export async function compose(
  dir: string,
  setup: Setup,
  heard: { readonly said: string[]; readonly broken: unknown[] },
): Promise<World> {
  const text = JSON.stringify(configOf(setup))
  const lookup = { env: () => undefined, file: () => undefined }
  const loaded = await loadConfig({ file: 'eclusa.json', text }, null, lookup)
  assert.ok(loaded.kind === 'config', JSON.stringify(loaded))
  const { policy, upstreams: configs, limits } = loaded.config
  const say = (line: string): void => void heard.said.push(line)
  const store = await openSqlite({
    dir: join(dir, 'state'),
    create: true,
    policy,
    limits,
    minFreeBytes: 0,
    say,
    onFatal: (fault) => heard.broken.push(fault),
  })
  const named = { name: 'eclusa', version: '0' }
  const { env: environment } = process
  const upstreams = startUpstreams(configs, {
    limits,
    client: named,
    say,
    environment,
    principals: 'one',
  })
  let count = 0
  const doors: Doors = {
    store,
    upstreams,
    policy: () => policy,
    clock: { nowUs: () => Date.now() * 1000 },
    random: () => sha256(`${dir} ${++count}`).slice(0, 32),
    broken: (error) => heard.broken.push(error),
    turn: turns(),
    views: new Map(),
  }
  const client = declared(policy, null, {})
  assert.ok(!('kind' in client))
  return { doors, upstreams, limits, client }
}

function driver(
  session: Front,
  seen: {
    readonly written: readonly string[]
    readonly waiting: Set<() => void>
    readonly said: readonly string[]
    readonly dir: string
    readonly write: (message: string) => true
  },
): Desk {
  let id = 1000
  const heard = (): readonly Heard[] => seen.written.map((line) => JSON.parse(line) as Heard)
  const own: Channel = { write: seen.write, done: () => undefined }
  const say = (line: unknown, channel: Channel = own): void =>
    session.receive(Buffer.from(typeof line === 'string' ? line : JSON.stringify(line)), channel)
  const until = async (what: string, is: () => boolean): Promise<void> => {
    const end = Date.now() + PATIENCE_MS
    while (!is()) {
      assert.ok(Date.now() < end, `not within ${PATIENCE_MS} ms: ${what}`)
      await pause(seen.waiting)
    }
  }
  const wait = async (is: (message: Heard) => boolean): Promise<Heard> => {
    await until('a message', () => heard().some(is))
    const found = heard().find(is)
    assert.ok(found !== undefined)
    return found
  }
  const ask = (method: string, params: object | undefined): Promise<Heard> => {
    const mine = ++id
    say({ jsonrpc: '2.0', id: mine, method, ...(params === undefined ? {} : { params }) })
    return wait((message) => message.id === mine && message.method === undefined)
  }
  return {
    front: session,
    say,
    channel: () => post(seen.waiting),
    heard,
    lines: () => seen.written,
    wait,
    until,
    modern: (method, params = {}, meta = {}) =>
      ask(method, { ...params, _meta: { ...META26, ...meta } }),
    legacy: ask,
    async greet(version = '2025-11-25') {
      const greeting = await ask('initialize', {
        protocolVersion: version,
        capabilities: {},
        clientInfo: { name: 't', version: '1' },
      })
      say({ jsonrpc: '2.0', method: 'notifications/initialized' })
      return greeting
    },
    audit: () =>
      readFileSync(join(seen.dir, 'state/audit.jsonl'), 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    told: () => seen.said,
  }
}

function post(waiting: Set<() => void>): Post {
  const heard: (Heard & { readonly how: How })[] = []
  let dones = 0
  return {
    write(message, how) {
      heard.push({ ...(JSON.parse(message) as Heard), how })
      for (const wake of waiting) wake()
      return true
    },
    done() {
      dones++
      for (const wake of waiting) wake()
    },
    heard: () => heard,
    dones: () => dones,
  }
}

/** Until the next message, or a moment. */
const pause = (waiting: Set<() => void>): Promise<void> =>
  new Promise((resolve) => {
    const wake = (): void => {
      waiting.delete(wake)
      clearTimeout(timer)
      resolve()
    }
    const timer = setTimeout(wake, 20)
    waiting.add(wake)
  })

function configOf({ upstreams = { up: [] }, profile, tools }: Setup): object {
  const names = Object.keys(upstreams)
  const commands = names.map((name) => [
    name,
    { command: [process.execPath, SERVER, ...(upstreams[name] ?? [])], env: COMPILED },
  ])
  return {
    version: 2,
    upstreams: Object.fromEntries(commands) as object,
    ...(tools === undefined ? {} : { tools }),
    profiles: {
      agent: {
        allow: names.flatMap((name) => ['echo', 'meta', 'after'].map((tool) => `${name}/${tool}`)),
        ...profile,
      },
    },
  }
}
