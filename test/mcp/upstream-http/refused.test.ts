import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, type Script } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { call, until } from '../upstream/rig.ts'

/** Does this to the calls of tools and nothing to the rest. */
const onCall =
  (script: Script): Script =>
  (turn) =>
    turn.seen.body['method'] === 'tools/call' ? script(turn) : false

const HTML = '<html>no</html>'
const plain =
  (status: number, headers: Record<string, string> = {}): Script =>
  ({ reply }) => {
    reply.writeHead(status, { 'content-type': 'text/html', ...headers })
    reply.end(HTML)
    return true
  }

for (const [name, script, kind, code, why] of [
  [
    '401',
    plain(401, { 'www-authenticate': 'Bearer realm="secret"' }),
    'unsent',
    'upstream_login',
    /^s needs a login; set its header$/,
  ],
  ['403', plain(403), 'unsent', 'upstream_login', /^s needs a login; set its header$/],
  ['413', plain(413), 'unsent', 'upstream_down', /status 413/],
  ['415', plain(415), 'unsent', 'upstream_down', /status 415/],
  ['429', plain(429, { 'retry-after': '7' }), 'unsent', 'upstream_down', /try again in 7 s/],
  ['500', plain(500), 'unknown', 'answer_refused', /status 500/],
  ['502', plain(502), 'unknown', 'answer_refused', /status 502/],
  [
    '503 with Retry-After',
    plain(503, { 'retry-after': '1' }),
    'unknown',
    'answer_refused',
    /status 503/,
  ],
  ['400 without a message', plain(400), 'unknown', 'answer_refused', /status 400/],
  ['a page', plain(200), 'unknown', 'answer_refused', /status 200/],
  ['nothing', plain(204), 'unknown', 'answer_refused', /status 204/],
  [
    'a 307 to elsewhere',
    plain(307, { location: '/other' }),
    'unsent',
    'upstream_down',
    /allow_redirects/,
  ],
  ['a 303', plain(303, { location: '/other' }), 'unknown', 'answer_refused', /redirects/],
  [
    'half of an answer',
    ({ seen, reply }) => {
      reply.writeHead(200, { 'content-type': 'application/json', 'content-length': 500 })
      reply.write(`{"jsonrpc":"2.0","id":${String(seen.body['id'])},`)
      setTimeout(() => reply.destroy(), 20)
      return true
    },
    'unknown',
    'upstream_down',
    /./,
  ],
  [
    'a closed connection',
    ({ reply }) => {
      reply.destroy()
      return true
    },
    'unknown',
    'upstream_down',
    /./,
  ],
  [
    'a stream that ends too soon',
    ({ reply, stream }) => {
      stream()
      reply.end()
      return true
    },
    'unknown',
    'upstream_down',
    /./,
  ],
  [
    'a compressed answer',
    ({ reply }) => {
      reply.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
      reply.end('x')
      return true
    },
    'unknown',
    'answer_refused',
    /compressed/,
  ],
  [
    'an answer to another id',
    ({ json: say }) => {
      say(200, { jsonrpc: '2.0', id: 'other', result: { resultType: 'complete', content: [] } })
      return true
    },
    'unknown',
    'answer_refused',
    /not to the request/,
  ],
  [
    'a duplicate key',
    ({ seen, reply }) => {
      reply.writeHead(200, { 'content-type': 'application/json' })
      reply.end(`{"jsonrpc":"2.0","id":${String(seen.body['id'])},"result":{"a":1,"a":2}}`)
      return true
    },
    'unknown',
    'answer_refused',
    /duplicate_key/,
  ],
  [
    'too many headers',
    ({ reply }) => {
      reply.writeHead(200, { 'content-type': 'application/json', 'x-big': 'x'.repeat(20_000) })
      reply.end('{}')
      return true
    },
    'unknown',
    'upstream_down',
    /./,
  ],
] as [string, Script, string, string, RegExp][]) {
  test(`a call that is answered with ${name} is ${kind}, and not sent again`, async (t) => {
    const server = await httpServer(t, { script: onCall(script) })
    const attempt = await call(reach(t, server.url), 'put')
    assert.equal(attempt.kind, kind, JSON.stringify(attempt))
    assert.ok(attempt.kind === 'unsent' || attempt.kind === 'unknown')
    assert.equal(attempt.code, code)
    assert.match(attempt.why, why)
    assert.ok(!JSON.stringify(attempt).includes('realm'))
    assert.equal(server.of('tools/call').length, 1)
  })
}

for (const era of ['modern', 'legacy'] as const) {
  test(`an error of a ${era} server is its answer, whatever its status`, async (t) => {
    let status = 200
    const server = await httpServer(t, {
      era,
      script: onCall(({ error }) => {
        error(status, -32602, 'bad', { a: 1 })
        return true
      }),
    })
    const rig = reach(t, server.url)
    for (status of [200, 400, 500]) {
      const attempt = await call(rig, 'put')
      assert.ok(
        attempt.kind === 'answered' && attempt.answer.kind === 'error',
        JSON.stringify(attempt),
      )
      assert.equal(attempt.answer.code, -32602)
      assert.deepEqual({ ...(attempt.answer.data as object) }, { a: 1 })
    }
  })
}

test('the token that is configured stands in no line for the operator', async (t) => {
  const server = await httpServer(t, { script: plain(401) })
  const rig = reach(t, server.url, { headers: { Authorization: 'Bearer s3cret-token' } })
  await until(() => rig.said.length > 0)
  assert.match(rig.said.join(), /s needs a login; set its header/)
  assert.ok(!rig.said.join().includes('s3cret'))
})
