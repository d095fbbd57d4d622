import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, type Script, type Turn } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { call, textOf, until } from '../upstream/rig.ts'

const onProbe =
  (act: (turn: Turn) => void): Script =>
  (turn) => {
    if (turn.seen.body['method'] !== 'server/discover') return false
    act(turn)
    return true
  }
const page =
  (status: number, text: string, type = 'text/html'): ((turn: Turn) => void) =>
  ({ reply }) => {
    reply.writeHead(status, { 'content-type': type })
    reply.end(text)
  }

for (const [name, act] of [
  ['-32601 with 404', (turn: Turn) => turn.error(404, -32601, 'no')],
  ['-32601 with 200', (turn: Turn) => turn.error(200, -32601, 'no')],
  ['-32602', (turn: Turn) => turn.error(400, -32602, 'no')],
  [
    '-32000 without an id',
    ({ json }: Turn) =>
      json(400, { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'not initialized' } }),
  ],
  ['an empty 400', page(400, '')],
  ['a page with 404', page(404, '<html>')],
  ['405', page(405, '')],
  ['plain words', page(200, 'hello', 'text/plain')],
  ['202', page(202, '')],
  ['a result that names no version', (turn: Turn) => turn.result({ content: [] })],
  [
    'legacy versions only',
    (turn: Turn) =>
      turn.error(400, -32022, 'no', { supported: ['2025-11-25'], requested: '2026-07-28' }),
  ],
] as const) {
  test(`a server that answers the probe with ${name} is legacy, and is probed once`, async (t) => {
    const server = await httpServer(t, { era: 'legacy', script: onProbe(act) })
    const rig = reach(t, server.url)
    for (let at = 0; at < 21; at++) assert.equal(textOf(await call(rig, 'get')), 'get')
    assert.equal((await rig.hello('s'))?.era, 'legacy')
    assert.equal(server.of('server/discover').length, 1)
    assert.equal(server.of('initialize').length, 1)
  })
}

test('a single 500 on the probe is retried and means nothing', async (t) => {
  let left = 1
  const server = await httpServer(t, {
    script: (turn) => (left-- > 0 ? onProbe(page(500, ''))(turn) : false),
  })
  const rig = reach(t, server.url)
  assert.equal((await rig.hello('s'))?.era, 'modern')
  assert.equal(server.of('server/discover').length, 2)
  assert.equal(server.of('initialize').length, 0)
})

test('a server that refuses the revision it names once is asked again, never initialized', async (t) => {
  let left = 1
  const refuse = onProbe((turn) =>
    turn.error(400, -32022, 'no', { supported: ['2026-07-28', '2025-11-25'], requested: 'x' }),
  )
  const server = await httpServer(t, {
    era: 'dual',
    script: (turn) =>
      turn.seen.body['method'] === 'server/discover' && left-- > 0 ? refuse(turn) : false,
  })
  const rig = reach(t, server.url)
  assert.equal((await rig.hello('s'))?.era, 'modern')
  assert.equal(server.of('initialize').length, 0)
  left = 1000
  const other = reach(t, server.url)
  await until(() => other.said.length > 0)
  assert.match(other.said.join(), /speaks 2026-07-28 and refuses it/)
  assert.equal(server.of('initialize').length, 0)
})

for (const [name, act, why] of [
  ['401', page(401, ''), /needs a login; set its header/],
  ['403', page(403, ''), /needs a login; set its header/],
  ['500 each time', page(500, ''), /HTTP status 500/],
  ['503', page(503, ''), /HTTP status 503/],
  ['429', page(429, ''), /no more requests/],
  ['a redirect', ({ reply }: Turn) => reply.writeHead(302, { location: '/x' }).end(), /redirects/],
  [
    'an unknown future',
    (turn: Turn) => turn.error(400, -32022, 'no', { supported: ['2099-01-01'] }),
    /it speaks 2099-01-01 only/,
  ],
  ['-32020', (turn: Turn) => turn.error(400, -32020, 'no'), /refuses to be asked/],
  ['-32021', (turn: Turn) => turn.error(400, -32021, 'no'), /refuses to be asked/],
  ['a cut connection', ({ reply }: Turn) => reply.destroy(), /closed the connection/],
  ['silence', () => {}, /does not answer; set `era: legacy`/],
] as const) {
  test(`a server that answers the probe with ${name} is told of, and no era is guessed`, async (t) => {
    const server = await httpServer(t, { era: 'dual', script: onProbe(act) })
    const rig = reach(t, server.url, { probeMs: 400 })
    await until(() => rig.said.length > 0)
    assert.match(rig.said.join(), why)
    assert.equal(server.of('initialize').length, 0)
    assert.equal((await call(rig, 'put')).kind, 'unsent')
  })
}

test('the old transport of 2024-11-05 is told of with the next step', async (t) => {
  const server = await httpServer(t, {
    script({ reply }) {
      reply.writeHead(405)
      reply.end()
      return true
    },
  })
  const rig = reach(t, server.url)
  await until(() => rig.said.length > 0)
  assert.match(rig.said.join(), /HTTP\+SSE transport of 2024-11-05, ask for its Streamable HTTP/)
})

for (const [from, to] of [
  ['legacy', 'modern'],
  ['modern', 'legacy'],
] as const) {
  test(`a ${from} server that comes back as a ${to} one is probed again and served`, async (t) => {
    const server = await httpServer(t, { era: from })
    const rig = reach(t, server.url)
    assert.equal(textOf(await call(rig, 'get')), 'get')
    server.era = to
    server.sessions.clear()
    assert.equal((await call(rig, 'get')).kind === 'answered', false)
    await until(
      () =>
        server.of(to === 'modern' ? 'server/discover' : 'initialize').length >
        (to === 'modern' ? 1 : 0),
    )
    await until(() => rig.explain('s') === null)
    assert.equal((await rig.hello('s'))?.era, to)
    assert.equal(textOf(await call(rig, 'get')), 'get')
  })
}

test('an era that is configured is not probed for', async (t) => {
  const server = await httpServer(t, { era: 'dual' })
  const rig = reach(t, server.url, { era: 'legacy' })
  assert.equal((await rig.hello('s'))?.era, 'legacy')
  assert.equal(server.of('server/discover').length, 0)
  const old = await httpServer(t, { era: 'legacy' })
  const strict = reach(t, old.url, { era: 'modern' })
  await until(() => strict.said.length > 0)
  assert.match(strict.said.join(), /does not speak the modern era/)
  assert.equal(old.of('initialize').length, 0)
})
