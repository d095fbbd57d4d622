// Texts of every class that is not admitted, each with the problem it is refused for.

import { Buffer } from 'node:buffer'

import { bytes, each, everywhere, type Wrong } from './classes.ts'

const GAPS = ['\u000b', '\f', '\u00a0', '\u2028', '\u2060', '\ufeff', '\u0000', '\u200b', '\u3000']

export const REFUSED: readonly Wrong[] = [
  { name: 'nothing', problem: 'syntax', texts: ['', ' ', '\n\n', '\t'] },
  {
    name: 'signs and digits that no number begins or ends with',
    problem: 'syntax',
    texts: everywhere(
      '+1',
      '++1',
      '-',
      '--1',
      '- 1',
      '1-',
      '1+',
      '-a',
      '1a',
      '-1x',
      '1 000',
      '1_000',
      '1+2',
    ),
  },
  {
    name: 'leading zeros and other bases',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      00  01  -01  -00.5  0x1  0x1F  0b1  0o7  012  1n
    `,
    ),
  },
  {
    name: 'fractions that lack a side',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      1.  .5  -.5  -2.  1.e3  0.e1  .  -.  1..2  1.2.3  .-1  0,5.
    `,
    ),
  },
  {
    name: 'powers that lack digits',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      1e  1E  1e+  1.5E-  0e  0.3e  1ee2  1eE2  1e1.5  1e +2  e3  1ea
    `,
    ),
  },
  {
    name: 'not-a-number and its friends',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      NaN  -NaN  nan  Infinity  -Infinity  +Infinity  Inf  inf
    `,
    ),
  },
  {
    name: 'digits of other scripts',
    problem: 'syntax',
    texts: everywhere('\uff11', '\u0661', '²'),
  },
  {
    name: 'numbers beyond every double',
    problem: 'number_range',
    texts: everywhere('1e400', '-1e400', '1E+309', '123.456e789', `1${'0'.repeat(400)}`),
  },
  {
    name: 'words cut short, in other case, or joined',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      tru  fals  nul  True  FALSE  Null  truefalse  nullx  none  undefined  yes
    `,
    ),
  },
  {
    name: 'quotes that are none',
    problem: 'syntax',
    texts: everywhere("'a'", '`a`', 'a', 'é', '\u201ca\u201d', '"a\'', '\'a"', '&quot;a&quot;'),
  },
  {
    name: 'escapes that are none',
    problem: 'syntax',
    texts: everywhere(
      ...each`
      "\a"  "\x41"  "\'"  "\0"  "\U0041"  "\u"  "\u0"  "\u004"  "\u00G0"  "\u 041"  "\🚀"
      "\u{41}"  "\-"
    `,
      '"\\\n"',
      '"\\\t"',
      '"\\\u0000"',
    ),
  },
  {
    name: 'escapes outside a string',
    problem: 'syntax',
    texts: [String.raw`\n1`, String.raw`[\u0020 1]`, String.raw`\u0022a\u0022`, String.raw`[\n]`],
  },
  {
    name: 'strings that do not end',
    problem: 'syntax',
    texts: [
      ...each`
      "  "a  ["a  {"a  {"a":"b  "\u12  [""  ""a
    `,
      '"\\',
      '"\\"',
      '"a\\',
      '["\\',
    ],
  },
  {
    name: 'each control character in a string, unescaped',
    problem: 'syntax',
    texts: Array.from({ length: 32 }, (_, code) => `["a${String.fromCharCode(code)}b"]`),
  },
  {
    name: 'lone, swapped and halved surrogates',
    problem: 'surrogate',
    texts: everywhere(
      ...each`
      "\ud800"  "\udfff"  "\udc00\ud800"  "\ud800a"  "\ud800\ud800\udc00"  "a\udbff\u0041"
      "\ud83d\\ude00"
    `,
    ),
  },
  {
    name: 'lone surrogates in a key',
    problem: 'surrogate',
    texts: [String.raw`{"\ud800":1}`, String.raw`{"a\udead":1}`, String.raw`[{"\udc00\ud800":{}}]`],
  },
  {
    name: 'arrays with too much or too little between brackets',
    problem: 'syntax',
    texts: [
      ...each`
      [  ]  [1  1]  [1,  [,  [,]  [1,]  [,1]  [1,,2]  [1 2]  [1:2]  [1;2]  [1,]]  [1]]  [[1]
      []]  [1],  [1],2  [][]  [1}  [*]  [-]  ["a"  ["a",  [{}  ["a" "b"]  [1 true]  ["":1]  [[],
      [{"a":1}  [...1]  [1,...]
    `,
      '[\n1\n,\n',
    ],
  },
  {
    name: 'objects with too much or too little between braces',
    problem: 'syntax',
    texts: [
      ...each`
      {  }  {"a"  {"a":  {"a":1  {"a":1,  {"a":1,}  {,  {,}  {,"a":1}  {"a":1,,"b":2}  {"a" 1}
      {"a"}  {"a",1}  {"a"::1}  {:1}  {"a":}  {"a":1 "b":2}  {"a":1;"b":2}  {"a":1]  {"a":1}}
      {}}  {}{}  {"a":1}#  {"a":1}x  {"a":1},  {"a":1}"b"  {"a":1,"b"}  {[1]:2}
    `,
    ],
  },
  {
    name: 'keys that are no strings',
    problem: 'syntax',
    texts: [
      ...each`
      {a:1}  {'a':1}  {1:1}  {null:1}  {true:1}  {1e9999:1}  {🚀:1}  {[]:1}  {"a":1,b:2}
    `,
    ],
  },
  {
    name: 'comments',
    problem: 'syntax',
    texts: [
      ...each`
      /* a */1  1/**/  1//  1/  [1/* a */]  {"a":/**/1}  {"a":1}#x  <!-- -->1
    `,
      '// a\n1',
      '# a\n1',
    ],
  },
  {
    name: 'two documents',
    problem: 'syntax',
    texts: ['1 2', '1\n2', '{}\n{}', '"a""b"', 'null null', 'true,false'],
  },
  {
    name: 'spaces that are none, before, between and after',
    problem: 'syntax',
    texts: GAPS.flatMap((gap) => [
      `${gap}1`,
      `[${gap}1]`,
      `[1${gap},2]`,
      `{"a"${gap}:1}`,
      `1${gap}`,
    ]),
  },
  {
    name: 'byte order marks',
    problem: 'syntax',
    texts: ['\ufeff', '\ufeff{}', '\ufeff1', bytes(0xef, 0xbb, 0xbf, '{"a":1}')],
  },
  {
    name: 'text that is no JSON at all',
    problem: 'syntax',
    texts: [
      ...each`
      <a>  <null>  *  é  a  @  GET / HTTP/1.1
    `,
    ],
  },
  {
    name: 'an equal key twice',
    problem: 'duplicate_key',
    texts: [
      ...each`
      {"a":1,"a":1}  {"a":1,"b":2,"a":3}  {"":1,"":2}  [{"x":{"a":1,"a":2}}]  {"a":1,"a"
      {"a":1,"\u0061":2}  {"\u0061":1,"a":2}  {"\/":1,"/":2}  {"\ud83d\ude80":1,"🚀":2}
      {"constructor":1,"constructor":2}  {"1":1,"1":2}
    `,
    ],
  },
  {
    name: 'the key that sets a prototype',
    problem: 'proto_key',
    texts: [
      ...each`
      {"__proto__":1}  {"a":{"__proto__":{}}}  [{"__proto__":null}]  {"\u005f_proto__":1}
      {"__\u0070roto__":{"admin":true}}
    `,
    ],
  },
  {
    name: 'UTF-8 cut short',
    problem: 'utf8',
    texts: [
      bytes('"', 0xc3, '"'),
      bytes('"', 0xe2, 0x82, '"'),
      bytes('"', 0xf0, 0x9f, 0x9a, '"'),
      bytes('"', 0xc3),
      bytes(0xe0, 0xff),
    ],
  },
  {
    name: 'UTF-8 that is overlong',
    problem: 'utf8',
    texts: [
      bytes('"', 0xc0, 0xaf, '"'),
      bytes('"', 0xc1, 0xbf, '"'),
      bytes('"', 0xe0, 0x80, 0xaf, '"'),
      bytes('"', 0xf0, 0x80, 0x80, 0xaf, '"'),
      bytes('"', 0xfc, 0x83, 0xbf, 0xbf, 0xbf, 0xbf, '"'),
      bytes(0xc0, 0xa2, 'a', 0xc0, 0xa2),
    ],
  },
  {
    name: 'surrogates in UTF-8, and code points beyond Unicode',
    problem: 'utf8',
    texts: [
      bytes('"', 0xed, 0xa0, 0x80, '"'),
      bytes('"', 0xed, 0xa0, 0xbd, 0xed, 0xba, 0x80, '"'),
      bytes('"', 0xf4, 0x90, 0x80, 0x80, '"'),
      bytes('"', 0xf7, 0xbf, 0xbf, 0xbf, '"'),
    ],
  },
  {
    name: 'bytes that no UTF-8 holds, in every place',
    problem: 'utf8',
    texts: [0x80, 0xbf, 0xe5, 0xf8, 0xfe, 0xff].flatMap((byte) => [
      bytes(byte),
      bytes('[', byte, ']'),
      bytes('["a', byte, '"]'),
      bytes('{"a', byte, '":1}'),
      bytes('[1', byte, ']'),
      bytes('[1e', byte, ']'),
      bytes('["\\', byte, '"]'),
      bytes('["\\u00', byte, '1"]'),
      bytes('{"a":1}', byte),
    ]),
  },
  {
    name: 'UTF-16 and Latin-1',
    problem: 'utf8',
    texts: [
      Buffer.from('\ufeff["é"]', 'utf16le'),
      Buffer.from('["é"]', 'latin1'),
      bytes(0xfe, 0xff, 0, '[', 0, ']'),
    ],
  },
  {
    name: 'UTF-16 without a mark',
    problem: 'syntax',
    texts: [Buffer.from('["a"]', 'utf16le'), Buffer.from('["a"]', 'utf16le').swap16()],
  },
  {
    name: 'more open brackets than the limit',
    problem: 'too_deep',
    texts: [
      '['.repeat(65),
      '[1,'.repeat(100_000),
      '['.repeat(100_000),
      '{"a":'.repeat(100_000),
      '[{"a":'.repeat(50_000),
    ],
  },
]
