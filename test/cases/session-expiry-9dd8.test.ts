// The loss of an upstream's session is repaired by one new initialize, and the client never sees it.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer } from '../servers/http-scripted.ts'
import { startFar } from './far.ts'
import { SIDES, textOf } from './wire.ts'

for (const [front, era] of SIDES) {
  test(`${front}: a ${era} client does not notice that its server forgot every session`, async (t) => {
    const server = await httpServer(t, { era: 'legacy' })
    const gate = await startFar(
      t,
      { up: server.url },
      { front, era, tools: { 'up/get': { effect: 'read' } }, more: { share: true } },
    )
    assert.equal(textOf(await gate.call('get')), 'get')
    const own = front === 'http' && gate.http.session()

    server.sessions.clear()
    const before = server.of('initialize').length
    assert.equal(textOf(await gate.call('get')), 'get')
    assert.equal(server.of('initialize').length, before + 1)
    const puts = server.of('tools/call').length
    assert.equal(textOf(await gate.call('put')), 'put')
    assert.equal(server.of('tools/call').length, puts + 1)

    server.sessions.clear()
    const answers = await Promise.all(Array.from({ length: 10 }, () => gate.call('get')))
    assert.deepEqual(new Set(answers.map(textOf)), new Set(['get']))
    assert.equal(server.of('initialize').length, before + 2)
    const fresh = server.of('initialize').at(-1)
    assert.equal(fresh?.headers['mcp-session-id'], undefined)

    // A write that meets the loss is sent once more: the 404 proves that it was not executed.
    server.sessions.clear()
    const writes = server.of('tools/call').length
    assert.equal(textOf(await gate.call('put')), 'put')
    assert.ok(server.of('tools/call').length <= writes + 2)
    const outcomes = gate
      .audit()
      .filter(({ name, outcome }) => name === 'put' && outcome === 'unknown')
    assert.equal(outcomes.length, 0)
    if (front === 'http') assert.equal(gate.http.session(), own, 'the client lost its own session')
  })
}
