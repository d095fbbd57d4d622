// One server process: spawned without a shell in a group of its own, fed, read, and ended as a group.

import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { Socket } from 'node:net'
import { delimiter, extname, isAbsolute, join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'

import { watched, watcherCommand } from './child-watch.ts'
import { bursts } from '../wire/burst.ts'
import { words } from '../wire/words.ts'
import { type Edges, lines } from '../wire/lines.ts'

/** How to start one server. `env` is the whole environment; the limits are bytes of one line. */
export type Start = {
  readonly command: readonly string[]
  readonly cwd: string | null
  readonly env: Readonly<Record<string, string>>
  readonly lineBytes: number
  readonly stderrLineBytes: number
}

/** How a server ended: it never ran, or with this status or signal. */
export type End =
  | { readonly kind: 'not_started'; readonly why: string }
  | { readonly kind: 'exited'; readonly code: number | null; readonly signal: string | null }

/** What is heard of a server. `line` is true for a line that was waited for; `gone` comes exactly once and last, after all that it had written was read. */
export type Ears = {
  readonly line: (line: Buffer) => boolean
  readonly tooLong: (bytes: number, edges: Edges) => void
  readonly words: (line: string) => void
  readonly gone: (end: End) => void
}

/** One line on its way. Once `handed` to the pipe, nobody can say that the server has not read it. */
export type Parcel = { text: string; state: 'queued' | 'handed' | 'withdrawn' }

/** A server process that was asked to start. */
export type Child = {
  /** Sends a text that ends in LF. Null: the queue is full or its input is closed, nothing was sent. */
  readonly send: (text: string) => Parcel | null
  /** Takes back a parcel that still waits; false when it was handed over. */
  readonly withdraw: (parcel: Parcel) => boolean
  /** Ends stdin, waits, terminates and then kills the whole group. Resolves when it is gone. */
  readonly stop: () => Promise<void>
  /** The same without the polite part, for a server that broke. */
  readonly kill: () => void
}

/** Bytes and lines that wait for a server which does not read its input. */
const QUEUE_BYTES = 32 * 1024 * 1024
const QUEUE_LINES = 4096
/** What is gathered for one write. */
const BURST_CHARACTERS = 64 * 1024
/** From the end of stdin to SIGTERM, and from there to SIGKILL. */
const STDIN_GRACE_MS = 1500
const TERM_GRACE_MS = 1500
/** From the end of the process to the end of its pipes, which a stray descendant may hold. */
const PIPE_GRACE_MS = 500
/** From the end of its stdout to SIGTERM: most servers end by themselves right then. */
const USELESS_GRACE_MS = 100
/** Reads a second of what nobody asked for, from one pipe, before we stop reading for the rest of it: a
 *  server that floods us gets back-pressure, not our processor. 64 KiB a read. */
const READS_A_SECOND = 4000

// When we are killed the watcher ends our servers; Windows has no groups, and no shell of a known kind.
const groups = watched(process.platform === 'win32' ? null : launchWatcher)
let hooked = false
function remember(pid: number, say: (line: string) => void): void {
  groups.add(pid, say)
  if (hooked) return
  hooked = true
  // Also when this process ends without a word, by exit 70 say, its servers do not stay behind.
  process.once('exit', () => {
    for (const one of groups.all) {
      signalGroup(one, 'SIGKILL')
      groups.remove(one)
    }
  })
}

/** Starts a server. Never throws: a command that cannot be started is told by `gone`, later. */
export function startChild(start: Start, ears: Ears): Child {
  const made = launch(start)
  if (typeof made === 'string') return stillborn(made, ears)
  const { process: child, stdin, stdout, stderr } = made
  if (child.pid !== undefined) remember(child.pid, ears.words)
  const queue = sender(stdin)
  const ending = terminator(child, stdin)

  let asked = false
  const heard = (line: Buffer): void => {
    if (ears.line(line)) asked = true
  }
  const out = lines(start.lineBytes, heard, ears.tooLong)
  const err = words(start.stderrLineBytes, ears.words)
  read(stdout, (chunk) => {
    asked = false
    out.push(chunk)
    return asked
  })
  read(stderr, (chunk) => {
    err.push(chunk)
    return false
  })
  // It cannot answer any more, or does not read any more: it is of no use, whatever it still does.
  stdout.once('end', () => {
    useless = setTimeout(ending.kill, USELESS_GRACE_MS)
  })
  stdin.once('error', ending.kill)

  let useless: NodeJS.Timeout | undefined
  let told = false
  const tell = (end: End): void => {
    if (told) return
    told = true
    clearTimeout(useless)
    queue.close()
    ending.done()
    for (const stream of [stdin, stdout, stderr]) stream.destroy()
    out.end()
    err.end()
    ears.gone(end)
  }
  child.once('error', (error) => {
    if (child.pid === undefined) tell({ kind: 'not_started', why: whyNot(start, error) })
  })
  child.once('exit', (code, signal) => {
    // Its children must not outlive it: nobody else would end them.
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
    if (child.pid !== undefined) groups.remove(child.pid)
    const patience = setTimeout(() => tell({ kind: 'exited', code, signal }), PIPE_GRACE_MS)
    child.once('close', () => {
      clearTimeout(patience)
      tell({ kind: 'exited', code, signal })
    })
  })
  return { send: queue.send, withdraw: queue.withdraw, stop: ending.stop, kill: ending.kill }
}

type Launched = {
  readonly process: ChildProcess
  readonly stdin: Writable
  readonly stdout: Readable
  readonly stderr: Readable
}

function launch(start: Start): Launched | string {
  const [command = '', ...args] = start.command
  try {
    const child = spawn(program(command, start.env, process.platform), args, {
      cwd: start.cwd ?? undefined,
      env: start.env,
      stdio: ['pipe', 'pipe', 'pipe'],
      // A session and group of its own: a Ctrl-C meant for us does not reach it before we drained.
      detached: process.platform !== 'win32',
      windowsHide: true,
      shell: false,
    })
    const { stdin, stdout, stderr } = child
    // Out of descriptors there are no streams at all, and the error comes as an event nobody needs.
    if (!stdin || !stdout || !stderr) {
      child.on('error', () => {})
      return `${command} cannot be started: this process has too many files open`
    }
    return { process: child, stdin, stdout, stderr }
  } catch (error) {
    return whyNot(start, error)
  }
}

function launchWatcher(lost: (why: string) => void): Writable | string {
  const [command, ...args] = watcherCommand(process.pid)
  let made: ChildProcess
  try {
    made = spawn(command, args, {
      cwd: '/',
      env: {},
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
      // What is sent to our group, or by our terminal, is not meant for it.
      detached: true,
    })
  } catch (error) {
    return `${command} cannot be started: ${error instanceof Error ? error.message : 'unknown'}`
  }
  made.once('error', (error) => lost(error.message))
  const pipe = made.stdio[3]
  if (!(pipe instanceof Socket)) return `${command} cannot be started: too many files are open`
  // Nothing comes from it but the end, and that is how its own end is noticed.
  pipe.on('error', () => pipe.destroy())
  pipe.resume().once('close', () => lost('it ended'))
  // It waits for us, not we for it.
  made.unref()
  pipe.unref()
  return pipe
}

function stillborn(why: string, ears: Ears): Child {
  setImmediate(() => ears.gone({ kind: 'not_started', why }))
  return { send: () => null, withdraw: () => true, stop: () => Promise.resolve(), kill: () => {} }
}

function whyNot(start: Start, error: unknown): string {
  const [command = ''] = start.command
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  if (start.cwd !== null && !existsSync(start.cwd)) return `its folder ${start.cwd} does not exist`
  if (code === 'ENOENT') return `${command} was not found; check the command and PATH`
  if (code === 'EACCES') return `${command} may not be executed; check its mode`
  if (code === 'EINVAL' && process.platform === 'win32') {
    return `${command} is a batch file; name the program it starts, such as node and a script`
  }
  return `${command} cannot be started (${code})`
}

/** The file to run. On Windows a bare name is looked up with the extensions of PATHEXT, since without a
 *  shell nobody else does; elsewhere the system does it. */
export function program(
  command: string,
  env: Readonly<Record<string, string>>,
  platform: NodeJS.Platform,
): string {
  if (platform !== 'win32' || extname(command) !== '') return command
  const get = (name: string): string =>
    Object.entries(env).find(([key]) => key.toUpperCase() === name)?.[1] ?? ''
  const folders = isAbsolute(command) || /[\\/]/.test(command) ? [''] : get('PATH').split(delimiter)
  const extensions = (get('PATHEXT') || '.COM;.EXE').split(';')
  for (const folder of folders) {
    for (const extension of extensions) {
      const file = folder === '' ? resolve(command + extension) : join(folder, command + extension)
      if (statSync(file, { throwIfNoEntry: false })?.isFile() === true) return file
    }
  }
  return command
}

/** Reads `stream`; `push` takes a chunk and says whether it held anything that was asked for. */
function read(stream: Readable, push: (chunk: Buffer) => boolean): void {
  let second = 0
  let reads = 0
  const breathe = bursts(stream)
  const isFlood = (): boolean => {
    const now = Math.floor(performance.now() / 1000)
    reads = now === second ? reads + 1 : 1
    second = now
    return reads > READS_A_SECOND
  }
  stream.on('data', (chunk: Buffer) => {
    if (!push(chunk) && isFlood()) {
      stream.pause()
      setTimeout(() => stream.resume(), 1000 - (performance.now() % 1000))
    } else breathe(chunk)
  })
  stream.on('error', () => stream.destroy())
}

type Sender = {
  readonly send: (text: string) => Parcel | null
  readonly withdraw: (parcel: Parcel) => boolean
  readonly close: () => void
}

function sender(stdin: Writable): Sender {
  let waiting: Parcel[] = []
  let bytes = 0
  let closed = false
  let burst = ''

  const writeOut = (): void => {
    const text = burst
    burst = ''
    if (text !== '' && stdin.writable) stdin.write(text)
  }
  const hand = (parcel: Parcel): void => {
    // Calls that leave in one turn of the loop share one write, up to what a pipe takes at once. Over HTTP
    // each comes in on a socket of its own, so the turn ends only when all of them were read.
    if (burst === '') setImmediate(writeOut)
    parcel.state = 'handed'
    burst += parcel.text
    parcel.text = ''
    if (burst.length > BURST_CHARACTERS) writeOut()
  }
  stdin.on('drain', () => {
    while (waiting.length > 0 && !stdin.writableNeedDrain) {
      const next = waiting.shift()
      if (next === undefined) break
      bytes -= next.text.length
      if (next.state === 'queued') hand(next)
    }
  })
  stdin.on('error', () => {
    closed = true
  })
  return {
    send(text) {
      if (closed || !stdin.writable) return null
      const parcel: Parcel = { text, state: 'queued' }
      if (waiting.length === 0 && !stdin.writableNeedDrain) {
        hand(parcel)
        return parcel
      }
      if (waiting.length >= QUEUE_LINES || bytes + text.length > QUEUE_BYTES) return null
      waiting.push(parcel)
      bytes += text.length
      return parcel
    },
    withdraw(parcel) {
      if (parcel.state === 'handed') return false
      parcel.state = 'withdrawn'
      return true
    },
    close() {
      closed = true
      waiting = []
    },
  }
}

type Terminator = {
  readonly stop: () => Promise<void>
  readonly kill: () => void
  readonly done: () => void
}

function terminator(child: ChildProcess, stdin: Writable): Terminator {
  let timer: NodeJS.Timeout | undefined
  // Once it is gone its number may belong to somebody else: nothing is signalled any more.
  let gone = false
  let escalating = false
  const { promise, resolve: resolved } = Promise.withResolvers<void>()
  const signal = (name: NodeJS.Signals): void => {
    if (child.pid !== undefined && !gone) signalGroup(child.pid, name)
  }
  const terminate = (): void => {
    signal('SIGTERM')
    timer = setTimeout(() => {
      signal('SIGKILL')
      // A process that even this does not end (it waits for a dead disk) must not hold us.
      timer = setTimeout(resolved, TERM_GRACE_MS)
    }, TERM_GRACE_MS)
  }
  return {
    stop() {
      stdin.end()
      if (!escalating && !gone) timer = setTimeout(terminate, STDIN_GRACE_MS)
      escalating = true
      return promise
    },
    kill() {
      if (!escalating && !gone) terminate()
      escalating = true
    },
    done() {
      gone = true
      clearTimeout(timer)
      resolved()
    },
  }
}

/** False when there is nothing left to signal. */
function signalGroup(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(process.platform === 'win32' ? pid : -pid, signal)
  } catch {
    return false
  }
}
