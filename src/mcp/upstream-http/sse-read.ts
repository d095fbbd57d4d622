// Reads an event stream: bytes in, whole events out, whatever the borders of the chunks.

/** One event. `data` are the bytes of its lines, joined by LF, UTF-8 as it came; empty for one that only
 *  sets the id. `id` is the last id of the stream so far, null when it gave none. */
export type SseEvent = {
  readonly event: string
  readonly data: Buffer
  readonly id: string | null
}

/** What is heard of a stream. `retry`: the server wants this wait before the next connection, in ms.
 *  `tooLong`: one event is larger than may be; nothing more is heard. */
export type SseEars = {
  readonly event: (event: SseEvent) => void
  readonly retry: (ms: number) => void
  readonly tooLong: () => void
}

/** The reader of one stream. What is not ended by an empty line is no event, so the end of the stream needs
 *  no call. */
export type SseReader = {
  readonly push: (chunk: Buffer) => void
  /** Bytes of what is not whole yet. */
  readonly held: () => number
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BOM: Buffer = Buffer.from([0xef, 0xbb, 0xbf])
const DATA: Buffer = Buffer.from('data')
const NOTHING: Buffer = Buffer.alloc(0)
const NEWLINE: Buffer = Buffer.from('\n')
const DIGITS = /^[0-9]{1,9}$/
/** Longer ids are not kept: they would be sent again as a header. */
const MAX_ID_BYTES = 1024

type State = {
  readonly limit: number
  readonly ears: SseEars
  /** The line that is not ended yet: what is packed, and what came since. */
  packed: Buffer[]
  pieces: Buffer[]
  pieceBytes: number
  /** The last chunk ended with CR, which a LF may still belong to. */
  afterCr: boolean
  begun: boolean
  over: boolean
  data: Buffer[]
  dataBytes: number
  event: string
  id: string | null
}

/** A reader of events of at most `limit` bytes each. Source: WHATWG HTML, 9.2.6. */
export function sseReader(limit: number, ears: SseEars): SseReader {
  const state: State = {
    limit,
    ears,
    packed: [],
    pieces: [],
    pieceBytes: 0,
    afterCr: false,
    begun: false,
    over: false,
    data: [],
    dataBytes: 0,
    event: '',
    id: null,
  }
  return {
    push(chunk) {
      if (!state.over && chunk.length > 0) push(state, chunk)
    },
    held: () => (state.over ? 0 : state.dataBytes + state.pieceBytes),
  }
}

function push(state: State, chunk: Buffer): void {
  let from = 0
  if (state.afterCr && chunk[0] === LF) from = 1
  state.afterCr = false
  // Each is searched for only once past the last one found: else a chunk of short lines of one kind would
  // be searched to its end for the other kind at every line.
  let lf = -1
  let cr = -1
  while (from < chunk.length && !state.over) {
    lf = next(chunk, LF, lf, from)
    cr = next(chunk, CR, cr, from)
    const end = Math.min(lf, cr)
    if (end === chunk.length) {
      keep(state, chunk.subarray(from))
      return
    }
    line(state, chunk.subarray(from, end))
    from = end + 1
    if (end === cr) {
      if (from === chunk.length) state.afterCr = true
      else if (chunk[from] === LF) from++
    }
  }
}

/** The next place of a byte at or after `from`, the length where there is none; `known` is what was found before. */
function next(chunk: Buffer, byte: number, known: number, from: number): number {
  if (known >= from) return known
  const at = chunk.indexOf(byte, from)
  return at < 0 ? chunk.length : at
}

function keep(state: State, piece: Buffer): void {
  if (!room(state, piece.length)) return
  state.pieces.push(piece)
  state.pieceBytes += piece.length
  // A line that comes byte by byte must not cost a buffer object for each.
  if (state.pieces.length < MAX_PIECES) return
  state.packed.push(Buffer.concat(state.pieces))
  state.pieces = []
}

function room(state: State, bytes: number): boolean {
  const total = state.dataBytes + state.pieceBytes + bytes
  if (total <= state.limit + SLACK_BYTES && state.data.length <= MAX_LINES) return true
  state.over = true
  state.packed = []
  state.pieces = []
  state.data = []
  state.ears.tooLong()
  return false
}

/** `data: ` and what else stands on a line beside a message of the greatest size. */
const SLACK_BYTES = 64
/** Data lines of one event: each costs an object, however short it is. */
const MAX_LINES = 100_000
const MAX_PIECES = 1024

function line(state: State, rest: Buffer): void {
  if (!room(state, rest.length)) return
  let whole =
    state.pieceBytes === 0 ? rest : Buffer.concat([...state.packed, ...state.pieces, rest])
  state.packed = []
  state.pieces = []
  state.pieceBytes = 0
  if (!state.begun) {
    state.begun = true
    if (whole.subarray(0, BOM.length).equals(BOM)) whole = whole.subarray(BOM.length)
  }
  if (whole.length === 0) dispatch(state)
  else if (whole[0] !== COLON) field(state, whole)
}

function field(state: State, whole: Buffer): void {
  const colon = whole.indexOf(COLON)
  const name = colon < 0 ? whole : whole.subarray(0, colon)
  const skip = colon >= 0 && whole[colon + 1] === SPACE ? 2 : 1
  const value = colon < 0 ? NOTHING : whole.subarray(colon + skip)
  if (name.equals(DATA)) return add(state, value)
  switch (name.toString('latin1')) {
    case 'event':
      state.event = value.toString('utf8')
      return
    case 'id':
      if (!value.includes(0) && value.length <= MAX_ID_BYTES) state.id = value.toString('utf8')
      return
    case 'retry': {
      const text = value.toString('latin1')
      if (DIGITS.test(text)) state.ears.retry(Number(text))
      return
    }
    default:
  }
}

function add(state: State, value: Buffer): void {
  // A line keeps the whole chunk in memory in which it came, and most of that may be something else.
  state.data.push(state.data.length === 0 ? value : Buffer.from(value))
  state.dataBytes += value.length + 1
}

function dispatch(state: State): void {
  const { data, event, id } = state
  state.data = []
  state.dataBytes = 0
  state.event = ''
  const [first = NOTHING] = data
  const whole = data.length <= 1 ? first : Buffer.concat(joined(data))
  // An event without data is none, but it may have moved the id.
  state.ears.event({ event, data: whole, id })
}

function joined(lines: readonly Buffer[]): Buffer[] {
  return lines.flatMap((one, at) => (at === 0 ? [one] : [NEWLINE, one]))
}
