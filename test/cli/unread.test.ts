// Whoever started the program may stop reading what it says; that is no reason to end.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { folder } from '../folder.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
/** Says something on stderr when it is asked what it is, and is a server that is never there. */
const NOISY = "process.stdin.on('data', () => console.error('a word for the operator'))"

test('serve goes on when nobody reads its stderr any more', async (t) => {
  const dir = folder('eclusa-unread-')
  const file = join(dir, 'eclusa.json')
  const config = {
    version: 2,
    upstreams: { up: { command: [process.execPath, '-e', NOISY] } },
    profiles: { agent: { allow: ['up/echo'] } },
    anonymous: 'agent',
  }
  writeFileSync(file, JSON.stringify(config))
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', file, '--port', '0'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))

  const url = await new Promise<string>((resolve) => {
    let said = ''
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      const found = /serving (http:\/\/[^/]+)\//.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
  })
  child.stderr.destroy()

  // The words of an orderly end come after the closed pipe: they are written, and nothing breaks.
  assert.equal((await fetch(`${url}/health`)).status, 200)
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})
