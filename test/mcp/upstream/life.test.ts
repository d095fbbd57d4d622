import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { roomy } from '../../pace.ts'
import {
  alive,
  call,
  config,
  dataOf,
  fresh,
  linesOf,
  one,
  scripted,
  start,
  textOf,
  until,
} from './rig.ts'

const OURS = {
  ...process.env,
  AUDIT_KEY: 'synthetic-1',
  OTHER_UPSTREAM_TOKEN: 'synthetic-2',
  HTTPS_PROXY: 'http://user:secret@proxy.example:3128',
  no_proxy: 'localhost',
  BASH_FUNC_x: '() { echo pwned; }',
  LC_ALL: 'C.UTF-8',
  HANDED_ON: 'yes',
}

test('a server sees a short list of variables and what its configuration says, nothing else', async (t) => {
  const env = { A_TOKEN: 'synthetic-3' }
  const rig = start(
    t,
    [config('s', { env, passEnv: ['HANDED_ON', 'HTTPS_PROXY', 'BASH_FUNC_x', 'ABSENT'] })],
    { environment: OURS },
  )
  const seen = dataOf(await call(rig, 'env')) as { env: Record<string, string> }
  assert.equal(seen.env['A_TOKEN'], 'synthetic-3')
  assert.equal(seen.env['HANDED_ON'], 'yes')
  assert.equal(seen.env['LC_ALL'], 'C.UTF-8')
  assert.equal(seen.env['HTTPS_PROXY'], 'http://proxy.example:3128')
  for (const name of ['PATH', 'HOME']) assert.equal(seen.env[name], process.env[name])
  for (const name of ['AUDIT_KEY', 'OTHER_UPSTREAM_TOKEN', 'no_proxy', 'BASH_FUNC_x', 'ABSENT']) {
    assert.ok(!(name in seen.env), name)
  }
})

test('arguments reach the server literally, and no shell stands between', async (t) => {
  const cwd = mkdtempSync(join(tmpdir(), 'eclusa-'))
  const given = ['/srv/my data', '$(touch pwned); echo & | > out', '%PATH%', 'a"b', '', '*', "it's"]
  const rig = start(t, [config('s', { command: scripted('--', ...given), cwd })])
  assert.deepEqual(dataOf(await call(rig, 'argv'))['argv'], given)
  assert.deepEqual(readdirSync(cwd), [])
  const { pid } = dataOf(await call(rig, 'pid')) as { pid: number }
  const [, parent] = /^PPid:\s+([0-9]+)$/m.exec(linesOf(`/proc/${pid}/status`).join('\n')) ?? []
  assert.equal(Number(parent), process.pid)
})

test('a server that falls in a loop is started ever more rarely, and the others do not notice', async (t) => {
  const starts = fresh('starts')
  const rig = start(t, [
    config('ok'),
    config('gone', { command: ['no-such-command-anywhere'] }),
    config('loop', { command: scripted('--starts', starts, '--die-after', '50') }),
  ])
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' }, { upstream: 'ok' })), 'x')
  const at = performance.now()
  const made = await call(rig, 'echo', {}, { upstream: 'gone' })
  assert.deepEqual([made.kind, made.kind === 'unsent' && made.code], ['unsent', 'upstream_down'])
  assert.ok(performance.now() - at < roomy(2_000))
  const long = process.env['ECLUSA_LONG'] === '1'
  const seconds = long ? 60 : 5
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const times = linesOf(starts).map((line) => Number(line.split(' ')[1]))
  assert.ok(times.length >= 3 && times.length < (long ? 12 : 10), `${times.length} starts`)
  const gaps = times.slice(1).map((time, n) => time - (times[n] ?? 0))
  // The first two gaps belong to the two ways to greet it.
  const last = gaps.slice(2)
  assert.deepEqual(
    last,
    last.toSorted((a, b) => a - b),
    `gaps ${gaps.join(', ')}`,
  )
  assert.match(rig.explain('gone') ?? '', /no-such-command-anywhere was not found/)
  assert.equal(rig.explain('ok'), null)
})

test('calls wait for a server that is slow to start', async (t) => {
  const delay = process.env['ECLUSA_LONG'] === '1' ? 8_000 : 4_000
  const rig = start(t, [
    config('s', { command: scripted('--start-delay', String(delay)) }),
    config('ok'),
  ])
  const at = performance.now()
  const slow = rig.list('s', 'tools')
  assert.ok((await rig.list('ok', 'tools')).items.length > 0)
  assert.deepEqual(await slow, { items: [], complete: false })
  assert.ok(performance.now() - at < 3_900, 'a list does not wait for a slow server among several')
  assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
  assert.ok((await rig.list('s', 'tools')).complete)
})

test('a server that dies at its start is explained by the variables that it misses', async (t) => {
  const command = [
    process.execPath,
    '-e',
    'console.error("fatal: OTHER_UPSTREAM_TOKEN is not set, PATH is"); process.exit(3)',
  ]
  const rig = start(t, [config('s', { command, era: 'legacy' })], { environment: OURS })
  assert.equal(await rig.hello('s'), null)
  const why = rig.explain('s') ?? ''
  assert.match(why, /ended with status 3/)
  assert.match(why, /add pass_env: \[OTHER_UPSTREAM_TOKEN\]/)
  assert.ok(rig.said.includes('s: fatal: OTHER_UPSTREAM_TOKEN is not set, PATH is'))
})

test('what a server prints is shown line by line, visible, short, without its secrets', async (t) => {
  const rig = start(t, [config('s', { env: { A_TOKEN: 'CANARY-five' } })])
  await call(rig, 'stderr', { text: 'token CANARY-five \u001b[31mred\u0007 \u202ebidi' })
  await call(rig, 'stderr', { text: 'y'.repeat(20_000) })
  await until(() => rig.said.length >= 2)
  assert.equal(rig.said[0], 's: token $A_TOKEN \\u{1b}[31mred\\u{7} \\u{202e}bidi')
  assert.ok((rig.said[1]?.length ?? 0) <= 8300)
  assert.match(rig.said[1] ?? '', /bytes left out/)
  await call(rig, 'stderr', { text: 'flood', times: 5000 })
  await call(rig, 'echo', {})
  assert.ok(rig.said.length < 500, `${rig.said.length} lines`)
})

test('a deaf server and its children are gone after a stop, within the graces', async (t) => {
  const rig = one(t, '--deaf')
  const { pid } = dataOf(await call(rig, 'pid')) as { pid: number }
  const { pid: grandchild } = dataOf(await call(rig, 'spawn')) as { pid: number }
  assert.ok(alive(pid) && alive(grandchild))
  const at = performance.now()
  await rig.stop()
  const took = performance.now() - at
  assert.ok(took > 1500 && took < roomy(8_000), `${took} ms`)
  assert.ok(!alive(pid))
  await until(() => !alive(grandchild))
})

test('a polite server is gone at once, its calls are told, and nothing is started again', async (t) => {
  const starts = fresh('starts')
  const rig = one(t, '--starts', starts)
  await rig.hello('s')
  const pending = call(rig, 'hang')
  await call(rig, 'echo')
  const at = performance.now()
  await rig.stop()
  assert.ok(performance.now() - at < 1_400)
  const made = await pending
  assert.deepEqual([made.kind, made.kind === 'unknown' && made.code], ['unknown', 'upstream_down'])
  const late = await call(rig, 'echo')
  assert.deepEqual([late.kind, late.kind === 'unsent' && late.code], ['unsent', 'upstream_down'])
  assert.equal(linesOf(starts).length, 1)
})

test('when the leader dies, its children die too', async (t) => {
  const rig = one(t)
  const { pid } = dataOf(await call(rig, 'spawn')) as { pid: number }
  await call(rig, 'crash')
  await until(() => !alive(pid))
})

test('restarts leak no descriptors', async (t) => {
  const starts = fresh('starts')
  const rig = start(t, [
    config('s', { command: scripted('--starts', starts), era: 'legacy' }),
    config('ok', { era: 'legacy' }),
  ])
  await Promise.all([rig.hello('s'), rig.hello('ok')])
  const open = (): number => readdirSync('/proc/self/fd').length
  const before = open()
  for (let round = 0; round < 3; round++) {
    await call(rig, 'crash')
    await until(() => rig.explain('s') === null && linesOf(starts).length === round + 2)
    assert.notEqual(await rig.hello('s'), null)
  }
  assert.ok(open() <= before + 2, `${before} descriptors before, ${open()} after`)
})

test(
  'a child inherits no descriptor but its three pipes',
  { skip: !existsSync('/proc') },
  async (t) => {
    const rig = start(t, [config('s', { command: [process.execPath, '-e', FDS], era: 'legacy' })])
    assert.deepEqual(JSON.parse((await rig.hello('s'))?.instructions ?? '[]'), ['0', '1', '2'])
  },
)

/** A server that tells in its instructions which of its descriptors came from its parent. */
const FDS = `
const { readdirSync, readlinkSync } = require('node:fs')
const open = readdirSync('/proc/self/fd').filter((fd) => {
  try {
    const target = readlinkSync('/proc/self/fd/' + fd)
    return !/anon_inode|\\/proc\\/|\\/dev\\/(null|urandom)/.test(target) && (Number(fd) < 3 || !/pipe|socket/.test(target))
  } catch { return false }
})
process.stdin.on('data', (chunk) => {
  const { id } = JSON.parse(chunk.toString().split('\\n')[0])
  if (id === undefined) return
  const result = { protocolVersion: '2025-11-25', capabilities: {}, instructions: JSON.stringify(open) }
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
})
`
