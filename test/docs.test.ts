// What the pages point at is there: files, tests by name, examples that parse.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

const PAGES: readonly string[] = [
  ...readdirSync(ROOT),
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' }).map((name) =>
    join('docs', name),
  ),
].filter((path) => path.endsWith('.md'))

test('every relative link of every page leads somewhere', () => {
  assert.ok(PAGES.length >= 8, PAGES.join(' '))
  const dead = PAGES.flatMap((page) =>
    [...text(page).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = '']) => target.split('#')[0] ?? '')
      .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
      .filter((target) => !existsSync(join(ROOT, dirname(page), target)))
      .map((target) => `${page} -> ${target}`),
  )
  assert.deepEqual(dead, [])
})

for (const page of ['docs/threats.md', 'docs/verification.md']) {
  test(`every test that ${page} names is there, under that name`, () => {
    const claims = [...text(page).matchAll(/`(test\/[^`]+)`((?:[^`|]|`(?!test\/))*)/g)]
    assert.ok(claims.length > 20, `only ${claims.length} tests are named`)
    const missing = claims.flatMap(([, path = '', rest = '']) => {
      if (!existsSync(join(ROOT, path))) return [path]
      const source = text(path).replaceAll(/\s+/g, ' ')
      return [...rest.matchAll(/"([^"]+)"/g)]
        .filter(([, name = '']) => !source.includes(name))
        .map(([, name]) => `${path}: ${name}`)
    })
    assert.deepEqual(missing, [])
  })
}

test('every row of docs/threats.md names a test', () => {
  const rows = text('docs/threats.md').match(/^\|(?! ?-|.*\| test \|).*\|$/gm) ?? []
  assert.ok(rows.length > 15)
  assert.deepEqual(
    rows.filter((row) => !row.includes('`test/')),
    [],
  )
})

test('every JSON example of the pages at the root is JSON', () => {
  let seen = 0
  for (const page of PAGES.filter((path) => !path.startsWith('docs'))) {
    for (const [, block = ''] of text(page).matchAll(/```json\n([\s\S]*?)```/g)) {
      seen++
      assert.doesNotThrow(() => JSON.parse(block), `${page}: ${block}`)
    }
  }
  assert.ok(seen >= 2)
})

test('the two READMEs have the same commands and the same number of parts', () => {
  const parts = (page: string): number => text(page).match(/^## /gm)?.length ?? 0
  const flags = (page: string): string[] =>
    [
      ...text(page).matchAll(
        /eclusa (?:stdio|init|demo|audit|policy|explain)[ a-z]*?(?= [A-Z(<-]|`|$)/gm,
      ),
    ]
      .map(([command]) => command)
      .sort()
  assert.equal(parts('README.md'), parts('README.pt-BR.md'))
  assert.deepEqual(flags('README.md'), flags('README.pt-BR.md'))
})
