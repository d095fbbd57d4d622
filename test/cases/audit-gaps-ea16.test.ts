// Every call leaves exactly one closed record, whatever became of it.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import { type Gate, type Setup, startGate } from './harness.ts'
import { nameIn } from './menu.ts'
import { type Bag, type Era, eventually, type Front, FRONTS, request, SIDES } from './wire.ts'

const UP_TOOLS = ['echo', 'fail', 'refuse', 'wide', 'dump', 'after', 'hang', 'mutate', 'absent']
const setup = {
  upstreams: {
    up: {},
    gone: { command: ['/nonexistent/eclusa-case'] },
    lazy: { more: { call: '300ms' } },
    weak: {},
  },
  allow: [...UP_TOOLS.map((name) => `up/${name}`), 'gone/x', 'lazy/hang', 'weak/crash'],
  tools: {
    'up/wide': { effect: 'read' },
    'up/dump': { effect: 'write', args: { properties: { bytes: { maximum: 10 } } } },
    'up/mutate': { effect: 'write', key: { at: '/request_id' } },
  },
  config: { limits: { request: '16KiB' } },
}

/** One attempt: how it is made, under which name it is recorded, and `decision outcome code` of its record. */
type Attempt = {
  readonly make: (gate: Gate) => Promise<unknown>
  readonly name: string
  readonly becomes: string
}

const call = (name: string, args: Bag, becomes: string): Attempt => ({
  make: (gate) => gate.call(name, args),
  name,
  becomes,
})
const line = (text: (era: Era) => string): Attempt => ({
  make: (gate) => gate.write(`${text(gate.era)}\n`),
  name: '',
  becomes: 'deny not_executed malformed',
})
const wish = (era: Era, params: Bag): string =>
  JSON.stringify(request(era, 1, 'tools/call', params))
const KEYED = { request_id: 'gaps-0001', text: 'a' }

const ATTEMPTS: readonly Attempt[] = [
  call('up__echo', { text: 'x' }, 'allow answered null'),
  call('up__fail', { message: 'no' }, 'allow failed null'),
  call('up__refuse', { code: -32_000, message: 'no' }, 'allow failed null'),
  call('up__wide', { n: 1 }, 'allow observed null'),
  call('up__meta', {}, 'deny not_executed tool_denied'),
  call('nobody__knows', {}, 'deny not_executed tool_unknown'),
  call('up__absent', {}, 'deny not_executed tool_unknown'),
  call('up__dump', { bytes: 11 }, 'deny not_executed arguments_denied'),
  call('up__dump', { bytes: 'many' }, 'deny not_executed arguments_invalid'),
  call('up__dump', { bytes: 5 }, 'allow committed null'),
  call('gone__x', {}, 'deny not_executed upstream_down'),
  call('lazy__hang', {}, 'allow unknown timeout'),
  call('weak__crash', { when: 'before' }, 'allow unknown upstream_down'),
  call('up__mutate', KEYED, 'allow committed null'),
  call('up__mutate', KEYED, 'allow replay null'),
  call('up__mutate', { ...KEYED, text: 'b' }, 'deny not_executed key_conflict'),
  call('up__mutate', { text: 'no key' }, 'deny not_executed key_missing'),
  {
    name: 'up__after',
    becomes: 'allow answered cancelled',
    async make(gate) {
      const params = { name: 'up__after', arguments: { ms: 400, label: 'l' } }
      await gate.post(request(gate.era, 2, 'tools/call', params))
      const isThere = (): boolean =>
        gate.trace().some(({ params: sent }) => sent?.['name'] === 'after')
      await eventually('the call at its server', isThere)
      await gate.cancel(2)
    },
  },
  line((era) => wish(era, { arguments: {} })),
  line((era) => wish(era, { name: 'up__echo', arguments: [] })),
  line((era) => `[${wish(era, { name: 'up__echo' })}]`),
  line((era) => wish(era, { name: '@' }).replace('"@"', '"up__echo","name":"up__meta"')),
  line((era) => wish(era, { name: 'up__echo', arguments: { text: 'x'.repeat(20_000) } })),
  line((era) => wish(era, { name: 'up__echo' }).replace('"id":1,', '')),
  line((era) => wish(era, { name: 'up__echo' }).replace('"2.0"', '"1.0"')),
  line(() => '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{'),
  {
    make: (gate) => gate.request('vendor/exec', { name: 'up__echo' }),
    name: '',
    becomes: 'deny not_executed method_unknown',
  },
]

/** The closed records: whole calls, outcomes and malformed messages. */
const closed = (gate: Gate): readonly Entry[] =>
  gate.audit().filter(({ kind }) => kind === 'call' || kind === 'outcome' || kind === 'malformed')
const intents = (gate: Gate): readonly Entry[] =>
  gate.audit().filter(({ kind }) => kind === 'intent')

const told = ({ decision, outcome, code }: Entry): string => `${decision} ${outcome} ${code}`

function assertWhole(entry: Entry, front: Front): void {
  const what = JSON.stringify(entry)
  assert.ok(Math.abs(entry.ts / 1_000 - Date.now()) < 600_000, what)
  assert.deepEqual(
    [entry.client, entry.profile, entry.identity],
    front === 'http' ? ['anonymous:agent', 'agent', 'anonymous'] : ['agent', 'agent', 'declared'],
    what,
  )
  assert.equal(entry.transport, front, what)
  assert.match(entry.policy ?? '', /^[0-9a-f]{64}$/, what)
  if (entry.kind === 'malformed' || entry.code === 'method_unknown') return
  assert.match(entry.args_digest ?? '', /^[0-9a-f]{64}$/, what)
  assert.ok((entry.args_bytes ?? -1) >= 2, what)
  assert.ok(entry.rule !== null || entry.outcome === 'replay' || entry.code !== null, what)
  assert.ok((entry.duration_us ?? -1) >= 0, what)
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: each attempt has one closed record that says what became of it`, async (t) => {
    const gate = await startGate(t, { front, era, ...setup })
    await gate.request('tools/list')
    const begun = closed(gate).length
    for (const [at, attempt] of ATTEMPTS.entries()) {
      await attempt.make(gate)
      const fresh = await eventually(
        `the record of attempt ${at}`,
        () => closed(gate).length > begun + at && closed(gate).slice(begun + at),
      )
      assert.deepEqual(fresh.map(told), [attempt.becomes], `attempt ${at}: ${attempt.name}`)
      for (const entry of fresh) {
        assert.equal(nameIn(entry), attempt.name)
        assertWhole(entry, front)
      }
    }
    assert.equal(closed(gate).length - begun, ATTEMPTS.length)
    // Nothing was begun that is not closed, and the two halves belong together.
    const outcomes = closed(gate).filter(({ kind }) => kind === 'outcome')
    assert.deepEqual(
      intents(gate)
        .map((one) => one['operation'])
        .toSorted(),
      outcomes.map((one) => one['operation']).toSorted(),
    )
    assert.equal((await gate.stop()).code, 0)
  })

  test(`${front} ${era}: equal arguments have one digest in any order of keys, others another`, async (t) => {
    const gate = await startGate(t, { front, era, ...setup })
    const digest = async (source: string): Promise<string | null | undefined> => {
      const before = closed(gate).length
      await gate.write(
        `${wish(era, { name: 'up__echo', arguments: '@' }).replace('"@"', source)}\n`,
      )
      await eventually('its record', () => closed(gate).length > before)
      return closed(gate).at(-1)?.args_digest
    }
    const one = await digest('{"text":"x","n":{"a":1,"b":[1,2]}}')
    assert.equal(await digest('{ "n" : {"b":[1,2] ,"a":1}, "t\\u0065xt":"x" }'), one)
    for (const other of [
      '{"text":"x","n":{"a":1,"b":[2,1]}}',
      '{"text":"x","n":{"a":"1","b":[1,2]}}',
      '{"text":"x","n":{"a":1.0,"b":[1,2]}}',
      '{"text":"X","n":{"a":1,"b":[1,2]}}',
      '{}',
    ]) {
      assert.notEqual(await digest(other), one, other)
    }
  })
}

/** A gate with one call of `after` or `hang` at its server. */
async function underway(
  t: Parameters<typeof startGate>[0],
  params: Bag,
  more: Partial<Setup> = {},
): Promise<Gate> {
  const gate = await startGate(t, { era: 'modern', ...setup, ...more })
  await gate.call('up__echo', { text: 'warm' })
  await gate.post(request('modern', 3, 'tools/call', params))
  await eventually('the call at its server', () =>
    gate.trace().some(({ params: sent }) => ['after', 'hang'].includes(String(sent?.['name']))),
  )
  return gate
}

const AFTER = { name: 'up__after', arguments: { ms: 500, label: 'l' } }
const HANG = { name: 'up__hang', arguments: {} }
const lastOf = (gate: Gate): string =>
  closed(gate)
    .slice(-1)
    .map((entry) => `${nameIn(entry)} ${told(entry)}`)
    .join()

for (const front of FRONTS) {
  test(`${front}: a client that leaves and a stop in mid-call leave the outcome behind`, async (t) => {
    const left = await underway(t, AFTER, { front })
    if (front === 'stdio') await left.stop()
    else {
      left.http.vanish()
      await eventually('the outcome', () => closed(left).length === intents(left).length)
    }
    // Over HTTP to leave is to cancel, and what the server still did is known.
    const code = front === 'http' ? 'cancelled' : 'null'
    assert.equal(lastOf(left), `up__after allow answered ${code}`)

    const stopped = await underway(t, AFTER, { front })
    stopped.child.kill('SIGTERM')
    await stopped.exit
    assert.equal(lastOf(stopped), 'up__after allow answered null')

    const config = { ...setup.config, drain: '200ms' }
    const silent = await underway(t, HANG, { front, config })
    silent.child.kill('SIGTERM')
    await silent.exit
    assert.match(lastOf(silent), /^up__hang allow unknown /)
    assert.equal(intents(silent).length, closed(silent).length)
  })

  test(`${front}: a call whose gateway was killed is closed by the next start`, async (t) => {
    const killed = await underway(t, HANG, { front })
    killed.child.kill('SIGKILL')
    await killed.exit
    assert.equal(intents(killed).length, closed(killed).length + 1)
    const next = await startGate(t, { front, era: 'modern', ...setup, folder: killed.folder })
    const outcome = await next.record(
      'the outcome',
      ({ kind, outcome: came }) => kind === 'outcome' && came === 'unknown',
    )
    assert.equal(nameIn(outcome), 'up__hang')
    assert.equal(intents(next).length, closed(next).length)
    assert.equal(outcome['operation'], intents(next).at(-1)?.['operation'])
  })
}

test('http modern: headers that contradict the message have one record each', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'modern', ...setup })
  const body = wish('modern', { name: 'up__echo', arguments: { text: 'x' } })
  const begun = closed(gate).length
  const lies = {
    'mcp-name': 'up__wide',
    'mcp-method': 'ping',
    'mcp-protocol-version': '2025-11-25',
  }
  for (const [name, value] of Object.entries(lies)) {
    const { status } = await gate.http.exchange({ body, headers: { [name]: value } })
    assert.equal(status, 400, name)
  }
  const fresh = closed(gate).slice(begun)
  assert.deepEqual(
    fresh.map((entry) => `${entry.kind} ${told(entry)}`),
    Object.keys(lies).map(() => 'malformed deny not_executed malformed'),
  )
  for (const entry of fresh) assertWhole(entry, 'http')
  assert.equal(intents(gate).length, 0)
})

test('calls over a rate limit, and answers over a size', { todo: 'part 3' })
test('calls that wait for an approval, get it, are refused it or come too late', { todo: 'part 4' })
