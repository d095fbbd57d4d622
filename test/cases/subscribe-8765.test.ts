// Subscribing needs the permission of a read, in both eras, and tells nothing about what is forbidden.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Gate, startGate } from './harness.ts'
import { type Bag, eventually, FRONTS, type Message, refusalCode, request, WAYS } from './wire.ts'

const OK = 'notes://public/1'
const SECRET = 'notes://secret'
const UPDATED = 'notifications/resources/updated'
const profile = { resources: ['notes://public/*'] }

/** What the server was asked to watch. */
async function watched(gate: Gate): Promise<readonly unknown[]> {
  const { uris, listens } = (await gate.call('subscribed')).result?.structuredContent ?? {}
  const filters = (listens as readonly Bag[]).flatMap(({ resourceSubscriptions }) =>
    Array.isArray(resourceSubscriptions) ? (resourceSubscriptions as unknown[]) : [],
  )
  return [...(uris as unknown[]), ...filters]
}

/** Opens a subscription and gives its first message: the acknowledgement or the refusal. */
async function listen(gate: Gate, id: string, notifications: Bag): Promise<Message> {
  await gate.post(request('modern', id, 'subscriptions/listen', { notifications }))
  return eventually('the first message', () =>
    gate.messages().find((one) => one.id === id || subscription(one) === id),
  )
}

const subscription = ({ params }: Message): unknown =>
  (params?.['_meta'] as Bag | undefined)?.['io.modelcontextprotocol/subscriptionId']

const honoured = ({ params }: Message): Bag => params?.['notifications'] as Bag

async function touches(gate: Gate): Promise<readonly unknown[]> {
  const before = gate.notifications(UPDATED).length
  for (const uri of [SECRET, OK, SECRET]) await gate.call('touch', { uri })
  await eventually('the update', () => gate.notifications(UPDATED).length > before)
  // What came after is on its way as well: one more exchange lets it arrive.
  await gate.call('echo', { text: 'x' })
  return gate
    .notifications(UPDATED)
    .slice(before)
    .map(({ params }) => params?.['uri'])
}

for (const [front, era, servers] of WAYS) {
  const pair = `${front}, ${era} client, ${servers} server`
  if (era === 'legacy') {
    test(`${pair}: a forbidden resource is refused as a missing one, and only allowed ones are told`, async (t) => {
      const gate = await startGate(t, { front, era, servers, profile })
      const answers: string[] = []
      for (const uri of [SECRET, 'notes://never/was']) {
        const answer = await gate.request('resources/subscribe', { uri })
        assert.equal(answer.error?.code, -32602)
        assert.equal(refusalCode(answer), 'resource_denied')
        answers.push(JSON.stringify(answer.error).replaceAll(uri, 'URI'))
      }
      assert.equal(answers[0], answers[1])
      assert.deepEqual(await watched(gate), [])
      assert.deepEqual((await gate.request('resources/subscribe', { uri: OK })).error, undefined)
      assert.deepEqual(await watched(gate), [OK])
      assert.deepEqual(await touches(gate), [OK])
      for (const uri of [null, 5, [OK], '']) {
        const answer = await gate.request('resources/subscribe', { uri })
        assert.equal(answer.error?.code, -32602, JSON.stringify(uri))
      }
      assert.equal((await gate.request('resources/unsubscribe', { uri: OK })).error, undefined)
      const denied = gate.audit().filter(({ code }) => code === 'resource_denied')
      assert.equal(denied.length, 2)
    })
    continue
  }
  test(`${pair}: of a mixed list what may be read is acknowledged, and only that is told`, async (t) => {
    const gate = await startGate(t, { front, era, servers, profile })
    const first = await listen(gate, 'mixed', { resourceSubscriptions: [OK, SECRET] })
    assert.deepEqual(honoured(first)['resourceSubscriptions'], [OK])
    assert.deepEqual(await watched(gate), [OK])
    assert.deepEqual(await touches(gate), [OK])
    const secret = await listen(gate, 'secret', { resourceSubscriptions: [SECRET] })
    const missing = await listen(gate, 'missing', { resourceSubscriptions: ['notes://never/was'] })
    const said = (one: Message): string =>
      JSON.stringify([one.error ?? null, one.params?.['notifications'] ?? null])
    assert.equal(said(secret), said(missing))
    assert.ok(!said(secret).includes('secret'))
  })

  test(`${pair}: a wrong list and an endless one are refused, and lists of tools can be listened to alone`, async (t) => {
    const gate = await startGate(t, { front, era, servers, profile })
    for (const [at, wrong] of [OK, { 0: OK }, 5, [5], [null]].entries()) {
      const answer = await listen(gate, `wrong ${at}`, { resourceSubscriptions: wrong })
      assert.equal(answer.error?.code, -32602, JSON.stringify(wrong))
    }
    const many = Array.from({ length: 10_000 }, (_, n) => `notes://public/${n}`)
    const refused = await listen(gate, 'many', { resourceSubscriptions: many })
    assert.ok(refused.error !== undefined || refused.result?.isError === true)
    assert.deepEqual(await watched(gate), [])
    const tools = await listen(gate, 'tools', { toolsListChanged: true })
    assert.deepEqual(honoured(tools), { toolsListChanged: true })
    assert.deepEqual(await watched(gate), [])
  })
}

for (const front of FRONTS) {
  test(`${front}: after a change of policy updates of what was forbidden stop`, { todo: 'part 5' })
}
