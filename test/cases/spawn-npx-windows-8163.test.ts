// Arguments with spaces and shell metacharacters reach the upstream literally.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { children, commandLine } from './proc.ts'
import { SIDES } from './wire.ts'

const ARGV = [
  '--dir',
  '/srv/my data',
  '--x',
  '$(touch pwned); echo & | > out',
  '%PATH%',
  'a"b',
  '${HOME}',
  '$${HOME}',
  '${half',
  '`touch pwned`',
  '',
  '*',
  "it's\nold",
]

for (const [front, era] of SIDES) {
  if (front === 'stdio')
    test(`${era}: the short form hands its command on as literally`, async (t) => {
      const short = ['--read', 'argv']
      const gate = await startGate(t, { era, short, upstreams: { up: { argv: ARGV } } })
      const answer = await gate.call('argv')
      assert.deepEqual(answer.result?.structuredContent?.['argv'], ARGV)
    })

  test(`${front} ${era}: the configured list is the argument list, and no shell stands between`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up: { argv: ARGV } } })
    const answer = await gate.call('argv')
    assert.deepEqual(answer.result?.structuredContent?.['argv'], ARGV)

    const [pid] = children(gate.pid)
    assert.deepEqual(
      children(gate.pid),
      gate.starts().map((one) => one.pid),
    )
    assert.equal(commandLine(pid ?? 0)[0], process.execPath)
    assert.deepEqual(commandLine(pid ?? 0).slice(-ARGV.length), ARGV)

    assert.deepEqual(await gate.stop(), { code: 0, signal: null })
    const left = readdirSync(gate.folder)
    assert.ok(!left.includes('pwned') && !left.includes('out'), left.join(' '))
  })
}
