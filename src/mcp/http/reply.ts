// The answer to one HTTP request: JSON when all there is to say is the response, an event stream otherwise.

import type { ServerResponse } from 'node:http'

import { pieces } from '../../canonical.ts'
import type { Doors } from '../../gateway.ts'
import { object } from '../../json.ts'
import type { Channel, How, Weight } from '../front/channel.ts'
import type { Accepts } from './guard.ts'
import { RPC } from '../wire/message.ts'
import { errorText, refusalData } from '../front/render.ts'
import { type EventLine, eventText, type Load, STALL_MS } from './sse-write.ts'

/** What carries the messages of one POST once one of them must go out before the response. */
export type Carrier = {
  write(message: string, weight: Weight): boolean
  end(): void
  keepAlive(nowMs: number, silentMs: number): void
}

/** What one POST needs. */
export type ReplyOptions = {
  readonly response: ServerResponse
  readonly accepts: Accepts
  /** Headers in pairs, asked for when the first byte goes out. */
  readonly headers: () => readonly string[]
  /** The status whatever is said; null: the one that the first message deserves. */
  readonly status: number | null
  /** The status when nothing is said. */
  readonly empty: 202 | 400
  /** Asked when all is over: true where a client still waits for a response that will never come. Then the
   *  connection is cut: a clean end would be read as nothing being owed, and waited on. */
  readonly owes: () => boolean
  /** Several requests came in this POST. */
  readonly batch: boolean
  readonly load: Load
  readonly turn: Doors['turn']
  /** Begins the event stream. */
  readonly stream: () => Carrier
  /** The client closed the connection while nothing had been said. */
  readonly lost: () => void
  /** Everything that came in is answered, whether or not somebody heard it. Called once. */
  readonly over: () => void
}

/** A channel over one POST. */
export type Reply = Channel & {
  /** Turns to an event stream, so that something is heard while the answer takes long. */
  becomeStream(): void
  keepAlive(nowMs: number, silentMs: number): void
}

/** The channel of one POST. */
export function replyTo(options: ReplyOptions): Reply {
  const { response, accepts } = options
  let carrier: Carrier | null = null
  let state: 'waiting' | 'streaming' | 'lost' | 'answered' = 'waiting'
  let isOver = false
  let isAnswered = false
  const held: Held[] = []
  const answer = (status: number, text: string | null): void => {
    state = 'answered'
    send(options, status, text)
  }
  const begin = (): Carrier => {
    state = 'streaming'
    const begun = options.stream()
    carrier = begun
    for (const { text } of held) begun.write(text, 'response')
    return begun
  }
  response.on('close', () => {
    if (state !== 'waiting') return
    state = 'lost'
    options.lost()
  })

  return {
    write(message, { weight, status }: How) {
      isAnswered ||= weight === 'response'
      if (state === 'streaming') return carrier?.write(message, weight) ?? false
      if (state !== 'waiting') return false
      const given = options.status ?? status
      if (weight !== 'response') return accepts.stream && begin().write(message, weight)
      if (options.batch) held.push({ text: message, status: given })
      else if (accepts.json || given !== 200) answer(given, message)
      else return begin().write(message, weight)
      return true
    },
    done() {
      if (isOver) return
      isOver = true
      if (!isAnswered && state !== 'lost' && options.owes()) {
        state = 'lost'
        // Whoever may not come any more has been told so meanwhile.
        if (!response.writableEnded) response.destroy()
      } else if (state === 'streaming') carrier?.end()
      else if (state === 'waiting' && held.length > 0) answerAll(held, answer)
      else if (state === 'waiting') answer(options.empty, null)
      options.over()
    },
    becomeStream() {
      if (state === 'waiting' && accepts.stream && !isOver) begin()
    },
    keepAlive: (nowMs, silentMs) => carrier?.keepAlive(nowMs, silentMs),
  }
}

type Held = { readonly text: string; readonly status: number }

/** The responses to a batch; one that refuses the whole batch stands alone. */
function answerAll(held: readonly Held[], answer: (status: number, text: string) => void): void {
  const [first] = held
  if (held.length === 1 && first !== undefined && first.status !== 200) {
    return answer(first.status, first.text)
  }
  answer(200, `[${held.map(({ text }) => text).join(',')}]`)
}

/** The messages of one modern POST: what is lost with its connection is lost. */
export function plainCarrier(line: EventLine): Carrier {
  return {
    write: (message, weight) => line.send(eventText(message, null), weight),
    end: line.end,
    keepAlive: line.keepAlive,
  }
}

/** Texts of which the unread part is worth counting, in UTF-16 units. */
const LARGE = 16 * 1024
/** Units of a text that are written in one go: a third of a millisecond. */
const PIECE = 256 * 1024

function send(
  { response, headers, load, turn }: ReplyOptions,
  status: number,
  text: string | null,
): void {
  if (response.destroyed || response.headersSent) return
  if (text === null) {
    response.writeHead(status, ['Content-Length', '0', ...headers()])
    response.end()
    return
  }
  const length = String(Buffer.byteLength(text))
  response.writeHead(status, ['Content-Length', length, ...JSON_HEADERS, ...headers()])
  if (text.length < LARGE) {
    response.end(text)
    return
  }
  response.setTimeout(STALL_MS, () => response.destroy())
  load.add(text.length)
  response.once('close', () => load.add(-text.length))
  if (text.length <= PIECE) response.end(text)
  else endInPieces(response, pieces(text, PIECE), turn)
}

/** Writes a long text no faster than it is read, and others have their turn between its pieces. */
function endInPieces(response: ServerResponse, rest: Iterator<string>, turn: Doors['turn']): void {
  const go = (): void => {
    if (response.destroyed) return
    const piece = rest.next()
    if (piece.done === true) response.end()
    else if (response.write(piece.value)) void turn().then(go)
    else response.once('drain', () => void turn().then(go))
  }
  void turn().then(go)
}

const JSON_HEADERS: readonly string[] = [
  'Content-Type',
  'application/json',
  'Cache-Control',
  'no-store',
  'X-Content-Type-Options',
  'nosniff',
]

/** Answers a request that is refused as HTTP, before or beside any message. The body tells the same. */
export function turnDown(
  response: ServerResponse,
  status: number,
  message: string,
  headers: readonly string[],
): void {
  if (response.headersSent || response.destroyed) return
  const text = errorText(null, {
    code: status >= 500 ? RPC.internal : RPC.request,
    message,
    data: refusalData({ code: 'malformed' }, object({})),
  })
  const length = String(Buffer.byteLength(text))
  response.writeHead(status, ['Content-Length', length, ...JSON_HEADERS, ...headers])
  response.end(text)
}
