// Packs a copy of the working tree and installs it into an empty folder, as a stranger would.

import assert from 'node:assert/strict'
import { execFile, type ExecFileOptions } from 'node:child_process'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The checkout. */
export const ROOT: string = fileURLToPath(new URL('../..', import.meta.url))

/** What is copied to be packed: all that git tracks and the build reads. */
const SOURCES = [
  ...['src', 'bin', 'docs', 'package.json', 'package-lock.json', 'tsconfig.json'],
  ...['tsconfig.build.json', 'eclusa.schema.json', 'LICENSE', 'CHANGELOG.md', 'README.md'],
  'README.pt-BR.md',
]

export type Ran = { readonly status: number; readonly stdout: string; readonly stderr: string }

/** Runs a program to its end; a status that is not zero is no exception. */
export function run(
  program: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      args,
      { maxBuffer: 1 << 26, ...options, encoding: 'utf8' },
      (error, stdout, stderr) => {
        const status = error === null ? 0 : error.code
        if (typeof status === 'number') resolve({ status, stdout, stderr })
        else reject(new Error(`${program} did not end by itself: ${stderr}`, { cause: error }))
      },
    )
    child.stdin?.end()
  })
}

/** Packs the tree into `folder`; gives the path of the archive and the files in it. */
export async function pack(
  folder: string,
): Promise<{ readonly archive: string; readonly files: readonly string[]; readonly tree: string }> {
  const tree = join(folder, 'tree')
  await mkdir(tree)
  for (const name of SOURCES) {
    const from = join(ROOT, name)
    if (existsSync(from)) await cp(from, join(tree, name), { recursive: true })
  }
  await symlink(join(ROOT, 'node_modules'), join(tree, 'node_modules'))
  const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: tree })
  assert.equal(packed.status, 0, packed.stderr + packed.stdout)
  const [made]: { filename: string; files: { path: string }[] }[] = JSON.parse(
    packed.stdout.slice(packed.stdout.indexOf('[')),
  )
  assert.ok(made !== undefined)
  return { archive: join(folder, made.filename), files: made.files.map(({ path }) => path), tree }
}

/** Installs archives or packages into an empty folder; gives the folder. */
export async function install(folder: string, ...packages: readonly string[]): Promise<string> {
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'package.json'), '{"private":true,"allowScripts":{"node":true}}\n')
  const args = ['install', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error']
  const installed = await run('npm', [...args, ...packages], { cwd: folder })
  assert.equal(installed.status, 0, installed.stderr)
  return folder
}

/** The program of the `node` package at `version`, installed beside `folder`. */
export async function nodeOf(folder: string, version: string): Promise<string> {
  const place = await install(join(folder, `node-${version}`), `node@${version}`)
  return join(place, 'node_modules', '.bin', 'node')
}

/** The Node that runs the tests. */
export const OWN_NODE: string = process.execPath

/** An environment in which `node` is the Node at `program`, and nothing of the checkout is found. */
export const environment = (program: string, home: string): NodeJS.ProcessEnv => ({
  PATH: `${dirname(program)}:/usr/bin:/bin`,
  HOME: home,
  XDG_STATE_HOME: join(home, 'state'),
})
