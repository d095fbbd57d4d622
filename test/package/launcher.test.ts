// The launcher starts under any Node, and says in one line when that Node is too old.

import assert from 'node:assert/strict'
import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { ROOT, run } from './pack.ts'

const LAUNCHER = join(ROOT, 'bin', 'eclusa.cjs')
const PLACES = ['/usr/bin/node', '/usr/local/bin/node', '/opt/homebrew/bin/node']

/** A Node of this machine that is older than 22.18. */
async function oldNode(): Promise<{ readonly program: string; readonly version: string } | null> {
  for (const program of PLACES.filter((place) => existsSync(place))) {
    const { stdout } = await run(program, ['--version'])
    const [major = 0, minor = 0] = stdout.slice(1).split('.').map(Number)
    if (major < 22 || (major === 22 && minor < 18)) return { program, version: stdout.trim() }
  }
  return null
}

test('an old Node gets one line with the next step, and exit status 2', async (t) => {
  const old = await oldNode()
  if (old === null) return t.skip(`no Node older than 22.18 at ${PLACES.join(', ')}`)
  for (const args of [['--version'], ['stdio', '--', 'true'], []]) {
    const ran = await run(old.program, [LAUNCHER, ...args])
    assert.equal(ran.status, 2)
    assert.equal(ran.stdout, '')
    assert.match(ran.stderr, /^eclusa needs Node 22\.18 or newer; this is v[^\n]*; [^\n]*\n$/)
    assert.ok(ran.stderr.includes(`this is ${old.version} at ${old.program}`), ran.stderr)
  }
})

test('a checkout that was never built says so in one line, and how to run it', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-unbuilt-'))
  t.after(() => rmSync(folder, { recursive: true }))
  cpSync(join(ROOT, 'bin'), join(folder, 'bin'), { recursive: true })
  const ran = await run(process.execPath, [join(folder, 'bin', 'eclusa.cjs'), '--version'])
  assert.equal(ran.status, 2)
  assert.match(ran.stderr, /^eclusa is not built here; run: npm run build[^\n]*\n$/)
})

test('the npm scripts run under the Node of the checkout, whatever Node npm runs under', async () => {
  const ran = await run('npm', ['exec', '-c', 'node --version'], {
    cwd: ROOT,
    env: { ...process.env, PATH: '/usr/local/bin:/usr/bin:/bin' },
  })
  assert.equal(ran.status, 0, ran.stderr)
  assert.match(ran.stdout, /^v24\./)
})
