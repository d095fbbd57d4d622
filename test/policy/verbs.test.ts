// The verbs about policy, run as the program: on files, and on the ledger of a real session.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { tail } from '../../src/cli/audit.ts'
import { explain, policyCheck, policyExplain, redecide } from '../../src/cli/policy.ts'
import { exitStatus, Fault } from '../../src/fault.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const SERVER = fileURLToPath(new URL('../../examples/gated-fs/naked.ts', import.meta.url))
const dir = mkdtempSync(join(tmpdir(), 'eclusa-policy-'))
after(() => rmSync(dir, { recursive: true, force: true }))
const file = (name: string): string => join(dir, name)

writeFileSync(
  file('eclusa.yaml'),
  `version: 2
upstreams: { notes: { command: [${JSON.stringify(process.execPath)}, ${JSON.stringify(SERVER)}], pass_env: [LEDGER_DIR] } }
tools:
  notes/write_note: { effect: write, key: { at: /request_id, honoured: true } }
  notes/read_ledger: { effect: read }
profiles:
  writer:
    allow: [notes/write_note, notes/read_ledger]
    rules:
      - { tool: notes/write_note, require: args.text.size() < 10, code: texto_longo }
`,
)
writeFileSync(file('short.json'), '{"request_id":"req-0001","text":"oi"}')
writeFileSync(file('long.json'), '{"request_id":"req-0002","text":"muito longo demais"}')

type Ran = { readonly status: number; readonly out: string; readonly err: string }

const VERBS = {
  'policy check': policyCheck,
  'policy explain': policyExplain,
  explain,
  redecide,
  tail,
}

/** One verb, with what it throws turned into its exit status as the program does. */
async function run(verb: keyof typeof VERBS, ...args: readonly string[]): Promise<Ran> {
  const out: string[] = []
  const err: string[] = []
  const io = {
    out: (line: string) => void out.push(line),
    err: (line: string) => void err.push(line),
    env: { ECLUSA_STATE: file('state') },
    cwd: dir,
  }
  const status = await VERBS[verb]([...args], io).catch((error: unknown) => {
    assert.ok(error instanceof Fault, String(error))
    err.push(error.message)
    return exitStatus(error.code)
  })
  return { status, out: out.join('\n'), err: err.join('\n') }
}

test('policy check: 0 for a good file, 1 and each fault with its place for a bad one', async () => {
  const good = await run('policy check', 'eclusa.yaml')
  assert.deepEqual([good.status, good.out], [0, ''])
  writeFileSync(file('bad.yaml'), 'version: 2\nprofiles:\n  p: { alow: [] }\n  q: { extends: r }\n')
  const made = await run('policy check', 'bad.yaml')
  assert.equal(made.status, 1)
  assert.deepEqual(
    made.out
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(dir, '').split(' (')[0]),
    [
      '/bad.yaml:3:8: error: unknown key `alow`; did you mean `allow`?',
      '/bad.yaml:4:17: error: no profile is called `r`',
    ],
  )
  const parsed = (await run('policy check', '--json', 'bad.yaml')).out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly line: number })
  assert.deepEqual(
    parsed.map((one) => one.line),
    [3, 4],
  )
  assert.equal((await run('policy check')).status, 2)
  assert.equal((await run('policy check', 'nowhere.yaml')).status, 2)
})

test('policy explain: each rule with its verdict, and what would allow the call', async () => {
  const on = (...args: readonly string[]): Promise<Ran> =>
    run('policy explain', 'eclusa.yaml', '--profile', 'writer', ...args)
  const good = await on('--tool', 'notes/write_note', '--args', 'short.json')
  assert.equal(good.status, 0)
  assert.match(good.out, /^holds +\/profiles\/writer\/allow\/0 .*eclusa\.yaml:8:13$/m)
  assert.match(good.out, /^holds +\/profiles\/writer\/rules\/0 .*eclusa\.yaml:10:9$/m)
  assert.match(good.out, /^allow$/m)
  const long = await on('--tool', 'notes/write_note', '--args', 'long.json')
  assert.equal(long.status, 1)
  assert.match(
    long.out,
    /^fails +\/profiles\/writer\/rules\/0 .*:10:9 +arguments_denied +field \/text$/m,
  )
  assert.match(long.err, /change the rule at .*eclusa\.yaml:10:9/)
  const hidden = await on('--tool', 'notes/rm_rf')
  assert.equal(hidden.status, 1)
  assert.match(hidden.err, /add notes\/rm_rf to `allow` of profile `writer`/)
})

/** Runs a session of these calls, one after the other, and resolves when the program has ended. */
async function session(
  calls: readonly { readonly name: string; readonly arguments: unknown }[],
): Promise<void> {
  const child = spawn(process.execPath, [MAIN, 'stdio', '--config', file('eclusa.yaml')], {
    cwd: dir,
    stdio: ['pipe', 'pipe', 'ignore'],
    env: { PATH: process.env['PATH'], ECLUSA_STATE: file('state'), LEDGER_DIR: file('notes') },
  })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  for (const [id, params] of calls.entries()) {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 't', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    }
    child.stdin.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { ...params, _meta: meta } })}\n`,
    )
    await lines.next()
  }
  child.stdin.end()
  await ended
}

type Line = {
  readonly seq: number
  readonly name: string
  readonly kind: string
  readonly code: string | null
}

const CALLS = [
  { name: 'rm_rf', arguments: { path: '/x' } },
  { name: 'write_note', arguments: { request_id: 'req-0001', text: 'oi' } },
  { name: 'write_note', arguments: { request_id: 'req-0002', text: 'muito longo demais' } },
  { name: 'write_note', arguments: { request_id: 'req-0001', text: 'oi' } },
  { name: 'write_note', arguments: { request_id: 'req-0001', text: 'outro' } },
]

test('explain and audit redecide: what is behind each record of a session, decided again', async () => {
  await session(CALLS)
  const records = (await run('tail', '--json', '-n', '99')).out
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line)
  const decided = records.filter(
    (one) => one.name !== '' && (one.kind === 'call' || one.kind === 'intent'),
  )
  assert.equal(decided.length, 5, JSON.stringify(decided))
  const [hidden, first, long, again, conflict] = decided.map((one) => String(one.seq)) as [
    string,
    string,
    string,
    string,
    string,
  ]

  assert.match(
    (await run('explain', hidden)).out,
    /add notes\/rm_rf to `allow` of profile `writer`/,
  )
  assert.match(
    (await run('explain', long)).out,
    /^\/profiles\/writer\/rules\/0 +\/.*eclusa\.yaml:10:9/m,
  )
  assert.match((await run('explain', first)).out, /allowed by \/profiles\/writer\/allow\/0/)

  const redecided = await run('redecide', hidden)
  assert.deepEqual(
    [redecided.status, /agrees/.test(redecided.out)],
    [0, true],
    'no argument was read',
  )
  assert.equal((await run('redecide', first)).status, 2, 'its arguments were read')
  for (const [seq, args] of [
    [first, 'short.json'],
    [long, 'long.json'],
    [again, 'short.json'],
  ] as const) {
    const made = await run('redecide', seq, '--args', file(args))
    assert.equal(made.status, 0, made.out + made.err)
    assert.match(made.out, /agrees/)
  }
  writeFileSync(file('other.json'), '{"request_id":"req-0001","text":"outro"}')
  assert.match(
    (await run('redecide', conflict, '--args', file('other.json'))).out,
    /allow by .*agrees/,
  )
  assert.match(
    (await run('explain', conflict)).out,
    /^no command allows it: its key was used with other arguments; a new call needs a new key$/m,
  )
  const forged = await run('redecide', long, '--args', file('short.json'))
  assert.equal(forged.status, 2)
  assert.match(forged.err, /not the arguments of record/)
  assert.equal((await run('explain', '0')).status, 2, 'the genesis record holds no decision')
  assert.equal((await run('explain', '999999')).status, 2)
})
