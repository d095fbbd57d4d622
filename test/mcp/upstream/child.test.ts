import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'

import { childEnvironment, masker, withheld } from '../../../src/mcp/upstream/child-environment.ts'
import { visible, words } from '../../../src/mcp/wire/words.ts'
import { type End, program, startChild } from '../../../src/mcp/upstream/child.ts'
import { alive, scripted, until } from './rig.ts'

const none = { env: {}, passEnv: [] }

test('a proxy that is passed on loses its user name and password, also in odd spellings', () => {
  for (const [given, wanted] of [
    ['http://user:p%40ss@host:1', 'http://host:1'],
    ['user:pass@host:1', 'host:1'],
    ['http://user:p@ss@host:1/', 'http://host:1/'],
    ['HTTP://user@host', 'HTTP://host'],
    ['http://host:1', 'http://host:1'],
  ] as const) {
    const env = childEnvironment(
      { https_proxy: given },
      { env: {}, passEnv: ['https_proxy'] },
      'linux',
    )
    assert.equal(env['https_proxy'], wanted)
  }
  assert.deepEqual(childEnvironment({ https_proxy: 'http://host' }, none, 'linux'), {})
})

test('what the configuration sets wins over what is inherited', () => {
  const given = { env: { PATH: '/only', X: '${literal}' }, passEnv: [] }
  assert.deepEqual(childEnvironment({ PATH: '/usr/bin', Y: '1' }, given, 'linux'), given.env)
})

test('names are compared without case on Windows', () => {
  const env = childEnvironment({ Path: 'C:\\bin', SystemRoot: 'C:\\', KEY: 'x' }, none, 'win32')
  assert.deepEqual(env, { Path: 'C:\\bin', SystemRoot: 'C:\\' })
})

test('a value that holds another is masked whole', () => {
  const mask = masker(
    {},
    { env: { SHORT: 'secret-a', LONG: 'secret-a-and-more', TINY: 'on' }, passEnv: [] },
  )
  assert.equal(mask('secret-a-and-more, secret-a, on'), '$LONG, $SHORT, on')
})

test('only variables that we have, withheld, and that are named whole, are told', () => {
  const ours = { API_TOKEN: 'x', API_TOKEN_OLD: 'x', PATH: 'x', ON: 'x' }
  assert.deepEqual(withheld(ours, { PATH: 'x' }, 'set API_TOKEN or MISSING, PATH, ON'), [
    'API_TOKEN',
  ])
})

test('nothing invisible or steering is shown as it is', () => {
  assert.equal(visible('a\tb \u{1f600} \u00e9'), 'a\tb \u{1f600} \u00e9')
  for (const bad of [
    '\u0000',
    '\u001b',
    '\u009b',
    '\u202e',
    '\u2028',
    '\u200b',
    '\u{e0041}',
    '\r',
  ]) {
    assert.match(visible(bad), /^\\u\{[0-9a-f]+\}$/)
  }
})

test('a flood of words is counted, and the count is told at the end', () => {
  const said: string[] = []
  const splitter = words(100, (line) => said.push(line))
  splitter.push(Buffer.from('x\n'.repeat(5000)))
  splitter.end()
  const left = said.reduce(
    (sum, line) => sum + Number(/\((\d+) lines left out\)/.exec(line)?.[1] ?? 0),
    0,
  )
  const shown = said.filter((line) => line === 'x').length
  assert.equal(left + shown, 5000)
  // Two seconds may meet in the middle of it.
  assert.ok(shown <= 200, `${shown} shown`)
})

test('a bare command is looked up by PATHEXT on Windows, and nothing else is touched', () => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-'))
  writeFileSync(join(folder, 'tool.EXE'), '')
  const env = { Path: ['/nowhere', folder].join(delimiter), PATHEXT: '.COM;.EXE' }
  assert.equal(program('tool', env, 'win32'), join(folder, 'tool.EXE'))
  assert.equal(program('other', env, 'win32'), 'other')
  assert.equal(program('tool.cmd', env, 'win32'), 'tool.cmd')
  assert.equal(program('tool', env, 'linux'), 'tool')
})

const born = (command: readonly string[], cwd: string | null = null): Promise<End> =>
  new Promise((resolve) => {
    startChild(
      {
        command,
        cwd,
        env: { PATH: process.env['PATH'] ?? '' },
        lineBytes: 1000,
        stderrLineBytes: 100,
      },
      { line: () => false, tooLong: () => {}, words: () => {}, gone: resolve },
    )
  })

test('a command that cannot be started says why and what to do', async () => {
  const plain = join(mkdtempSync(join(tmpdir(), 'eclusa-')), 'plain')
  writeFileSync(plain, '')
  chmodSync(plain, 0o600)
  const why = async (command: readonly string[], cwd?: string): Promise<string> => {
    const end = await born(command, cwd ?? null)
    return end.kind === 'not_started' ? end.why : JSON.stringify(end)
  }
  assert.match(await why(['no-such-thing']), /was not found; check the command and PATH/)
  assert.match(await why([plain]), /may not be executed; check its mode/)
  assert.match(
    await why(['true'], '/no/such/folder'),
    /its folder \/no\/such\/folder does not exist/,
  )
  assert.match(await why(['a\u0000b']), /cannot be started/)
  assert.deepEqual(await born(['sh', '-c', 'exit 7']), { kind: 'exited', code: 7, signal: null })
})

const GATEWAY = join(import.meta.dirname, '../../servers/gateway-like.ts')

test('servers do not outlive a process that ends without a word, deaf ones included', async () => {
  const made = spawnSync(process.execPath, [GATEWAY, 'exit', ...scripted('--deaf')], {
    encoding: 'utf8',
  })
  assert.equal(made.status, 70)
  const pid = Number(made.stdout)
  assert.ok(pid > 0)
  await until(() => !alive(pid))
})

test('a server ends with its stdin when we are killed', async () => {
  const parent = spawn(process.execPath, [GATEWAY, 'hang', ...scripted()])
  const pid = await new Promise<number>((resolve) => {
    parent.stdout.once('data', (chunk: Buffer) => resolve(Number(chunk.toString())))
  })
  assert.ok(alive(pid))
  parent.kill('SIGKILL')
  await until(() => !alive(pid))
})

test('without descriptors a call fails and later ones work', () => {
  const made = spawnSync(
    'sh',
    ['-c', 'ulimit -n 64; exec "$0" "$@"', process.execPath, GATEWAY, 'starve', ...scripted()],
    { encoding: 'utf8' },
  )
  assert.equal(made.stderr, '')
  assert.deepEqual(made.stdout.trim().split('\n'), [
    'unsent upstream_down',
    'its words: this process has too many files open',
    'answered',
  ])
})
