// The programs of docs/clients.md do what the page says that they did.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = readFileSync(join(ROOT, 'docs/clients.md'), 'utf8')
const run = promisify(execFile)

const blocks = (kind: string): readonly string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${kind}\n([\\s\\S]*?)^\`\`\`$`, 'gm'))].map(
    ([, block = '']) => block,
  )

/** The folder of the page: its file, the example and what npm installed, and `eclusa` on the path. */
const dir = mkdtempSync(join(tmpdir(), 'eclusa-clients-'))
const env: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: [dir, join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter),
  LEDGER_DIR: 'notes',
}
let gateway: ChildProcess | null = null
let url = ''

before(async () => {
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'))
  symlinkSync(join(ROOT, 'examples/gated-fs'), join(dir, 'gated-fs'))
  const program = join(ROOT, 'src/cli/main.ts')
  writeFileSync(join(dir, 'eclusa'), `#!/bin/sh\nexec node ${program} "$@"\n`, { mode: 0o755 })
  writeFileSync(join(dir, 'eclusa.yaml'), blocks('yaml')[0] ?? '')
  const add = ['client', 'add', 'desk-1', '--profile', 'desk', '--config', 'eclusa.yaml']
  const { stdout } = await run('eclusa', add, { cwd: dir, env })
  env['ECLUSA_TOKEN'] = stdout.trim()
  gateway = spawn('eclusa', ['serve', '--config', 'eclusa.yaml', '--port', '0'], {
    cwd: dir,
    env,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  url = await served(gateway)
})

after(async () => {
  if (gateway !== null && gateway.exitCode === null) {
    gateway.kill()
    await once(gateway, 'exit')
  }
  rmSync(dir, { recursive: true, force: true })
})

/** The address that the program says it serves. What it says later is read and forgotten. */
function served(program: ChildProcess): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  let said = ''
  program.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString()
    const found = /serving (http:\S+?)[,;]/.exec(said)?.[1]
    if (found !== undefined) resolve(found)
  })
  program.once('exit', (code) => reject(new Error(`it ended with ${code}: ${said}`)))
  return promise
}

async function printed(program: string): Promise<readonly string[]> {
  const file = join(dir, 'program.mts')
  writeFileSync(file, program.replace('http://127.0.0.1:8377/mcp', url))
  const { stdout } = await run('node', [file], { cwd: dir, env })
  return stdout.split('\n').filter((line) => line !== '')
}

const LIST = '  list: '

/** A list through a fresh pipe may lack a server that is only starting; it never shows more. */
function alike(line: string, told: string): boolean {
  if (!line.startsWith(LIST) || !told.startsWith(LIST)) return line === told
  const names = told.slice(LIST.length).split(' ')
  return line
    .slice(LIST.length)
    .split(' ')
    .every((name) => name === '' || names.includes(name))
}

for (const [at, name] of ['version 2', 'version 1'].entries()) {
  test(`the program of the official SDK, ${name}, prints what the page shows`, async () => {
    const told = (blocks('transcript')[at] ?? '').split('\n').filter((line) => line !== '')
    const lines = await printed(blocks('ts')[at] ?? '')
    const differs = lines.findIndex((line, index) => !alike(line, told[index] ?? ''))
    if (differs !== -1 || lines.length !== told.length) assert.deepEqual(lines, told)
    const overHttp = lines.slice(lines.findIndex((line) => line.startsWith('http ')))
    assert.deepEqual(overHttp, told.slice(told.length - overHttp.length))
  })
}

test('the configurations that the page shows for other programs are JSON and start eclusa', () => {
  const configs = blocks('json')
  assert.equal(configs.length, 2)
  for (const block of configs) {
    const { pipe, lock } = JSON.parse(block).mcpServers
    assert.deepEqual([pipe.command, ...pipe.args], ['eclusa', 'stdio', '--config', 'eclusa.yaml'])
    assert.equal(lock.url, 'http://127.0.0.1:8377/mcp')
    assert.match(lock.headers.Authorization, /^Bearer \S+$/)
  }
})
