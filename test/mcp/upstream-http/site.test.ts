import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { UPSTREAM_LIMITS } from '../../../src/json.ts'
import { type HttpOptions, startHttpUpstream } from '../../../src/mcp/upstream-http/http.ts'
import { guarded, isPrivate } from '../../../src/mcp/upstream-http/site.ts'
import { httpServer, type Script } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { call, json, textOf, until } from '../upstream/rig.ts'

for (const address of [
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.255.255',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::127.0.0.1',
  '::ffff:127.0.0.1',
  '::ffff:7f00:1',
  '::ffff:169.254.169.254',
  '::ffff:10.0.0.1',
  '::ffff:0:7f00:1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::1',
  '100::1',
  '2001::1',
  '2001:db8::1',
  '2002:7f00:1::',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'fe80::1%eth0',
  'fec0::1',
  'ff02::1',
  '3fff::1',
  'not an address',
  '',
]) {
  test(`${address === '' ? 'nothing' : address} is no public address`, () => {
    assert.equal(isPrivate(address), true)
  })
}
for (const address of [
  '1.1.1.1',
  '8.8.8.8',
  '100.63.255.255',
  '100.128.0.1',
  '172.15.0.1',
  '172.32.0.1',
  '192.167.0.1',
  '223.255.255.255',
  '2606:4700::1111',
  '2a00:1450::1',
  '::ffff:8.8.8.8',
]) {
  test(`${address} is a public address`, () => {
    assert.equal(isPrivate(address), false)
  })
}

type Reached = {
  readonly upstream: ReturnType<typeof startHttpUpstream>
  readonly failures: string[]
}

/** Reaches a server whose name leads where the test says. */
function named(
  t: TestContext,
  port: number,
  leads: () => string,
  more: Partial<HttpOptions> = {},
): Reached {
  const failures: string[] = []
  const upstream = startHttpUpstream({
    name: 's',
    url: `http://server.example:${port}/mcp`,
    headers: {},
    allowRedirects: false,
    allowPrivate: false,
    era: 'modern',
    client: { name: 'eclusa', version: '0' },
    capabilities: json({}),
    probeMs: 2000,
    limits: UPSTREAM_LIMITS,
    failed: (why) => failures.push(why),
    ready: () => {},
    notified: () => {},
    say: () => {},
    resolve: (_name, _options, done) => done(null, [{ address: leads(), family: 4 }]),
    ...more,
  })
  t.after(() => upstream.stop())
  return { upstream, failures }
}

test('a name that leads inside from the start is reached there', async (t) => {
  const server = await httpServer(t)
  const { upstream } = named(t, server.port, () => '127.0.0.1')
  assert.notEqual(await upstream.reach(2000), null)
})

/** What the lookups of this name give one after the other, each as the address or the code of its error. */
function looked(
  name: string,
  leads: readonly (readonly string[])[],
  more: { readonly allowPrivate?: boolean } = {},
): string[] {
  let at = 0
  const lookup = guarded('server.example', {
    url: 'http://server.example/',
    allowPrivate: false,
    allowRedirects: false,
    resolve(_name, _options, done) {
      done(
        null,
        (leads[at++] ?? []).map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      )
    },
    ...more,
  })
  return leads.map(() => {
    let got = ''
    lookup(name, { all: true }, (error, found) => {
      got = error?.code ?? (Array.isArray(found) ? found.map(({ address }) => address).join() : '')
    })
    return got
  })
}
const PRIVATE = 'ERR_ECLUSA_PRIVATE'

test('a name that led to a public address and then leads inside is not followed there', () => {
  const leads = [['8.8.8.8'], ['127.0.0.1'], ['::1', '8.8.4.4'], ['fd00::1']]
  assert.deepEqual(looked('server.example', leads), ['8.8.8.8', PRIVATE, '8.8.4.4', PRIVATE])
  assert.deepEqual(
    looked('server.example', leads, { allowPrivate: true }),
    leads.map((one) => one.join()),
  )
})

test('a name that led inside from the start may lead anywhere; any other name only to public ones', () => {
  const leads = [['10.0.0.1'], ['127.0.0.1'], ['8.8.8.8']]
  assert.deepEqual(looked('server.example', leads), ['10.0.0.1', '127.0.0.1', '8.8.8.8'])
  assert.deepEqual(looked('other.example', leads), [PRIVATE, PRIVATE, '8.8.8.8'])
})

test('a redirect to a name that leads inside is refused at the socket', async (t) => {
  const target = await httpServer(t)
  const server = await httpServer(t, {
    script: ({ reply }) => {
      reply.writeHead(307, { location: `http://other.example:${target.port}/mcp` })
      reply.end()
      return true
    },
  })
  const { failures } = named(t, server.port, () => '127.0.0.1', { allowRedirects: true })
  await until(() => failures.length > 0)
  assert.match(failures[0] ?? '', /leads to a private address; set allow_private/)
  assert.equal(target.connections, 0)
})

/** Sends everything elsewhere. */
const redirect =
  (to: () => string, status = 307): Script =>
  ({ reply }) => {
    reply.writeHead(status, { location: to() })
    reply.end()
    return true
  }

test('a redirect is followed only where that is allowed, with method and body, and without our headers', async (t) => {
  const target = await httpServer(t)
  const server = await httpServer(t, { script: redirect(() => target.url) })
  const headers = { Authorization: 'Bearer ours' }
  const refused = reach(t, server.url, { headers })
  await until(() => refused.said.length > 0)
  assert.match(refused.said.join(), /it redirects; set allow_redirects to follow it/)
  assert.equal(target.seen.length, 0)

  const inside = reach(t, server.url, { headers, allowRedirects: true })
  await until(() => inside.said.length > 0)
  assert.match(inside.said.join(), /redirects to a private address; set allow_private/)
  assert.equal(target.seen.length, 0)

  const followed = reach(t, server.url, { headers, allowRedirects: true, allowPrivate: true })
  assert.equal(textOf(await call(followed, 'echo', { text: 'x' })), 'x')
  assert.ok(target.seen.every((seen) => seen.headers['authorization'] === undefined))
  assert.ok(
    server.of('tools/call').every((seen) => seen.headers['authorization'] === 'Bearer ours'),
  )
  assert.equal(target.of('tools/call').length, 1)
})

test('a redirect on the same server is followed with our headers', async (t) => {
  const server = await httpServer(t, {
    script: ({ reply, request }) => {
      if (request.url === '/mcp/') return false
      reply.writeHead(308, { location: '/mcp/' })
      reply.end()
      return true
    },
  })
  const rig = reach(t, server.url, { headers: { 'X-Key': 'k' }, allowRedirects: true })
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  assert.ok(server.seen.every((seen) => seen.headers['x-key'] === 'k'))
})

for (const [name, to, status] of [
  ['a circle', '', 307],
  ['another method', '/x', 302],
  ['another scheme', 'ftp://127.0.0.1/', 307],
  ['a file', 'file:///etc/passwd', 307],
  ['a password', 'http://u:p@127.0.0.1/', 307],
  ['a metadata address', 'http://169.254.169.254/latest', 307],
  ['a decimal address', 'http://2130706433/', 307],
  ['an IPv6 form of loopback', 'http://[::ffff:7f00:1]/', 307],
] as const) {
  test(`a redirect to ${name} is not followed, even where redirects are`, async (t) => {
    const server = await httpServer(t, { script: redirect(() => to, status) })
    const rig = reach(t, server.url, { allowRedirects: true })
    await until(() => rig.said.length > 0)
    assert.match(rig.said.join(), /redirect/)
    assert.ok(server.seen.length <= 4)
  })
}
