// What the operator reads of definitions that wait: the agent is only told that the tool is denied.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { startGate } from '../cases/harness.ts'
import { eventually } from '../cases/wire.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))

test('tools that wait for approval are named to the operator once, with the next step', async (t) => {
  const setup = { era: 'modern', allow: ['up/*'] } as const
  const gate = await startGate(t, setup)
  const listed = await gate.request('tools/list')
  assert.deepEqual(listed.result?.tools, [])
  await gate.request('tools/list')
  const told = (text: string): readonly string[] =>
    text.split('\n').filter((line) => line.includes('eclusa pin approve'))
  await eventually('the words', () => told(gate.errors()).length > 0)
  const [line = ''] = told(gate.errors())
  assert.match(
    line,
    /^eclusa: \d+ definitions wait \(up\/\S+, .*\); look at them: eclusa pin list;/,
  )
  assert.equal(told(gate.errors()).length, 1)

  const list = spawnSync(
    process.execPath,
    [MAIN, 'pin', 'list', '--state', join(gate.folder, 'state')],
    {
      encoding: 'utf8',
    },
  )
  const [first, ...hints] = list.stderr.trimEnd().split('\n')
  assert.equal(first, `eclusa: state directory ${join(gate.folder, 'state')}`)
  assert.ok(hints.some((hint) => /^ {2}eclusa pin diff up\/echo --state \//.test(hint)))
  assert.match(list.stdout, /^waiting {3}- +[0-9a-f]{12} {2}up\/echo$/m)
  await gate.stop()

  const again = await startGate(t, { ...setup, folder: gate.folder })
  await eventually('the words at the next start', () => told(again.errors()).length > 0)
  assert.equal(told(again.errors()).length, 1, again.errors())
})
