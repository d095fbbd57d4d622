// A configuration becomes settings and a policy, or every fault with file, line and column.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'

import { canonical } from '../../src/canonical.ts'
import { loadConfig, loadPolicy, policyReference } from '../../src/policy/config.ts'
import { decide } from '../../src/policy/decide.ts'
import { DEFAULT_LIMITS } from '../../src/policy/limits.ts'
import { faultLine } from '../../src/policy/position.ts'
import { approved, client, configOf, faultsOf, NOTHING, policyOf, toolCall } from './ground.ts'

const UP = 'upstreams: { notes: { command: [node, s.js] } }'
const base = (rest: string): string => `version: 2\n${UP}\n${rest}\n`

test('every fault of a file is told, in the order of its lines', async () => {
  const lines = await faultsOf(`version: 2
upstreams:
  notes: { comand: [x] }
tools:
  notes/w: { effect: write, verify: { call: x } }
  other/x: { effect: reed }
profiles:
  a:
    extends: nobody
    allow: [notes/w, nts/r]
    rules:
      - { tool: notes/w, require: args.text.sise() < 5 }
      - { tool: notes/w, when: "args.a ==", require: "true" }
    result: fields
`)
  assert.deepEqual(
    lines.map((line) => line.split(' (')[0]),
    [
      'e.yaml:3:10: error: `command` is missing',
      'e.yaml:3:12: error: unknown key `comand`; did you mean `command`?',
      'e.yaml:5:29: error: `verify` is not yet built; remove it',
      'e.yaml:6:12: error: no upstream is called `other`; known: notes',
      'e.yaml:6:22: error: expected one of read, write, destructive',
      'e.yaml:9:14: error: no profile is called `nobody`',
      'e.yaml:10:22: error: no upstream is called `nts`; known: notes',
      'e.yaml:12:35: error: the function `sise` is not known here',
      'e.yaml:13:42: error: Unexpected token: EOF',
      'e.yaml:14:13: error: `result: fields` is not yet built; write `full` or remove it',
    ],
  )
})

for (const [key, where] of [
  ['fields: [/a]', 'tool'],
  ['verify: { call: notes/r }', 'tool'],
  ['undo: { call: notes/r }', 'tool'],
  ['lookup: { call: notes/r }', 'tool'],
  ['limits: { calls: 60/min }', 'profile'],
  ['envelope: true', 'profile'],
  ['result: spec', 'profile'],
  ['result: fields', 'profile'],
  ['approve: { notes/r: { by: a, count: 1 } }', 'profile'],
  ['approves: [notes/r]', 'profile'],
  ['durability: relaxed', 'root'],
] as const) {
  test(`\`${key}\` of a ${where} is parsed and refused as not yet built, with its place`, async () => {
    const at = (place: string): string => (where === place ? `, ${key}` : '')
    const lines = await faultsOf(`version: 2
upstreams: { notes: { command: [x] } }
tools: { notes/r: { effect: read${at('tool')} } }
profiles: { p: { allow: [notes/r]${at('profile')} } }
${where === 'root' ? key : ''}
`)
    const errors = lines.filter((line) => line.includes('error'))
    assert.equal(errors.length, 1, lines.join('\n'))
    assert.match(errors[0] ?? '', /^e\.yaml:[2-5]:[0-9]+: error: .*not yet built/)
  })
}

test('settings have their defaults and may be moved', async () => {
  const plain = await configOf(base('profiles: { p: { allow: [notes/r] } }'))
  assert.deepEqual(plain.limits, DEFAULT_LIMITS)
  assert.deepEqual(plain.state, { dir: null, create: true })
  assert.equal(plain.drainMs, 5_000)
  assert.deepEqual(plain.profiles, ['p'])
  assert.deepEqual(
    { ...plain.upstreams[0], env: {} },
    {
      kind: 'command',
      name: 'notes',
      share: false,
      command: ['node', 's.js'],
      env: {},
      passEnv: [],
      cwd: null,
      era: 'auto',
      probeMs: 15_000,
      callMs: 300_000,
      callMaxMs: 1_800_000,
      listMs: 10_000,
    },
  )
  const moved = await configOf(`version: 2
upstreams: { n: { command: [x], env: { A: "1" }, pass_env: [P], cwd: sub, era: legacy, call: 2h, probe: 500ms } }
profiles: { p: {} }
state: { dir: here, create: false }
audit: { min_free: 2GiB }
limits: { request: 8MiB, calls_at_once: 5, keys_kept: 7d }
drain: 1s
`)
  assert.deepEqual(moved.limits, {
    ...DEFAULT_LIMITS,
    requestBytes: 8_388_608,
    calls: 5,
    keyDays: 7,
  })
  assert.deepEqual(moved.state, { dir: 'here', create: false })
  assert.equal(moved.minFreeBytes, 2 * 1024 ** 3)
  const [n] = moved.upstreams
  assert.ok(n?.kind === 'command')
  assert.equal(n.callMs, 7_200_000)
  assert.equal(n.callMaxMs, 7_200_000, 'progress never shortens a deadline')
  assert.deepEqual([n.cwd, n.era, n.probeMs, n.env['A']], ['sub', 'legacy', 500, '1'])
})

for (const [name, text, wanted] of [
  ['an unknown limit', 'limits: { request_size: 1MiB }', /unknown limit `request_size`/],
  ['a limit past its range', 'limits: { depth: 65 }', /from 1 to 64/],
  ['a limit of 0', 'limits: { calls_at_once: 0 }', /./],
  ['a size in another unit', 'limits: { request: 4MB }', /a size such as/],
  ['half a day', 'limits: { keys_kept: 12h }', /in days/],
  ['a time too long for a timer', 'drain: 30d', /1ms to 24d/],
  ['an unknown code in messages', 'messages: { tool_denyed: x }', /no built-in code/],
  ['a code that is never told', 'messages: { definition_waits: x }', /no built-in code/],
] as const) {
  test(`${name} is a fault`, async () => {
    const lines = await faultsOf(base(`profiles: { p: {} }\n${text}`))
    assert.match(lines.join('\n'), wanted)
    assert.match(lines[0] ?? '', /^e\.yaml:4:[0-9]+: error/)
  })
}

test('references stand for the environment and for files, and only in string values', async () => {
  const lookup = {
    env: (name: string): string | undefined => ({ A: 'one', EMPTY: '' })[name],
    file: (path: string): string | undefined => (path === '/run/secret' ? 's3cret' : undefined),
  }
  const config = await configOf(
    `version: 2
upstreams:
  n:
    command: [x, "\${A}-\${B:-two}", "$\${A}", "\${EMPTY:-d}", "\${EMPTY}"]
    env: { T: "\${file:/run/secret}" }
profiles: { p: {} }
`,
    null,
    lookup,
  )
  const [n] = config.upstreams
  assert.ok(n?.kind === 'command')
  assert.deepEqual(n.command, ['x', 'one-two', '${A}', 'd', ''])
  assert.equal(n.env['T'], 's3cret')
  assert.ok(!config.policy.text.includes('s3cret'), 'the policy text is before substitution')
})

test('a reference that stands for nothing is a fault with its place, and no secret is in the words', async () => {
  const lines = await faultsOf(`version: 2
upstreams: { n: { command: [x, "\${NOPE}"], env: { A: "\${file:rel}", B: "\${file:/none}", C: "\${1x}" } } }
profiles: { p: {} }
`)
  assert.deepEqual(
    lines.map((line) => line.split(' (')[0]),
    [
      'e.yaml:2:32: error: NOPE is not set; set it, or write ${NOPE:-default}',
      'e.yaml:2:54: error: ${file:rel}: the path must be absolute',
      'e.yaml:2:72: error: /none cannot be read; it must be a file of mode 0600 of this user',
      'e.yaml:2:92: error: ${1x} is no reference; write ${NAME}, ${NAME:-default} or ${file:/abs}',
    ],
  )
})

test('a value whose reference stands for nothing has that one fault, whatever it would have had to be', async () => {
  const lines = await faultsOf(`version: 2
upstreams:
  n: { url: "\${NOPE}", headers: { Authorization: "Bearer \${NOPE}", "X Y": "\${NOPE}" }, probe: "\${NOPE}" }
profiles: { p: {} }
`)
  assert.deepEqual(
    lines.map((line) => line.replace(/^e\.yaml:3:\d+: error: /, '').split(/;| \(/)[0]),
    [
      'NOPE is not set',
      'NOPE is not set',
      'this is no name of a header',
      'NOPE is not set',
      'NOPE is not set',
    ],
  )
})

test('a reference in a part that decides is warned of', async () => {
  const lines = await faultsOf(
    base(
      'tools: { notes/r: { effect: read, args: { required: [p], properties: { p: { path_under: "${D:-/srv}" } } } } }\nprofiles: { p: { allow: [notes/r] } }',
    ),
  )
  assert.match(
    lines[0] ?? '',
    /^e\.yaml:3:89: warning: \$\{D:-\/srv\} is not part of the recorded policy/,
  )
})

test('the digest is SHA-256 of the text, or of the canonical array of both texts', async () => {
  const sha = (text: string): string => createHash('sha256').update(text).digest('hex')
  const text = base('profiles: { p: {} }')
  const one = await policyOf(text)
  assert.equal(one.text, text)
  assert.equal(one.digest, sha(text))
  const main = base('policy: p.json')
  const v1 = '{"version":1,"allow":["r"]}'
  const two = await policyOf(main, v1)
  assert.equal(two.text, canonical([main, v1]))
  assert.equal(two.digest, sha(two.text))
  assert.ok(Object.isFrozen(two))
})

test('a recorded text gives the same policy again, without environment or doors', async () => {
  const main = `version: 2
policy: p.json
upstreams: { notes: { command: ["\${NOT_SET}"], env: { T: "\${file:/gone}" } } }
`
  const v1 = '{"version":1,"allow":["w"],"arg_rules":{"w":{"text":{"max_len":3}}}}'
  const loaded = await loadConfig(
    { file: 'e.yaml', text: main },
    { file: 'p.json', text: v1 },
    { env: () => 'node', file: () => 'x' },
  )
  assert.equal(loaded.kind, 'config')
  if (loaded.kind !== 'config') return
  const again = await loadPolicy(loaded.config.policy.text)
  if (again.kind === 'faults') assert.fail(again.faults.map(faultLine).join('\n'))
  assert.equal(again.policy.digest, loaded.config.policy.digest)
  for (const args of ['{"text":"abc"}', '{"text":"abcd"}']) {
    const call = toolCall(client('default'), 'w', args)
    assert.deepEqual(
      decide(call, again.policy, approved()).effect,
      decide(call, loaded.config.policy, approved()).effect,
    )
  }
})

test('the path under `policy` is given as it stands', () => {
  assert.equal(
    policyReference({ file: 'f', text: base('policy: ${P:-a/p.json}') }, NOTHING),
    'a/p.json',
  )
  assert.equal(policyReference({ file: 'f', text: base('profiles: {}') }, NOTHING), null)
  assert.equal(policyReference({ file: 'f', text: ':' }, NOTHING), null)
})

test('a policy file of version 1 needs exactly one upstream, and a file of version 2 only what decides', async () => {
  const two =
    'version: 2\nupstreams: { a: { command: [x] }, b: { command: [x] } }\npolicy: p.json\n'
  assert.match(
    (await faultsOf(two, '{"version":1,"allow":["r"]}'))[0] ?? '',
    /^p\.json:1:12: error: .*exactly one/,
  )
  const lines = await faultsOf(
    base('policy: p.json'),
    '{"version":2,"profiles":{"p":{}},"drain":"1s"}',
  )
  assert.match(lines[0] ?? '', /^p\.json:1:34: error: `drain` belongs in the main file/)
  const both = await faultsOf(
    base('policy: p.json\nprofiles: { p: {} }'),
    '{"version":2,"profiles":{"p":{}}}',
  )
  assert.match(both[0] ?? '', /^e\.yaml:4:1: error: profiles stand in/)
  const twice = await faultsOf(
    base('policy: p.json\ntools: { notes/r: { effect: read } }'),
    '{"version":2,"tools":{"notes/r":{}},"profiles":{"p":{}}}',
  )
  assert.match(twice[0] ?? '', /^p\.json:1:23: error: this contract stands in the main file too/)
})

test('an unknown key of version 1 is a fault too', async () => {
  const lines = await faultsOf('{"version":1,"alow":["r"],"arg_rules":{"r":{"f":{"minlen":1}}}}')
  assert.deepEqual(
    lines.map((line) => line.split(': ')[0]),
    ['e.yaml:1:14', 'e.yaml:1:50'],
  )
})
