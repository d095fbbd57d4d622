// Play scripts of the hall: which doors are touched, in which order, and what each broken door means.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { Call, Client } from '../src/call.ts'
import { Fault } from '../src/fault.ts'
import { type Doors, handle, list } from '../src/gateway.ts'
import { turns } from '../src/cli/turns.ts'
import { object } from '../src/json.ts'
import { loadConfig } from '../src/policy/config.ts'
import { declared } from '../src/policy/decide.ts'
import type { PolicySet } from '../src/policy/set.ts'
import type { Store, Ticket, Upstreams } from '../src/ports.ts'
import { admit, definitionOf } from '../src/sdk/definition.ts'
import { inProcess } from '../src/sdk/inside.ts'
import { openSqlite } from '../src/store/sqlite.ts'

const CONFIG = {
  version: 2,
  upstreams: { s: { command: ['in-process'] } },
  tools: {
    's/save': { effect: 'write', key: { at: '/request_id' } },
    's/look': { effect: 'read' },
  },
  profiles: {
    agent: {
      allow: ['s/save', 's/look', 's/plain', 's/gone'],
      set: { 's/plain': { vault: { cel: 'client.attributes.vault' } } },
    },
  },
}

type Hall = {
  readonly dir: string
  readonly policy: PolicySet
  readonly limits: Parameters<typeof openSqlite>[0]['limits']
  readonly doors: Doors
  readonly client: Client
  /** The steps so far, in order; emptied by reading. */
  readonly steps: () => readonly string[]
  readonly audit: () => readonly Record<string, unknown>[]
  /** What reached the server. */
  readonly ran: readonly unknown[]
  readonly call: (
    name: string,
    args?: Record<string, string>,
    signal?: AbortSignal,
  ) => ReturnType<typeof handle>
}

/** What a test makes of the doors: a step that fails, or a server that behaves otherwise. */
type Weather = {
  readonly fails?: { readonly step: keyof Store; readonly applied: boolean; readonly fault: Fault }
  readonly run?: (params: Record<string, unknown>) => Promise<unknown>
  /** The server cannot be asked, and of every key the ledger says what it knows of `KEY`. */
  readonly away?: () => boolean
  /** Pins are seen as late as the port allows: not before this store has written one itself. */
  readonly late?: true
}

async function hall(t: TestContext, weather: Weather = {}): Promise<Hall> {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-hall-'))
  const { policy, limits } = await policyOf()
  const say = (): void => undefined
  const store = await openSqlite({
    dir,
    create: true,
    policy,
    limits,
    minFreeBytes: 0,
    say,
    onFatal: (fault) => assert.fail(fault),
  })
  t.after(async () => {
    await store.stop()
    rmSync(dir, { recursive: true, force: true })
  })
  const log: string[] = []
  const ran: unknown[] = []
  const doors: Doors = {
    store: coat(store, log, weather),
    upstreams: walked(log, ran, weather),
    policy: () => policy,
    clock: { nowUs: () => Date.now() * 1000 },
    random: () => randomBytes(16).toString('hex'),
    broken: (error) => assert.fail(String(error)),
    turn: turns(),
    views: new Map(),
  }
  const client = declared(policy, 'agent', { vault: 'family' })
  assert.ok(!('kind' in client))
  const watch = { progress: say, log: say }
  return {
    dir,
    policy,
    limits,
    doors,
    client,
    ran,
    steps: () => log.splice(0),
    audit: () =>
      readFileSync(join(dir, 'audit.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>),
    call: (name, args = {}, signal = new AbortController().signal) =>
      handle(callOf(client, name, args), doors, { watch, signal, ask: null }),
  }
}

async function policyOf(): Promise<Pick<Hall, 'policy' | 'limits'>> {
  const text = JSON.stringify(CONFIG)
  const lookup = { env: () => undefined, file: () => undefined }
  const loaded = await loadConfig({ file: 'hall.json', text }, null, lookup)
  assert.ok(loaded.kind === 'config', JSON.stringify(loaded))
  return loaded.config
}

const callOf = (client: Client, name: string, args: Record<string, string>): Call => ({
  method: 'tools/call',
  client,
  asked: name,
  target: { kind: 'tool', upstream: 's', name },
  args: object(args),
  params: object({ name, arguments: object(args) }),
  capabilities: object({}),
  retry: null,
  task: null,
  key: null,
  transport: 'library',
  trace: null,
  receivedUs: Date.now() * 1000,
})

/** The store in a coat that writes down each step and fails at one: before it, or after it was applied. */
function coat(store: Store, log: string[], { fails, late, away }: Weather): Store {
  const none: ReturnType<Store['pins']> = new Map()
  let seen = late !== true
  async function step<T>(name: keyof Store, work: () => Promise<T>): Promise<T> {
    log.push(name)
    if (fails?.step !== name) return work()
    if (fails.applied) await work()
    throw fails.fault
  }
  return {
    ...store,
    pins: () => (seen ? store.pins() : none),
    async pin(pins, client) {
      await step('pin', () => store.pin(pins, client))
      seen = true
    },
    recall: (asked) => store.recall(away?.() ? { ...asked, key: KEY.request_id } : asked),
    append: (draft) => step('append', () => store.append(draft)),
    open: (intent) => step('open', () => store.open(intent)),
    close: (ticket, closing) => step('close', () => store.close(ticket, closing)),
    settle: (operation, closing) => step('settle', () => store.settle(operation, closing)),
  }
}

const TOOLS = ['save', 'look', 'plain', 'hidden'].map((name) => ({
  name,
  inputSchema: { type: 'object', additionalProperties: true },
}))

function walked(log: string[], ran: unknown[], { run, away }: Weather): Upstreams {
  const inside = inProcess('s', {
    list: () =>
      Promise.resolve({
        items: TOOLS.flatMap((tool) => definitionOf('tools', admit(tool))),
        complete: true,
      }),
    async run(params) {
      ran.push(params['arguments'])
      return run === undefined ? { content: [] } : run(params)
    },
  })
  return {
    ...inside,
    definition(upstream, tool) {
      log.push('definition')
      if (away?.()) return Promise.resolve('down')
      return inside.definition(upstream, tool)
    },
    attempt(ticket, send) {
      log.push('attempt')
      return inside.attempt(ticket, send)
    },
  }
}

const KEY = { request_id: 'req-00000001' }
const last = (one: Hall): Record<string, unknown> => one.audit().at(-1) ?? {}
const said = ({ decision, outcome, code }: Record<string, unknown>): unknown[] => [
  decision,
  outcome,
  code,
]

test('a write that is allowed: definition, pin, intent, attempt, outcome, and then the answer', async (t) => {
  const one = await hall(t)
  assert.equal((await one.call('save', KEY)).kind, 'answered')
  assert.deepEqual(one.steps(), ['definition', 'pin', 'open', 'attempt', 'close'])
  const [intent, outcome] = one.audit().slice(-2)
  assert.deepEqual([intent?.['kind'], ...said(intent ?? {})], ['intent', 'allow', 'pending', null])
  assert.deepEqual(
    [outcome?.['kind'], ...said(outcome ?? {})],
    ['outcome', 'allow', 'committed', null],
  )
})

test('the second write needs no pin, and the same key needs no attempt', async (t) => {
  const one = await hall(t)
  await one.call('save', KEY)
  one.steps()
  const again = await one.call('save', KEY)
  assert.ok(again.kind === 'answered' && again.replayed)
  assert.deepEqual(one.steps(), ['definition', 'open'])
  assert.deepEqual(said(last(one)), ['allow', 'replay', null])
  await one.call('save', { request_id: 'req-00000002' })
  assert.deepEqual(one.steps(), ['definition', 'open', 'attempt', 'close'])
  assert.equal(one.ran.length, 2)
})

test('what the ledger said of a key and does not say any more sends nothing to a server that is away', async (t) => {
  let isAway = false
  const one = await hall(t, { away: () => isAway })
  await one.call('save', KEY)
  isAway = true
  const reply = await one.call('save', { request_id: 'req-00000002' })
  assert.ok(reply.kind === 'refused' && reply.refusal.code === 'upstream_down')
  assert.deepEqual(one.steps().slice(-3), ['definition', 'open', 'close'])
  assert.deepEqual(said(last(one)), ['allow', 'unsent', 'upstream_down'])
  assert.equal(one.ran.length, 1)
})

test('a declared read has one record, written before its answer is released', async (t) => {
  const one = await hall(t)
  await one.call('look')
  const before = one.audit().length
  const reply = await one.call('look')
  assert.equal(reply.kind, 'answered')
  const fresh = one.audit().slice(before)
  assert.deepEqual(fresh.map(said), [['allow', 'observed', null]])
})

test('a name that is not allowed touches the ledger and nothing else', async (t) => {
  const one = await hall(t)
  const hidden = await one.call('hidden')
  const unknown = await one.call('nosuch')
  assert.deepEqual(one.steps(), ['append', 'append'])
  assert.ok(hidden.kind === 'refused' && unknown.kind === 'refused')
  assert.equal(hidden.sentence, 'tool denied: hidden')
  assert.equal(unknown.sentence, 'tool denied: nosuch')
  assert.deepEqual({ ...hidden, sentence: '' }, { ...unknown, sentence: '' })
  assert.deepEqual(said(last(one)), ['deny', 'not_executed', 'tool_denied'])
})

test('an allowed name that the server lacks is told as a hidden one and recorded as what it is', async (t) => {
  const one = await hall(t)
  const reply = await one.call('gone')
  assert.ok(reply.kind === 'refused' && reply.as === 'error')
  assert.equal(reply.refusal.code, 'tool_denied')
  assert.deepEqual(said(last(one)), ['deny', 'not_executed', 'tool_unknown'])
  assert.deepEqual(one.ran, [])
})

test('what was decided is what is sent: a pinned argument goes to the server as policy computed it', async (t) => {
  const one = await hall(t)
  const reply = await one.call('plain', { text: 'x' })
  assert.equal(reply.kind, 'answered')
  assert.equal(JSON.stringify(one.ran), '[{"text":"x","vault":"family"}]')
})

test('a pinned argument that the client sends is refused', async (t) => {
  const one = await hall(t)
  const reply = await one.call('plain', { vault: 'other' })
  assert.ok(reply.kind === 'refused' && reply.as === 'error')
  assert.equal(reply.refusal.code, 'arguments_denied')
  assert.deepEqual(one.ran, [])
})

const NOT_RECORDED = new Fault('not_recorded', 'the disk is full')
const OUTCOME_LOST = new Fault('outcome_not_recorded', 'the disk is full')

for (const applied of [false, true]) {
  const how = applied ? 'failed after it was applied' : 'failed before it was applied'

  test(`an intent that ${how} sends nothing`, async (t) => {
    const one = await hall(t, { fails: { step: 'open', applied, fault: NOT_RECORDED } })
    await assert.rejects(one.call('save', KEY), NOT_RECORDED)
    assert.deepEqual(one.steps(), ['definition', 'pin', 'open'])
    assert.deepEqual(one.ran, [])
  })

  test(`a pin that ${how} sends nothing`, async (t) => {
    const one = await hall(t, { fails: { step: 'pin', applied, fault: NOT_RECORDED } })
    await assert.rejects(one.call('save', KEY), NOT_RECORDED)
    assert.deepEqual(one.steps(), ['definition', 'pin'])
    assert.deepEqual(one.ran, [])
  })

  test(`an outcome that ${how} gives no answer out, after one attempt`, async (t) => {
    const one = await hall(t, { fails: { step: 'close', applied, fault: OUTCOME_LOST } })
    await assert.rejects(one.call('save', KEY), OUTCOME_LOST)
    assert.deepEqual(one.steps(), ['definition', 'pin', 'open', 'attempt', 'close'])
    assert.equal(one.ran.length, 1)
  })

  test(`a denial that ${how} is not told`, async (t) => {
    const one = await hall(t, { fails: { step: 'append', applied, fault: NOT_RECORDED } })
    await assert.rejects(one.call('hidden'), NOT_RECORDED)
    assert.deepEqual(one.steps(), ['append'])
  })

  test(`a view that ${how} is not shown`, async (t) => {
    const one = await hall(t, { fails: { step: 'append', applied, fault: NOT_RECORDED } })
    await assert.rejects(list(one.client, 'tools', one.doors), NOT_RECORDED)
  })
}

test('a call that was cancelled before it was opened is recorded and not sent', async (t) => {
  const one = await hall(t)
  const stop = new AbortController()
  stop.abort()
  const reply = await one.call('save', KEY, stop.signal)
  assert.equal(reply.kind, 'silent')
  assert.deepEqual(said(last(one)), ['deny', 'not_executed', 'cancelled'])
  assert.deepEqual(one.ran, [])
})

test('a write that was cancelled on its way is silent and still has its outcome', async (t) => {
  const stop = new AbortController()
  const one = await hall(t, {
    run: () => {
      stop.abort()
      return Promise.resolve({ content: [] })
    },
  })
  const reply = await one.call('save', KEY, stop.signal)
  assert.equal(reply.kind, 'silent')
  assert.deepEqual(said(last(one)), ['allow', 'committed', 'cancelled'])
})

test('an error of the server is final for its key', async (t) => {
  const one = await hall(t, { run: () => Promise.resolve({ content: [], isError: true }) })
  await one.call('save', KEY)
  const again = await one.call('save', KEY)
  assert.ok(again.kind === 'answered' && again.replayed)
  assert.ok(again.answer.kind === 'result')
  assert.equal(again.answer.value['isError'], true)
  assert.equal(one.ran.length, 1)
})

test('a list shows what could be allowed, pins it first, and is recorded when it changes', async (t) => {
  const one = await hall(t)
  const { shown, complete } = await list(one.client, 'tools', one.doors)
  assert.deepEqual(
    shown.map(({ definition }) => definition.name),
    ['save', 'look', 'plain'],
  )
  assert.equal(complete, true)
  assert.deepEqual(one.steps(), ['pin', 'append'])
  await list(one.client, 'tools', one.doors)
  assert.deepEqual(one.steps(), [])
})

test('a definition that another process has just pinned otherwise is neither read from nor shown', async (t) => {
  const one = await hall(t, { late: true })
  const { dir, policy, limits } = one
  const other = await openSqlite({
    ...{ dir, policy, limits, create: false, minFreeBytes: 0 },
    say: () => undefined,
    onFatal: (fault) => assert.fail(fault),
  })
  t.after(() => other.stop())
  const pinned = admit({ name: 'look', inputSchema: { type: 'object' }, description: 'another' })
  const [definition] = definitionOf('tools', pinned)
  assert.ok(definition !== undefined)
  await other.pin([{ tool: 's/look', definition, state: 'approved' }], 'other')
  const { shown } = await list(one.client, 'tools', one.doors)
  assert.ok(!shown.some(({ definition: { name } }) => name === 'look'))
  const reply = await one.call('look')
  assert.ok(reply.kind === 'refused', JSON.stringify(reply))
  assert.equal(reply.refusal.code, 'tool_denied')
  assert.deepEqual(one.ran, [])
})

test('a ticket cannot be made by hand', () => {
  // @ts-expect-error only a store mints tickets
  const forged: Ticket = { operation: 'x', does: 'read' }
  assert.equal(forged.operation, 'x')
})
