// Proves that the guards are tested: each one-line patch below removes one, and a named test must turn red.

import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { CALL, PROTOCOL, type Sabotage } from './sabotages.ts'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')

const PARTS: Readonly<Record<string, readonly Sabotage[]>> = { call: CALL, protocol: PROTOCOL }
/** Those of a part, or with these words in their name; without any on the command line, all. */
const [WORD = ''] = process.argv.slice(2)
const SABOTAGES = PARTS[WORD] ?? [...CALL, ...PROTOCOL].filter(({ name }) => name.includes(WORD))

/** A copy of the tree in which files can be broken; the packages are those of the tree. */
function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), 'eclusa-sabotage-'))
  for (const part of ['src', 'test', 'examples', 'package.json', 'eclusa.schema.json']) {
    cpSync(join(ROOT, part), join(copy, part), { recursive: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** The names of the tests that failed. */
function failed(copy: string, test: string): readonly string[] {
  const args = ['--test', '--test-timeout=300000', '--test-reporter=tap', test]
  const { stdout } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' })
  return [...stdout.matchAll(/^\s*not ok \d+ - (.*)$/gm)].map(([, name = '']) => name)
}

function attempt(copy: string, { file, find, put, test, red }: Sabotage): string | null {
  const path = join(copy, file)
  const sound = readFileSync(path, 'utf8')
  if (sound.split(find).length !== 2) return `"${find}" does not stand once in ${file}`
  writeFileSync(
    path,
    sound.replace(find, () => put),
  )
  try {
    const names = failed(copy, test)
    return names.some((name) => name.includes(red)) ? null : `"${red}" did not turn red`
  } finally {
    writeFileSync(path, sound)
  }
}

const copy = copyTree()
let survived = 0
try {
  for (const sabotage of SABOTAGES) {
    const why = attempt(copy, sabotage)
    if (why !== null) survived++
    console.log(
      `${why === null ? 'found   ' : 'SURVIVED'}  ${sabotage.name}${why === null ? '' : `: ${why}`}`,
    )
  }
} finally {
  rmSync(copy, { recursive: true, force: true })
}
console.log(`${SABOTAGES.length - survived} of ${SABOTAGES.length} sabotages were found`)
process.exitCode = survived === 0 ? 0 : 1
