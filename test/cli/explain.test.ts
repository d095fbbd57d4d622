// `eclusa explain` with a file: the line it tells is written, the command is run, and the call passes after it.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import type { Ground } from '../../src/cli/policy-ground.ts'
import { stepsFor } from '../../src/cli/policy-step.ts'
import { builtIn } from '../../src/decision.ts'
import { loadPolicy } from '../../src/policy/config.ts'
import { edited } from '../../src/policy/edit.ts'
import { toolCall } from '../policy/ground.ts'
import { denied, explained, menu, ONE, passed, SERVER, shell, tool } from './explain-shell.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const upstream = (...names: readonly string[]): string =>
  JSON.stringify({ command: [process.execPath, SERVER, '--menu', menu(...names)] })

/** Writes what explain says into the file that it names. */
function obey(out: string): void {
  const lines = [...out.matchAll(/^(after )?line (\d+) of (.+?) (?:must read|write):\n\| (.*)$/gm)]
  assert.ok(lines.length > 0, out)
  for (const [, after, at, file = '', shown = ''] of lines) {
    const text = readFileSync(file, 'utf8').split('\n')
    if (after === undefined) text.splice(Number(at) - 1, 1, shown)
    else text.splice(Number(at), 0, shown)
    writeFileSync(file, text.join('\n'))
  }
}

const FORMS: readonly (readonly [string, string])[] = [
  ['a block list', '  p:\n    allow:\n      - s/a # the first\n    deny: []\n'],
  ['no list', '  q: { allow: [s/a] }\n  p:\n    extends: q\n'],
]
for (const [form, profile] of FORMS) {
  test(`a file with ${form}: with the line that is told the proof and the call pass`, async (t) => {
    const sh = shell(t)
    const file = sh.file(
      'eclusa.yaml',
      `version: 2\nupstreams:\n  s: ${upstream('a', 'b')}\nprofiles:\n${profile}`,
    )
    const serve = `eclusa stdio --config ${file} --profile p`
    denied(await sh.call(serve, 'tools/call', tool('b')))
    const { out, commands } = explained(sh, sh.beside)
    assert.match(out, /add s\/b to `allow` of profile `p` \(\S+eclusa\.yaml:\d+:\d+\)/)
    const proof = ONE(commands)
    assert.equal(proof, `eclusa policy explain ${file} --profile p --tool s/b`)
    obey(out)
    const proved = sh.run(proof)
    assert.equal(proved.status, 0, proved.out + proved.err)
    assert.equal(passed(await sh.call(serve, 'tools/call', tool('b'))), true)
  })
}

test('a policy in its own file of version 1: the line is in that file', async (t) => {
  const sh = shell(t)
  const policy = sh.file('policy.json', '{ "version": 1,\n  "allow": ["a"],\n  "deny": ["c"] }\n')
  const file = sh.file(
    'gate.yaml',
    `version: 2\nupstreams: { s: ${upstream('a', 'b', 'c')} }\npolicy: policy.json\n`,
  )
  const serve = `eclusa stdio --config ${file}`
  denied(await sh.call(serve, 'tools/call', tool('b')))
  const { out, commands } = explained(sh, sh.beside, { flags: '--state .eclusa' })
  assert.ok(out.includes(`line 2 of ${policy} must read:\n|   "allow": ["a", "b"],\n`), out)
  obey(out)
  assert.equal(sh.run(ONE(commands)).status, 0)
  assert.equal(passed(await sh.call(serve, 'tools/call', tool('b'))), true)

  denied(await sh.call(serve, 'tools/call', tool('c')))
  const refused = explained(sh, sh.beside, { flags: '--state .eclusa' })
  assert.ok(refused.out.includes(`${policy}:3:12`), refused.out)
  assert.match(refused.out, /no command lifts that/)
  assert.deepEqual(refused.commands, [])
})

test('must_deny: no command is given, and its place is', async (t) => {
  const sh = shell(t)
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams: { s: ${upstream('a', 'b')} }\nprofiles: { p: { allow: [s/a] } }\nmust_deny:\n  - { profile: p, tool: s/b }\n`,
  )
  denied(await sh.call(`eclusa stdio --config ${file}`, 'tools/call', tool('b')))
  const { out, commands } = explained(sh, sh.beside)
  assert.match(out, /no command lifts that: .*eclusa\.yaml:5:5: error: .*must_deny\/0/)
  assert.deepEqual(commands, [])
})

test('a destructive tool that only a pattern lists: both lines, tried together', async (t) => {
  const sh = shell(t)
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams: { s: ${upstream('a', 'wipe')} }\ntools:\n  s/wipe: { effect: destructive }\nprofiles:\n  p:\n    allow: [ "s/*" ]\n`,
  )
  const serve = `eclusa stdio --config ${file}`
  denied(await sh.call(serve, 'tools/call', tool('wipe')))
  const { out, commands } = explained(sh, sh.beside)
  assert.match(out, /`approve: \{ s\/wipe: none \}` are both needed/)
  obey(out)
  assert.equal(sh.run(ONE(commands)).status, 0)
  assert.equal(passed(await sh.call(serve, 'tools/call', tool('wipe'))), true)
})

test('a resource: the line, and a proof for a resource', async (t) => {
  const sh = shell(t)
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams: { s: ${upstream('a')} }\nprofiles:\n  p: { allow: [s/a] }\n`,
  )
  const serve = `eclusa stdio --config ${file}`
  const read = { uri: 'notes://a' }
  denied(await sh.call(serve, 'resources/read', read))
  const { out, commands } = explained(sh, sh.beside)
  obey(out)
  const proof = ONE(commands)
  assert.match(proof, /--resource notes:\/\/a$/)
  assert.equal(sh.run(proof).status, 0)
  assert.ok((await sh.call(serve, 'resources/read', read)).result !== undefined)
})

test('a rule on arguments: its place and text, and the proof with the arguments', async (t) => {
  const sh = shell(t)
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams: { s: ${upstream('a')} }\nprofiles:\n  p:\n    allow: [s/a]\n    rules:\n      - { tool: s/a, require: args.n < 5 }\n`,
  )
  denied(await sh.call(`eclusa stdio --config ${file}`, 'tools/call', tool('a', { n: 7 })))
  const { out, commands } = explained(sh, sh.beside)
  assert.match(out, /change the rule at \S+eclusa\.yaml:7:9, or send other arguments at \/n/)
  assert.match(out, /^ {2}- \{ tool: s\/a, require: args\.n < 5 \}$/m)
  sh.file('args.json', '{"n":7}')
  assert.equal(sh.run(ONE(commands)).status, 1)
  sh.file('eclusa.yaml', readFileSync(file, 'utf8').replace('< 5', '< 9'))
  assert.equal(sh.run(ONE(commands)).status, 0)
})

test('a profile that does not exist: the command that starts one that allows the call', async (t) => {
  const sh = shell(t)
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams: { s: ${upstream('a')} }\nprofiles:\n  locked: { allow: [s/a], token: required }\n  other: { allow: [] }\n  good: { allow: [s/a] }\n`,
  )
  for (const profile of ['wrong', 'locked']) {
    denied(
      await sh.call(
        `eclusa stdio --config ${file} --profile ${profile} --set k='a b'`,
        'tools/call',
        tool('a'),
      ),
    )
    const { out, commands } = explained(sh, sh.beside)
    const command = ONE(commands)
    assert.equal(command, `eclusa stdio --config ${file} --profile good --set 'k=a b'`)
    assert.match(out, profile === 'locked' ? /asks for a token/ : /no profile is called/)
    if (profile === 'locked') continue
    assert.equal(passed(await sh.call(command, 'tools/call', tool('a'))), true)
  }
})

test('a client over HTTP: the command that gives it another token', async (t) => {
  const sh = shell(t)
  const text = `version: 2\nupstreams: { s: ${upstream('a')} }\nprofiles: { none: { allow: [] }, good: { allow: [s/a], token: required } }\n`
  const file = sh.file('eclusa.yaml', text)
  const loaded = await loadPolicy(text)
  assert.ok(loaded.kind === 'policy')
  const client = {
    name: 'ana',
    profile: 'gone',
    identity: 'token',
    attributes: { k: 'v' },
  } as const
  const ground: Ground = {
    call: {
      ...toolCall(client, 'a', '{}'),
      target: { kind: 'tool', upstream: 's', name: 'a' },
      transport: 'http',
    },
    facts: { definition: null, pin: 'none' },
    set: loaded.policy,
    origin: { kind: 'file', file, sources: [{ file, text }] },
    recorded: { seq: 1, dir: sh.file('state') },
    pins: [],
    seen: null,
    cut: false,
    io: { out: () => undefined, err: () => undefined, env: {}, cwd: sh.folder },
  }
  for (const code of ['client_unknown', 'client_revoked'] as const) {
    const lines = await stepsFor(ground, builtIn(code))
    const command = ONE(lines.filter(({ kind }) => kind === 'command')).text
    assert.equal(
      command,
      `eclusa client add ana-2 --profile good --set k=v --config ${file} --state ${sh.file('state')}`,
    )
    if (code === 'client_unknown') continue
    const ran = sh.run(command)
    assert.deepEqual([ran.status, ran.out.trim().length > 20], [0, true], ran.err)
  }
})

test('a file that is not found, and one that has changed since: said, and asked for', async (t) => {
  const sh = shell(t)
  const state = sh.file('state')
  mkdirSync(sh.file('conf'))
  const text = `version: 2\nupstreams: { s: ${upstream('a', 'b')} }\nprofiles:\n  p: { allow: [s/a] }\n`
  const file = sh.file('conf/gate.yaml', text)
  denied(
    await sh.call(`eclusa stdio --config ${file}`, 'tools/call', tool('b'), {
      ECLUSA_STATE: state,
    }),
  )
  const lost = explained(sh, state, { flags: `--state ${state}` })
  assert.match(lost.out, /recorded configuration:4:\d+/)
  assert.deepEqual(lost.commands, [`eclusa explain ${lost.seq} --state ${state} --config FILE`])
  const [ask = ''] = lost.commands
  const named = sh.run(ask.replace('FILE', file))
  assert.ok(named.out.includes(`line 4 of ${file} must read:`), named.out)
  writeFileSync(file, `# moved\n${text}`)
  const changed = sh.run(ask.replace('FILE', file))
  assert.match(changed.out, /has another text now; lines are those of the recorded one/)
  assert.match(changed.out, /eclusa policy explain \S+conf\/gate\.yaml --profile p --tool s\/b/)
})

test('a gate inside a server: its policy file is the one, and the proof is on it', async (t) => {
  const sh = shell(t)
  const policy = sh.file('policy.json', '{ "version": 1, "allow": ["read_ledger"] }\n')
  const server = `${process.execPath} ${join(ROOT, 'examples/gated-fs/server.ts')}`
  const env = { LEDGER_DIR: sh.file('notes'), POLICY_PATH: policy }
  const note = tool('write_note', { request_id: 'req-0001', text: 'a' })
  denied(await sh.call(server, 'tools/call', note, env))
  const flags = `--state ${sh.file('notes')}`
  const { out, commands } = explained(sh, sh.file('notes'), { flags })
  assert.ok(
    out.includes(
      `line 1 of ${policy} must read:\n| { "version": 1, "allow": ["read_ledger", "write_note"] }\n`,
    ),
    out,
  )
  obey(out)
  sh.file('args.json', JSON.stringify(note['arguments']))
  const proved = sh.run(ONE(commands))
  assert.equal(proved.status, 0, proved.err)
  assert.equal(passed(await sh.call(server, 'tools/call', note, env)), true)
})

const shaped = (name: string, description: string): string =>
  JSON.stringify({
    tools: [{ definition: { name, description, inputSchema: { type: 'object' } } }],
  })

test('waiting and changed definitions: pin diff shows them, pin approve lets the call pass', async (t) => {
  const sh = shell(t)
  const command = JSON.stringify([process.execPath, SERVER, '--menu', '${MENU}'])
  const file = sh.file(
    'eclusa.yaml',
    `version: 2\nupstreams:\n  s: { command: ${command} }\npins: strict\nprofiles: { p: { allow: [s/a] } }\n`,
  )
  const serve = `eclusa stdio --config ${file}`
  const states: readonly (readonly [string, RegExp])[] = [
    ['one', /^\+ .*"description": "one"/m],
    [
      'two \u202e \\ "x"',
      /^- .*"description": "one",\n\+ .*"description": "two \\u\{202e\} \\\\ \\"x\\"",$/m,
    ],
  ]
  for (const [description, shown] of states) {
    const env = { MENU: shaped('a', description) }
    denied(await sh.call(serve, 'tools/call', tool('a'), env))
    const [look = '', approve = '', ...more] = explained(sh, sh.beside, { env }).commands
    assert.deepEqual(more, [])
    const diff = sh.run(look)
    assert.equal(diff.status, 0, diff.err)
    assert.match(diff.out, shown)
    const json = JSON.parse(sh.run(`${look} --json`).out) as { waits: { description: string } }
    assert.equal(json.waits.description, description)
    const listed = sh.run('eclusa pin list')
    assert.ok(listed.err.includes(`  ${approve}\n`), listed.err)
    assert.doesNotMatch(listed.out, /eclusa/)
    assert.match(approve, /--hash [0-9a-f]{64} --state \//)
    assert.equal(sh.run(approve).status, 0)
    assert.equal(passed(await sh.call(serve, 'tools/call', tool('a'), env)), true)
    const since = explained(sh, sh.beside, { env })
    assert.match(since.out, /approved since/)
    assert.deepEqual(since.commands, [])
    assert.equal(sh.run(look).status, 1)
  }
})

test('edits of real configurations are those of the page on policies', () => {
  const page = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = '']) => text)
  const tried = blocks.flatMap((text) => {
    const profile = /^profiles:\s*(?:\{ )?\s*(\w+):/m.exec(text)?.[1]
    return profile === undefined
      ? []
      : [edited(text, { kind: 'entry', path: `/profiles/${profile}/allow`, value: 'notes/zz' })]
  })
  assert.ok(tried.length > 8, `${tried.length}`)
  assert.ok(tried.every((one) => one !== null && one.text.includes('notes/zz')))
})
