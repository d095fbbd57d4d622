// Streams of one session that can be taken up again: what was said on each, kept for a while and bounded.

import type { Weight } from '../front/channel.ts'
import { type EventLine, eventText, primingText } from './sse-write.ts'

/** One stream of a session. It outlives the connections on which it is read. */
export type LoggedStream = {
  readonly number: number
  /** `answer`: what belongs to one POST; `open`: what belongs to none. */
  readonly kind: 'answer' | 'open'
  /** Says one message; false when it was dropped. Without a connection it is kept. */
  write(message: string, weight: Weight): boolean
  /** Goes on on this connection, with what came after event `after`; null: with what nobody was sent. */
  attach(line: (closed: () => void) => EventLine, after: number | null): void
  /** Nothing more comes. It can still be read for a while. */
  end(): void
  isAttached(): boolean
  /** Writes a comment on a quiet connection. */
  keepAlive(nowMs: number, silentMs: number): void
}

/** All streams of one session. */
export type StreamLog = {
  /** A new stream. */
  begin(kind: LoggedStream['kind']): LoggedStream
  /** The stream of an event id, and the number of the event; null when it is not known any more. */
  find(eventId: string): { readonly stream: LoggedStream; readonly after: number } | null
  /** Streams that are read, or may still be written. */
  live(): readonly LoggedStream[]
  /** Forgets what ended too long ago. */
  sweep(nowMs: number): void
  /** Ends all and forgets everything. */
  close(): void
}

/** What is kept of all sessions together, in UTF-16 units. */
export type Shelf = { kept: number }

/** What one session keeps for a client that comes back, in UTF-16 units. */
export const MAX_KEPT: number = 4 * 1024 * 1024
/** The same for all sessions together; beyond it a session keeps only what it adds. */
export const MAX_SHELF: number = 128 * 1024 * 1024
/** Streams remembered a session, the ended ones too; an ended one is forgotten first. */
const MAX_STREAMS = 256
/** How long an ended stream can still be read. */
export const REPLAY_MS = 300_000
/** After how long a client should come back. */
const RETRY_MS = 1_000

type Kept = { readonly of: Stream; readonly number: number; readonly text: string }
type Stream = LoggedStream & {
  readonly events: Kept[]
  line: EventLine | null
  endedMs: number | null
}
type Log = {
  readonly streams: Map<number, Stream>
  /** Oldest first. */
  kept: Kept[]
  readonly shelf: Shelf
  readonly primes: () => boolean
  readonly nowMs: () => number
  size: number
}

/** The streams of a session that has none. `primes`: whether a stream begins with an event without a message,
 *  from which it can be taken up before anything was said. */
export function streamLog(options: {
  readonly shelf: Shelf
  readonly primes: () => boolean
  readonly nowMs: () => number
}): StreamLog {
  const log: Log = { streams: new Map(), kept: [], size: 0, ...options }
  let next = 0
  return {
    begin(kind) {
      next++
      const stream = logged(log, next, kind)
      log.streams.set(next, stream)
      if (log.streams.size > MAX_STREAMS) forgetOne(log)
      return stream
    },
    find(eventId) {
      const [, number, after] = EVENT_ID.exec(eventId) ?? []
      const stream = log.streams.get(Number(number))
      return stream === undefined ? null : { stream, after: Number(after) }
    },
    live: () => [...log.streams.values()].filter(({ endedMs }) => endedMs === null),
    sweep(nowMs) {
      for (const stream of log.streams.values()) {
        if (stream.endedMs !== null && nowMs - stream.endedMs > REPLAY_MS) forget(log, stream)
      }
    },
    close() {
      for (const stream of log.streams.values()) {
        stream.end()
        forget(log, stream)
      }
    },
  }
}

const EVENT_ID = /^([1-9][0-9]{0,14})-(0|[1-9][0-9]{0,14})$/

function logged(log: Log, number: number, kind: LoggedStream['kind']): Stream {
  let last = 0
  let sent = 0
  const stream: Stream = {
    number,
    kind,
    events: [],
    line: null,
    endedMs: null,
    isAttached: () => stream.line !== null,
    write(message, weight) {
      if (stream.endedMs !== null) return false
      const id = last + 1
      const text = eventText(message, `${number}-${id}`)
      const isSent = stream.line?.send(text, weight) ?? false
      // A notice that a slow reader did not get is dropped for good; with nobody there it is kept.
      if (!isSent && stream.line !== null && weight === 'notice') return false
      last = id
      if (isSent) sent = id
      const isKept = keep(log, { of: stream, number: id, text })
      return isSent || isKept
    },
    attach(open, after) {
      stream.line?.end()
      const line = open(() => {
        if (stream.line === line) stream.line = null
      })
      stream.line = line
      if (after === null && log.primes()) {
        line.send(primingText(`${number}-${sent}`, RETRY_MS), 'response')
      }
      const from = after ?? sent
      for (const event of stream.events) {
        if (event.number > from && line.send(event.text, 'response')) sent = event.number
      }
      if (stream.endedMs !== null) detach(stream)
    },
    end() {
      stream.endedMs ??= log.nowMs()
      detach(stream)
    },
    keepAlive: (nowMs, silentMs) => stream.line?.keepAlive(nowMs, silentMs),
  }
  return stream
}

function detach(stream: Stream): void {
  stream.line?.end()
  stream.line = null
}

/** Keeps one event, and gives up the oldest for it; false for one that is too large to be kept at all. */
function keep(log: Log, event: Kept): boolean {
  const { shelf } = log
  const size = event.text.length
  if (size > MAX_KEPT) return false
  while (log.size + size > MAX_KEPT || (shelf.kept + size > MAX_SHELF && log.size > 0)) {
    const oldest = log.kept.shift()
    if (oldest === undefined) break
    oldest.of.events.shift()
    log.size -= oldest.text.length
    shelf.kept -= oldest.text.length
  }
  if (shelf.kept + size > MAX_SHELF) return false
  log.kept.push(event)
  event.of.events.push(event)
  log.size += size
  shelf.kept += size
  return true
}

function forget(log: Log, stream: Stream): void {
  const size = stream.events.reduce((sum, { text }) => sum + text.length, 0)
  log.kept = log.kept.filter(({ of }) => of !== stream)
  log.size -= size
  log.shelf.kept -= size
  stream.events.length = 0
  log.streams.delete(stream.number)
}

function forgetOne(log: Log): void {
  const ended = [...log.streams.values()].find(({ endedMs }) => endedMs !== null)
  if (ended !== undefined) forget(log, ended)
}
