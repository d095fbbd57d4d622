// Strict JSON admission and writing. Every byte from a client, a server or a file passes here once.

/** A number whose decimal source must survive: an integer beyond 2^53-1, `1.0`, `1e3`, `-0`.
 *  Made by `JSON.rawJSON`, so `JSON.stringify` writes the source back digit for digit.
 *  `brand` is for the compiler only: no value carries it. */
export type Exact = { readonly rawJSON: string; readonly brand: symbol }

/** Any admitted JSON value. Objects inherit nothing, so a key can only be the sender's own. */
export type Json = null | boolean | number | string | Exact | readonly Json[] | JsonObject
/** An object that inherits nothing; a member that is absent reads as undefined. */
export interface JsonObject {
  readonly [key: string]: Json | undefined
}

/** Ceilings of one document. `bytes` is the length of the text; `depth` counts open brackets;
 *  `keys` are those of one object; `nodes` are all values of the document. */
export type JsonLimits = {
  readonly bytes: number
  readonly depth: number
  readonly keys: number
  readonly nodes: number
}

/** design.md 3: request 4 MiB. */
export const REQUEST_LIMITS: JsonLimits = {
  bytes: 4 * 1024 * 1024,
  depth: 64,
  keys: 10_000,
  nodes: 200_000,
}
/** design.md 3: upstream message 16 MiB. */
export const UPSTREAM_LIMITS: JsonLimits = { ...REQUEST_LIMITS, bytes: 16 * 1024 * 1024 }

/** Why a text was not admitted; a closed list. */
export type JsonProblem =
  | 'syntax'
  | 'utf8'
  | 'surrogate'
  | 'duplicate_key'
  | 'proto_key'
  | 'number_range'
  | 'too_long'
  | 'too_deep'
  | 'too_many_keys'
  | 'too_many_nodes'

/** Where a value stands in `text`, in UTF-16 units, end exclusive. */
export type Span = readonly [start: number, end: number]

/** What became of one text. `at`: where the problem was seen, UTF-16 units from the start. */
export type Parsed =
  | {
      readonly kind: 'json'
      readonly value: Json
      readonly text: string
      /** The member `result` of the top-level object; null when there is none. */
      readonly result: Span | null
    }
  | { readonly kind: 'refused'; readonly problem: JsonProblem; readonly at: number }

/** True for a number that is kept as source text. */
export const isExact = (value: unknown): value is Exact => rawJson.isRawJSON(value)
/** True for a JSON object (not null, not an array, not a source-kept number). */
export const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !rawJson.isRawJSON(value)

// lib.es2024 does not know JSON.rawJSON; Node has it since 21.
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- see above
const rawJson = JSON as unknown as {
  rawJSON(source: string): Exact
  isRawJSON(value: unknown): boolean
}

class Refusal {
  readonly problem: JsonProblem
  readonly at: number
  constructor(problem: JsonProblem, at: number) {
    this.problem = problem
    this.at = at
  }
}

/** The whole of `bytes` is one JSON document inside `limits`, or the first problem and its offset.
 *  Never throws and never recurses deeper than `limits.depth`. */
export function parseJson(bytes: Uint8Array, limits: JsonLimits): Parsed {
  if (bytes.length > limits.bytes) return { kind: 'refused', problem: 'too_long', at: limits.bytes }
  let text: string
  try {
    text = decoder.decode(bytes)
  } catch {
    return { kind: 'refused', problem: 'utf8', at: 0 }
  }
  return read(text, limits, bytes.length > LONG_BYTES && !hasControls(bytes))
}

/** From so many bytes on, one look for control characters in all of it is cheaper than one in each string. */
const LONG_BYTES = 4_096

/** True when a byte is below 0x20. Four at a time: for a word `w`, (w - 0x20202020) & ~w has the high bit of
 *  some byte set exactly when a byte of `w` is below 0x20. */
function hasControls(bytes: Uint8Array): boolean {
  const { buffer, byteOffset, length } = bytes
  const head = Math.min(length, (4 - (byteOffset % 4)) % 4)
  const words = new Int32Array(buffer, byteOffset + head, (length - head) >> 2)
  // Indexed: an iterator costs ten times as much, and this is most of the time that a long string takes.
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? 0
    if (((word - 0x20202020) & ~word & HIGH_BITS) !== 0) return true
  }
  const rest = bytes.subarray(head + 4 * words.length)
  return bytes.subarray(0, head).some(isControl) || rest.some(isControl)
}
const HIGH_BITS = 0x80808080 | 0
const isControl = (byte: number): boolean => byte < 0x20

// fatal: bytes that are not UTF-8 are refused, not replaced; ignoreBOM: a BOM stays and is a syntax error.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** As `parseJson`, for text that is already decoded (`limits.bytes` is not checked). */
export function parseText(text: string, limits: JsonLimits): Parsed {
  // A decoder cannot give a lone surrogate; a string from elsewhere may hold one.
  if (!text.isWellFormed()) return { kind: 'refused', problem: 'surrogate', at: 0 }
  return read(text, limits, false)
}

function read(text: string, limits: JsonLimits, isClean: boolean): Parsed {
  const reader = new Reader(text, limits, isClean)
  try {
    const value = reader.document()
    return { kind: 'json', value, text, result: reader.result }
  } catch (error) {
    if (error instanceof Refusal) return { kind: 'refused', problem: error.problem, at: error.at }
    throw error
  }
}

/** The JSON text of an admitted value; source-kept numbers come out as they came in. */
export const writeJson = (value: Json): string => JSON.stringify(value)

/** An own member of an admitted object, or undefined. */
export const member = (value: Json | undefined, key: string): Json | undefined =>
  isObject(value) ? value[key] : undefined

/** What admitted objects inherit from: nothing is in it, and nothing can be put there. As bare as no prototype
 *  at all; but members of an object without one are kept in a hash table, which costs half as much again. */
const NOTHING: object = Object.freeze({ __proto__: null })
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an empty object holds nothing else
const empty = (): Record<string, Json> => Object.create(NOTHING) as Record<string, Json>

/** An object of these members that inherits nothing; undefined members are left out. */
export function object(members: { readonly [key: string]: Json | undefined }): JsonObject {
  const made = empty()
  for (const key of Object.keys(members)) {
    const value = members[key]
    if (value !== undefined) made[key] = value
  }
  return made
}

/** A copy in which these members have these values; an undefined one is absent. */
export function withMembers(
  value: JsonObject,
  members: { readonly [key: string]: Json | undefined },
): JsonObject {
  const made = empty()
  for (const from of [value, members]) {
    for (const key of Object.keys(from)) {
      const one = from[key]
      if (one !== undefined) made[key] = one
      else delete made[key]
    }
  }
  return made
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const ZERO = 0x30
/** Up to here a loop is faster than a native search. */
const NEAR_UNITS = 32
/** Integers of so many digits are within 2^53-1. */
const EXACT_DIGITS = 15
// oxlint-disable-next-line no-control-regex -- what JSON forbids in a string is what is looked for
const SPECIAL = /[\\\u0000-\u001f]/g
const NUMBER_GOES_ON: ReadonlySet<number> = new Set([0x2e, 0x45, 0x65])
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y

function decode(literal: string): string | undefined {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a quoted literal gives a string
    return JSON.parse(literal) as string
  } catch {
    return undefined
  }
}

// A class, against the house rule of closures: one object a document keeps the reader monomorphic,
// which on the path of every message is worth a third of the time.
class Reader {
  result: Span | null = null
  readonly #text: string
  readonly #limits: JsonLimits
  /** No control character is anywhere in the text. */
  readonly #isClean: boolean
  #at = 0
  #nodes = 0

  constructor(text: string, limits: JsonLimits, isClean: boolean) {
    this.#text = text
    this.#limits = limits
    this.#isClean = isClean
  }

  document(): Json {
    this.#space()
    const value = this.#value(0)
    this.#space()
    if (this.#at < this.#text.length) this.#fail('syntax')
    return value
  }

  #fail(problem: JsonProblem): never {
    // oxlint-disable-next-line typescript/only-throw-error -- no stack: it is caught in parseText
    throw new Refusal(problem, this.#at)
  }

  #space(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at++
    }
  }

  #value(depth: number): Json {
    if (++this.#nodes > this.#limits.nodes) this.#fail('too_many_nodes')
    switch (this.#text.charCodeAt(this.#at)) {
      case QUOTE:
        return this.#string()
      case 0x7b:
        return this.#object(depth + 1)
      case 0x5b:
        return this.#array(depth + 1)
      case 0x74:
        return this.#word('true', true)
      case 0x66:
        return this.#word('false', false)
      case 0x6e:
        return this.#word('null', null)
      default:
        return this.#number()
    }
  }

  #word<T extends Json>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) this.#fail('syntax')
    this.#at += word.length
    return value
  }

  #object(depth: number): JsonObject {
    if (depth > this.#limits.depth) this.#fail('too_deep')
    const made = empty()
    let keys = 0
    this.#at++
    this.#space()
    if (this.#text.charCodeAt(this.#at) === 0x7d) {
      this.#at++
      return made
    }
    for (;;) {
      if (++keys > this.#limits.keys) this.#fail('too_many_keys')
      const key = this.#key(made)
      const start = this.#at
      made[key] = this.#value(depth)
      if (depth === 1 && key === 'result') this.result = [start, this.#at]
      if (this.#closes(0x7d)) return made
    }
  }

  /** A key that is new in `made`, and the colon after it. */
  #key(made: Readonly<Record<string, Json>>): string {
    if (this.#text.charCodeAt(this.#at) !== QUOTE) this.#fail('syntax')
    const key = this.#string()
    // An assignment to it would set a prototype in any program that reads the message less carefully.
    if (key === '__proto__') this.#fail('proto_key')
    // Nothing is inherited, and no value is undefined.
    if (made[key] !== undefined) this.#fail('duplicate_key')
    this.#space()
    if (this.#text.charCodeAt(this.#at) !== 0x3a) this.#fail('syntax')
    this.#at++
    this.#space()
    return key
  }

  #array(depth: number): readonly Json[] {
    if (depth > this.#limits.depth) this.#fail('too_deep')
    const made: Json[] = []
    this.#at++
    this.#space()
    if (this.#text.charCodeAt(this.#at) === 0x5d) {
      this.#at++
      return made
    }
    for (;;) {
      made.push(this.#value(depth))
      if (this.#closes(0x5d)) return made
    }
  }

  /** After a member: true at the closing bracket, false after a comma. */
  #closes(bracket: number): boolean {
    this.#space()
    const code = this.#text.charCodeAt(this.#at)
    if (code !== bracket && code !== 0x2c) this.#fail('syntax')
    this.#at++
    if (code === bracket) return true
    this.#space()
    return false
  }

  #string(): string {
    const start = ++this.#at
    const far = start + NEAR_UNITS
    for (;;) {
      const code = this.#text.charCodeAt(this.#at)
      if (code === QUOTE) return this.#text.slice(start, this.#at++)
      if (code === BACKSLASH) return this.#escaped(start)
      // NaN (the end of the text) fails here too; written so that the common case is one comparison.
      if (!(code >= 0x20)) this.#fail('syntax')
      if (++this.#at === far) return this.#long(start)
    }
  }

  /** The string that began at `start` and is plain up to here. The rest is looked through natively, which
   *  for long texts is three times as fast. */
  #long(start: number): string {
    const end = this.#text.indexOf('"', this.#at)
    if (end < 0) this.#fail('syntax')
    const made = this.#text.slice(start, end)
    SPECIAL.lastIndex = this.#at - start
    if (this.#isClean ? made.includes('\\') : SPECIAL.test(made)) return this.#escaped(start)
    this.#at = end + 1
    return made
  }

  /** The string that began at `start` and may hold escapes after here. Its end is found here; its escapes
   *  are decoded, and control characters refused, by JSON.parse, which knows the same grammar and is native. */
  #escaped(start: number): string {
    let end = this.#text.indexOf('"', this.#at)
    while (end >= 0 && this.#isEscaped(end, start)) end = this.#text.indexOf('"', end + 1)
    if (end < 0) this.#fail('syntax')
    const made = decode(this.#text.slice(start - 1, end + 1))
    if (made === undefined) return this.#fail('syntax')
    this.#at = end + 1
    if (!made.isWellFormed()) this.#fail('surrogate')
    return made
  }

  /** True after an odd number of backslashes. Each is looked at once: a quote ends every row of them. */
  #isEscaped(at: number, start: number): boolean {
    let first = at
    while (first > start && this.#text.charCodeAt(first - 1) === BACKSLASH) first--
    return (at - first) % 2 === 1
  }

  #number(): number | Exact {
    return this.#digits() ?? this.#anyNumber()
  }

  /** A short row of digits, which is most numbers, or null with nothing read. */
  #digits(): number | null {
    let at = this.#at
    let value = 0
    for (; ; at++) {
      const digit = this.#text.charCodeAt(at) - ZERO
      if (!(digit >= 0 && digit <= 9)) break
      value = value * 10 + digit
    }
    const count = at - this.#at
    if (count === 0 || count > EXACT_DIGITS || NUMBER_GOES_ON.has(this.#text.charCodeAt(at)))
      return null
    if (count > 1 && this.#text.charCodeAt(this.#at) === ZERO) return null
    this.#at = at
    return value
  }

  #anyNumber(): number | Exact {
    NUMBER.lastIndex = this.#at
    if (!NUMBER.test(this.#text)) return this.#fail('syntax')
    const source = this.#text.slice(this.#at, NUMBER.lastIndex)
    const value = Number(source)
    if (!Number.isFinite(value)) this.#fail('number_range')
    this.#at += source.length
    return String(value) === source && Math.abs(value) <= Number.MAX_SAFE_INTEGER
      ? value
      : rawJson.rawJSON(source)
  }
}
