// Long documents are read by other means than short ones, and just as strictly.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type JsonProblem, parseJson, REQUEST_LIMITS } from '../../src/json.ts'

/** Long enough for the other means; at `place` of its one string stands `unit`. */
function long(unit: string, place: number): string {
  const filling = 'å plain string '.repeat(400)
  return `{"text":"${filling.slice(0, place)}${unit}${filling.slice(place)}"}`
}

/** The document beginning at each of eight places of a buffer. */
function verdicts(text: string): Set<JsonProblem | null> {
  const bytes = Buffer.from(text)
  const found = new Set<JsonProblem | null>()
  for (let offset = 0; offset < 8; offset++) {
    const room = Buffer.alloc(bytes.length + 8)
    bytes.copy(room, offset)
    const parsed = parseJson(room.subarray(offset, offset + bytes.length), REQUEST_LIMITS)
    if (parsed.kind === 'json') assert.deepEqual({ ...(parsed.value as object) }, JSON.parse(text))
    found.add(parsed.kind === 'json' ? null : parsed.problem)
  }
  return found
}

test('a control character anywhere in a long string is refused', () => {
  for (let code = 0; code < 0x20; code++) {
    for (const place of [0, 1, 2, 3, 40, 41, 42, 43, 5_999, 6_000]) {
      const found = verdicts(long(String.fromCharCode(code), place))
      assert.deepEqual([...found], ['syntax'], `U+${code.toString(16)} at ${place}`)
    }
  }
})

test('what only resembles a control character is not refused in a long string', () => {
  for (const unit of [' ', '!', '\u007f', '\u0080', '\u00a0', '\u0100', '\u2028', '\u{1f600}']) {
    assert.deepEqual([...verdicts(long(unit, 77))], [null], JSON.stringify(unit))
  }
})

test('white space between the parts of a long document, and escapes in it, are read as in a short one', () => {
  const text = long('\\u0007 \\" \\\\ \\n', 3_000)
  assert.deepEqual([...verdicts(text)], [null])
  assert.deepEqual([...verdicts(`\n\t${text.replace('":"', '"\r\n:\t"')}\n`)], [null])
})
