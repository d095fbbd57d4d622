// Neither a rebound host, nor an origin that only resembles an allowed one, nor two origins pass.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Answered, Headers } from './http-wire.ts'
import { type Gate, startGate } from './harness.ts'
import { type Era, ERAS, request } from './wire.ts'

const ALLOWED = 'http://app.test:3000'

const hello = (era: Era): string =>
  JSON.stringify(
    era === 'modern'
      ? request(era, 1, 'server/discover')
      : request(era, 1, 'initialize', {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 't', version: '1' },
        }),
  )

const knock = (gate: Gate, headers: Headers): Promise<Answered> =>
  gate.client().exchange({ body: hello(gate.era), headers })

const start = (t: Parameters<typeof startGate>[0], era: Era): Promise<Gate> =>
  startGate(t, {
    front: 'http',
    era,
    handshake: false,
    config: { allowed_origins: [ALLOWED] },
  })

for (const era of ERAS) {
  test(`${era}: hosts and origins are compared whole, with what is configured and not with each other`, async (t) => {
    const gate = await start(t, era)
    const { port } = gate.http
    const refused: readonly Headers[] = [
      { host: 'evil.test', origin: 'http://evil.test' },
      { host: `evil.test:${port}`, origin: `http://evil.test:${port}` },
      { host: 'evil.test' },
      { origin: 'http://localhost.evil.test' },
      { origin: 'http://127.0.0.1.evil.test' },
      { origin: 'null' },
      { origin: `${ALLOWED}.evil` },
      { origin: 'http://app.test' },
      { origin: 'https://app.test:3000' },
      { origin: `http://user@app.test:3000` },
      { origin: `${ALLOWED}/` },
      { origin: [ALLOWED, 'http://evil.test'] },
      { origin: ['http://evil.test', ALLOWED] },
      { origin: [ALLOWED, ALLOWED] },
      { origin: `${ALLOWED}, http://evil.test` },
      { origin: `${ALLOWED} http://evil.test` },
    ]
    for (const headers of refused) {
      const { status, headers: back } = await knock(gate, headers)
      assert.ok([400, 403].includes(status), `${JSON.stringify(headers)}: ${status}`)
      // Two of one header are no request of this protocol; every other is whom we do not let in.
      if (!Array.isArray(headers['origin'])) assert.equal(status, 403, JSON.stringify(headers))
      assert.equal(back['access-control-allow-origin'], undefined, JSON.stringify(headers))
    }
    assert.equal(
      gate.trace().some(({ method }) => method === 'tools/call'),
      false,
    )
    for (const headers of [
      { host: `127.0.0.1:${port}`, origin: ALLOWED },
      { host: `[::1]:${port}` },
      { host: `localhost:${port}` },
      {},
    ]) {
      assert.equal((await knock(gate, headers)).status, 200, JSON.stringify(headers))
    }
  })

  test(`${era}: an allowed page is told exactly its own origin, and which headers it may read`, async (t) => {
    const gate = await start(t, era)
    const { status, headers } = await knock(gate, { origin: ALLOWED })
    assert.equal(status, 200)
    assert.equal(headers['access-control-allow-origin'], ALLOWED)
    assert.match(String(headers['vary']), /\borigin\b/i)
    assert.match(String(headers['access-control-expose-headers']), /Mcp-Session-Id/i)
    assert.equal(headers['access-control-allow-credentials'], undefined)
    const asked = { 'access-control-request-method': 'POST', 'content-type': undefined }
    const preflight = await gate
      .client()
      .exchange({ verb: 'OPTIONS', headers: { ...asked, origin: ALLOWED } })
    assert.equal(preflight.status, 204)
    assert.equal(preflight.headers['access-control-allow-origin'], ALLOWED)
    assert.match(String(preflight.headers['access-control-allow-headers']), /mcp-session-id/i)
    const other = await gate
      .client()
      .exchange({ verb: 'OPTIONS', headers: { ...asked, origin: 'http://evil.test' } })
    assert.equal(other.status, 403)
  })
}
