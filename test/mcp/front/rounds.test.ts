// What a server asks in the middle of a call, from the server to the client and back, every era with every.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Desk, type Heard, open, type Post } from './desk.ts'

const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const ABLE = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} }
const FORM = {
  method: 'elicitation/create',
  params: {
    message: 'Which one?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
  },
}
const ACCEPT = { action: 'accept', content: { name: 'x' } }
const profile = {
  allow: ['up/inquire', 'up/asks', 'up/ask', 'up/url_first', 'up/echo'],
  client: { elicitation: true, sampling: true, roots: ['/proj'] },
}
const call = (name: string, args: object): object => ({ name, arguments: args })
const structured = ({ result }: Heard): unknown => result?.['structuredContent']
const refusal = ({ result, error }: Heard): unknown =>
  ((result?.['_meta'] ?? error?.data) as Record<string, unknown> | undefined)?.['eclusa/refusal']
const asks = (desk: Desk): readonly unknown[] =>
  desk
    .audit()
    .filter(({ kind }) => kind === 'ask')
    .map(({ method, decision, outcome }) => [method, decision, outcome])

/** A call that asks for these things: one way for a modern server, another for a legacy one. */
const asking = (era: string, one: { method: string; params?: object }): object =>
  era === 'modern'
    ? call('inquire', { requests: { who: one }, state: 'of the server' })
    : call('ask', { method: one.method, params: one.params ?? {} })

const modernly = (desk: Desk, params: object, capabilities: object = ABLE): Promise<Heard> =>
  desk.modern('tools/call', params, { [CAPABILITIES]: capabilities })

async function greet(desk: Desk, capabilities: object, version = '2025-11-25'): Promise<void> {
  const clientInfo = { name: 't', version: '1' }
  await desk.legacy('initialize', { protocolVersion: version, capabilities, clientInfo })
}

/** Makes a call in a session and answers what is asked with `give`. */
async function sessionCall(
  desk: Desk,
  params: object,
  give: (ask: Heard) => object,
): Promise<{ readonly post: Post; readonly asked: readonly Heard[]; readonly end: Heard }> {
  const post = desk.channel()
  desk.say({ jsonrpc: '2.0', id: 'c', method: 'tools/call', params }, post)
  const asked: Heard[] = []
  for (;;) {
    await desk.until('an ask or the end', () => post.heard().length > asked.length)
    const next = post.heard()[asked.length]
    assert.ok(next !== undefined)
    if (next.method === undefined) return { post, asked, end: next }
    asked.push(next)
    desk.say({ jsonrpc: '2.0', id: next.id, ...give(next) })
  }
}

for (const era of ['modern', 'legacy']) {
  test(`a modern client of a ${era} server is asked by a result and calls again with the answers`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    const first = await modernly(desk, asking(era, FORM))
    assert.equal(first.result?.['resultType'], 'input_required')
    const requests = first.result?.['inputRequests'] as Record<string, typeof FORM>
    const [key = ''] = Object.keys(requests)
    assert.deepEqual(requests[key], FORM)
    const requestState = first.result?.['requestState']
    assert.equal(typeof requestState, 'string')
    assert.doesNotMatch(String(requestState), /of the server/)

    const marks = { requestState, inputResponses: { [key]: ACCEPT, unasked: { action: 'accept' } } }
    const second = await modernly(desk, { ...asking(era, FORM), ...marks })
    assert.equal(second.result?.['resultType'], 'complete')
    const told = JSON.stringify(structured(second))
    assert.match(told, /"action":"accept","content":\{"name":"x"\}/)
    assert.doesNotMatch(told, /unasked/)
    if (era === 'modern') assert.match(told, /"state":"of the server"/)
    assert.deepEqual(asks(desk), [
      ['elicitation/create', 'allow', 'pending'],
      ['elicitation/create', 'allow', 'answered'],
    ])
  })

  test(`a session of a ${era} server is asked on the stream of its call`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    await greet(desk, ABLE)
    const { asked, end, post } = await sessionCall(desk, asking(era, FORM), () => ({
      result: ACCEPT,
    }))
    assert.deepEqual(
      asked.map(({ method, params }) => ({ method, params })),
      [FORM],
    )
    assert.match(JSON.stringify(structured(end)), /"content":\{"name":"x"\}/)
    assert.equal(end.result?.['resultType'], undefined)
    assert.deepEqual(post.heard()[0]?.how, { weight: 'ask', status: 200 })
    assert.equal(desk.heard().filter(({ method }) => method !== undefined).length, 0)
  })

  test(`roots are cut to those that the profile names, a sample passes, in front of a ${era} server`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    await greet(desk, ABLE, '2025-06-18')
    const roots = [{ uri: 'file:///proj/a' }, { uri: 'file:///home' }]
    const listed = await sessionCall(desk, asking(era, { method: 'roots/list' }), () => ({
      result: { roots },
    }))
    assert.match(
      JSON.stringify(structured(listed.end)),
      /"roots":\[\{"uri":"file:\/\/\/proj\/a"\}\]/,
    )
    const params = { messages: [], maxTokens: 5 }
    const sample = { role: 'assistant', model: 'm', content: { type: 'text', text: 'said' } }
    const sampled = await sessionCall(
      desk,
      asking(era, { method: 'sampling/createMessage', params }),
      () => ({ result: sample }),
    )
    assert.deepEqual(sampled.asked[0]?.params, params)
    assert.match(JSON.stringify(structured(sampled.end)), /"text":"said"/)
  })

  test(`what the client refuses or cannot show ends as its server wants it, in front of a ${era} server`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    await greet(desk, ABLE, '2025-06-18')
    const declined = await sessionCall(desk, asking(era, FORM), () => ({
      result: { action: 'decline' },
    }))
    assert.match(JSON.stringify(structured(declined.end)), /"action":"decline"/)
    const several = {
      ...FORM,
      params: {
        message: 'm',
        requestedSchema: {
          type: 'object',
          properties: { f: { type: 'array', items: { type: 'string', enum: ['a'] } } },
        },
      },
    }
    const unshown = await sessionCall(desk, asking(era, several), () => ({}))
    assert.equal(unshown.asked.length, 0)
    assert.match(JSON.stringify(structured(unshown.end)), /"action":"decline"/)
    const failed = await sessionCall(desk, asking(era, FORM), () => ({
      error: { code: -1, message: 'no' },
    }))
    assert.equal(failed.end.result?.['isError'], true)
    assert.deepEqual(refusal(failed.end), { code: 'cancelled' })
  })

  test(`a client that did not declare a capability is never asked, in front of a ${era} server`, async (t) => {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    const refused = await modernly(desk, asking(era, FORM), { sampling: {} })
    if (era === 'modern') {
      assert.equal(refused.error?.code, -32021)
      const { requiredCapabilities } = refused.error?.data ?? {}
      assert.deepEqual(requiredCapabilities, { elicitation: { form: {} } })
    } else assert.doesNotMatch(JSON.stringify(refused), /inputRequests/)
    await greet(desk, {})
    const { asked, end } = await sessionCall(desk, asking(era, FORM), () => ({ result: ACCEPT }))
    assert.equal(asked.length, 0)
    assert.doesNotMatch(JSON.stringify(end), /-3202\d/)
  })
}

test('a profile that does not let servers ask has the last word', async (t) => {
  const { client: _client, ...closed } = profile
  const desk = await open(t, { upstreams: { up: ['--era', 'modern'] }, profile: closed })
  const refused = await modernly(desk, asking('modern', FORM))
  assert.equal(refused.result?.['isError'], true)
  assert.deepEqual(refusal(refused), { code: 'ask_denied' })
  assert.deepEqual(asks(desk), [['elicitation/create', 'deny', 'not_executed']])
})

test('a state is good for the very call of its own client, once its round is open', async (t) => {
  const desk = await open(t, { profile })
  const asked = asking('modern', FORM)
  const first = await modernly(desk, asked)
  const state = String(first.result?.['requestState'])
  const answer = { inputResponses: { who: ACCEPT } }
  const wrong: readonly object[] = [
    { ...answer, requestState: `${state.slice(0, -2)}AA` },
    { ...answer, requestState: 'of the server' },
    { ...answer, requestState: '' },
    { inputResponses: { who: { action: 'maybe' } }, requestState: state },
    { inputResponses: [], requestState: state },
    { inputResponses: { who: 'x' }, requestState: state },
    { ...answer, requestState: 5 },
  ]
  for (const marks of wrong) {
    const refused = await modernly(desk, { ...asked, ...marks })
    assert.equal(refused.error?.code, -32602, JSON.stringify(marks))
  }
  const other = call('inquire', { requests: {}, state: 'another' })
  assert.equal(
    (await modernly(desk, { ...other, ...answer, requestState: state })).error?.code,
    -32602,
  )
  const taken = await modernly(desk, { ...asked, ...answer, requestState: state })
  assert.equal(taken.result?.['resultType'], 'complete')
  const again = await modernly(desk, { ...asked, ...answer, requestState: state })
  assert.notEqual(again.result?.['resultType'], 'complete')
  assert.equal(desk.audit().filter(({ kind }) => kind === 'intent').length, 2)
})

test('marks of a round are refused on every other method, and dropped from a session', async (t) => {
  const desk = await open(t, { profile: { ...profile, resources: ['notes://*'], prompts: ['*'] } })
  const others: readonly (readonly [string, object])[] = [
    ['tools/list', {}],
    ['server/discover', {}],
    ['subscriptions/listen', { notifications: {} }],
    [
      'completion/complete',
      { ref: { type: 'ref/prompt', name: 'greet' }, argument: { name: 'name', value: 'A' } },
    ],
  ]
  for (const [method, params] of others) {
    for (const marks of [{ inputResponses: {} }, { requestState: 's' }]) {
      const refused = await desk.modern(method, { ...params, ...marks })
      assert.equal(refused.error?.code, -32602, method)
    }
  }
  await greet(desk, ABLE)
  const marks = { requestState: 'forged', inputResponses: { who: ACCEPT } }
  const { asked } = await sessionCall(desk, { ...asking('modern', FORM), ...marks }, () => ({
    result: { action: 'cancel' },
  }))
  assert.equal(asked.length, 1)
})

test('a call that is cancelled while its client is asked calls the ask off and answers nothing', async (t) => {
  for (const era of ['modern', 'legacy']) {
    const desk = await open(t, { upstreams: { up: ['--era', era] }, profile })
    await greet(desk, ABLE)
    const post = desk.channel()
    desk.say({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: asking(era, FORM) }, post)
    await desk.until('the ask', () => post.heard().length === 1)
    desk.say({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 9 } })
    await desk.until('the end', () => post.dones() === 1)
    await desk.until('the ask to be called off', () => post.heard().length === 2)
    const [ask, off] = post.heard()
    assert.equal(off?.method, 'notifications/cancelled')
    assert.equal(off?.params?.['requestId'], ask?.id)
    desk.say({ jsonrpc: '2.0', id: ask?.id, result: ACCEPT })
    assert.equal((await desk.legacy('ping')).error, undefined)
    assert.equal(post.heard().length, 2)
  }
})

test('a client that is gone while it is asked leaves no call behind', async (t) => {
  const desk = await open(t, { upstreams: { up: ['--era', 'legacy'] }, profile })
  await greet(desk, ABLE)
  const post = desk.channel()
  desk.say({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: asking('legacy', FORM) }, post)
  await desk.until('the ask', () => post.heard().length === 1)
  desk.front.abandon()
  await desk.front.drain()
  const outcomes = desk.audit().filter(({ kind }) => kind === 'outcome')
  assert.equal(outcomes.length > 0, true)
})
