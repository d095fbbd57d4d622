// Where things stand on disk: the configuration file, the policy beside it, secrets and the state directory.

import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'

import { Fault } from '../fault.ts'
import type { UpstreamConfig } from '../policy/config.ts'
import type { Lookup, Source } from '../policy/position.ts'
import type { Io } from './io.ts'

/** Ceiling of a configuration, policy or secret file. */
const MAX_FILE_BYTES = 4 * 1024 * 1024

/** The text of a file the operator named. Errors: `Fault('usage')` naming the path and the reason. */
export function readSource(path: string, cwd: string): Source {
  const file = resolve(cwd, path)
  return { file, text: readText(file, 'config_invalid') }
}

/** The text of a file that `main` names; a relative path starts at `main`'s folder. */
export const readBeside = (path: string, main: string): Source => readSource(path, dirname(main))

function readText(file: string, code: 'config_invalid' | 'usage'): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (error) {
    throw new Fault(code, `cannot read ${file} (${reason(error)}); check the path`, {
      cause: error,
    })
  }
  if (bytes.length > MAX_FILE_BYTES) {
    throw new Fault(code, `${file} is larger than ${MAX_FILE_BYTES} bytes; is it the right file?`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (error) {
    throw new Fault(code, `${file} is not UTF-8; save it as UTF-8`, { cause: error })
  }
}

const reason = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'

/** Where `${NAME}` and `${file:/abs/path}` of a configuration come from. A secret file that others may
 *  read, or that is no plain file, counts as absent only after the operator was told why. */
export function lookup(io: Io, overlay: ReadonlyMap<string, string> = new Map()): Lookup {
  return {
    env: (name) => overlay.get(name) ?? io.env[name],
    file: (path) => secretFile(path, io),
  }
}

function secretFile(path: string, io: Io): string | undefined {
  if (!isAbsolute(path)) {
    io.err(`eclusa: secret file ${path}: write an absolute path`)
    return undefined
  }
  try {
    const stat = lstatSync(path)
    if (!stat.isFile() || (stat.mode & 0o077) !== 0) {
      io.err(`eclusa: secret file ${path}: must be a plain file with mode 0600; run chmod 600`)
      return undefined
    }
    return readText(path, 'config_invalid').replace(/\r?\n$/, '')
  } catch (error) {
    io.err(`eclusa: secret file ${path}: ${reason(error)}`)
    return undefined
  }
}

/** The servers of a configuration file, each in a folder that is absolute: `cwd` against the file's own
 *  folder, which is also where a server without `cwd` runs. Without a file they are left as they are. */
export const placed = (
  upstreams: readonly UpstreamConfig[],
  file: string | null,
): readonly UpstreamConfig[] =>
  file === null
    ? upstreams
    : upstreams.map((one) =>
        one.kind === 'url' ? one : { ...one, cwd: resolve(dirname(file), one.cwd ?? '.') },
      )

/** The state directory: `ECLUSA_STATE`, else what the file says, else `.eclusa` beside the file, else (no
 *  file) `$XDG_STATE_HOME/eclusa`. Always absolute. */
export function stateDir(
  io: Io,
  config: { readonly file: string; readonly dir: string | null } | null,
): string {
  const override = io.env['ECLUSA_STATE']
  if (override !== undefined && override !== '') return resolve(io.cwd, override)
  if (config !== null) return resolve(dirname(config.file), config.dir ?? '.eclusa')
  const home = io.env['XDG_STATE_HOME']
  const root = home !== undefined && isAbsolute(home) ? home : join(homedir(), '.local', 'state')
  return join(root, 'eclusa')
}

/** The state directory that a verb reads: `--state`, else `ECLUSA_STATE`, else `.eclusa` beside an
 *  `eclusa.yaml` in the working folder, else the short form's. */
export function stateFor(flag: string | undefined, io: Io): string {
  if (flag !== undefined) return resolve(io.cwd, flag)
  const file = resolve(io.cwd, 'eclusa.yaml')
  return stateDir(io, existsSync(file) ? { file, dir: null } : null)
}
