// The walls between rooms stand, and each of them sees files.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, posix } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { CALL, PROTOCOL } from './sabotages.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const QUIET = ['policy', 'ledger', 'effect', 'egress']
const NOUNS = ['call', 'canonical', 'decision', 'fault', 'json']

type Sees = {
  readonly files: readonly string[]
  readonly rooms: readonly string[]
  readonly packages: RegExp
}
const NOTHING = /^$/
const HASHING = /^node:(buffer|crypto)$/
const NODE = /^node:(?!child_process$|cluster$)/
const threshold = [...NOUNS, 'ports'].map((name) => `${name}.ts`)
const door: Sees = {
  files: [...threshold, 'refusal.ts', 'gateway.ts'],
  rooms: QUIET,
  packages: NODE,
}

/** What each place may import, written down a second time and without the linter. */
const WALLS: Readonly<Record<string, Sees>> = {
  'call.ts': { files: threshold, rooms: [], packages: NOTHING },
  'canonical.ts': { files: threshold, rooms: [], packages: HASHING },
  'decision.ts': { files: threshold, rooms: [], packages: NOTHING },
  'fault.ts': { files: threshold, rooms: [], packages: NOTHING },
  'json.ts': { files: threshold, rooms: [], packages: NOTHING },
  'ports.ts': { files: [...threshold, 'ledger/entry.ts'], rooms: [], packages: NOTHING },
  'refusal.ts': { files: threshold, rooms: [], packages: NOTHING },
  'gateway.ts': {
    files: [...threshold, 'refusal.ts'],
    rooms: ['hall', ...QUIET],
    packages: NOTHING,
  },
  hall: { files: [...threshold, 'refusal.ts'], rooms: QUIET, packages: NOTHING },
  policy: {
    files: threshold,
    rooms: [],
    packages: /^(node:(buffer|crypto|module)|re2js|yaml|@marcbachmann\/cel-js)$/,
  },
  ledger: { files: threshold, rooms: [], packages: HASHING },
  effect: { files: threshold, rooms: [], packages: HASHING },
  egress: { files: threshold, rooms: [], packages: HASHING },
  store: { files: threshold, rooms: QUIET, packages: NODE },
  identity: door,
  connect: door,
  anchor: door,
  'mcp/wire': { files: threshold, rooms: [], packages: NODE },
  'mcp/front': { ...door, rooms: [...QUIET, 'mcp/wire'] },
  'mcp/http': { ...door, rooms: [...QUIET, 'mcp/wire', 'mcp/front'] },
  'mcp/upstream': {
    files: threshold,
    rooms: [...QUIET, 'mcp/wire', 'mcp/upstream-http'],
    packages: NODE,
  },
  'mcp/upstream-http': {
    files: threshold,
    rooms: [...QUIET, 'mcp/wire', 'mcp/upstream'],
    packages: NODE,
  },
  'mcp/upstream/child.ts': {
    files: threshold,
    rooms: ['mcp/wire', 'mcp/upstream'],
    packages: /^node:/,
  },
  sdk: {
    ...door,
    packages: /^(node:(?!child_process$|cluster$).*|@modelcontextprotocol\/server.*)/,
  },
}
const FREE = ['cli', 'index.ts']

/** Every TypeScript file below `folder`, as paths relative to it. */
const sources = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => path.endsWith('.ts'))

const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Static, dynamic, re-exported, required and worker references of a file. */
const references = (source: string): string[] =>
  [
    ...source.matchAll(
      /(?:\bfrom\s*|\bimport\s*\(\s*|^import\s+|\brequire\w*\s*\(\s*|new URL\(\s*)['"]([^'"]+)['"]/gm,
    ),
  ].flatMap((match) => (match[1] === undefined ? [] : [match[1]]))

/** The longest beginning of a path that has a wall; where none has, its room. */
const placeOf = (file: string): string => {
  const parts = file.split('/')
  for (let count = parts.length; count > 0; count--) {
    const place = parts.slice(0, count).join('/')
    if (WALLS[place] !== undefined) return place
  }
  return parts[0] ?? file
}

/** The references of `file` (relative to src) that its wall forbids. */
function trespasses(file: string, source: string): string[] {
  const place = placeOf(file)
  if (FREE.includes(place)) return []
  const wall = WALLS[place]
  if (wall === undefined) return ['no wall is written for this place']
  return references(source).filter((name) => {
    if (!name.startsWith('.')) return !wall.packages.test(name)
    const target = posix.join(posix.dirname(file), name)
    const room = posix.dirname(target)
    const own = file.includes('/') && room === posix.dirname(file)
    return !own && !wall.files.includes(target) && !wall.rooms.includes(room)
  })
}

test('no file of src imports, requires or starts what its wall forbids', () => {
  const files = sources('src')
  assert.ok(files.length > 10, `the scan saw only ${files.length} files`)
  const found = files.flatMap((file) =>
    trespasses(file, text(`src/${file}`)).map((name) => `src/${file} -> ${name}`),
  )
  assert.deepEqual(found, [])
})

test('the scan sees references of every kind', () => {
  const source = [
    "import { a } from '../mcp/a.ts'",
    "import type { b } from '../mcp/b.ts'",
    "export * from '../mcp/c.ts'",
    "import '../mcp/d.ts'",
    "const e = await import('../mcp/e.ts')",
    "const f = require('../mcp/f.ts')",
    "const g = requireHere('../mcp/g.ts')",
    "new Worker(new URL('../mcp/h.ts', import.meta.url))",
    "import {\n  i,\n} from '../mcp/i.ts'",
  ].join('\n')
  for (const letter of 'abcdefghi') {
    assert.ok(trespasses('policy/x.ts', source).includes(`../mcp/${letter}.ts`), letter)
  }
})

test('every place of src has a wall, every room holds files, ARCHITECTURE.md names it', () => {
  const page = text('ARCHITECTURE.md')
  const places = new Set(sources('src').map(placeOf))
  for (const place of places) {
    assert.ok(FREE.includes(place) || WALLS[place] !== undefined, `src/${place} has no wall`)
    assert.ok(page.includes(place), `ARCHITECTURE.md does not name src/${place}`)
  }
  const sides = ['wire', 'front', 'http', 'upstream', 'upstream-http'].map((part) => `mcp/${part}`)
  for (const room of [...'hall policy ledger egress store identity sdk cli'.split(' '), ...sides]) {
    assert.ok(places.has(room), `no file was seen in src/${room}`)
  }
})

const PLANTS: readonly (readonly [file: string, ...wrong: string[]])[] = [
  ['src/call.ts', './ports.ts', './policy/decide.ts', 'node:fs', 'ajv'],
  ['src/decision.ts', './gateway.ts', 'node:crypto'],
  ['src/fault.ts', './ledger/entry.ts'],
  ['src/json.ts', 'node:buffer'],
  ['src/canonical.ts', 'node:fs', './ledger/entry.ts'],
  ['src/refusal.ts', './gateway.ts', './policy/decide.ts'],
  ['src/ports.ts', './policy/set.ts', './store/sqlite.ts'],
  ['src/gateway.ts', './store/sqlite.ts', './mcp/front.ts', './sdk/gate.ts', 'node:crypto', 'ajv'],
  ['src/hall/plant.ts', '../gateway.ts', '../store/sqlite.ts', '../mcp/front.ts', 'node:crypto'],
  ['src/policy/plant.ts', '../ledger/entry.ts', '../gateway.ts', '../store/a.ts', 'node:fs', 'zod'],
  ['src/ledger/plant.ts', '../policy/set.ts', '../gateway.ts', 'node:fs', 'ajv', './../mcp/a.ts'],
  ['src/effect/plant.ts', '../policy/set.ts', '../ledger/entry.ts', 'node:net'],
  ['src/egress/plant.ts', '../policy/set.ts', '../effect/a.ts', 'node:net', 're2js'],
  [
    'src/store/plant.ts',
    '../gateway.ts',
    '../mcp/a.ts',
    '../sdk/a.ts',
    'node:child_process',
    'ajv',
  ],
  ['src/mcp/wire/plant.ts', '../front/a.ts', '../upstream/a.ts', '../../gateway.ts', 'zod'],
  [
    'src/mcp/front/plant.ts',
    '../upstream/a.ts',
    '../upstream-http/a.ts',
    '../http/a.ts',
    '../../store/sqlite.ts',
    '../../cli/main.ts',
    'node:child_process',
  ],
  ['src/mcp/http/plant.ts', '../upstream/a.ts', '../upstream-http/a.ts', 'node:child_process'],
  ['src/mcp/upstream/plant.ts', '../front/a.ts', '../../gateway.ts', 'node:child_process'],
  ['src/mcp/upstream-http/plant.ts', '../http/a.ts', '../../gateway.ts', 'node:child_process'],
  [
    'src/mcp/upstream/child.ts',
    '../front/a.ts',
    '../../store/sqlite.ts',
    '../../gateway.ts',
    '@modelcontextprotocol/client',
  ],
  ['src/sdk/plant.ts', '../store/sqlite.ts', '../mcp/a.ts', '../index.ts', 'node:child_process'],
  ['src/identity/plant.ts', '../store/sqlite.ts', '../mcp/a.ts', 'jose/x'],
  ['src/connect/plant.ts', '../mcp/a.ts', 'yaml'],
  ['src/anchor/plant.ts', '../store/sqlite.ts', '../index.ts'],
]

test('the linter refuses a wrong import in every place, and none that is right', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'eclusa-house-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  for (const name of ['.oxlintrc.json', 'tsconfig.json', 'package.json']) {
    await cp(join(ROOT, name), join(folder, name))
  }
  for (const [file, ...wrong] of PLANTS) {
    const up = '../'.repeat(file.split('/').length - 2)
    const lines = [`${up}call.ts`, './x.ts', ...wrong].map((name) => `import '${name}'`)
    if (!file.includes('/', 4)) lines.splice(0, 2, "import './call.ts'", "import './json.ts'")
    await mkdir(dirname(join(folder, file)), { recursive: true })
    await writeFile(join(folder, file), `${lines.join('\n')}\n`)
  }
  const refused = await lint(folder)
  for (const [file, ...wrong] of PLANTS) {
    const expected = wrong.map((_, at) => `${file}:${at + 3}`)
    assert.deepEqual(refused.filter((place) => place.startsWith(`${file}:`)).sort(), expected, file)
  }
})

/** `file:line` of each import that the linter refuses in `folder`. */
async function lint(folder: string): Promise<string[]> {
  const program = join(ROOT, 'node_modules/.bin/oxlint')
  const output = await new Promise<string>((resolve, reject) => {
    execFile(program, ['-f', 'unix'], { cwd: folder, maxBuffer: 1 << 24 }, (error, stdout) => {
      // Findings end in exit status 1, which is what is wanted here.
      if (error !== null && error.code !== 1) reject(new Error('oxlint failed', { cause: error }))
      else resolve(stdout)
    })
  })
  return [...output.matchAll(/^(\S+?):(\d+):.*no-restricted-imports/gm)].map(
    ([, file = '', line = '']) => `${file}:${line}`,
  )
}

const EXPORT =
  /^export (?:declare )?(?:async )?(?:function\*?|const|let|type|interface|class) (\w+)/

test('every exported name of src carries a doc comment', () => {
  const bare: string[] = []
  let seen = 0
  for (const file of sources('src')) {
    const lines = text(`src/${file}`).split('\n')
    for (const [at, line] of lines.entries()) {
      const name = EXPORT.exec(line)?.[1]
      if (name === undefined) continue
      seen++
      if (!commented(lines, at)) bare.push(`src/${file}:${at + 1} ${name}`)
    }
  }
  assert.ok(seen > 50, `the scan saw only ${seen} exports`)
  assert.deepEqual(bare, [])
})

/** Walks up over lint notes; true when a doc comment ends right above the line. */
function commented(lines: readonly string[], at: number): boolean {
  let above = at - 1
  while (above >= 0 && (lines[above] ?? '').startsWith('// oxlint-disable')) above--
  return (lines[above] ?? '').trimEnd().endsWith('*/')
}

test('every file of src opens with one line that says its job', () => {
  const files = sources('src')
  const silent = files.filter((file) => !/^(#!.*\n)?\/\/ [A-Z`a-z].+\.\n/.test(text(`src/${file}`)))
  assert.deepEqual(silent, [])
})

const BANNED = new Set(
  'manager handler service engine processor helper util utils common misc base impl info wrapper'.split(
    ' ',
  ),
)
const words = (name: string): string[] =>
  name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)

test('no file and no exported name is called what says nothing', () => {
  const found: string[] = []
  for (const file of sources('src')) {
    const names = [
      file,
      ...text(`src/${file}`)
        .split('\n')
        .map((line) => EXPORT.exec(line)?.[1] ?? ''),
    ]
    for (const name of names) {
      if (words(name).some((word) => BANNED.has(word))) found.push(`src/${file}: ${name}`)
    }
  }
  assert.deepEqual(found, [])
})

test('a cast through unknown stands only where the platform lacks a type', () => {
  const places = sources('src').filter((file) => /\bas unknown as\b/.test(text(`src/${file}`)))
  assert.deepEqual(places, ['json.ts'])
})

test('the runtime dependencies are the decided ones, exact versions', async () => {
  const manifest: { readonly dependencies: Readonly<Record<string, string>> } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  )
  assert.deepEqual(Object.keys(manifest.dependencies).sort(), [
    '@marcbachmann/cel-js',
    're2js',
    'yaml',
  ])
  for (const version of Object.values(manifest.dependencies))
    assert.match(version, /^\d+\.\d+\.\d+$/)
})

/** The files of src that hold what `pattern` says, sorted. */
const filesWith = (pattern: RegExp): string[] =>
  sources('src')
    .filter((file) => pattern.test(text(`src/${file}`)))
    .sort()

test('only the program itself touches stdin and stdout: there they are protocol', () => {
  const places = filesWith(/\bprocess\.(stdout|stdin)\b|\bconsole\./)
  assert.ok(places.includes('cli/stdio.ts'))
  assert.deepEqual(
    places.filter((file) => !file.startsWith('cli/')),
    [],
  )
})

test('lock files are named in two places: whoever reads one by other means drops its lock', () => {
  assert.deepEqual(filesWith(/\.lock\b['`]|\.lock\$/), ['store/lease.ts', 'store/place.ts'])
})

test('code made from text is made by the schema compiler alone', () => {
  assert.deepEqual(filesWith(/\beval\(|\bnew Function\b|\bnode:vm\b/), [])
})

test('each guard that sabotage takes away stands where it says, once', () => {
  for (const { name, file, find } of [...CALL, ...PROTOCOL]) {
    assert.equal(text(file).split(find).length, 2, name)
  }
})
