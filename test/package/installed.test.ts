// The packed program, installed into an empty folder, works as it does here.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { publint } from 'publint'

import { environment, install, nodeOf, OWN_NODE, pack, ROOT, run } from './pack.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'
const VERSION: string = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version

let folder = ''
let home = ''
let packed: Awaited<ReturnType<typeof pack>>

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'eclusa-package-'))
  packed = await pack(folder)
  home = await install(join(folder, 'empty'), packed.archive)
})
after(() => rm(folder, { recursive: true, force: true }))

const LAUNCHER = ['node_modules', 'eclusa', 'bin', 'eclusa.cjs']

test('the archive holds the program, its SQL, its words, and nothing of the workshop', () => {
  for (const path of ['bin/eclusa.cjs', 'dist/cli/main.js', 'dist/index.js', 'dist/index.d.ts']) {
    assert.ok(packed.files.includes(path), path)
  }
  for (const path of ['dist/store/sqlite.sql', 'eclusa.schema.json', 'LICENSE', 'README.md']) {
    assert.ok(packed.files.includes(path), path)
  }
  const stray = packed.files.filter((path) =>
    /^(test|examples|node_modules|\.ci|\.git)|\.test\.|\.tgz$|\.eclusa/.test(path),
  )
  assert.deepEqual(stray, [])
  const sources = packed.files.filter((path) => /^dist\/.*(?<!\.d)\.ts$/.test(path))
  assert.deepEqual(sources, [], 'types are not stripped under node_modules')
})

test('the package file keeps every rule of publint', async () => {
  const { messages } = await publint({ pkgDir: packed.tree, strict: true })
  assert.deepEqual(messages, [])
})

test('the installation runs no script and brings only what is decided', async () => {
  const lock = JSON.parse(await readFile(join(home, 'package-lock.json'), 'utf8'))
  const names = Object.keys(lock.packages).filter((path) => path !== '')
  const scripted = names.filter((path) => lock.packages[path].hasInstallScript === true)
  assert.deepEqual(scripted, [])
  assert.ok(names.length <= 12, names.join(' '))
})

test('its types are those that a TypeScript program needs', async () => {
  const place = join(home, 'typed')
  await mkdir(place)
  await writeFile(
    join(place, 'use.ts'),
    [
      "import { createGate, EXIT, Fault, type Gate, type GateOptions } from 'eclusa'",
      "import { guard } from 'eclusa/sdk'",
      "const options: GateOptions = { policy: 'policy.json', tools: {}, state: '.ledger' }",
      'export const made: Promise<Gate> = createGate(options)',
      'export const status: number = EXIT.usage',
      "export const fault: Error = new Fault('usage', 'x')",
      'export const put: (...args: Parameters<typeof guard>) => void = guard',
      '',
    ].join('\n'),
  )
  await mkdir(join(home, 'node_modules', '@modelcontextprotocol'), { recursive: true })
  for (const name of ['@modelcontextprotocol/server', '@types', 'undici-types']) {
    await symlink(join(ROOT, 'node_modules', name), join(home, 'node_modules', name))
  }
  const args = ['--noEmit', '--strict', '--module', 'nodenext', '--types', 'node', '--skipLibCheck']
  const tsc = join(ROOT, 'node_modules', '.bin', 'tsc')
  const ran = await run(tsc, [...args, 'use.ts'], { cwd: place })
  assert.equal(ran.stdout, '')
  assert.equal(ran.status, 0)
})

const nodes: readonly (readonly [name: string, version: string | null])[] = [
  ['the Node of the tests', null],
  ['Node 22', '22'],
  ['Node 26', '26'],
]

for (const [name, version] of nodes) {
  const skip = version !== null && !LONG ? 'long form: ECLUSA_LONG=1' : false
  test(
    `under ${name} it tells its version, checks a policy and serves a session`,
    { skip },
    async () => {
      const program = version === null ? OWN_NODE : await nodeOf(folder, version)
      await versionIs(program)
      await checksPolicies(program)
      await servesSession(program, join(folder, `session-${version ?? 'own'}`))
    },
  )
}

async function eclusa(
  program: string,
  args: readonly string[],
  cwd: string = home,
): ReturnType<typeof run> {
  return run(program, [join(home, ...LAUNCHER), ...args], { cwd, env: environment(program, home) })
}

async function versionIs(program: string): Promise<void> {
  assert.deepEqual(await eclusa(program, ['--version']), {
    status: 0,
    stdout: `${VERSION}\n`,
    stderr: '',
  })
}

async function checksPolicies(program: string): Promise<void> {
  const place = join(home, 'policies')
  await cp(join(ROOT, 'examples', 'gated-fs'), place, { recursive: true })
  const good = await eclusa(program, ['policy', 'check', 'eclusa.yaml'], place)
  assert.equal(good.status, 0, good.stderr)
  await writeFile(join(place, 'wrong.yaml'), 'version: 2\nupstreams: {}\nprofilez: {}\n')
  const wrong = await eclusa(program, ['policy', 'check', 'wrong.yaml'], place)
  assert.equal(wrong.status, 1, wrong.stderr)
  assert.match(wrong.stdout + wrong.stderr, /wrong\.yaml:3:1/)
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'stranger', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

/** gated-fs without its gate, behind the installed program. */
async function servesSession(program: string, place: string): Promise<void> {
  await mkdir(place)
  const child = spawn(
    program,
    [
      ...[join(home, ...LAUNCHER), 'stdio', '--read', 'read_ledger', '--write', 'write_note'],
      ...['--env', `LEDGER_DIR=${join(place, 'notes')}`],
      ...['--', OWN_NODE, join(ROOT, 'examples', 'gated-fs', 'naked.ts')],
    ],
    { cwd: place, env: environment(program, place), stdio: 'pipe' },
  )
  const output = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.out += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.err += text))
  const ended = new Promise<number | null>((resolve) => child.on('close', resolve))
  const ask = (id: number, method: string, params: object): void =>
    void child.stdin.write(
      `${JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta: ENVELOPE } })}\n`,
    )
  ask(1, 'tools/list', {})
  ask(2, 'tools/call', { name: 'rm_rf', arguments: { path: '/' } })
  ask(3, 'tools/call', {
    name: 'write_note',
    arguments: { request_id: 'package-1', text: 'from an empty folder' },
  })
  const answers = (): string[] => output.out.split('\n').filter((line) => line !== '')
  while (answers().length < 3 && child.exitCode === null) {
    await new Promise((resolve) => child.stdout.once('data', resolve).once('close', resolve))
  }
  child.stdin.end()
  assert.equal(await ended, 0, output.err)
  const byId = new Map(answers().map((line) => [JSON.parse(line).id, JSON.parse(line)]))
  const names = byId
    .get(1)
    .result.tools.map((tool: { name: string }) => tool.name)
    .sort()
  assert.deepEqual(names, ['read_ledger', 'write_note'])
  assert.equal(byId.get(2).error.message, 'tool denied: rm_rf')
  assert.notEqual(byId.get(3).result.isError, true, JSON.stringify(byId.get(3)))
  assert.doesNotMatch(output.err, /ExperimentalWarning/)
  const log = join(place, 'state', 'eclusa')
  const verified = await eclusa(program, ['audit', 'verify', log], place)
  assert.equal(verified.status, 0, verified.stderr)
}
