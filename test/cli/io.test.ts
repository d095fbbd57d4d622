// Words for people are worth less than memory.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { peakRss } from '../cases/proc.ts'

const IO = fileURLToPath(new URL('../../src/cli/io.ts', import.meta.url))
/** Says 200 MB, a piece a turn, tells that on stdout, and says one more line once all was read. */
const TALKER = `
  const { randomBytes } = await import('node:crypto')
  const { processIo } = await import(${JSON.stringify(IO)})
  const io = processIo()
  io.out('ready')
  await new Promise((resolve) => process.stdin.once('data', resolve))
  for (let n = 0; n < 200; n++) {
    for (let k = 0; k < 100; k++) io.err(randomBytes(5_000).toString('hex'))
    await new Promise(setImmediate)
  }
  io.out('said')
  while (process.stderr.writableLength > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  io.err('the last word')
  process.stdin.destroy()
`

test('words that nobody reads are dropped and counted, and cost no memory', async (t) => {
  const child = spawn(process.execPath, ['--input-type=module', '-e', TALKER])
  const { pid, stdin, stdout, stderr } = child
  assert.ok(pid !== undefined)
  t.after(() => child.kill('SIGKILL'))
  const end = once(child, 'close')
  await once(stdout, 'data')
  const before = peakRss(pid)
  stdin.write('go\n')
  await once(stdout, 'data')
  const grown = peakRss(pid) - before
  assert.ok(grown < 80_000_000, `${grown} bytes more`)

  // Only its end: what came before may be the megabyte that waited.
  let words = ''
  stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-200)
  })
  await end
  assert.match(words, /\neclusa: \d+ lines were not shown, for nobody read them\nthe last word\n$/)
})
