// What a server asks in mid-call reaches the client that made the call, and its answer that call alone.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { type Gate, greet, startGate, stateFiles } from './harness.ts'
import { admitted, answering } from './people.ts'
import {
  type Bag,
  type Era,
  ERAS,
  eventually,
  FRONTS,
  type Message,
  refusalCode,
  request,
  type Wire,
} from './wire.ts'

const CAPABILITIES: Bag = { elicitation: {}, sampling: {} }
const PROFILE: Bag = { client: { elicitation: true, sampling: true } }
const SECRET = 'CANARY-entered'

const form = (label: string): Bag => ({
  method: 'elicitation/create',
  params: {
    message: label,
    requestedSchema: { type: 'object', properties: { label: { type: 'string' } } },
  },
})
const thought = (label: string): Bag => ({
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: label } }],
    maxTokens: 10,
  },
})

/** Calls a tool of a server of this era that asks this one thing. */
const ask = (wire: Wire, servers: Era, wanted: Bag): Promise<Message> =>
  servers === 'legacy'
    ? wire.call('asks', { requests: [wanted] })
    : wire.call('inquire', { requests: { one: wanted }, state: 's' })

/** What the server got. */
function got(answer: Message): unknown {
  const { answers, responses } = answer.result?.structuredContent ?? {}
  const [first] = (answers ?? []) as readonly Message[]
  return first === undefined ? (responses as Bag)['one'] : first.result
}

/** Answers a form with its own label, a sample with its own text. */
function echoing({ method, params }: Message): Bag {
  if (method === 'elicitation/create') {
    const label = `${String(params?.['message'])} ${SECRET}`
    return { result: { action: 'accept', content: { label } } }
  }
  const [first] = params?.['messages'] as readonly { readonly content: Bag }[]
  return { result: { role: 'assistant', model: 'm', content: first?.content } }
}

const accepted = (label: string): Bag => ({
  action: 'accept',
  content: { label: `${label} ${SECRET}` },
})

/** Nothing that was entered is in any file of the state. */
function assertForgotten(gate: Gate): void {
  for (const file of stateFiles(gate.folder)) {
    assert.ok(!readFileSync(file, 'latin1').includes(SECRET), file)
  }
}

for (const front of FRONTS) {
  for (const servers of ERAS) {
    const setup = { front, era: 'legacy', servers, capabilities: CAPABILITIES } as const
    test(`${front}, ${servers} server: forms and samples are answered, declined and cancelled`, async (t) => {
      const gate = await startGate(t, { ...setup, profile: PROFILE })
      let action = 'accept'
      const asked = answering(gate, (one) =>
        action === 'accept' ? echoing(one) : { result: { action } },
      )
      assert.deepEqual(got(await ask(gate, servers, form('first'))), accepted('first'))
      const sampled = got(await ask(gate, servers, thought('think'))) as Bag
      assert.deepEqual(sampled['content'], { type: 'text', text: 'think' })
      for (action of ['decline', 'cancel']) {
        assert.deepEqual(got(await ask(gate, servers, form(action))), { action })
      }
      // Ids towards the client are ours: those of the server and of the client meet nobody.
      const ids = asked.map(({ id }) => String(id))
      assert.equal(new Set(ids).size, 4)
      assert.ok(ids.every((id) => id.startsWith('eclusa-')))

      const records = gate.audit().filter(({ kind }) => kind === 'ask')
      assert.ok(records.length >= 4, `${records.length} records`)
      assert.ok(records.every(({ method }) => /^(elicitation|sampling)\//.test(method)))
      await gate.stop()
      assertForgotten(gate)
    })

    test(`${front}, ${servers} server: a client that answers nonsense ends its call, and no other`, async (t) => {
      const gate = await startGate(t, { ...setup, profile: PROFILE })
      let result: Bag = {}
      answering(gate, () => result)
      for (result of [
        { result: { action: 'maybe' } },
        { result: null },
        { error: { code: -1, message: 'no' } },
      ]) {
        const answer = await ask(gate, servers, form('x'))
        const failed = answer.error !== undefined || answer.result?.isError === true
        assert.ok(failed || isRefusal(answer), JSON.stringify(answer))
      }
      assert.equal((await gate.call('echo', { text: 'x' })).result?.isError, undefined)
    })
  }

  test(`${front}, modern server: two calls that ask at once each get their own answer`, async (t) => {
    const gate = await startGate(t, {
      front,
      era: 'legacy',
      servers: 'modern',
      capabilities: CAPABILITIES,
      profile: PROFILE,
    })
    answering(gate, echoing)
    const labels = ['A', 'B', 'C']
    const answers = await Promise.all(labels.map((label) => ask(gate, 'modern', form(label))))
    assert.deepEqual(answers.map(got), labels.map(accepted))
  })
}

/** The server was told that nobody answered, and says so in its own words. */
function isRefusal(answer: Message): boolean {
  const [first] = (answer.result?.structuredContent?.['answers'] ?? []) as readonly Message[]
  return first?.error !== undefined
}

test('http, legacy server: two clients that are asked at once are each asked their own, on their own stream', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'legacy', profile: PROFILE })
  const headers = await admitted(gate, { ana: 'agent', rui: 'agent' })
  const clients = ['ana', 'rui'].map((name) => gate.client({ headers: headers[name] ?? {} }))
  const asked = clients.map((one) => answering(one, echoing))
  for (const one of clients) await greet(one, { capabilities: CAPABILITIES })
  // Neither has a stream open but that of its call, and both use one id.
  const answers = await Promise.all(
    clients.map((one, n) => one.call('asks', { requests: [form(`of ${n}`)] }, { id: 7 })),
  )
  assert.deepEqual(answers.map(got), ['of 0', 'of 1'].map(accepted))
  assert.deepEqual(
    asked.map((all) => all.map(({ params }) => params?.['message'])),
    [['of 0'], ['of 1']],
  )
})

for (const front of FRONTS) {
  test(`${front}, legacy server: a client that leaves without an answer ends what its server waits for`, async (t) => {
    const gate = await startGate(t, {
      front,
      era: 'legacy',
      servers: 'legacy',
      capabilities: CAPABILITIES,
      profile: PROFILE,
      config: { drain: '300ms' },
    })
    const asked = answering(gate, () => undefined)
    const params = { name: 'asks', arguments: { requests: [form('silent')] } }
    await gate.post(request('legacy', 7, 'tools/call', params))
    await eventually('the question', () => asked.length > 0)
    if (front === 'http') assert.equal((await gate.http.exchange({ verb: 'DELETE' })).status, 204)
    else await gate.stop()
    // Where the gateway ends as well, the server hears it by the end of its input.
    const isTold = (): boolean =>
      front === 'stdio' ||
      gate
        .trace()
        .some((one) => one.method === 'notifications/cancelled' || one.error !== undefined)
    await eventually('the end of the question at the server', isTold)
    const end = await gate.record(
      'the end',
      ({ kind, name }) => kind === 'outcome' && name === 'asks',
    )
    assert.notEqual(end.outcome, 'answered')
  })

  test(`${front}: what the profile or the client does not grant is never asked`, async (t) => {
    for (const [capabilities, profile] of [
      [{}, PROFILE],
      [CAPABILITIES, { client: { elicitation: false, sampling: true } }],
    ] as const) {
      const gate = await startGate(t, {
        front,
        era: 'legacy',
        servers: 'modern',
        capabilities,
        profile,
      })
      const asked = answering(gate, echoing)
      const answer = await ask(gate, 'modern', form('x'))
      assert.match(refusalCode(answer) ?? '', /^(capability_missing|ask_denied)$/)
      assert.deepEqual(asked, [])
    }
  })
}
