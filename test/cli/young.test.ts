// The young generation of a process that serves does not grow to what V8 would take.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const YOUNG = new URL('../../src/cli/young.ts', import.meta.url).href
const MIB = 1024 * 1024

/** Keeps 200,000 objects alive of those it makes, which lets V8 grow, and tells how far it grew. */
const program = (bound: boolean): string => `
  import { getHeapSpaceStatistics } from 'node:v8'
  import { setTimeout as sleep } from 'node:timers/promises'
  ${bound ? `import { boundYoung } from ${JSON.stringify(YOUNG)}; boundYoung()` : ''}
  const size = () => getHeapSpaceStatistics().find((one) => one.space_name === 'new_space').space_size
  const kept = new Array(200_000)
  const make = (count) => {
    for (let at = 0; at < count; at++) kept[at % kept.length] = { at, inner: [at] }
  }
  // Fast enough to grow, and with turns of the event loop in between.
  for (let turn = 0; turn < 40 && size() < 32 * ${MIB}; turn++) { make(50_000); await sleep(5) }
  await sleep(1_500)
  for (let turn = 0; turn < 40; turn++) make(100_000)
  process.stdout.write(String(size()))
`

async function grown(bound: boolean): Promise<number> {
  const args = ['--input-type=module', '--eval', program(bound)]
  const cwd = fileURLToPath(new URL('../..', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd })
  return Number(stdout)
}

test('new objects get 64 MiB at most, also of a process that keeps many for a while', async () => {
  const [free, held] = await Promise.all([grown(false), grown(true)])
  assert.ok(held <= 64 * MIB, `${held / MIB} MiB`)
  // Where V8 takes no more by itself there is nothing to be held.
  assert.ok(held < free || free <= 64 * MIB, `${held / MIB} MiB, without it ${free / MIB}`)
})
