// Real servers behind real pipes for the tests of the server side.

import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

import type { Method, Responses, Retry } from '../../../src/call.ts'
import type { Effect } from '../../../src/decision.ts'
import { type JsonLimits, type JsonObject, parseText, UPSTREAM_LIMITS } from '../../../src/json.ts'
import { type RunningUpstreams, startUpstreams } from '../../../src/mcp/upstream/upstreams.ts'
import type { Attempt, Ticket, Watch } from '../../../src/ports.ts'
import { COMPILED } from '../../servers/compiled.ts'

const SERVER = join(import.meta.dirname, '../../servers/scripted.ts')

/** The command that starts the scripted server with these flags. */
export const scripted = (...flags: readonly string[]): string[] => [
  process.execPath,
  SERVER,
  ...flags,
]

export type Config = Extract<Parameters<typeof startUpstreams>[0][number], { kind: 'command' }>

/** A configuration of one upstream with the defaults of the product, but for what is given. */
export const config = (name: string, some: Partial<Config> = {}): Config => ({
  kind: 'command',
  name,
  share: false,
  command: scripted(),
  env: COMPILED,
  passEnv: [],
  cwd: null,
  era: 'auto',
  probeMs: 15_000,
  callMs: 300_000,
  callMaxMs: 1_800_000,
  listMs: 10_000,
  ...some,
})

export type Rig = RunningUpstreams & { readonly said: string[] }

/** Starts these upstreams and ends them with the test. */
export function start(
  t: TestContext,
  configs: Parameters<typeof startUpstreams>[0],
  more: {
    readonly environment?: Readonly<Record<string, string | undefined>>
    readonly principals?: 'one' | 'many'
    readonly peerIdleMs?: number
    readonly limits?: Partial<JsonLimits & { readonly listItems: number }>
  } = {},
): Rig {
  const said: string[] = []
  const { bytes, ...bounds } = { ...UPSTREAM_LIMITS, listItems: 10_000, ...more.limits }
  const running = startUpstreams(configs, {
    limits: { ...bounds, upstreamBytes: bytes, stderrLineBytes: 8192, listPages: 1000 },
    client: { name: 'eclusa', version: '0.0.0' },
    say: (line) => said.push(line),
    environment: more.environment ?? process.env,
    principals: more.principals ?? 'one',
    peerIdleMs: more.peerIdleMs ?? 300_000,
  })
  t.after(() => running.stop())
  return { ...running, said }
}

/** One scripted server named `s`, with these flags. */
export const one = (t: TestContext, ...flags: readonly string[]): Rig =>
  start(t, [config('s', { command: scripted(...flags) })])

// Only a store mints tickets; these tests stand in for the hall, behind the decision.
export const ticket = (does: Effect): Ticket =>
  ({ operation: randomBytes(16).toString('hex'), does }) as Ticket

export type CallOptions = {
  readonly upstream?: string
  readonly does?: Effect
  readonly meta?: JsonObject
  readonly method?: Method
  readonly watch?: Partial<Watch>
  readonly signal?: AbortSignal
  readonly client?: string
  readonly capabilities?: unknown
  readonly retry?: { readonly state: string | null; readonly responses: unknown }
}

/** Calls a tool, as a write unless told otherwise. */
export function call(
  rig: RunningUpstreams,
  name: string,
  args: unknown = {},
  options: CallOptions = {},
): Promise<Attempt> {
  const { upstream = 's', does = 'write', meta, watch = {} } = options
  return rig.attempt(ticket(does), {
    method: options.method ?? 'tools/call',
    target: { kind: 'tool', upstream, name },
    params: json({ name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }),
    client: options.client ?? 'writer',
    capabilities: json(options.capabilities ?? {}),
    retry: retryOf(options.retry),
    headers: {},
    watch: { progress: () => {}, log: () => {}, ...watch },
    signal: options.signal ?? new AbortController().signal,
  })
}

const retryOf = (retry: CallOptions['retry']): Retry | null =>
  retry === undefined ? null : { ...retry, responses: json(retry.responses) as Responses }

/** What an attempt asks; fails the test with the whole attempt when it asks nothing. */
export function asksOf(attempt: Attempt): Extract<Attempt, { kind: 'asks' }> {
  if (attempt.kind === 'asks') return attempt
  throw new Error(`nothing is asked in ${JSON.stringify(attempt)}`)
}

/** Takes up the parked call of this attempt with these answers. */
export function answer(
  rig: RunningUpstreams,
  attempt: Attempt,
  responses: unknown,
  signal: AbortSignal = new AbortController().signal,
): Promise<Attempt> {
  const watch = { progress: () => {}, log: () => {} }
  const taker = { responses: json(responses) as Responses, watch, signal }
  return rig.resume(ticket('write'), asksOf(attempt).parked ?? '', taker)
}

/** The value as if it had been admitted. */
export function json(value: unknown): JsonObject {
  const parsed = parseText(JSON.stringify(value), UPSTREAM_LIMITS)
  if (parsed.kind === 'refused') throw new Error(parsed.problem)
  return parsed.value as JsonObject
}

/** The first text of a result; fails the test with the whole attempt when there is none. */
export function textOf(attempt: Attempt): string {
  if (attempt.kind === 'answered' && attempt.answer.kind === 'result') {
    const { content } = JSON.parse(JSON.stringify(attempt.answer.value)) as {
      content: { text: string }[]
    }
    if (content[0] !== undefined) return content[0].text
  }
  throw new Error(`no text in ${JSON.stringify(attempt)}`)
}

/** The structuredContent of a result. */
export function dataOf(attempt: Attempt): Record<string, unknown> {
  if (attempt.kind !== 'answered' || attempt.answer.kind !== 'result') {
    throw new Error(`no result in ${JSON.stringify(attempt)}`)
  }
  return JSON.parse(JSON.stringify(attempt.answer.value['structuredContent'])) as Record<
    string,
    unknown
  >
}

/** Resolves when the condition holds; fails after `ms`. */
export async function until(condition: () => boolean, ms = 60_000): Promise<void> {
  const last = performance.now() + ms
  while (!condition()) {
    if (performance.now() > last)
      throw new Error(`still not true after ${ms} ms: ${condition.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** A fresh path in a fresh folder. */
export const fresh = (name: string): string => join(mkdtempSync(join(tmpdir(), 'eclusa-')), name)

/** The lines of a file, none when it does not exist. */
export function linesOf(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').slice(0, -1)
  } catch {
    return []
  }
}

/** The messages that the server wrote down as received. */
export const traced = (path: string): Record<string, unknown>[] =>
  linesOf(path).map((line) => JSON.parse(line) as Record<string, unknown>)

/** True while this process exists. */
export function alive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
