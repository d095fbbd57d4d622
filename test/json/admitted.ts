// Texts of every class that the grammar of JSON allows.

import { type Class, everywhere } from './classes.ts'

const SIGNS = ['', '-']
const WHOLES = ['0', '7', '10', '4096', '900719925474099']
const FRACTIONS = ['', '.0', '.5', '.000', '.12345678901234567']
const POWERS = ['', 'e0', 'E0', 'e7', 'E+7', 'e-7', 'E-07', 'e+00']

/** Every sign, whole, fraction and power that the grammar of numbers joins. */
export const NUMBERS: readonly string[] = SIGNS.flatMap((sign) =>
  WHOLES.flatMap((whole) =>
    FRACTIONS.flatMap((fraction) => POWERS.map((power) => sign + whole + fraction + power)),
  ),
)

export const ADMITTED: readonly Class[] = [
  { name: 'numbers', texts: everywhere('0', '-1', '1.25', '6e3', '-0', '0e+1') },
  { name: 'every joint of the grammar of numbers', texts: NUMBERS },
  {
    name: 'integers beyond 2^53, as source',
    texts: everywhere('9007199254740993', '-18446744073709551617', `1${'0'.repeat(400)}e-400`),
  },
  {
    name: 'numbers that underflow, as source',
    texts: everywhere('1e-400', '-0.1e-999', '3E-4000'),
  },
  { name: 'words', texts: everywhere('true', 'false', 'null') },
  { name: 'empty things', texts: everywhere('""', '[]', '{}', '[ ]', '{\n}', '{"":0}') },
  {
    name: 'every escape',
    texts: everywhere(
      String.raw`"\" \\ \/ \b \f \n \r \t"`,
      String.raw`"\u0000\u001f\u007f\u0080\u2028\uFFFF"`,
      String.raw`"\u0061\u0041\uabCD"`,
      String.raw`"\\u0061\\n\\\\"`,
      String.raw`"\/* no *\/ comment // here #"`,
    ),
  },
  {
    name: 'surrogate pairs, escaped and not',
    texts: everywhere(
      String.raw`"\ud83d\ude80"`,
      String.raw`"\uDBFF\uDFFF"`,
      '"🚀 𝄞"',
      '"\u{10FFFF}"',
    ),
  },
  {
    name: 'UTF-8 of one to four bytes, at its edges',
    texts: everywhere('"\u007f\u0080\u07ff\u0800\uffff\u{10000}"', '"\ud7ff\ue000"'),
  },
  {
    name: 'characters that other readers trip over',
    texts: everywhere(
      '"\u2028\u2029"',
      '"\ufffe\u{1fffe}\ufdd0"',
      '"\u2060\u200b\u00a0"',
      '"\ufeff"',
    ),
  },
  {
    name: 'keys that are names elsewhere',
    texts: [
      '{"constructor":1,"toString":2,"hasOwnProperty":3,"prototype":4,"__proto":5,"length":6}',
    ],
  },
  {
    name: 'keys that differ in form only',
    texts: ['{"\u00e9":1,"e\u0301":2,"É":3}', '{"a":1,"A":2,"a ":3}'],
  },
  { name: 'keys with escapes', texts: [String.raw`{"a\u0000b":1,"\"":2,"\n":3}`] },
  {
    name: 'a long string and a long key',
    texts: [`{"${'k'.repeat(5000)}":"${'é'.repeat(5000)}"}`],
  },
  { name: 'spaces around a document', texts: [' 1', '1 ', '\n\r\t {} \n\r\t '] },
]
