// Run where process numbers can be chosen: a watched leader ends, and its number goes to somebody else.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'

import { watcherCommand } from '../../../src/mcp/upstream/child-watch.ts'
import { isRunning } from '../../cases/proc.ts'
import { until } from './rig.ts'

const leader = (): ChildProcess => spawn('sleep', ['60'], { detached: true, stdio: 'ignore' })

/** Fields of /proc/PID/stat after the name; none when there is no such process. */
function statOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
  } catch {
    return []
  }
}
const bornAt = (pid: number): string => statOf(pid)[19] ?? ''

const [command, ...args] = watcherCommand(process.pid)
const [old, other] = [leader(), leader()]
const number = old.pid ?? 0
const starter = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore', 'pipe'] })
const pipe = starter.stdio[3]
if (!(pipe instanceof Socket)) throw new Error('there is no pipe')
await once(starter, 'exit')

// Its number is the next one after that of the shell which started it.
const watcher = (starter.pid ?? 0) + 1
// Minus one would be everybody here: it is a number that nobody sends, and must harm nobody.
const list = `1 ${number} ${other.pid}\n`
pipe.write(list)
const taken = (): number =>
  Number(/^rchar: ([0-9]+)$/m.exec(readFileSync(`/proc/${watcher}/io`, 'utf8'))?.[1])
await until(() => taken() > list.length && statOf(watcher)[0] === 'S')

const born = bornAt(number)
old.kill('SIGKILL')
await once(old, 'exit')
let namesake: ChildProcess
for (;;) {
  writeFileSync('/proc/sys/kernel/ns_last_pid', String(number - 1))
  namesake = leader()
  // The kernel tells births in hundredths of a second.
  if (namesake.pid === number && bornAt(number) !== born) break
  namesake.kill('SIGKILL')
  await once(namesake, 'exit')
}
pipe.destroy()
await once(other, 'exit')
await until(() => !isRunning(watcher))
console.log(`the other was killed, the namesake ${isRunning(number) ? 'runs' : 'was killed too'}`)
namesake.kill('SIGKILL')
