// Upstream restarts, a moved audit file and a lack of descriptors leak nothing.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { roomy } from '../pace.ts'
import { type Gate, LONG, startGate } from './harness.ts'
import { children, descriptors } from './proc.ts'
import { SIDES, eventually, refusalCode, textOf } from './wire.ts'

/** Calls, and the time over which they are spread. */
const CALLS = LONG ? 2_000 : 30
const OVER_MS = LONG ? 120_000 : 1_500
/** Descriptors by which two counts may differ: one child's pipes, a file just being written. */
const SLACK = 4

async function untilUp(gate: Gate, withinMs: number): Promise<void> {
  const end = Date.now() + withinMs
  for (;;) {
    const answer = await gate.call('echo', { text: 'up' })
    if (answer.result?.isError !== true) return
    assert.ok(Date.now() < end, 'the upstream did not come back')
    await sleep(50)
  }
}

async function disturbed(
  t: TestContext,
  [front, era]: (typeof SIDES)[number],
  isReplaced: boolean,
): Promise<void> {
  const gate = await startGate(t, { front, era })
  await gate.call('echo', { text: 'before' })
  const file = join(gate.folder, 'state', 'audit.jsonl')
  const moved = join(gate.folder, 'moved.jsonl')
  const old = readFileSync(file, 'utf8')
  renameSync(file, moved)
  if (isReplaced) writeFileSync(file, '')
  const isBack = (): boolean => existsSync(file) && readFileSync(file, 'utf8').startsWith(old)
  await eventually('the whole log is there again', isBack, roomy(2_500))
  assert.equal(textOf(await gate.call('echo', { text: 'after' })), 'after')
  await gate.record('the disturbance', ({ kind }) => kind === 'recovery')
  const open = [...descriptors(gate.pid).values()]
  assert.deepEqual(
    open.filter((path) => path === moved || path.endsWith('(deleted)')),
    [],
  )
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: descriptors stay flat while an upstream exits after each call`, async (t) => {
      const gate = await startGate(t, {
        front,
        era,
        upstreams: { up: { flags: ['--crash-after', '1'], more: { share: true } } },
      })
      await gate.call('echo', { text: 'first' })
      await gate.call('echo', { text: 'second' })
      const before = descriptors(gate.pid).size
      for (let n = 0; n < CALLS; n++) {
        const answer = await gate.call('echo', { text: String(n) })
        assert.ok(answer.result !== undefined, JSON.stringify(answer))
        await sleep(OVER_MS / CALLS)
      }
      assert.ok(gate.starts().length >= 3, 'it was never started again')
      const after = descriptors(gate.pid)
      assert.ok(
        after.size <= before + SLACK,
        `${before} before, ${after.size} after: ${[...after.values()].join(' ')}`,
      )
      assert.ok(children(gate.pid).length <= 1, 'dead children are left')
    })

    for (const replaced of ['moved', 'replaced']) {
      test(`${front} ${era}: an audit file that was ${replaced} is rebuilt, recorded and not kept open`, (t) =>
        disturbed(t, [front, era], replaced === 'replaced'))
    }
  }
})

describe('then at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: a lack of descriptors fails calls and is over when they are free`, async (t) => {
      const gate = await startGate(t, { front, era })
      await gate.call('echo', { text: 'up' })
      // Whatever is opened from now on gets a number from 3 on, which is too high.
      limitFiles(gate.pid, 3)
      await gate.call('crash', { when: 'before' })
      // Without descriptors no connection can be made, so the one that is there is waited for.
      if (front === 'http') await eventually('a free connection', gate.http.isConnected)
      const failed = await gate.call('echo', { text: 'no descriptors' })
      assert.equal(refusalCode(failed), 'upstream_down')
      limitFiles(gate.pid, 4_096)
      await untilUp(gate, 60_000)
      gate.audit()
    })

    test(`${front} ${era}: a child inherits its three pipes and nothing else`, async (t) => {
      const gate = await startGate(t, { front, era })
      await gate.call('echo', { text: 'up' })
      const state = join(gate.folder, 'state')
      assert.ok([...descriptors(gate.pid).values()].some((path) => path.startsWith(state)))
      // What the test itself was started with is not the gateway's to keep back.
      const given = new Set(descriptors(process.pid).values())
      const ours = new Set(
        [...descriptors(gate.pid).values()].filter(
          (path) => !given.has(path) && path !== '/dev/null',
        ),
      )
      for (const pid of children(gate.pid)) {
        const held = descriptors(pid)
        for (const [fd, path] of held) {
          assert.ok(!path.startsWith(state), `the child holds ${path}`)
          if (fd > 2) assert.ok(!ours.has(path), `descriptor ${fd} of the child is ours: ${path}`)
        }
      }
    })
  }
})

function limitFiles(pid: number, soft: number): void {
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`])
}

test('sealed segments and policy reloads leak nothing', { todo: 'part 5' })
