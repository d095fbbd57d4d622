// What the kernel says about a process: memory, descriptors, processor time, children, environment.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

const TICKS_PER_SECOND = 100

const status = (pid: number, name: string): number => {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) * 1024
}

/** Bytes in memory now. */
export const rss = (pid: number): number => status(pid, 'VmRSS')

/** Bytes in memory at the highest point so far. */
export const peakRss = (pid: number): number => status(pid, 'VmHWM')

/** Seconds of processor time that the process has used, all threads, without its children. */
export function cpuSeconds(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** What each open descriptor leads to; one that closes meanwhile is left out. */
export function descriptors(pid: number): ReadonlyMap<number, string> {
  const open = new Map<number, string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      open.set(Number(fd), readlinkSync(`/proc/${pid}/fd/${fd}`))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
  return open
}

/** Children that are still there, zombies too. */
export function children(pid: number): readonly number[] {
  const found: number[] = []
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const text = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').trim()
    if (text !== '') found.push(...text.split(' ').map(Number))
  }
  return found
}

/** The argument list of a process, its program first. */
export const commandLine = (pid: number): readonly string[] =>
  readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1)

/** True while the process runs; a zombie does not. */
export function isRunning(pid: number): boolean {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return text.slice(text.lastIndexOf(')') + 2)[0] !== 'Z'
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return false
    throw error
  }
}
