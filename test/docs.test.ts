// What the pages point at is there: files, tests by name, examples that parse.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MAIN = join(ROOT, 'src/cli/main.ts')
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

test('every configuration that a page shows to be served is one', () => {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-docs-'))
  const env = { ...process.env, FAR_TOKEN: 'Bearer a', TOKEN_LONGE: 'Bearer b' }
  try {
    for (const page of ['README.md', 'README.pt-BR.md', 'docs/http.md', 'docs/clients.md']) {
      const blocks = [...text(page).matchAll(/```yaml\n([\s\S]*?)```/g)]
      assert.ok(blocks.length > 0, page)
      for (const [, block = ''] of blocks) {
        const file = join(dir, 'eclusa.yaml')
        writeFileSync(file, block)
        // Ends with another status, and throws, when the file would not start.
        execFileSync(process.execPath, [MAIN, 'policy', 'check', file], { env, stdio: 'pipe' })
      }
    }
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('the verbs that the READMEs show exist', () => {
  const help = execFileSync(process.execPath, [MAIN, 'help'], { encoding: 'utf8', stdio: 'pipe' })
  const verbs = [...help.matchAll(/^ {2}(\w+(?: [a-z]+)?) {2,}/gm)].map(([, verb = '']) => verb)
  assert.ok(verbs.length > 15, help)
  const block = /^```(\w*)\n([\s\S]*?)^```$/gm
  for (const page of ['README.md', 'README.pt-BR.md']) {
    const shown = [...text(page).matchAll(block)].flatMap(([, kind, lines = '']) =>
      kind !== ''
        ? []
        : [...lines.matchAll(/^eclusa (\w+(?: [a-z]+)?)/gm)].map(([, verb = '']) => verb),
    )
    assert.ok(shown.length > 5, page)
    const unknown = shown.filter(
      (verb) => !verbs.includes(verb) && !verbs.includes(verb.split(' ')[0] ?? ''),
    )
    assert.deepEqual(unknown, [], page)
  }
})

test('the two READMEs have the same commands and the same number of parts', () => {
  const parts = (page: string): number => text(page).match(/^## /gm)?.length ?? 0
  const flags = (page: string): string[] =>
    [
      ...text(page).matchAll(
        /eclusa (?:stdio|serve|init|demo|audit|policy|explain|client|pin|clock)[ a-z]*?(?= [A-Z(<-]|`|$)/gm,
      ),
    ]
      .map(([command]) => command)
      .sort()
  assert.equal(parts('README.md'), parts('README.pt-BR.md'))
  assert.deepEqual(flags('README.md'), flags('README.pt-BR.md'))
})
