// `eclusa init`: what it drafts starts the server that was looked at, wherever the file stands.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { loadConfig } from '../../src/policy/config.ts'
import { placed, readSource } from '../../src/cli/place.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const SERVER = fileURLToPath(new URL('../servers/scripted.ts', import.meta.url))

test('a draft in another folder starts the server where it was looked at', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-init-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const cwd = dirname(SERVER)
  mkdirSync(join(folder, 'sub'))
  const out = join(folder, 'sub', 'e.yaml')
  const command = [process.execPath, relative(cwd, SERVER)]
  const ran = spawnSync(process.execPath, [MAIN, 'init', '--out', out, '--', ...command], {
    encoding: 'utf8',
    cwd,
  })
  assert.equal(ran.status, 0, ran.stderr)
  const made = await loadConfig(readSource(out, cwd), null, {
    env: () => undefined,
    file: () => undefined,
  })
  assert.ok(made.kind === 'config')
  const [first] = placed(made.config.upstreams, out)
  assert.ok(first?.kind === 'command' && first.cwd === cwd)
})
