// Calls of several rounds through the hall: a real ledger, real servers of both eras, one client.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Fault } from '../../src/fault.ts'
import { MAX_ROUNDS } from '../../src/hall/rounds.ts'
import type { Draft } from '../../src/ledger/entry.ts'
import { until } from '../store/scene.ts'
import { ANA, asked, code, data, FORM, hall, plain, ROOTS, told } from './rig.ts'

const WHO = { requests: { who: FORM }, state: ' opaque "state" é ', request_id: 'key-1' }
const ASKS = { requests: [FORM], request_id: 'key-1' }

test('a modern server asks, the client answers with the sealed state, and all is one operation', async (t) => {
  const { call, entries } = await hall(t, 'modern')
  const first = asked(await call('inquire', { args: WHO }))
  assert.deepEqual(plain(first.asks.asks), { who: FORM })
  assert.ok(!first.state.includes('opaque'), 'the state of the server is sealed')
  const retry = { state: first.state, responses: { who: ANA, extra: { action: 'cancel' } } }
  const done = await call('inquire', { args: WHO, retry })
  assert.deepEqual(data(done), { responses: { who: ANA }, state: WHO.state })
  const rounds = entries().filter(({ kind }) => ['intent', 'outcome', 'ask'].includes(kind))
  assert.equal(new Set(rounds.map((one) => one['operation'])).size, 1)
  assert.deepEqual(told(rounds, 0), [
    'intent pending 1',
    ...told(rounds, 1).slice(0, 2),
    'ask elicitation/create answered 2',
    'intent pending 2',
    'outcome committed 2',
  ])
  assert.deepEqual([...told(rounds, 1).slice(0, 2)].sort(), [
    'ask elicitation/create pending 1',
    'outcome awaiting 1',
  ])
})

test('neither what is asked nor what is answered is in the log', async (t) => {
  const { call, entries } = await hall(t, 'modern')
  const first = asked(await call('inquire', { args: WHO }))
  await call('inquire', { args: WHO, retry: { state: first.state, responses: { who: ANA } } })
  const log = JSON.stringify(entries())
  for (const word of ['who?', 'ana', 'opaque', first.state.slice(0, 40)]) {
    assert.ok(!log.includes(word), word)
  }
  const asks = entries().filter(({ kind }) => kind === 'ask')
  assert.match(String(asks[0]?.args_digest), /^[0-9a-f]{64}$/)
  assert.match(String(asks[1]?.result_digest), /^[0-9a-f]{64}$/)
})

test('a legacy server asks in mid-call: the call is parked, and goes on with the answer', async (t) => {
  const { call, entries } = await hall(t, 'legacy')
  const first = asked(await call('asks', { args: ASKS }))
  const [key = ''] = Object.keys(first.asks.asks)
  assert.deepEqual(code(await call('asks', { args: ASKS })), 'busy')
  const retry = { state: first.state, responses: { [key]: ANA } }
  const done = await call('asks', { args: ASKS, retry })
  assert.match(JSON.stringify(data(done)), /"name":"ana"/)
  assert.equal((await call('asks', { args: ASKS })).kind, 'answered', 'its key is replayed')
  const rounds = entries().filter(({ kind }) => kind === 'outcome')
  assert.deepEqual(told(rounds, 0), ['outcome awaiting 1', 'outcome committed 2'])
  assert.equal(rounds[0]?.['awaits'], 'parked')
})

for (const era of ['modern', 'legacy'] as const) {
  const tool = era === 'modern' ? 'inquire' : 'asks'
  const args = era === 'modern' ? WHO : ASKS

  test(`a session is asked by itself, whatever the era of the server (${era})`, async (t) => {
    const { call, entries } = await hall(t, era)
    const seen: unknown[] = []
    const done = await call(tool, {
      args,
      ask: async (asks) => {
        seen.push(plain(Object.values(asks.asks)))
        const pending = entries().filter(({ kind }) => kind === 'ask')
        assert.equal(pending.length, 1, 'the record is there before the client is asked')
        return Object.fromEntries(Object.keys(asks.asks).map((key) => [key, ANA])) as never
      },
    })
    assert.deepEqual(seen, [[FORM]])
    assert.match(JSON.stringify(data(done)), /"name":"ana"/)
  })

  test(`a client that does not answer ends the call and the server hears of it (${era})`, async (t) => {
    const { call, entries, last, store } = await hall(t, era)
    const reply = await call(tool, { args, ask: () => Promise.resolve(null) })
    assert.equal(code(reply), 'cancelled')
    const made = (): string => String(last('outcome')?.outcome)
    await until('the call has an outcome', () => made() !== 'awaiting')
    const wanted = era === 'modern' ? ['not_executed'] : ['unknown', 'failed', 'committed']
    assert.ok(wanted.includes(made()), made())
    entries()
    assert.equal(store.health(), true)
  })

  test(`an ask that policy does not grant is refused, recorded, and never reaches the client (${era})`, async (t) => {
    const { call, entries } = await hall(t, era, { granted: '{ roots: true }' })
    const reply = await call(tool, { args, ask: () => assert.fail('asked') })
    if (era === 'legacy') {
      // It was not declared: the door refuses the question and the call goes on.
      assert.match(JSON.stringify(data(reply)), /-32601|not offered/)
      return
    }
    assert.equal(code(reply), 'ask_denied')
    const asks = entries().filter(({ kind }) => kind === 'ask')
    assert.deepEqual(told(asks, 0), ['ask elicitation/create not_executed ask_denied 1'])
    assert.equal(asks[0]?.decision, 'deny')
    assert.equal(asks[0]?.rule, '/profiles/p/client')
    assert.equal(entries().findLast(({ kind }) => kind === 'outcome')?.outcome, 'not_executed')
    assert.equal((await call(tool, { args })).kind, 'refused', 'its key may be sent again')
  })
}

test('a client that did not declare the capability is told which, as an object', async (t) => {
  const { call } = await hall(t, 'modern')
  const reply = await call('inquire', { args: WHO, capabilities: { roots: {} } })
  assert.ok(reply.kind === 'refused')
  assert.equal(reply.refusal.code, 'capability_missing')
  assert.equal(reply.as, 'error')
  assert.equal(reply.rpc, -32021)
  assert.deepEqual(plain(reply.data), {
    requiredCapabilities: { elicitation: { form: {} } },
  })
})

test('roots that the profile does not name never reach the server', async (t) => {
  const { call } = await hall(t, 'modern')
  const args = { requests: { where: ROOTS }, request_id: 'key-1' }
  const first = asked(await call('inquire', { args }))
  const roots = [{ uri: 'file:///etc' }, { uri: 'file:///proj/a', name: 'a' }]
  const retry = { state: first.state, responses: { where: { roots } } }
  const done = await call('inquire', { args, retry })
  assert.deepEqual(data(done), { responses: { where: { roots: [roots[1]] } }, state: null })
})

test('a state is good for this client, this call, these arguments, once', async (t) => {
  const { call, client, entries } = await hall(t, 'modern')
  const first = asked(await call('inquire', { args: WHO }))
  const retry = { state: first.state, responses: { who: ANA } }
  const other = { ...WHO, state: 'other' }
  const wrong = [
    await call('inquire', { args: other, retry }),
    await call('asks', { args: WHO, retry }),
    await call('inquire', { args: WHO, retry, client: client('q') }),
    await call('inquire', { args: WHO, retry: { ...retry, state: `${first.state}A` } }),
    await call('inquire', { args: WHO, retry: { ...retry, state: 'made-up' } }),
    await call('inquire', { args: WHO, retry: { ...retry, responses: { who: { action: 'x' } } } }),
  ]
  for (const [at, reply] of wrong.entries()) {
    assert.equal(code(reply), 'state_invalid', String(at))
    assert.ok(reply.kind === 'refused')
    assert.equal(reply.rpc, -32602)
  }
  assert.equal(entries().at(-1)?.code, 'state_invalid')
  assert.equal((await call('inquire', { args: WHO, retry })).kind, 'answered')
  const again = await call('inquire', { args: WHO, retry })
  assert.ok(again.kind === 'answered' && again.replayed, 'a finished key is replayed')
})

test("a read's state is good for this client and these arguments only", async (t) => {
  const { call, client, entries } = await hall(t, 'modern', { effect: 'read' })
  const first = asked(await call('inquire', { args: WHO }))
  const retry = { state: first.state, responses: { who: ANA } }
  const wrong = [
    await call('inquire', { args: { ...WHO, state: 'other' }, retry }),
    await call('inquire', { args: WHO, retry, client: client('q') }),
    await call('inquire', { args: WHO, retry, client: { ...client('p'), name: 'ana' } }),
    await call('inquire', { args: WHO, retry, client: { ...client('p'), identity: 'token' } }),
  ]
  for (const reply of wrong) assert.equal(code(reply), 'state_invalid')
  assert.equal((await call('inquire', { args: WHO, retry })).kind, 'answered')
  const rounds = entries().filter(
    ({ kind, outcome }) => kind === 'call' && outcome !== 'not_executed',
  )
  assert.deepEqual(told(rounds, 0), ['call awaiting 1', 'call observed 2'])
  assert.equal(new Set(rounds.map((one) => one['operation'])).size, 1)
})

test('without a key a round is taken up once', async (t) => {
  const { call } = await hall(t, 'modern')
  const first = asked(await call('input'))
  assert.deepEqual(plain(first.asks.asks), {}, 'it only wants the call again')
  const retry = { state: first.state }
  const second = asked(await call('input', { retry }))
  assert.equal(code(await call('input', { retry })), 'state_invalid')
  asked(await call('input', { retry: { state: second.state } }))
})

test('answers without a state are a first round, cut to what may be asked of the client', async (t) => {
  const { call, entries } = await hall(t, 'modern')
  const roots = { roots: [{ uri: 'file:///etc' }, { uri: 'file:///proj/a' }] }
  const sampled = { role: 'assistant', model: 'm', content: {} }
  const responses = { who: ANA, where: roots, said: sampled, odd: { x: 1 }, bad: { action: 'x' } }
  const done = await call('inquire', { args: WHO, retry: { state: null, responses } })
  assert.deepEqual(data(done), {
    responses: { who: ANA, where: { roots: [{ uri: 'file:///proj/a' }] } },
    state: null,
  })
  assert.equal(entries().filter(({ kind }) => kind === 'ask').length, 2)
  assert.equal(entries().at(-1)?.round, 1)
})

test('each round is decided anew: what was withdrawn since is refused', async (t) => {
  const { call, policy, last } = await hall(t, 'legacy')
  const first = asked(await call('asks', { args: ASKS }))
  await policy('{ elicitation: true }', '[s/asks]')
  const [key = ''] = Object.keys(first.asks.asks)
  const reply = await call('asks', {
    args: ASKS,
    retry: { state: first.state, responses: { [key]: ANA } },
  })
  assert.equal(code(reply), 'tool_denied')
  await until('the parked call ends', () => last()?.kind === 'outcome')
})

test('a server that asks without end is refused', async (t) => {
  const { call, entries } = await hall(t, 'modern')
  const reply = await call('input', { ask: () => Promise.resolve({}) })
  assert.equal(code(reply), 'not_bridged')
  const rounds = entries().filter(({ kind }) => kind === 'outcome')
  assert.equal(rounds.length, MAX_ROUNDS)
  assert.deepEqual(told(rounds, 0).slice(-2), [
    `outcome awaiting ${MAX_ROUNDS - 1}`,
    `outcome not_executed not_bridged ${MAX_ROUNDS}`,
  ])
})

test('a client that cancels while it is asked hears nothing more', async (t) => {
  const { call, last } = await hall(t, 'legacy')
  const stop = new AbortController()
  const reply = await call('asks', {
    args: ASKS,
    signal: stop.signal,
    ask: (_asks, signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve(null))
        stop.abort()
      }),
  })
  assert.equal(reply.kind, 'silent')
  await until('the parked call ends', () => last()?.outcome !== 'awaiting')
})

test('a parked call that cannot be taken up is unknown, and its key is not sent again', async (t) => {
  const rig = await hall(t, 'legacy')
  const first = asked(await rig.call('asks', { args: ASKS }))
  const { upstreams } = rig.doors
  const lost = { kind: 'unsent', code: 'state_invalid', why: 'it is not parked here' } as const
  const coat = { ...upstreams, resume: () => Promise.resolve(lost) }
  const doors = { ...rig.doors, upstreams: coat }
  const [key = ''] = Object.keys(first.asks.asks)
  const retry = { state: first.state, responses: { [key]: ANA } }
  const reply = await rig.call('asks', { args: ASKS, retry, doors })
  assert.equal(code(reply), 'outcome_unknown')
  assert.equal(code(await rig.call('asks', { args: ASKS })), 'outcome_unknown')
  assert.equal(rig.last('outcome')?.outcome, 'unknown')
})

for (const era of ['modern', 'legacy'] as const) {
  const tool = era === 'modern' ? 'inquire' : 'asks'
  const args = era === 'modern' ? WHO : ASKS

  test(`an ask that cannot be recorded never reaches the client (${era})`, async (t) => {
    const rig = await hall(t, era)
    const append = (draft: Draft): Promise<void> =>
      draft.kind === 'ask'
        ? Promise.reject(new Fault('not_recorded', 'the disk is full'))
        : rig.store.append(draft)
    const doors = { ...rig.doors, store: { ...rig.store, append } }
    const ask = (): never => assert.fail('asked')
    await assert.rejects(rig.call(tool, { args, doors, ask }), { code: 'outcome_not_recorded' })
  })

  test(`an answer that cannot be recorded never reaches the server (${era})`, async (t) => {
    const rig = await hall(t, era)
    const first = asked(await rig.call(tool, { args }))
    const append = (draft: Draft): Promise<void> =>
      draft.kind === 'ask'
        ? Promise.reject(new Fault('not_recorded', 'the disk is full'))
        : rig.store.append(draft)
    const doors = { ...rig.doors, store: { ...rig.store, append } }
    const [key = ''] = Object.keys(first.asks.asks)
    const retry = { state: first.state, responses: { [key]: ANA } }
    await assert.rejects(rig.call(tool, { args, retry, doors }), { code: 'not_recorded' })
    // Nothing was taken up: the same state is good when the disk is.
    assert.equal((await rig.call(tool, { args, retry })).kind, 'answered')
  })
}
