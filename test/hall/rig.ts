// The hall with a real ledger and a real server process behind it, and a client that a test plays.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

import type { Call, Client, Method, Responses, Retry } from '../../src/call.ts'
import { type Doors, handle, type Line, taskOf } from '../../src/gateway.ts'
import { turns } from '../../src/cli/turns.ts'
import { object } from '../../src/json.ts'
import type { Entry } from '../../src/ledger/entry.ts'
import { loadConfig } from '../../src/policy/config.ts'
import { declared } from '../../src/policy/decide.ts'
import type { PolicySet } from '../../src/policy/set.ts'
import type { Store } from '../../src/ports.ts'
import type { Reply } from '../../src/refusal.ts'
import { openReader } from '../../src/store/reader.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { config, json, scripted, start } from '../mcp/upstream/rig.ts'
import { verified } from '../store/scene.ts'

/** What the client can do for servers, unless a test says otherwise. */
export const ALL = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
export const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } }
export const FORM = {
  method: 'elicitation/create',
  params: { message: 'who?', requestedSchema: { type: 'object', properties: {} } },
}
export const ROOTS = { method: 'roots/list', params: {} }
export const ANA = { action: 'accept', content: { name: 'ana' } }

/** A policy whose profiles may call every tool of `s`; `granted` is the profile `p`'s `client:`. */
const policyText = (granted: string, deny = '[]', effect = 'write'): string => `version: 2
upstreams: { s: { command: [x] } }
tools:
  s/inquire: { effect: ${effect}, key: { at: /request_id } }
  s/asks: { effect: write, key: { at: /request_id } }
  s/begin: { effect: write, key: { at: /request_id } }
profiles:
  p: { allow: [s/inquire, s/asks, s/begin, s/input], deny: ${deny}, client: ${granted} }
  q: { allow: [s/inquire, s/asks, s/begin], client: ${granted} }
  none: { allow: [s/capabilities] }
`

export const GRANTED = '{ elicitation: true, sampling: false, roots: [/proj] }'

/** One call as a test makes it. */
export type Wish = {
  readonly method?: Method
  readonly args?: unknown
  readonly key?: string | null
  readonly capabilities?: unknown
  readonly retry?: { readonly state: string | null; readonly responses?: unknown } | null
  readonly task?: string
  readonly responses?: unknown
  readonly ask?: Line['ask']
  readonly signal?: AbortSignal
  readonly client?: Client
  /** In place of the rig's own, for coats round them. */
  readonly doors?: Doors
}

export type Hall = {
  readonly dir: string
  readonly doors: Doors
  readonly store: Store
  readonly client: (profile: string) => Client
  readonly call: (name: string, wish?: Wish) => Promise<Reply>
  /** Every record so far, after the whole check. */
  readonly entries: () => readonly Entry[]
  /** The last record, while others may be written. */
  readonly last: (kind?: Entry['kind']) => Entry | undefined
  /** Stands in for a reload of the policy. */
  readonly policy: (granted: string, deny: string) => Promise<void>
}

export async function policySet(text: string): Promise<PolicySet> {
  const lookup = { env: () => undefined, file: () => undefined }
  const loaded = await loadConfig({ file: 'hall.yaml', text }, null, lookup)
  assert.ok(loaded.kind === 'config', JSON.stringify(loaded))
  return loaded.config.policy
}

/** A hall before one scripted server named `s` of this era, with a directory of its own or this one. */
export async function hall(
  t: TestContext,
  era: 'modern' | 'legacy',
  {
    granted = GRANTED,
    flags = [],
    dir = '',
    effect = 'write',
  }: {
    readonly granted?: string
    readonly flags?: readonly string[]
    readonly dir?: string
    /** What `inquire` is declared to do. */
    readonly effect?: 'read' | 'write'
  } = {},
): Promise<Hall> {
  let set = await policySet(policyText(granted, '[]', effect))
  const place = dir === '' ? mkdtempSync(join(tmpdir(), 'eclusa-hall-')) : dir
  const store = await openSqlite({
    dir: place,
    create: true,
    policy: set,
    limits: { storedAnswerBytes: 262_144, keyDays: 30, keyRefusedDays: 30 },
    minFreeBytes: 0,
    say: () => undefined,
    onFatal: (fault) => assert.fail(fault),
  })
  const upstreams = start(t, [config('s', { command: scripted('--era', era, ...flags) })], {
    principals: 'many',
  })
  // After the server's end, which is what parked calls come to.
  t.after(async () => {
    await store.stop().catch(() => undefined)
    if (dir === '') rmSync(place, { recursive: true, force: true })
  })
  const doors: Doors = {
    store,
    upstreams,
    policy: () => set,
    clock: { nowUs: () => Date.now() * 1000 },
    random: () => randomBytes(16).toString('hex'),
    broken: (error) => assert.fail(String(error)),
    turn: turns(),
    views: new Map(),
  }
  const client = (profile: string): Client => {
    const made = declared(set, profile, {})
    assert.ok(!('kind' in made))
    return made
  }
  return {
    dir: place,
    doors,
    store,
    client,
    call: (name, wish = {}) => {
      const who = wish.client ?? client('p')
      return handle(callOf(who, name, wish, doors), wish.doors ?? doors, {
        watch: { progress: () => undefined, log: () => undefined },
        signal: wish.signal ?? new AbortController().signal,
        ask: wish.ask ?? null,
      })
    },
    entries: () => verified(place),
    last: (kind) => read(place).findLast((one) => kind === undefined || one.kind === kind),
    policy: async (next, deny) => {
      set = await policySet(policyText(next, deny))
    },
  }
}

function read(dir: string): readonly Entry[] {
  const reader = openReader(dir)
  try {
    return [...reader.entries(0)].map((line) => JSON.parse(line) as Entry)
  } finally {
    reader.close()
  }
}

function callOf(client: Client, name: string, wish: Wish, doors: Doors): Call {
  const args = json(wish.args ?? {})
  const task = wish.task === undefined ? null : taskOf(wish.task, client, doors)
  const params = wish.task === undefined ? { name, arguments: args } : { taskId: wish.task }
  const more = wish.responses === undefined ? {} : { inputResponses: wish.responses }
  return {
    method: wish.method ?? 'tools/call',
    client,
    asked: wish.task ?? name,
    target:
      wish.task === undefined ? { kind: 'tool', upstream: 's', name } : (task?.target ?? null),
    args: wish.task === undefined ? args : object({}),
    params: json({ ...params, ...more }),
    capabilities: json(wish.capabilities ?? ALL),
    retry: wish.retry === undefined || wish.retry === null ? null : retryOf(wish.retry),
    task: task?.task ?? null,
    key: wish.key ?? null,
    transport: 'http',
    trace: null,
    receivedUs: Date.now() * 1000,
  }
}

const retryOf = (retry: NonNullable<Wish['retry']>): Retry => ({
  state: retry.state,
  responses: json(retry.responses ?? {}) as unknown as Responses,
})

/** The asks of a reply and their state. */
export function asked(reply: Reply): Extract<Reply, { readonly kind: 'asks' }> {
  if (reply.kind !== 'asks') assert.fail(JSON.stringify(reply))
  return reply
}

/** The structuredContent of an answer. */
export function data(reply: Reply): unknown {
  if (reply.kind !== 'answered' || reply.answer.kind !== 'result') {
    assert.fail(JSON.stringify(reply))
  }
  return plain(reply.answer.value['structuredContent'])
}

export const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))

/** The code of a refusal. */
export const code = (reply: Reply): string =>
  reply.kind === 'refused' ? reply.refusal.code : `no refusal but ${JSON.stringify(reply)}`

/** `kind outcome code round` of each record of calls and asks from a place on. */
export const told = (entries: readonly Entry[], from: number): readonly string[] =>
  entries
    .slice(from)
    .filter(({ kind }) => ['call', 'intent', 'outcome', 'ask'].includes(kind))
    .map((one) =>
      [one.kind, ...(one.kind === 'ask' ? [one.method] : []), one.outcome, one.code, one.round]
        .filter((part) => part !== null)
        .join(' '),
    )
