// Starts the notes server in each of its ways and speaks raw lines to it.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { after } from 'node:test'
import { fileURLToPath } from 'node:url'

export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))
const EXAMPLE = join(ROOT, 'examples', 'gated-fs')

/** inside: the gate in the server; behind: the naked server behind `eclusa stdio`; naked: no gate. */
export type Way = 'inside' | 'behind' | 'naked'
export const GATED: readonly Way[] = ['inside', 'behind']

const COMMANDS: Readonly<Record<Way, readonly string[]>> = {
  inside: [join(EXAMPLE, 'server.ts')],
  behind: [join(ROOT, 'src/cli/main.ts'), 'stdio', '--config', join(EXAMPLE, 'eclusa.yaml')],
  naked: [join(EXAMPLE, 'naked.ts')],
}

/** Hundreds of starts of one program: what Node compiled for one is there for the next. */
export const COMPILED: string = join(ROOT, 'node_modules', '.cache', 'compiled')

export const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
}

type Refused = { readonly 'eclusa/refusal'?: { readonly code: string } }

/** What the tests read of a result. */
export type Result = {
  readonly [member: string]: unknown
  readonly resultType?: string
  readonly protocolVersion?: string
  readonly tools?: readonly {
    readonly name: string
    readonly annotations?: object
    readonly inputSchema: { readonly properties?: object }
  }[]
  readonly content?: readonly { readonly type: string; readonly text: string }[]
  readonly structuredContent?: { readonly [member: string]: unknown; readonly status?: string }
  readonly isError?: boolean
  readonly _meta?: Refused
}

export type Message = {
  readonly jsonrpc: string
  readonly id?: unknown
  readonly method?: string
  readonly result?: Result
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Refused }
}

export type Peer = {
  readonly child: ChildProcessWithoutNullStreams
  /** Writes one line as it is. */
  line(text: string): void
  /** Asks under a fresh id; `modern` puts the envelope in. Rejects when the process ends first. */
  ask(method: string, params?: object, era?: 'modern' | 'legacy'): Promise<Message>
  /** `tools/call` in the modern era. */
  call(name: string, args: object): Promise<Message>
  handshake(version: string): Promise<Message>
  readonly heard: readonly Message[]
  stderr(): string
  /** Kills the process, and with it what hangs on its pipes, and waits until it is gone. */
  kill(): Promise<void>
  /** Ends stdin and resolves with the exit status. */
  end(): Promise<number | null>
}

/** A fresh directory with the notes, the gateway's state and room for a marker. */
export type Place = { readonly dir: string; readonly ledger: string; readonly state: string }

const started: Peer[] = []
const dirs: string[] = []

// A test that fails half way leaves nothing behind.
after(async () => {
  await Promise.all(started.map((peer) => peer.kill()))
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true })
})

export function newPlace(): Place {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-gated-fs-'))
  dirs.push(dir)
  return { dir, ledger: join(dir, 'ledger'), state: join(dir, 'state') }
}

/** Where `way` keeps its audit. */
export const auditDir = (way: Way, place: Place): string =>
  way === 'inside' ? place.ledger : place.state

export function start(way: Way, place: Place, more: Record<string, string> = {}): Peer {
  const child = spawn(process.execPath, ['--no-warnings', ...COMMANDS[way]], {
    cwd: place.dir,
    env: {
      PATH: `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env['PATH'] ?? ''}`,
      LEDGER_DIR: place.ledger,
      ECLUSA_STATE: place.state,
      NODE_COMPILE_CACHE: COMPILED,
      ...more,
    },
  })
  const peer = peerOf(child)
  started.push(peer)
  return peer
}

function peerOf(child: ChildProcessWithoutNullStreams): Peer {
  const heard: Message[] = []
  const waiting = new Map<unknown, (message: Message) => void>()
  let errors = ''
  let gone: string | undefined
  onMessages(child.stdout, (message) => {
    heard.push(message)
    waiting.get(message.id)?.(message)
  })
  child.stderr.setEncoding('utf8')
  child.stderr.on('data', (chunk: string) => (errors += chunk))
  child.stdin.on('error', () => {})
  const closed = new Promise<number | null>((resolve) => {
    child.once('close', (code, signal) => {
      gone = `the process is gone (${code ?? signal}): ${errors}`
      resolve(code)
      for (const settle of waiting.values()) settle({ jsonrpc: '2.0' })
    })
  })
  let last = 0
  const line = (text: string): void => void child.stdin.write(`${text}\n`)

  async function ask(method: string, params: object = {}, era = 'modern'): Promise<Message> {
    if (gone !== undefined) throw new Error(gone)
    const id = ++last
    const answer = new Promise<Message>((resolve) => waiting.set(id, resolve))
    const full = era === 'modern' ? { ...params, _meta: MODERN } : params
    line(JSON.stringify({ jsonrpc: '2.0', id, method, params: full }))
    const message = await answer
    if (message.id === undefined) throw new Error(gone)
    return message
  }
  return {
    child,
    line,
    ask,
    call: (name, args) => ask('tools/call', { name, arguments: args }),
    async handshake(version) {
      const clientInfo = { name: 'peer', version: '1' }
      const params = { protocolVersion: version, capabilities: {}, clientInfo }
      const answer = await ask('initialize', params, 'legacy')
      line(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }))
      return answer
    },
    heard,
    stderr: () => errors,
    async kill() {
      child.kill('SIGKILL')
      await closed
    },
    async end() {
      child.stdin.end()
      return await closed
    },
  }
}

/** Parses each line that `stream` brings. */
export function onMessages(stream: Readable, hear: (message: Message) => void): void {
  let rest = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) hear(JSON.parse(line) as Message)
  })
}

/** Resolves when `holds` does; fails after `withinMs`. */
export async function until(what: string, holds: () => boolean, withinMs = 60_000): Promise<void> {
  const deadline = Date.now() + withinMs
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
