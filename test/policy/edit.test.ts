// One more entry in a text: it is there afterwards, every other line is as it was, and the place is told.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { parse } from 'yaml'

import { type Addition, edited } from '../../src/policy/edit.ts'

const allow = (value: string): Addition => ({ kind: 'entry', path: '/p/allow', value })

const CASES: readonly (readonly [
  name: string,
  text: string,
  addition: Addition,
  line: number,
  how: string,
  shown: string,
])[] = [
  [
    'a flow list',
    'p:\n  allow: [a, b] # x\n',
    allow('n/c'),
    2,
    'changed',
    '  allow: [a, b, n/c] # x',
  ],
  ['an empty flow list', 'p:\n  allow: []\n', allow('c'), 2, 'changed', '  allow: [c]'],
  [
    'a flow list over lines',
    'p:\n  allow: [\n    a,\n    b\n  ]\n',
    allow('c'),
    4,
    'changed',
    '    b, c',
  ],
  [
    'a comma at the end',
    'p: { allow: [a, ] }\n',
    allow('c'),
    1,
    'changed',
    'p: { allow: [a, c, ] }',
  ],
  [
    'a block list',
    'p:\n  allow:\n    - a\n    - b # x\n  z: 1\n',
    allow('c'),
    4,
    'added',
    '    - c',
  ],
  ['a block list at the end', 'p:\n  allow:\n  - a', allow('c'), 3, 'added', '  - c'],
  ['no list in a block', 'p:\n  deny:\n    - a\n\nq: 1\n', allow('c'), 3, 'added', '  allow: [c]'],
  [
    'no list in a flow',
    'p: { deny: [a] }\n',
    allow('c'),
    1,
    'changed',
    'p: { deny: [a], allow: [c] }',
  ],
  ['nothing in a flow', 'p: {}\n', allow('c'), 1, 'changed', 'p: { allow: [c] }'],
  ['JSON', '{"p":{\n "allow":["a"]\n}}', allow('c'), 2, 'changed', ' "allow":["a", "c"]'],
  [
    'JSON without the list',
    '{"p":{"z":1}}',
    allow('c'),
    1,
    'changed',
    '{"p":{"z":1, "allow": ["c"]}}',
  ],
  ['a name that is a number', 'p:\n  allow: []\n', allow('12'), 2, 'changed', '  allow: ["12"]'],
  [
    'a name that YAML would read',
    'p: { allow: [] }',
    allow('a: #b'),
    1,
    'changed',
    'p: { allow: ["a: #b"] }',
  ],
  [
    'a member',
    'p:\n  approve:\n    n/a: none\n  z: 1\n',
    { kind: 'member', path: '/p/approve', key: 'n/b', value: 'none' },
    3,
    'added',
    '    n/b: none',
  ],
  [
    'a member of what is not there',
    'p:\n  z: |\n    text\n    more\n\nq: 1\n',
    { kind: 'member', path: '/p/approve', key: 'n/b', value: 'none' },
    4,
    'added',
    '  approve: { n/b: none }',
  ],
]

for (const [name, text, addition, line, how, shown] of CASES) {
  test(`${name}: the entry is added and nothing else changes`, () => {
    const made = edited(text, addition)
    assert.deepEqual({ ...made, text: null }, { text: null, line, how, shown })
    assert.ok(made !== null)
    const before = text.split('\n')
    const after = made.text.split('\n')
    if (how === 'added') after.splice(line, 1)
    else assert.equal(after[line - 1], shown)
    if (how === 'changed') before[line - 1] = shown
    assert.deepEqual(after, before)
    const [, , last = ''] = addition.path.split('/')
    const value: unknown = parse(made.text).p[last]
    const [want, found] =
      addition.kind === 'entry'
        ? [addition.value, (value as string[]).at(-1)]
        : [addition.value, (value as Record<string, string>)[addition.key]]
    assert.equal(found, want)
  })
}

test('what is written in an odd way is left to a person', () => {
  for (const text of [
    'x: &l [a]\np: { allow: *l }\n',
    'p: [\n',
    'p:\n  allow: text\n',
    '- p\n',
    '',
    'p:\n  allow:\n    - &x a\n',
  ]) {
    assert.equal(edited(text, allow('c')), null, text)
  }
})
