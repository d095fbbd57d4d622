// What becomes of servers when the gateway before them is killed: processes, groups and signals are real.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync, type SpawnSyncReturns } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { Socket } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { roomy } from '../../pace.ts'
import { watched, watcherCommand } from '../../../src/mcp/upstream/child-watch.ts'
import { type Gate, says, startGate } from '../../cases/harness.ts'
import { commandLine, descriptors, isRunning, rss } from '../../cases/proc.ts'
import { eventually } from '../../cases/wire.ts'
import { fresh, linesOf } from './rig.ts'

/** Longest life of a deaf server after the gateway: both graces of the watcher, and a slow machine. */
const GONE_MS = roomy(10_000)
const NAMES = ['a', 'b', 'c'] as const
const skip = existsSync('/proc/self/stat') ? false : 'needs /proc'

/** The watchers that run for this process, without the shell that still starts one. */
const watchersOf = (pid: number): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^[0-9]+$/.test(name))
    .map(Number)
    .filter((one) => isRunning(one) && isWatcherOf(one, pid))

function isWatcherOf(one: number, pid: number): boolean {
  try {
    const named = commandLine(one).slice(-2).join(' ') === `eclusa-watch ${pid}`
    return named && Number(statOf(one)[1]) !== pid
  } catch {
    // It ended while we looked.
    return false
  }
}

/** Fields of /proc/PID/stat after the name: state, parent, group, session. */
const statOf = (pid: number): readonly string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []

async function soleWatcher(gate: Gate): Promise<number> {
  await eventually('one watcher', () => watchersOf(gate.pid).length === 1)
  return watchersOf(gate.pid)[0] ?? 0
}

/** A gateway before three servers, each with a child of its own; the numbers of all six. */
async function family(t: TestContext, ...flags: readonly string[]): Promise<Family> {
  const gate = await startGate(t, {
    era: 'modern',
    upstreams: Object.fromEntries(NAMES.map((name) => [name, { flags }])),
  })
  const pids: number[] = []
  for (const name of NAMES) {
    const { result } = await gate.call(`${name}__spawn`)
    pids.push(Number(result?.structuredContent?.['pid']), gate.starts(name)[0]?.pid ?? 0)
  }
  t.after(() => {
    for (const pid of pids) if (isRunning(pid)) process.kill(pid, 'SIGKILL')
  })
  assert.ok(pids.every(isRunning))
  return { gate, pids }
}
type Family = { readonly gate: Gate; readonly pids: readonly number[] }

/** Kills the gateway alone, as the kernel does when memory is short. */
async function killed({ gate, pids }: Family): Promise<void> {
  process.kill(gate.pid, 'SIGKILL')
  assert.equal((await gate.exit).signal, 'SIGKILL')
  await eventually('the end of all servers', () => !pids.some(isRunning), GONE_MS)
  await eventually('the end of the watcher', () => watchersOf(gate.pid).length === 0)
}

test(
  'deaf servers and their children do not outlive a killed gateway, and share one watcher',
  { skip },
  async (t) => {
    const whole = await family(t, '--deaf')
    await soleWatcher(whole.gate)
    await killed(whole)
  },
)

test(
  'a watcher that was killed is replaced, and the next one knows the same servers',
  { skip },
  async (t) => {
    const whole = await family(t, '--deaf')
    const first = await soleWatcher(whole.gate)
    process.kill(first, 'SIGKILL')
    await eventually('another watcher', () => {
      const [one = first] = watchersOf(whole.gate.pid)
      return one !== first
    })
    await says(whole.gate, /is started again/)
    await killed(whole)
  },
)

test(
  'the watcher has nothing of ours, belongs to no server, and is gone after an orderly end',
  { skip },
  async (t) => {
    const { gate, pids } = await family(t)
    const watcher = await soleWatcher(gate)
    assert.equal(readFileSync(`/proc/${watcher}/environ`, 'utf8'), '')
    assert.equal(readlinkSync(`/proc/${watcher}/cwd`), '/')
    // What the test itself was started with is not the gateway's to keep back.
    const given = new Set(descriptors(process.pid).values())
    const held = new Map([...descriptors(watcher)].filter(([fd, to]) => fd < 3 || !given.has(to)))
    assert.deepEqual([...held.keys()].toSorted(), [0, 1, 2])
    const ours = descriptors(gate.pid)
    for (const path of held.values()) {
      assert.ok(path === '/dev/null' || ![...ours.values()].includes(path), `it holds ${path}`)
    }
    const [, parent, group, session] = statOf(watcher)
    for (const pid of [...pids, gate.pid]) {
      assert.notEqual(Number(parent), pid)
      assert.notEqual(group, statOf(pid)[2])
      assert.notEqual(session, statOf(pid)[3])
    }
    assert.ok(rss(watcher) < 8 * 1024 * 1024, `${rss(watcher)} bytes`)
    // A signal that stops it, and whatever else is not its end, costs no server anything.
    for (const signal of [
      'SIGSTOP',
      'SIGCONT',
      'SIGTERM',
      'SIGINT',
      'SIGHUP',
      'SIGWINCH',
    ] as const) {
      process.kill(watcher, signal)
    }
    await eventually('it waits again', () => statOf(watcher)[0] === 'S')
    for (const name of NAMES) assert.equal(gate.starts(name).length, 1)
    assert.ok(pids.every(isRunning))
    assert.doesNotMatch(gate.errors(), /watcher/)
    const closed = new Promise((resolve) => gate.child.once('close', resolve))
    assert.deepEqual(await gate.stop(), { code: 0, signal: null })
    await closed
    await eventually('the end of the watcher', () => !isRunning(watcher), roomy(1_000))
  },
)

test(
  'a server that is started again is watched in place of the one that ended',
  { skip },
  async (t) => {
    const gate = await startGate(t, { era: 'modern', upstreams: { up: { flags: ['--deaf'] } } })
    await gate.call('crash')
    await eventually('the second start', () => gate.starts().length === 2)
    const watcher = await soleWatcher(gate)
    await gate.call('echo', { text: 'up' })
    process.kill(gate.pid, 'SIGKILL')
    await eventually('its end', () => !isRunning(gate.starts()[1]?.pid ?? 0), GONE_MS)
    await eventually('the end of the watcher', () => !isRunning(watcher))
  },
)

/** A process that leads a group of its own and ends with the test. */
function leader(t: TestContext, command: string, ...args: readonly string[]): ChildProcess {
  const child = spawn(command, args, { detached: true, stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  return child
}

const gone = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve) => child.once('exit', resolve))

/** A watcher on its own that is told this list; what comes back ends its pipe. */
function told(t: TestContext, list: string): () => void {
  const [command, ...args] = watcherCommand(process.pid)
  const child = spawn(command, args, {
    env: {},
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
  })
  const pipe = child.stdio[3]
  assert.ok(pipe instanceof Socket)
  t.after(async () => {
    pipe.destroy()
    await eventually('the end of the watcher', () => watchersOf(process.pid).length === 0)
  })
  pipe.write(list)
  return () => pipe.destroy()
}

test('what ends by itself has a second, what listens to SIGTERM another', { skip }, async (t) => {
  const [first, second] = [fresh('first'), fresh('second')]
  const slow = leader(t, 'sh', '-c', 'sleep 0.3; echo done >"$0"', first)
  const polite = leader(
    t,
    'sh',
    '-c',
    `trap 'echo done >"$0"; exit' TERM; while :; do sleep 0.1; done`,
    second,
  )
  const ends = [gone(slow), gone(polite)]
  told(t, `${slow.pid} ${polite.pid}\n`)()
  await Promise.all(ends)
  assert.deepEqual([linesOf(first), linesOf(second)], [['done'], ['done']])
})

test('only whole lists count', { skip }, async (t) => {
  const [named, left] = [leader(t, 'sleep', '60'), leader(t, 'sleep', '60')]
  const ended = gone(named)
  // A gateway that is killed while it writes leaves a part of a line.
  told(t, `${named.pid}\n${left.pid}`)()
  await ended
  assert.ok(isRunning(left.pid ?? 0))
})

/** Numbers of its own, so that nobody else takes the one that is wanted, nor gets ours. */
const APART = ['--pid', '--fork', '--mount-proc', ...(process.getuid?.() === 0 ? [] : ['-Ur'])]
const apart = (...command: readonly string[]): SpawnSyncReturns<string> =>
  spawnSync('unshare', [...APART, ...command], { encoding: 'utf8' })

test(
  'a number that belongs to another process by now is left alone, and no list means everybody',
  { skip: skip || (apart('true').status === 0 ? false : 'needs unshare') },
  () => {
    const made = apart(process.execPath, join(import.meta.dirname, 'child-reborn.ts'))
    assert.equal(made.stdout, 'the other was killed, the namesake runs\n', made.stderr)
  },
)

test('a watcher that cannot be started is told once and asked for again, ever more rarely', async () => {
  const said: string[] = []
  const starts: number[] = []
  const groups = watched(() => {
    starts.push(performance.now())
    return 'no shell'
  })
  groups.add(123, (line) => said.push(line))
  await eventually('four starts', () => starts.length === 4)
  assert.equal(said.length, 1)
  assert.match(said[0] ?? '', /no shell/)
  // A timer may be late, never early by more than its rounding.
  const gaps = starts.slice(1).map((at, n) => at - (starts[n] ?? 0))
  for (const [n, least] of [99, 199, 399].entries()) {
    assert.ok((gaps[n] ?? 0) >= least, `gaps ${gaps.join(', ')}`)
  }
  groups.remove(123)
})
