import assert from 'node:assert/strict'
import { test } from 'node:test'

import { loadConfig } from '../../src/policy/config.ts'
import { faultLine } from '../../src/policy/position.ts'
import { configOf } from './ground.ts'

const SECRET = 's3cret'
const lookup = {
  env: (name: string): string | undefined =>
    ({ TOKEN: `Bearer ${SECRET}`, SPLIT: `${SECRET}\r\nX-Admin: 1`, HIGH: `${SECRET}\u{e9}` })[
      name
    ],
  file: (): undefined => undefined,
}
async function faultsOf(text: string): Promise<readonly string[]> {
  const loaded = await loadConfig({ file: 'e.yaml', text }, null, lookup)
  const faults = loaded.kind === 'faults' ? loaded.faults : loaded.warnings
  return faults.map((fault) => faultLine(fault).replace(/ \(\/.*\)$/, ''))
}
const withUpstream = (lines: readonly string[]): string =>
  [
    'version: 2',
    'upstreams:',
    '  far:',
    ...lines.map((line) => `    ${line}`),
    'profiles: { p: {} }',
  ]
    .join('\n')
    .concat('\n')

test('a server with a url has headers from the environment and the defaults of any server', async () => {
  const config = await configOf(
    withUpstream(['url: https://far.test/mcp?v=1', 'headers: { Authorization: "${TOKEN}" }']),
    null,
    lookup,
  )
  const [far] = config.upstreams
  assert.ok(far?.kind === 'url')
  assert.deepEqual(
    { ...far, headers: { ...far.headers } },
    {
      kind: 'url',
      name: 'far',
      url: 'https://far.test/mcp?v=1',
      headers: { Authorization: `Bearer ${SECRET}` },
      allowRedirects: false,
      allowPrivate: false,
      era: 'auto',
      share: false,
      probeMs: 15_000,
      callMs: 300_000,
      callMaxMs: 1_800_000,
      listMs: 10_000,
    },
  )
  assert.ok(!config.policy.text.includes(SECRET), 'the policy text is before substitution')
})

for (const [name, lines, wanted] of [
  ['no way to reach it', ['era: auto'], 'e.yaml:4:5: error: `command` is missing'],
  [
    'two ways to reach it',
    ['url: https://x.test', 'command: [x]'],
    'e.yaml:4:10: error: a server has a `command` or a `url`, not both',
  ],
  [
    'an environment far away',
    ['url: https://x.test', 'env: { A: b }'],
    'e.yaml:5:5: error: `env` belongs to a server with a `command`; remove it',
  ],
  [
    'headers to a pipe',
    ['command: [x]', 'headers: { A: b }'],
    'e.yaml:5:5: error: `headers` belongs to a server with a `url`; remove it',
  ],
  [
    'another scheme',
    ['url: file:///etc/passwd'],
    'e.yaml:4:10: error: expected an address that begins with http:// or https://',
  ],
  [
    'no address at all',
    ['url: x.test/mcp'],
    'e.yaml:4:10: error: expected an address that begins with http:// or https://',
  ],
  [
    'a password in the address',
    [`url: https://me:${SECRET}@x.test/`],
    'e.yaml:4:10: error: an address holds no user and password; write them as a header',
  ],
  [
    'a fragment',
    ['url: https://x.test/#a'],
    'e.yaml:4:10: error: an address holds no fragment; remove what begins with #',
  ],
  [
    'a header that is split in two',
    ['url: https://x.test', 'headers:', '  Authorization: "${SPLIT}"'],
    'e.yaml:6:22: error: the value of a header is printable ASCII, with no space at its ends',
  ],
  [
    'a header beyond ASCII',
    ['url: https://x.test', 'headers: { A: "${HIGH}" }'],
    'e.yaml:5:19: error: the value of a header is printable ASCII, with no space at its ends',
  ],
  [
    'an empty header',
    ['url: https://x.test', 'headers: { A: "" }'],
    'e.yaml:5:19: error: the value of a header is printable ASCII, with no space at its ends',
  ],
  [
    'a name with a space',
    ['url: https://x.test', 'headers: { "A b": c }'],
    'e.yaml:5:16: error: this is no name of a header',
  ],
  [
    'a header of the transport',
    ['url: https://x.test', 'headers: { Transfer-Encoding: chunked }'],
    'e.yaml:5:16: error: this header is set for each message; remove it',
  ],
  [
    'a header of the protocol',
    ['url: https://x.test', 'headers: { MCP-Session-Id: x }'],
    'e.yaml:5:16: error: this header is set for each message; remove it',
  ],
  [
    'one header twice',
    ['url: https://x.test', 'headers: { X-A: b, x-a: c }'],
    'e.yaml:5:24: error: this header stands here twice; names differ in more than case',
  ],
] as const) {
  test(`a server with ${name} is a fault with its place and without the value`, async () => {
    const faults = await faultsOf(withUpstream(lines))
    assert.deepEqual(faults, [wanted])
    assert.ok(!faults.join('').includes(SECRET))
  })
}

test('a header that can be read on the way is warned of, on loopback not', async () => {
  const faults = (url: string): Promise<readonly string[]> =>
    faultsOf(withUpstream([`url: ${url}`, 'headers: { A: b }']))
  assert.match((await faults('http://x.test/')).join('\n'), /warning: its headers can be read/)
  for (const url of [
    'http://127.0.0.1:1/',
    'http://localhost/',
    'http://[::1]/',
    'https://x.test/',
  ])
    assert.doesNotMatch((await faults(url)).join('\n'), /warning/)
})
