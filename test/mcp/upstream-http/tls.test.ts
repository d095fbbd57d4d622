// Over TLS nothing is written before the server has proved who it is.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import tls from 'node:tls'

import { type Ending, send } from '../../../src/mcp/upstream-http/send.ts'
import { type Site, site } from '../../../src/mcp/upstream-http/site.ts'
import { type RawServer, rawServer, said } from '../../servers/raw-http.ts'
import { until } from '../upstream/rig.ts'

/** Of `server.example`, signed by itself; it opens nothing but these tests. */
const KEY = `
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCgm2uQvww27d8XQR
gzj0X/d+cWnIrWesVoIbocOfTz+hRANCAAT7RzVaHu/gjzqJLooNS50lAmxeBGiO
NAC9UQspX3M/Pge35SAmb++d4cu1cqDvSnvMk3dDKuFq/6bWlpflOZov
-----END PRIVATE KEY-----
`
const CERTIFICATE = `
-----BEGIN CERTIFICATE-----
MIIBpDCCAUqgAwIBAgIUc89JvDIlRqpnUmtNifNklHFo7HgwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOc2VydmVyLmV4YW1wbGUwIBcNMjYxMTMwMjMzNzE0WhgPMjEy
NjExMDYyMzM3MTRaMBkxFzAVBgNVBAMMDnNlcnZlci5leGFtcGxlMFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAE+0c1Wh7v4I86iS6KDUudJQJsXgRojjQAvVELKV9z
Pz4Ht+UgJm/vneHLtXKg70p7zJN3Qyrhav+m1paX5TmaL6NuMGwwHQYDVR0OBBYE
FAtR4ETgua5fXYij86cvzcQE5vpkMB8GA1UdIwQYMBaAFAtR4ETgua5fXYij86cv
zcQE5vpkMA8GA1UdEwEB/wQFMAMBAf8wGQYDVR0RBBIwEIIOc2VydmVyLmV4YW1w
bGUwCgYIKoZIzj0EAwIDSAAwRQIge3z69vmZba2n3DOxuxSnrlizZafcxaaU9cIm
1TG66HMCIQDSpLteDHnuRvmYiJnHNfoiuTDtSq2pBDxHMLGC0pN3JQ==
-----END CERTIFICATE-----
`

type Tls = RawServer & { readonly resumed: boolean[] }

async function secure(t: TestContext): Promise<Tls> {
  const resumed: boolean[] = []
  const server = tls.createServer({ key: KEY, cert: CERTIFICATE })
  server.on('tlsClientError', () => {})
  server.on('secureConnection', (socket) => resumed.push(socket.isSessionReused()))
  const made = await rawServer(t, (socket) => socket.write(said('{}', 'Connection: close\r\n')), {
    server,
    event: 'secureConnection',
  })
  return Object.assign(made, { resumed })
}

function placed(t: TestContext, { url }: RawServer, name: string): Site {
  const place = site({
    url: `https://${name}:${new URL(url).port}/mcp`,
    allowPrivate: false,
    allowRedirects: false,
    resolve: (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]),
  })
  t.after(() => place.close())
  return place
}

type Asked = { readonly ended: Promise<Ending>; readonly handed: boolean[] }

function ask(place: Site): Asked {
  const handed: boolean[] = []
  const { promise, resolve } = Promise.withResolvers<Ending>()
  const letter = { method: 'POST', headers: {}, own: {}, body: '{}', limitBytes: 1000 } as const
  send(
    place,
    { ...letter, long: false },
    { handed: (kept) => handed.push(kept), end: (ending) => resolve(ending) },
  )
  return { ended: promise, handed }
}

/** Trusts the certificate of these tests, or nothing of its kind. */
function trusting(t: TestContext, certificates: readonly string[]): void {
  const before = tls.getCACertificates('default')
  tls.setDefaultCACertificates([...certificates])
  t.after(() => tls.setDefaultCACertificates(before))
}
const skip = !('setDefaultCACertificates' in tls) && 'this Node cannot be told whom to trust'

for (const [name, host, trusted, code] of [
  ['that nobody vouches for', 'server.example', [], /certificate is not accepted/],
  ['of another name', 'other.example', [CERTIFICATE], /certificate is not accepted/],
] as const) {
  test(
    `a server with a certificate ${name} gets not one byte, whatever the environment says`,
    { skip },
    async (t) => {
      trusting(t, trusted)
      process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0'
      t.after(() => delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'])
      const server = await secure(t)
      const { ended, handed } = ask(placed(t, server, host))
      const ending = await ended
      assert.ok(ending.kind === 'unreached', JSON.stringify(ending))
      assert.match(ending.why, code)
      assert.deepEqual(handed, [])
      assert.equal(server.requests.length, 0)
      assert.ok(server.bytes.every((text) => text === ''))
    },
  )
}

test(
  'a server that proves its name is spoken to, and its session is taken up by the next connection',
  { skip },
  async (t) => {
    trusting(t, [CERTIFICATE])
    const server = await secure(t)
    const place = placed(t, server, 'server.example')
    for (let at = 0; at < 2; at++) {
      const { ended, handed } = ask(place)
      const ending = await ended
      assert.equal(ending.kind, 'whole', JSON.stringify(ending))
      assert.deepEqual(handed, [false])
    }
    assert.deepEqual(server.resumed, [false, true])
    assert.match(server.requests[0]?.head ?? '', /Host: server\.example:\d+/)
  },
)

test('one that is stopped while the server proves its name is never written', async (t) => {
  const server = await rawServer(t, () => assert.fail('it speaks no TLS'), {
    begun(socket) {
      socket.resume()
      return true
    },
  })
  const place = placed(t, server, 'server.example')
  const sending = send(
    place,
    { method: 'POST', headers: {}, own: {}, body: '{}', limitBytes: 1000, long: false },
    { end: () => assert.fail('it was stopped') },
  )
  await until(() => server.sockets.length === 1)
  assert.equal(sending.handed(), false)
  sending.stop()
  await until(() => server.sockets[0]?.destroyed === true)
})

const LONG = process.env['ECLUSA_LONG'] !== '1' && 'it takes ten seconds'
test(
  'a server that takes no connection in ten seconds is not reached',
  { skip: LONG },
  async (t) => {
    const server = await rawServer(t, () => assert.fail('it speaks no TLS'), {
      begun(socket) {
        socket.resume()
        return true
      },
    })
    const ending = await ask(placed(t, server, 'server.example')).ended
    assert.deepEqual(ending, { kind: 'unreached', why: 'it took no connection in 10 s' })
    await until(() => server.sockets[0]?.destroyed === true)
  },
)
