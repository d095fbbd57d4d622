import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Json, member, parseText, UPSTREAM_LIMITS, writeJson } from '../../../src/json.ts'
import { answerByItems } from '../../../src/mcp/upstream/items.ts'

const answer = (items: readonly string[], more = ''): string =>
  `{"jsonrpc":"2.0","id":7,"result":{${more}"tools":[${items.join(',')}]}}`

const toolsOf = (text: string): Json | undefined => {
  const read = answerByItems(text, UPSTREAM_LIMITS)
  return read === null ? undefined : member(read['result'], 'tools')
}

const GOOD = ['{"name":"a","x":[1,[2,{"y":"]}[{,"}]]}', '{"name":"\\"b\\\\"}', '{"name":"c"}']
const keys = (count: number): string =>
  `{${Array.from({ length: count }, (_, n) => `"k${n}":1`).join(',')}}`

const BAD: Readonly<Record<string, string>> = {
  'a key twice': '{"name":"d","name":"e"}',
  'a key twice, deep': '{"x":[{"a":1,"\\u0061":2}]}',
  'the key __proto__': '{"__proto__":{}}',
  'half a character': '{"name":"\\ud800"}',
  'a number out of range': '{"n":1e999}',
  'too many brackets': `${'['.repeat(62)}${']'.repeat(62)}`,
  'far too many brackets': `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  'too many keys': keys(10_001),
}

for (const [what, bad] of Object.entries(BAD)) {
  test(`an item with ${what} costs only itself, wherever it stands`, () => {
    const wanted = GOOD.map((one) => parse(one))
    for (let at = 0; at <= GOOD.length; at++) {
      const text = answer(GOOD.toSpliced(at, 0, bad), '"nextCursor":"c","_meta":{"a":[]},')
      assert.equal(parseText(text, UPSTREAM_LIMITS).kind, 'refused')
      assert.deepEqual(toolsOf(text), wanted.toSpliced(at, 0, null))
      assert.equal(member(answerByItems(text, UPSTREAM_LIMITS)?.['result'], 'nextCursor'), 'c')
    }
  })
}

function parse(text: string): Json {
  const parsed = parseText(text, UPSTREAM_LIMITS)
  assert.equal(parsed.kind, 'json', text)
  return parsed.kind === 'json' ? parsed.value : null
}

test('what could be admitted as a whole is read as the same value', () => {
  const texts = [
    answer([]),
    answer(GOOD),
    JSON.stringify(JSON.parse(answer(GOOD)), null, '\t'),
    answer(['1', '"a,b"', 'null', 'true', '[]', '{}', '[[],[1,2]]', '9007199254740993', '-0']),
    answer(GOOD, '"also":[{"a":1},2],"deep":{"list":[[1],[2,3]],"n":1},'),
    `{"error":{"code":1,"message":"m"},"result":{"tools":[{"a":1}]},"id":7,"jsonrpc":"2.0"}`,
    answer([`${'['.repeat(61)}${']'.repeat(61)}`]),
  ]
  for (const text of texts) {
    const read = answerByItems(text, UPSTREAM_LIMITS)
    assert.ok(read !== null, text)
    assert.equal(writeJson(read), writeJson(parse(text)))
  }
})

test('what is wrong outside of an item is wrong with the whole', () => {
  for (const text of [
    '',
    '[]',
    '[[["a"]]]',
    '{"result":[]}',
    '{"result":[{"a":1,"a":2}]}',
    answer(['{"a":1']),
    answer(['{"a":"b}']),
    `${answer(GOOD)}]`,
    answer(GOOD).replace('"id":7', '"id":7,"id":8'),
    answer(GOOD, '"tools":[],'),
    answer(GOOD, '"__proto__":[],'),
    answer(GOOD, '"x":{"a":1,"a":2},'),
    answer(['', '{}']),
    answer(['{}', '']),
  ]) {
    assert.equal(answerByItems(text, UPSTREAM_LIMITS), null, text)
  }
  // No JSON is nobody's item, but it stands where one would: its neighbours are read.
  assert.deepEqual(toolsOf(answer(['{}', '{"a":}', '1 2'])), [parse('{}'), null, null])
})

test('more values than a message may have are not read one item at a time either', () => {
  const many = Array.from({ length: 10 }, () => `[${Array(25_000).fill('1').join(',')}]`)
  assert.equal(answerByItems(answer([...many, '{"a":1,"a":2}']), UPSTREAM_LIMITS), null)
})
