// Runs the official conformance suite as a program and reads what it found.

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { parse } from 'yaml'

const PACKAGE = resolve(import.meta.dirname, '../../node_modules/@modelcontextprotocol/conformance')
const SUITE = join(PACKAGE, 'dist/index.js')
const RUN_MS = 180_000

/** What one scenario showed. `missed`: checks that failed or warned, with the words of the suite. */
export type Shown = { readonly checks: number; readonly missed: ReadonlyMap<string, string> }

/** Scenarios by name. */
export type Run = ReadonlyMap<string, Shown>

/** Runs the suite with these arguments. Rejects when it could not run at all. */
export async function conformance(args: readonly string[]): Promise<Run> {
  const dir = mkdtempSync(join(tmpdir(), 'eclusa-conformance-'))
  try {
    const said = await new Promise<string>((end) => {
      const all = [SUITE, ...args, '-o', dir]
      // Its exit status says that something failed; which of it may fail is not for it to say.
      execFile(process.execPath, all, { timeout: RUN_MS, maxBuffer: 64 << 20 }, (_, out, err) =>
        end(out + err),
      )
    })
    const run = read(dir)
    if (run.size === 0) throw new Error(`the suite ran nothing:\n${said.slice(-4000)}`)
    return run
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

type Check = { readonly id: string; readonly status: string; readonly errorMessage?: string }

function read(dir: string): Run {
  const run = new Map<string, Shown>()
  for (const file of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('checks.json')) continue
    const checks = JSON.parse(readFileSync(join(dir, file), 'utf8')) as readonly Check[]
    const bad = checks.filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    const missed = new Map(bad.map(({ id, errorMessage }) => [id, errorMessage ?? '']))
    run.set(scenarioOf(file), { checks: checks.length, missed })
  }
  return run
}

/** The name of a scenario from the folder of its results: `server-NAME-TIME/checks.json`. */
const scenarioOf = (file: string): string =>
  file.replace(/^(server|client)-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, '')

/** Scenarios that a revision requires of one side, as the suite froze them. */
export function required(revision: string, side: 'server' | 'client'): readonly string[] {
  const file = join(PACKAGE, 'requirements', `${revision}.yaml`)
  if (!existsSync(file)) return []
  const all = parse(readFileSync(file, 'utf8')) as Record<string, readonly string[]>
  return all[side] ?? []
}
