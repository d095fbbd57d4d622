// Generated JSON documents, as the strict reader would give them, and other spellings of their texts.

import fc from 'fast-check'

import { isExact, isObject, type Json, object, parseText, REQUEST_LIMITS } from '../../src/json.ts'

const NAMES = [
  '',
  'a',
  'b',
  '0',
  '1',
  'constructor',
  'toString',
  'id',
  '\u0000',
  '"',
  '\\',
  '/',
  'é',
  '🚀',
]

const strings = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 12 }).filter((text) => text.isWellFormed()),
  fc.constantFrom(...NAMES),
)
// Not the key of one backslash: V8 misreads others after it, and tests compare with V8.
const keys = strings.filter((key) => key !== '__proto__' && key !== '\\')

/** The value of one admitted number text. */
const numberOf = (source: string): Json => {
  const parsed = parseText(source, REQUEST_LIMITS)
  if (parsed.kind !== 'json') throw new Error(`not a number: ${source}`)
  return parsed.value
}

const digits = fc.stringMatching(/^[0-9]{1,25}$/)
const sources = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.oneof(fc.constant('0'), fc.stringMatching(/^[1-9][0-9]{0,24}$/)),
    fc.oneof(
      fc.constant(''),
      digits.map((text) => `.${text}`),
    ),
    fc.oneof(
      fc.constant(''),
      fc.tuple(fc.constantFrom('e', 'E', 'e+', 'e-'), fc.nat(250)).map((parts) => parts.join('')),
    ),
  )
  .map((parts) => parts.join(''))

/** Integers that a double holds. */
export const integers: fc.Arbitrary<Json> = fc.maxSafeInteger()

const tree = (leaf: fc.Arbitrary<Json>): fc.Arbitrary<Json> =>
  fc.letrec<{ any: Json }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      leaf,
      fc.array(tie('any'), { maxLength: 6 }),
      fc
        .uniqueArray(fc.tuple(keys, tie('any')), { maxLength: 6, selector: ([key]) => key })
        .map((entries) => object(Object.fromEntries(entries))),
    ),
  })).any

const words: fc.Arbitrary<Json> = fc.constantFrom(null, true, false)

/** Documents of every kind of value, source-kept numbers among them. */
export const documents: fc.Arbitrary<Json> = tree(
  fc.oneof(words, integers, sources.map(numberOf), strings),
)

/** Documents without fractions and powers: those of which other languages write the same text. */
export const plainDocuments: fc.Arbitrary<Json> = tree(
  fc.oneof(
    words,
    integers,
    fc.bigInt().map((big) => numberOf(String(big))),
    strings,
  ),
)

/** Ways to spell a value: spaces anywhere they may stand, characters escaped at random. */
export const texts: fc.Arbitrary<(value: Json) => string> = fc
  .tuple(fc.constantFrom('', ' ', '\n', '\t\r '), fc.integer({ min: 1, max: 5 }))
  .map(
    ([gap, every]) =>
      (value) =>
        spell(value, gap, every),
  )

function spell(value: Json | undefined, gap: string, every: number): string {
  const inner = (one: Json | undefined): string => gap + spell(one, gap, every) + gap
  if (typeof value === 'string') return quote(value, every)
  if (isExact(value)) return value.rawJSON
  if (Array.isArray(value)) return `[${value.map(inner).join(',') || gap}]`
  if (!isObject(value)) return JSON.stringify(value)
  const members = Object.entries(value).map(
    ([key, one]) => `${gap}${quote(key, every)}${gap}:${inner(one)}`,
  )
  return `{${members.join(',') || gap}}`
}

const quote = (text: string, every: number): string =>
  `"${Array.from({ length: text.length }, (_, at) => {
    const unit = text.charCodeAt(at)
    const half = unit >= 0xd800 && unit <= 0xdfff
    const must = unit < 0x20 || unit === 0x22 || unit === 0x5c || half
    return must || at % every === 0 ? `\\u${unit.toString(16).padStart(4, '0')}` : text.charAt(at)
  }).join('')}"`
