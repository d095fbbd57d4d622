// A session over this process's own streams, from its first line to its clean end.

import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'

import type { JsonObject } from '../../json.ts'
import type { ListKind, Upstreams } from '../../ports.ts'
import type { Channel } from './channel.ts'
import { type Front, front, type FrontOptions } from './front.ts'
import { lines } from '../wire/lines.ts'
import { type Outlet, outlet } from './outlet.ts'

/** Why a session ended. `signal` is null unless a signal ended it. */
export type Ended = {
  readonly why: 'input_ended' | 'output_closed' | 'signal'
  readonly signal: NodeJS.Signals | null
}

/** A session's needs, with the servers behind it and the streams and signals of this process. */
export type StdioOptions = Omit<
  FrontOptions,
  'transport' | 'ids' | 'eras' | 'write' | 'onReady'
> & {
  readonly upstreams: Pick<Upstreams, 'names'> & {
    onChange(listener: (upstream: string, kind: ListKind) => void): void
    onLog(listener: (upstream: string, params: JsonObject) => void): void
    onUpdated(listener: (upstream: string, params: JsonObject) => void): void
    stop(): Promise<void>
  }
  readonly streams: {
    readonly input: Readable
    readonly output: Writable
    readonly errors: Writable
  }
  /** Where SIGTERM, SIGINT and SIGHUP arrive: the process. */
  readonly signals: EventEmitter
  /** How long calls in flight may still take when the session ends. */
  readonly drainMs: number
}

/** How long a client may still read what was written for it when the time to drain is over. */
const FLUSH_MS = 1_000
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/** Serves until the input ends, the output closes or a signal comes. Resolves when every call that was in
 *  flight has its outcome in the ledger, what it was answered is written, and the servers are stopped. A
 *  second signal ends the wait at once. No timer ends a session that is only idle. */
export async function serveStdio(options: StdioOptions): Promise<Ended> {
  const { upstreams, drainMs, signals } = options
  const ending = once<Ended>()
  const hurry = once<void>()
  const pump = session(options, (why) => ending.settle({ why, signal: null }))
  const onSignal = (signal: NodeJS.Signals): void => {
    if (ending.isSettled()) hurry.settle()
    ending.settle({ why: 'signal', signal })
  }
  for (const signal of SIGNALS) signals.on(signal, onSignal)

  const ended = await ending.promise
  // Nobody is left to hear of it: what only reads is stopped, what changes something may still finish.
  if (ended.why === 'output_closed') pump.front.abandon()
  const drained = pump.front.drain()
  const timer = setTimeout(hurry.settle, drainMs)
  await Promise.race([drained, hurry.promise])
  clearTimeout(timer)
  pump.close()
  pump.front.abandon()
  await upstreams.stop()
  await drained
  await pump.outlet.flush(hurry.isSettled() ? FLUSH_MS : drainMs)
  for (const signal of SIGNALS) signals.off(signal, onSignal)
  return ended
}

type Pump = {
  readonly front: Front
  readonly outlet: Outlet
  /** Nothing is read any more. */
  readonly close: () => void
}

/** Wires input to session to output. Lines wait here, never more than one chunk of them: while the session
 *  or the client is behind, nothing is read. */
function session(options: StdioOptions, end: (why: Exclude<Ended['why'], 'signal'>) => void): Pump {
  const { input, output, errors } = options.streams
  const waiting: Piece[] = []
  let next = 0
  let isOver = false
  let isClosed = false
  const mayTake = (): boolean => one.ready() && !out.isFull()
  const pump = (): void => {
    if (isClosed) return
    for (; next < waiting.length && mayTake(); next++) {
      const piece = waiting[next]
      if (piece !== undefined) give(one, piece, channel)
    }
    if (next < waiting.length) {
      input.pause()
      return
    }
    waiting.length = 0
    next = 0
    if (isOver) end('input_ended')
    else input.resume()
  }
  const out = outlet(output, {
    drained: pump,
    closed: (why) => {
      options.say(`the client is gone (${why}); the session ends`)
      end('output_closed')
    },
  })
  const one = front({ ...options, ...OWN, write: out.write, onReady: pump })
  const channel = channelOf(out)
  const splitter = lines(
    options.limits.requestBytes,
    (line) => waiting.push({ kind: 'line', line }),
    (bytes) => waiting.push({ kind: 'too_long', bytes }),
  )
  const finish = (): void => {
    if (isOver) return
    isOver = true
    splitter.end()
    pump()
  }
  input.on('data', (chunk: Buffer) => {
    splitter.push(chunk)
    pump()
  })
  input.on('end', finish)
  input.on('close', finish)
  input.on('error', finish)
  // The operator's terminal may go away; the calls matter more than the words about them.
  errors.on('error', () => undefined)
  hear(one, options.upstreams)
  const close = (): void => {
    isClosed = true
    input.pause()
  }
  return { front: one, outlet: out, close }
}

function hear(one: Front, upstreams: StdioOptions['upstreams']): void {
  upstreams.onChange((_upstream, kind) => one.changed(kind))
  upstreams.onLog((_upstream, params) => one.logged(params, null))
  upstreams.onUpdated((upstream, params) => one.updated(upstream, params, null))
}

const OWN = { transport: 'stdio', ids: 'session', eras: 'both' } as const

/** Everything goes one way here. */
const channelOf = (out: Outlet): Channel => ({
  write: (message, { weight }) => out.write(message, weight),
  done: () => undefined,
})

function give(one: Front, piece: Piece, channel: Channel): void {
  if (piece.kind === 'line') one.receive(piece.line, channel)
  else one.tooLong(piece.bytes, channel)
}

type Piece =
  | { readonly kind: 'line'; readonly line: Buffer }
  | { readonly kind: 'too_long'; readonly bytes: number }

type Once<T> = {
  readonly promise: Promise<T>
  readonly settle: (value: T) => void
  readonly isSettled: () => boolean
}

function once<T>(): Once<T> {
  const { promise, resolve } = Promise.withResolvers<T>()
  let isSettled = false
  return {
    promise,
    isSettled: () => isSettled,
    settle(value) {
      isSettled = true
      resolve(value)
    },
  }
}
