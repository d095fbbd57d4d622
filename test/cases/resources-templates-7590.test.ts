// Resources, templates, reads and their errors work through the gateway, also for URIs that no list has.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { says, startGate } from './harness.ts'
import { received, serving } from './menu.ts'
import { type Bag, SIDES, type Message, refusalCode, request } from './wire.ts'

const BLOB = Buffer.from(Array.from({ length: 256 }, (_, n) => n)).toString('base64')
const text = (uri: string, value: string): Bag => ({ contents: [{ uri, text: value }] })
const resource = (uri: string): { definition: Bag } => ({ definition: { uri, name: uri.slice(4) } })
const LINK = { type: 'resource_link', uri: 'a://77', name: 'linked' }
const make = {
  definition: { name: 'make', inputSchema: { type: 'object' } },
  result: { content: [LINK] },
}
const MENU = {
  tools: [make],
  resources: ['a://1', 'a://2', 'a://blob', 'a://private/1'].map(resource),
  templates: [
    { definition: { uriTemplate: 'a://{id}', name: 'one' } },
    { definition: { uriTemplate: 'a://{id}/part/{n}', name: 'part' } },
  ],
  reads: {
    'a://1': text('a://1', 'one'),
    'a://77': text('a://77', 'linked'),
    'a://%37%37': text('a://%37%37', 'encoded'),
    'a://blob': { contents: [{ uri: 'a://blob', mimeType: 'x/y', blob: BLOB }] },
    'b://1': text('b://1', 'never to be seen'),
  },
}
const allow = ['up/make']
const profile = { resources: ['a://*'] }

const urisOf = (message: Message, key: string, member: string): readonly unknown[] =>
  (message.result?.[key] as Bag[]).map((one) => one[member])
const textIn = (message: Message): unknown => (message.result?.['contents'] as Bag[])[0]?.['text']

for (const [front, era] of SIDES) {
  test(`${front} ${era}: lists of several pages are whole, templates too`, async (t) => {
    const upstreams = { up: serving(MENU, '--page', '1') }
    const gate = await startGate(t, { front, era, upstreams, allow, profile })
    const resources = await gate.request('resources/list')
    assert.deepEqual(urisOf(resources, 'resources', 'uri'), [
      'a://1',
      'a://2',
      'a://blob',
      'a://private/1',
    ])
    const templates = await gate.request('resources/templates/list')
    assert.deepEqual(urisOf(templates, 'resourceTemplates', 'uriTemplate'), [
      'a://{id}',
      'a://{id}/part/{n}',
    ])
    assert.equal(templates.result?.['nextCursor'], undefined)
  })

  test(`${front} ${era}: what is listed, linked or only known to the server is read where policy allows`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: serving(MENU) },
      allow,
      profile,
    })
    assert.deepEqual((await gate.call('make')).result?.content, [LINK])
    for (const [uri, value] of [
      ['a://1', 'one'],
      ['a://77', 'linked'],
      ['a://%37%37', 'encoded'],
    ]) {
      const answer = await gate.request('resources/read', { uri })
      assert.equal(textIn(answer), value, uri)
      assert.equal((answer.result?.['contents'] as Bag[])[0]?.['uri'], uri)
    }
    const blob = await gate.request('resources/read', { uri: 'a://blob' })
    assert.equal((blob.result?.['contents'] as Bag[])[0]?.['blob'], BLOB)

    const missing = await gate.request('resources/read', { uri: 'a://404' })
    assert.equal(missing.result, undefined, 'an empty result is no answer')
    assert.equal(missing.error?.code, era === 'modern' ? -32602 : -32002)
    assert.equal(missing.error?.data?.['uri'], 'a://404')
  })

  test(`${front} ${era}: what policy does not list is refused in one wording and never asked for`, async (t) => {
    const only = { resources: ['a://1', 'a://private/*'] }
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: serving(MENU) },
      profile: only,
      allow,
    })
    const listed = await gate.request('resources/list')
    assert.deepEqual(urisOf(listed, 'resources', 'uri'), ['a://1', 'a://private/1'])
    const uris = [
      'b://1',
      'a://2',
      'a://nothing',
      'A://1',
      'a://1 ',
      'a://1?x',
      'a://private',
      'a://private/../2',
      'a://private/%2e%2e/2',
      'a://private/%252e%252e/2',
      'a://private/..%2f2',
      'a://private\\..\\2',
      'a://private/a\u0000',
    ]
    for (const uri of uris) {
      const answer = await gate.request('resources/read', { uri })
      assert.deepEqual(
        [answer.error?.code, answer.error?.message, refusalCode(answer)],
        [-32602, `resource denied: ${uri}`, 'resource_denied'],
        uri,
      )
    }
    for (const uri of [undefined, null, 5, '', ['a://1']]) {
      const answer = await gate.request('resources/read', { uri })
      assert.equal(answer.error?.code, -32602, JSON.stringify(uri))
    }
    assert.equal(received(gate, 'resources/read').length, 0)
    const denied = gate.audit().filter(({ code }) => code === 'resource_denied')
    assert.equal(denied.length, uris.length)
  })

  test(`${front} ${era}: a URI that two servers list is read from neither; their others are kept apart`, async (t) => {
    const second = {
      resources: [resource('a://1'), resource('a://second')],
      reads: { 'a://1': text('a://1', 'other'), 'a://second': text('a://second', 'second') },
    }
    const upstreams = { one: serving(MENU), two: serving(second) }
    const gate = await startGate(t, { front, era, upstreams, allow: ['one/make'], profile })
    const listed = await gate.request('resources/list')
    assert.deepEqual(urisOf(listed, 'resources', 'uri'), [
      'a://2',
      'a://blob',
      'a://private/1',
      'a://second',
    ])
    await says(gate, /a:\/\/1 is listed by two servers/)
    const denied = await gate.request('resources/read', { uri: 'a://1' })
    assert.equal(denied.error?.message, 'resource denied: a://1')
    assert.equal(textIn(await gate.request('resources/read', { uri: 'a://second' })), 'second')
    // A link leads back to the server whose result held it.
    await gate.call('one__make')
    assert.equal(textIn(await gate.request('resources/read', { uri: 'a://77' })), 'linked')
    assert.equal(received(gate, 'resources/read', 'one').length, 1)
    assert.equal(received(gate, 'resources/read', 'two').length, 1)
  })

  test(`${front} ${era}: a URI with half a character is no message`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      upstreams: { up: serving(MENU) },
      allow,
      profile,
    })
    const line = JSON.stringify(request(era, 1, 'resources/read', { uri: 'a://@' }))
    await gate.write(`${line.replace('@', '\\ud800')}\n`)
    await gate.record('the refusal', ({ kind }) => kind === 'malformed')
    assert.equal((await gate.answer(null)).error?.code, -32600)
  })
}
