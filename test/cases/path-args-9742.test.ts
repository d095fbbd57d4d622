// Encoded, Windows and URI forms of a path do not escape a path rule; what a text cannot tell is stated.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { says, startGate } from './harness.ts'
import { callsOf, plainTool, rawRequest, received, serving } from './menu.ts'
import { SIDES, refusalCode } from './wire.ts'

const PUBLIC = '/srv/pub'
const BAD = [
  '/srv/pub/a:stream',
  'C:\\pub\\..\\x',
  'C:\\pub\\x',
  'C:x',
  'c:/srv/pub/x',
  '\\\\?\\C:\\x',
  '\\\\host\\share',
  '//host/share',
  '/srv/pub\\x',
  '/srv/pub\\..\\x',
  'file:///srv/pub/x',
  'file:///srv/pub/../x',
  '/srv/pub/%2e%2e/x',
  '/srv/pub/%2E%2E%2Fx',
  '/srv/pub/%252e%252e/x',
  '/srv/pub/..%c0%af/x',
  '/srv/pub/\u2025/x',
  '/srv/pub/\uff0e\uff0e/x',
  '/srv/pub\u2215..\u2215x',
  '/srv/pub/..\u2044x',
  '/srv/pub/a\u0000.txt',
  '/srv/pub/a\n',
  '/srv/pub/a\u200b',
  '/srv/pub/../x',
  '/srv/pub/..',
  '/srv/pub/./x',
  '/srv/pub//x',
  '/srv/pub/',
  '/srv/pub/. ./x',
  '/srv/pub/.. /x',
  '/srv/pub/x.',
  '/srv/pub/x ',
  '/srv/public/x',
  '/srv/pubx',
  '/srv/Pub/x',
  '/srv',
  '/',
  'srv/pub/x',
  './x',
  '~/x',
  '',
  ' /srv/pub/x',
  '/srv/pub/e\u0301',
]
const GOOD = [
  '/srv/pub',
  '/srv/pub/x',
  '/srv/pub/a/b.txt',
  '/srv/pub/.hidden',
  '/srv/pub/\u00e9t\u00e9',
  '/srv/pub/100%',
  // Whether it is a link, and where to, only the server's own disk tells: outside lexical control.
  '/srv/pub/link/x',
]
const up = serving({
  tools: [
    {
      ...plainTool('write'),
      definition: { name: 'write', inputSchema: { type: 'object', properties: { path: true } } },
    },
  ],
})
const setup = {
  upstreams: { up },
  allow: ['up/write'],
  tools: {
    'up/write': {
      effect: 'write',
      args: { required: ['path'], properties: { path: { path_under: [PUBLIC] } } },
    },
  },
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: only paths in normal form under the base pass, and they pass unchanged`, async (t) => {
    const gate = await startGate(t, { front, era, ...setup })
    for (const path of BAD) {
      const answer = await gate.call('write', { path })
      assert.equal(refusalCode(answer), 'arguments_denied', JSON.stringify(path))
      assert.equal(answer.error?.code, -32602)
    }
    for (const path of [null, 5, true, ['/srv/pub/x'], { path: '/srv/pub/x' }]) {
      const answer = await gate.call('write', { path })
      assert.equal(refusalCode(answer), 'arguments_denied', JSON.stringify(path))
    }
    assert.deepEqual(received(gate, 'tools/call'), [])
    for (const path of GOOD) {
      assert.equal((await gate.call('write', { path })).result?.isError, undefined, path)
    }
    const sent = gate.trace().filter(({ method }) => method === 'tools/call')
    assert.deepEqual(
      sent.map(({ params }) => params?.['arguments']),
      GOOD.map((path) => ({ path })),
    )
    const denied = callsOf(gate, 'write').filter(({ code }) => code === 'arguments_denied')
    assert.equal(denied.length, BAD.length + 5)
    assert.ok(denied.every(({ rule }) => rule === '/tools/up~1write/args'))
  })

  test(`${front} ${era}: half a character in a path is refused with the message`, async (t) => {
    const gate = await startGate(t, { front, era, ...setup })
    const params = { name: 'write', arguments: { path: '@' } }
    for (const source of ['"/srv/pub/\\ud800"', '"/srv/pub/\\udc00x"']) {
      await gate.write(rawRequest(era, 1, 'tools/call', { params, source }))
    }
    await gate.record(
      'both',
      () => gate.audit().filter((one) => one['problem'] === 'surrogate').length === 2,
    )
    assert.deepEqual(received(gate, 'tools/call'), [])
    assert.equal((await gate.call('write', { path: '/srv/pub/x' })).result?.isError, undefined)
  })
}

test('a base that is not in normal form is refused at the start', async (t) => {
  for (const base of ['C:\\pub', '/srv/pub/..', 'file:///srv', '/srv/pub/']) {
    const args = { properties: { path: { path_under: [base] } } }
    const tools = { 'up/write': { effect: 'write', args } }
    const gate = await startGate(t, { ...setup, era: 'modern', tools, handshake: false })
    assert.equal((await gate.exit).code, 2, base)
    await says(gate, /eclusa\.yaml:\d+:\d+: /)
  }
})
