// The replies of a server on one connection, read byte by byte as they come: heads, bodies, where each ends.

/** The head of a reply. `headers`: by name in lower case, those of `KEPT` alone. `keepMs`: how long the server
 *  keeps the connection after it; 0: it does not, infinite: it does not say. */
export type ReplyHead = {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly keepMs: number
}

/** Why a reply cannot be read. */
export type ReplyFault = 'too_large' | 'no_http'

/** What is heard of a reply, as its bytes are pushed. */
export type ReplyEars = {
  readonly head: (head: ReplyHead) => void
  /** A part of its body: a view of what was pushed. */
  readonly data: (chunk: Buffer) => void
}

/** Where a reader stands. done: a reply is whole, and nothing came after it. excess: one is whole, and there
 *  are bytes after it that nobody asked for. A fault stays. */
export type ReplyState = 'reading' | 'done' | 'excess' | ReplyFault

/** A reader of one reply after the other. */
export type ReplyReader = {
  /** Takes what came. */
  readonly push: (chunk: Buffer) => ReplyState
  /** The other side sends no more: true when that is how the reply says that it is whole. */
  readonly close: () => boolean
  /** The next reply begins. */
  readonly reset: () => void
}

/** The bytes of a head, of what else than sizes stands between all the parts of a body, and of all trailers
 *  together. Source: as Node's own limits. */
const MAX_HEAD_BYTES = 16 * 1024
/** Heads before the one that counts. */
const MAX_INTERIM = 32
/** Parts of a body that hold less than `SMALL_BYTES`. Each costs as much time as a page of text: a server could
 *  keep us busy with them, and nobody else would have a turn. */
const MAX_SMALL = 65_536
const SMALL_BYTES = 16
/** Digits of a length: all of them together stay exact. */
const MAX_DIGITS = 12

/** The headers that anybody reads here. Of one that stands twice, the first counts (RFC 9110, 5.3 allows no
 *  list of them), but for those that must not be taken for less than they are. */
const KEPT: ReadonlySet<string> = new Set([
  'content-type',
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'location',
  'mcp-session-id',
  'retry-after',
])
const FIRST: ReadonlySet<string> = new Set(['content-type', 'location', 'retry-after'])

type State = {
  readonly ears: ReplyEars
  /** head: of a reply. length: a body of `left` bytes. close: a body up to the end. size, chunk, after: a body
   *  in parts. trailer: what stands after them. */
  at: 'head' | 'length' | 'close' | 'size' | 'chunk' | 'after' | 'trailer' | Over
  /** The beginning of a head or a line whose end has not come. */
  begun: string
  left: number
  interim: number
  /** Bytes of the extensions, and of the trailers once they are reached. */
  lines: number
  small: number
}

/** A reader that has read nothing. It is strict: what two readers could understand differently is a fault.
 *  Source: RFC 9112. */
export function replyReader(ears: ReplyEars): ReplyReader {
  const state: State = { ears, at: 'head', begun: '', left: 0, interim: 0, lines: 0, small: 0 }
  return {
    push: (chunk) => push(state, chunk),
    close: () => state.at === 'close',
    reset() {
      state.at = 'head'
      state.begun = ''
      state.interim = 0
      state.lines = 0
      state.small = 0
    },
  }
}

function push(state: State, chunk: Buffer): ReplyState {
  let from = 0
  while (from < chunk.length) {
    const { at } = state
    if (isOver(at)) {
      if (at === 'done') state.at = 'excess'
      break
    }
    if (at === 'head') from = head(state, chunk, from)
    else if (isBody(at)) from = part(state, chunk, from)
    else from = line(state, chunk, from)
  }
  return isOver(state.at) ? state.at : 'reading'
}

type Over = Exclude<ReplyState, 'reading'>
const isOver = (at: State['at']): at is Over =>
  at === 'done' || at === 'excess' || at === 'too_large' || at === 'no_http'
const isBody = (at: State['at']): boolean => at === 'length' || at === 'chunk' || at === 'close'

/** Reads a head up to its end, and says from where to go on. */
function head(state: State, chunk: Buffer, from: number): number {
  const joined = state.begun.length
  // Its end may lie across two chunks.
  const text =
    joined === 0
      ? null
      : state.begun + chunk.toString('latin1', from, from + MAX_HEAD_BYTES + END.length)
  const end = text === null ? chunk.indexOf(END, from, 'latin1') - from : text.indexOf(END)
  if (end > MAX_HEAD_BYTES) return fail(state, chunk, 'too_large')
  if (end < 0) {
    const begun = text ?? chunk.toString('latin1', from, from + MAX_HEAD_BYTES + END.length)
    if (begun.length >= MAX_HEAD_BYTES) return fail(state, chunk, 'too_large')
    if (!BEGINS.test(begun.slice(0, VERSION_LENGTH)) || LONE_YET.test(begun))
      return fail(state, chunk, 'no_http')
    state.begun = begun
    return chunk.length
  }
  const whole = text === null ? chunk.toString('latin1', from, from + end) : text.slice(0, end)
  state.begun = ''
  if (!understood(state, whole)) return fail(state, chunk, 'no_http')
  return from + end + END.length - joined
}

const END = '\r\n\r\n'
const VERSION_LENGTH = 'HTTP/1.'.length
const BEGINS = /^(?:H(?:T(?:T(?:P(?:\/(?:1(?:\.)?)?)?)?)?)?)?$/
/** A line that ends otherwise than with both, and what stands in no head. */
const LONE = /\r(?!\n)|(?<!\r)\n|[^\t\r\n -~\u0080-\u00ff]/
/** The same of a beginning, whose last line may end with what is still to come. */
const LONE_YET = /\r(?!\n|$)|(?<!\r)\n|[^\t\r\n -~\u0080-\u00ff]/
const STATUS = /^HTTP\/1\.([01]) ([1-9][0-9]{2})(?: .*)?$/
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

function fail(state: State, chunk: Buffer, why: ReplyFault): number {
  state.at = why
  state.begun = ''
  return chunk.length
}

/** False for a head that says two things at once, or none. */
function understood(state: State, text: string): boolean {
  if (LONE.test(text)) return false
  const [first = '', ...lines] = text.split('\r\n')
  const said = STATUS.exec(first)
  const headers = new Map<string, string>()
  if (said === null || !lines.every((one) => header(headers, one))) return false
  const status = Number(said[2])
  if (status < 200) {
    // We never ask for another protocol, so nobody may go over to one.
    if (status === 101 || ++state.interim > MAX_INTERIM) return false
    return true
  }
  const framed = frame(state, status, headers)
  if (framed) {
    const keepMs = state.at === 'close' ? 0 : kept(headers, said[1] === '1')
    state.ears.head({ status, headers, keepMs })
  }
  return framed
}

function header(headers: Map<string, string>, text: string): boolean {
  const name = nameOf(text)
  if (name === null) return false
  const key = name.toLowerCase()
  if (!KEPT.has(key)) return true
  const value = trimmed(text, name.length + 1)
  const before = headers.get(key)
  if (before === undefined) headers.set(key, value)
  // Two lengths, also equal ones, are how one reply is made into two.
  else if (key === 'content-length') return false
  else if (!FIRST.has(key)) headers.set(key, `${before}, ${value}`)
  return true
}

/** The name of the header in this line; null where there is none. */
function nameOf(text: string): string | null {
  const name = text.slice(0, Math.max(0, text.indexOf(':')))
  return NAME.test(name) ? name : null
}

/** The rest of a line from here, without the spaces and tabs at its ends. */
function trimmed(text: string, from: number): string {
  let start = from
  let end = text.length
  while (start < end && isBlank(text.charCodeAt(start))) start++
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}
const isBlank = (code: number): boolean => code === 0x20 || code === 0x09

/** Finds out where the body ends. Source: RFC 9112, 6.3. */
function frame(state: State, status: number, headers: ReadonlyMap<string, string>): boolean {
  const coded = headers.get('transfer-encoding')
  const length = headers.get('content-length')
  if (coded !== undefined) {
    if (length !== undefined || coded.toLowerCase() !== 'chunked') return false
    state.at = 'size'
  } else if (length !== undefined) {
    if (length.length > MAX_DIGITS || !/^[0-9]+$/.test(length)) return false
    state.left = Number(length)
    state.at = state.left === 0 ? 'done' : 'length'
  } else {
    state.left = Number.POSITIVE_INFINITY
    state.at = 'close'
  }
  // Neither ever has a body, whatever it says.
  if (status === 204 || status === 304) state.at = 'done'
  return true
}

function kept(headers: ReadonlyMap<string, string>, isNew: boolean): number {
  const said = headers.get('connection')?.toLowerCase() ?? ''
  const tokens = said === '' ? [] : said.split(',').map((token) => token.trim())
  if (tokens.includes('close') || (!isNew && !tokens.includes('keep-alive'))) return 0
  const seconds = /(?:^|[,;]\s*)timeout=([0-9]{1,6})/i.exec(headers.get('keep-alive') ?? '')?.[1]
  return seconds === undefined ? Number.POSITIVE_INFINITY : Number(seconds) * 1000
}

/** Passes on what belongs to the body, or to the part of it that is being read. */
function part(state: State, chunk: Buffer, from: number): number {
  const end = Math.min(chunk.length, from + state.left)
  state.left -= end - from
  if (state.left === 0) state.at = state.at === 'length' ? 'done' : 'after'
  state.ears.data(from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end))
  return end
}

/** Reads one of the lines between the parts of a body. */
function line(state: State, chunk: Buffer, from: number): number {
  const end = chunk.indexOf(0x0a, from)
  const to = end < 0 ? chunk.length : end
  if (state.at === 'trailer') state.lines += to - from
  if (state.begun.length + to - from > MAX_HEAD_BYTES) return fail(state, chunk, 'too_large')
  const text = state.begun + chunk.toString('latin1', from, to)
  if (end < 0) {
    state.begun = text
    return chunk.length
  }
  state.begun = ''
  const good = text.endsWith('\r') && !LONE.test(text.slice(0, -1))
  return good && next(state, text.slice(0, -1)) ? end + 1 : fail(state, chunk, 'no_http')
}

/** What this line says comes after it. */
function next(state: State, text: string): boolean {
  if (state.at === 'after') {
    state.at = 'size'
    return text === ''
  }
  if (state.at === 'trailer') {
    if (text === '') state.at = 'done'
    // Nothing of it is used; it only has to end.
    else if (state.lines > MAX_HEAD_BYTES || nameOf(text) === null) return false
    return true
  }
  const size = /^([0-9A-Fa-f]{1,10})(?:[ \t]*;.*)?$/.exec(text)?.[1]
  if (size === undefined) return false
  state.left = Number.parseInt(size, 16)
  state.at = state.left === 0 ? 'trailer' : 'chunk'
  if (state.left < SMALL_BYTES) state.small++
  state.lines = state.left === 0 ? 0 : state.lines + text.length - size.length
  return state.small <= MAX_SMALL && state.lines <= MAX_HEAD_BYTES
}
