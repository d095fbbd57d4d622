// Configuration texts are read strictly, and every fault knows its place.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { read, TEXT_LIMITS } from '../../src/policy/document.ts'
import { faultLine } from '../../src/policy/position.ts'

const faults = (text: string): readonly string[] => {
  const made = read({ file: 'f', text })
  return 'value' in made ? [] : made.map(faultLine)
}

const REFUSED: readonly (readonly [string, string, string])[] = [
  ['a duplicate key', 'a: 1\nb: 2\na: 3\n', 'f:3:1: error'],
  ['a duplicate key in JSON', '{"a": 1, "a": 2}', 'f:1:10: error'],
  ['two documents', 'a: 1\n---\nb: 2\n', 'f:'],
  ['an unknown tag', 'a: !!python/object x\n', 'f:1:4: error'],
  ['__proto__', 'a:\n  __proto__: { x: 1 }\n', 'f:2:3: error'],
  ['an infinite number', 'a: .inf\n', 'f:1:4: error'],
  ['not a number', 'a: .nan\n', 'f:1:4: error'],
  ['an integer beyond 2^53-1', 'a: 9007199254740993\n', 'f:1:4: error'],
  ['a key that is a list', '? [a]\n: 1\n', 'f:1:3: error'],
  ['a tab as indent', 'a:\n\tb: 1\n', 'f:2:'],
  ['an open bracket', 'a: [1, 2\n', 'f:'],
  ['an unknown alias', 'a: *x\n', 'f:1:4: error'],
]

for (const [name, text, start] of REFUSED) {
  test(`${name} is refused with its place`, () => {
    const [first = 'nothing was refused'] = faults(text)
    assert.ok(first.startsWith(start), `${first} does not begin with ${start}`)
  })
}

test('a text of aliases that would grow without bound is refused', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]']
  for (let at = 1; at < 8; at++) {
    const one = `*a${at - 1}`
    lines.push(`a${at}: &a${at} [${Array.from({ length: 10 }, () => one).join(', ')}]`)
  }
  const found = faults(lines.join('\n'))
  assert.ok(
    found.some((line) => /aliases/.test(line)),
    found.join('\n'),
  )
})

test('an alias of a value that holds it is refused and not followed', () => {
  assert.notEqual(faults('a: &a [*a]\n').length, 0)
})

test('a text past its length and one nested too deeply are refused', () => {
  assert.match(faults(' '.repeat(TEXT_LIMITS.characters + 1))[0] ?? '', /longer than/)
  assert.match(faults(`a: ${'['.repeat(40)}${']'.repeat(40)}`)[0] ?? '', /nested deeper/)
})

test('a place is found for a value, a key and a character inside a string', () => {
  const made = read({ file: 'f', text: 'a:\n  b: "x == y"\n  c: plain text\n' })
  assert.ok('value' in made)
  assert.deepEqual(made.at('/a/b'), { line: 2, column: 6 })
  assert.deepEqual(made.key('/a/b'), { line: 2, column: 3 })
  assert.deepEqual(made.inside('/a/b', 5), { line: 2, column: 12 })
  assert.deepEqual(made.inside('/a/c', 6), { line: 3, column: 12 })
  assert.deepEqual(made.at('/a/b/not/there'), { line: 2, column: 6 }, 'the nearest parent')
})

test('values are plain JSON and objects have no prototype', () => {
  const made = read({ file: 'f', text: 'constructor: 1\non: yes\nn: ~\nf: 1.5\n' })
  assert.ok('value' in made)
  assert.equal(JSON.stringify(made.value), '{"constructor":1,"on":"yes","n":null,"f":1.5}')
  assert.equal(Object.getPrototypeOf(made.value), null)
})
