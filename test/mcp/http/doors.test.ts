// Who is let in over HTTP, where to, and what those hear who are not.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { META26 } from '../front/desk.ts'
import {
  eventually,
  type Got,
  handshake,
  house,
  JSON_HEADERS,
  modernHeaders,
  raw,
  reading,
} from './rig.ts'

const clients = { ana: 'agent', rui: 'other' }
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META26 } }

test('without a token nothing is served, and nobody is told why one is not good', async (t) => {
  const one = await house(t, { clients })
  const missing = await one.modern('tools/list')
  assert.equal(missing.status, 401)
  assert.equal(missing.headers.get('www-authenticate'), 'Bearer')
  const bad = await one.modern('tools/list', {}, one.as('ecl_nobody'))
  assert.equal(bad.status, 401)
  assert.equal(bad.headers.get('www-authenticate'), 'Bearer error="invalid_token"')
  const good = await one.modern('tools/list', {}, one.as('ana'))
  assert.equal(good.status, 200)
  await eventually('the refused ones are counted', () =>
    one.audit().some(({ kind, refused_token_bad: n }) => kind === 'count' && n === 1),
  )
  const [count] = one.audit().filter(({ kind }) => kind === 'count')
  assert.equal(count?.['refused_token_missing'], 1)
  assert.equal(count?.['identity'], 'unknown')
  assert.doesNotMatch(JSON.stringify(one.audit()) + one.said().join('\n'), /ecl_/)
})

test('a client of a profile that an endpoint does not serve is 403 there, and that is in the ledger', async (t) => {
  const endpoints = new Map([
    ['/agents/mcp', new Set(['agent'])],
    ['/all', null],
  ])
  const one = await house(t, { clients, endpoints })
  const ask = (token: string, path: string): Promise<Got> =>
    one.post(LIST, { ...modernHeaders('tools/list'), ...one.as(token) }, path)
  assert.equal((await ask('ana', '/agents/mcp')).status, 200)
  assert.equal((await ask('rui', '/agents/mcp')).status, 403)
  assert.equal((await ask('rui', '/all')).status, 200)
  assert.equal((await ask('ana', '/mcp')).status, 404)
  const [refused] = one.audit().filter(({ problem }) => problem === 'endpoint')
  assert.equal(refused?.['client'], 'rui')
})

test('a revoked client gets nothing more: its streams end, its session is gone', async (t) => {
  const one = await house(t, { clients, profile: { allow: ['up/after'] }, times: { sweep: 20 } })
  const mine = await one.greet('2025-11-25', one.as('ana'))
  const stream = await reading(`${one.url}/mcp`, { headers: mine })
  const wish = { notifications: { toolsListChanged: true } }
  const listen = await reading(`${one.url}/mcp`, {
    method: 'POST',
    headers: { ...modernHeaders('subscriptions/listen'), ...one.as('ana') },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'subscriptions/listen',
      params: { ...wish, _meta: META26 },
    }),
  })
  await listen.until((events) => events.length > 0)
  const other = await one.greet('2025-11-25', one.as('rui'))
  const theirs = await reading(`${one.url}/mcp`, { headers: other })
  const params = { name: 'after', arguments: { ms: 4_000, label: 'secret' } }
  const inFlight = one.modern('tools/call', params, one.as('ana')).then(
    ({ status, text }) => `${status} ${text}`,
    () => 'cut',
  )
  await eventually('the call is in the ledger', () =>
    one.audit().some(({ kind }) => kind === 'intent'),
  )
  one.revoke('ana')
  await stream.ended
  await listen.ended
  // Not a clean end: its client would wait for an answer.
  assert.equal(await inFlight, 'cut')
  const after = await one.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, mine)
  assert.equal(after.status, 401)
  assert.equal((await one.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, other)).status, 200)
  theirs.close()
})

const hostTry = (port: number, host: string, origin?: string): Promise<string> => {
  const body = JSON.stringify(LIST)
  const lines = [
    'POST /mcp HTTP/1.1',
    `Host: ${host}`,
    ...(origin === undefined ? [] : [`Origin: ${origin}`]),
    ...Object.entries(modernHeaders('tools/list')).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  return raw(port, `${lines.join('\r\n')}\r\n\r\n${body}`)
}

test('a host that is not ours is refused, wherever its name leads', async (t) => {
  const one = await house(t, {})
  const { port } = one
  for (const host of [
    'evil.example.com',
    `evil.example.com:${port}`,
    '127.0.0.1.evil.com',
    'localhost.',
    '[::2]',
  ]) {
    assert.match(await hostTry(port, host), /^HTTP\/1\.1 403 /, host)
  }
  for (const host of [
    `127.0.0.1:${port}`,
    'localhost',
    `LOCALHOST:${port}`,
    '[::1]',
    'localhost:9999',
  ]) {
    assert.match(await hostTry(port, host), /^HTTP\/1\.1 200 /, host)
  }
})

test('an origin that is not ours and not allowed is refused; without one everybody may ask', async (t) => {
  const one = await house(t, { origins: ['https://app.example.com'] })
  const { port } = one
  for (const origin of [
    'http://evil.example.com',
    'null',
    `http://localhost:${port + 1}`,
    'https://app.example.com.evil',
  ]) {
    assert.match(await hostTry(port, 'localhost', origin), /^HTTP\/1\.1 403 /, origin)
  }
  for (const origin of [
    'https://app.example.com',
    `http://localhost:${port}`,
    `http://127.0.0.1:${port}`,
  ]) {
    assert.match(await hostTry(port, 'localhost', origin), /^HTTP\/1\.1 200 /, origin)
  }
})

test('a page of an allowed origin may ask first, and is told which headers it may send and read', async (t) => {
  const one = await house(t, { origins: ['https://app.example.com'], clients })
  const ask = (origin: string): Promise<Response> =>
    fetch(`${one.url}/mcp`, {
      method: 'OPTIONS',
      headers: {
        Origin: origin,
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'content-type, mcp-param-region, x-evil',
      },
    })
  const asked = await ask('https://app.example.com')
  assert.equal(asked.status, 204)
  assert.equal(asked.headers.get('access-control-allow-origin'), 'https://app.example.com')
  assert.equal(asked.headers.get('access-control-allow-credentials'), null)
  const allowed = (asked.headers.get('access-control-allow-headers') ?? '').split(', ')
  for (const name of [
    'authorization',
    'mcp-protocol-version',
    'mcp-method',
    'mcp-name',
    'mcp-param-region',
  ]) {
    assert.ok(allowed.includes(name), name)
  }
  assert.ok(!allowed.includes('x-evil'))
  assert.equal((await ask('https://evil.example.com')).status, 403)
  const got = await one.modern('tools/list', {}, { Origin: 'https://app.example.com' })
  assert.equal(got.status, 401)
  assert.equal(got.headers.get('access-control-allow-origin'), 'https://app.example.com')
  assert.match(
    got.headers.get('access-control-expose-headers') ?? '',
    /Mcp-Session-Id.*WWW-Authenticate/,
  )
  const local = await one.modern('tools/list', {}, { Origin: one.url })
  assert.equal(local.status, 401)
  assert.equal(local.headers.get('access-control-allow-origin'), null)
  const own = await fetch(`${one.url}/mcp`, { method: 'OPTIONS' })
  assert.equal(own.status, 405)
})

test('whoever knocks too often without a token is told to wait; whoever has one is not', async (t) => {
  const one = await house(t, { clients })
  const tries = Array.from({ length: 130 }, () => one.modern('tools/list', {}, one.as('wrong')))
  const statuses = new Set((await Promise.all(tries)).map(({ status }) => status))
  assert.deepEqual([...statuses].sort(), [401, 429])
  const late = await one.modern('tools/list', {}, one.as('wrong'))
  assert.equal(late.status, 429)
  assert.ok(Number(late.headers.get('retry-after')) >= 1)
  assert.equal((await one.modern('tools/list', {}, one.as('ana'))).status, 200)
  const records = one.audit().filter(({ kind }) => kind === 'malformed')
  assert.deepEqual(records, [])
})

test('health and readiness say nothing but themselves, without a token on this machine', async (t) => {
  let sick = false
  const one = await house(t, {
    clients,
    coat: (doors) => ({
      ...doors,
      store: {
        ...doors.store,
        health: () => (sick ? 'the disk at /secret is full' : doors.store.health()),
      },
    }),
  })
  const ask = async (path: string): Promise<readonly [number, string]> => {
    const got = await fetch(one.url + path)
    return [got.status, await got.text()]
  }
  assert.deepEqual(await ask('/health'), [200, '{"health":true}'])
  assert.deepEqual(await ask('/ready'), [200, '{"ready":true}'])
  sick = true
  assert.deepEqual(await ask('/health'), [503, '{"health":false}'])
  assert.deepEqual(await ask('/ready'), [503, '{"ready":false}'])
  assert.equal((await fetch(`${one.url}/health`, { method: 'POST' })).status, 405)
})

test('a draining server refuses new work, ends its streams and lets calls finish', async (t) => {
  const one = await house(t, { profile: { allow: ['up/after'] } })
  const mine = await one.greet()
  const stream = await reading(`${one.url}/mcp`, { headers: mine })
  const call = one.modern('tools/call', { name: 'after', arguments: { ms: 500, label: 'x' } })
  await eventually('the call is in the ledger', () =>
    one.audit().some(({ method, outcome }) => method === 'tools/call' && outcome === 'pending'),
  )
  const drained = one.server.drain()
  await stream.ended
  const refused = await one.modern('tools/list')
  assert.equal(refused.status, 503)
  assert.equal(refused.headers.get('retry-after'), '1')
  assert.equal((await one.post(handshake('2025-11-25'), JSON_HEADERS)).status, 503)
  assert.equal((await fetch(`${one.url}/ready`)).status, 503)
  assert.equal((await fetch(`${one.url}/health`)).status, 200)
  const got = await call
  assert.equal(got.status, 200)
  assert.match(got.text, /"x"/)
  await drained
})
