// The keys of a configuration that `serve` reads: their defaults, and every fault with its place.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { configOf, faultsOf } from './ground.ts'

const base = (rest: string): string => `version: 2
upstreams: { notes: { command: [x] } }
profiles: { p: { allow: [notes/r] }, q: {} }
${rest}
`

test('without a word the gateway listens on this machine only, for everybody with a token', async () => {
  const { serving } = await configOf(base(''))
  assert.deepEqual(serving, {
    listen: { host: '127.0.0.1', port: 8377 },
    anonymous: null,
    publicOrigin: null,
    endpoints: new Map([['/mcp', null]]),
    hosts: [],
    origins: [],
    keepAliveMs: 15_000,
    sessionIdleMs: 1_800_000,
  })
})

test('what is written is taken', async () => {
  const { serving } = await configOf(
    base(`listen: 0.0.0.0:9000
public_url: https://mcp.example.com/team
endpoints: { /team-a/mcp: { profiles: [p] }, /mcp: {} }
allowed_hosts: [gateway.internal, "10.0.0.1:9000"]
allowed_origins: [https://app.example.com, "http://localhost:5173"]
keepalive: 5s
session_idle: 2h`),
  )
  assert.deepEqual(serving, {
    listen: { host: '0.0.0.0', port: 9_000 },
    anonymous: null,
    publicOrigin: 'https://mcp.example.com',
    endpoints: new Map([
      ['/team-a/mcp', new Set(['p'])],
      ['/mcp', null],
    ]),
    hosts: ['gateway.internal', '10.0.0.1:9000', 'mcp.example.com'],
    origins: ['https://app.example.com', 'http://localhost:5173'],
    keepAliveMs: 5_000,
    sessionIdleMs: 7_200_000,
  })
})

for (const [text, host, port] of [
  ['8080', '127.0.0.1', 8_080],
  ['"[::1]:8080"', '::1', 8_080],
  ['localhost:0', 'localhost', 0],
] as const) {
  test(`listen: ${text} is ${host} and ${port}`, async () => {
    const { serving } = await configOf(base(`listen: ${text}`))
    assert.deepEqual(serving.listen, { host, port })
  })
}

for (const [text, fault] of [
  ['listen: 127.0.0.1', /e\.yaml:4:9: error: expected HOST:PORT/],
  ['listen: 127.0.0.1:70000', /e\.yaml:4:9: error: expected HOST:PORT/],
  ['listen: http://127.0.0.1:80', /e\.yaml:4:9: error: expected HOST:PORT/],
  ['anonymous: nobody', /e\.yaml:4:12: error: no profile is called `nobody`; known: p, q/],
  ['public_url: ftp://x', /e\.yaml:4:13: error: expected an http or https URL/],
  ['public_url: https://user@x', /e\.yaml:4:13: error: expected an http or https URL/],
  ['public_url: https://x/?token=1', /e\.yaml:4:13: error: expected an http or https URL/],
  ['endpoints: { mcp: {} }', /e\.yaml:4:14: error: bad name `mcp`: expected a path/],
  ['endpoints: { /health: {} }', /e\.yaml:4:\d+: error: \/health is the server's own/],
  ['endpoints: { /a: { profiles: [x] } }', /e\.yaml:4:31: error: no profile is called `x`/],
  ['endpoints: { /a: { profiles: [] } }', /error: fewer than 1 items/],
  ['endpoints: { /a: { profile: p } }', /error: unknown key `profile`; did you mean `profiles`/],
  ['endpoints: {}', /error: is empty/],
  ['allowed_hosts: [http://x]', /e\.yaml:4:17: error: expected a host/],
  ['allowed_origins: [x.example.com]', /e\.yaml:4:19: error: expected an origin/],
  ['allowed_origins: ["https://x/"]', /e\.yaml:4:19: error: expected an origin/],
  ['keepalive: 5', /e\.yaml:4:12: error: /],
  ['session_idle: 0s', /e\.yaml:4:15: error: expected a time from 1ms to 24d/],
  ['allowed_origins: ["null"]', /e\.yaml:4:19: error: expected an origin/],
] as const) {
  test(`${text} is refused with its place`, async () => {
    const lines = await faultsOf(base(text))
    assert.ok(
      lines.some((line) => fault.test(line)),
      lines.join('\n'),
    )
  })
}

test('whoever listens elsewhere than on loopback asks for a token', async () => {
  const lines = await faultsOf(base('listen: 0.0.0.0:80\nanonymous: p'))
  assert.match(
    lines.join('\n'),
    /e\.yaml:5:12: error: clients without a token are served on loopback only/,
  )
  const { serving } = await configOf(base('listen: 127.0.0.1:80\nanonymous: p'))
  assert.equal(serving.anonymous, 'p')
})
