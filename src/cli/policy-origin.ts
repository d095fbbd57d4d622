// Where a recorded policy text came from: a file that still has it, the flags of the short form, or nobody knows.

import { readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

import { Fault } from '../fault.ts'
import { policyReference, recordedTexts, wholeText } from '../policy/config.ts'
import type { Source } from '../policy/position.ts'
import type { Io } from './io.ts'
import { lookup, readBeside, readSource } from './place.ts'
import { type Flags, flagsOf } from './short.ts'

/** The origin of a policy text. `sources` hold the text itself, the configuration first; under the names of
 *  files where those are known to have it, else under the names of recorded texts. changed: `file` is where
 *  it seems to have stood, and has another text now. */
export type Origin =
  | { readonly kind: 'short'; readonly flags: Flags; readonly sources: readonly Source[] }
  | { readonly kind: 'file'; readonly file: string; readonly sources: readonly Source[] }
  | { readonly kind: 'changed'; readonly file: string; readonly sources: readonly Source[] }
  | { readonly kind: 'unknown'; readonly sources: readonly Source[] }

/** Files looked at in one folder. */
const MAX_FILES = 32

/** The origin of the text in the ledger of `dir`. `config`: the file that the operator names, or undefined:
 *  then the files beside the state directory and `eclusa.yaml` in the working folder are compared.
 *  Errors: `Fault` for a named file that cannot be read. */
export function originOf(
  text: string,
  { dir, config }: { readonly dir: string; readonly config: string | undefined },
  io: Io,
): Origin {
  const flags = flagsOf(text)
  if (flags !== null) return { kind: 'short', flags, sources: recordedTexts(text) }
  if (config !== undefined) {
    const sources = textsOf(config, io)
    const file = resolve(io.cwd, config)
    if (holds(sources, text)) return { kind: 'file', file, sources }
    return { kind: 'changed', file, sources: recordedTexts(text) }
  }
  const candidates = [...beside(dir), join(io.cwd, 'eclusa.yaml')]
  for (const file of candidates) {
    const sources = textsIfLike(file, text, io)
    if (holds(sources, text)) return { kind: 'file', file, sources }
  }
  // `.eclusa` beside an `eclusa.yaml` is that file's.
  const own = candidates.find((file) => basename(file) === 'eclusa.yaml')
  const sources = recordedTexts(text)
  const likely = basename(dir) === '.eclusa' && own !== undefined && dirname(own) === dirname(dir)
  return likely ? { kind: 'changed', file: own, sources } : { kind: 'unknown', sources }
}

const holds = ([main, policy]: readonly Source[], text: string): boolean =>
  main !== undefined && wholeText(main, policy ?? null) === text

function textsOf(file: string, io: Io): readonly Source[] {
  const main = readSource(file, io.cwd)
  const reference = policyReference(main, lookup({ ...io, err: () => undefined }))
  return reference === null ? [main] : [main, readBeside(reference, main.file)]
}

/** A file that was only guessed, and cannot be read or begins otherwise, is not the one. */
function textsIfLike(file: string, text: string, io: Io): readonly Source[] {
  try {
    return readSource(file, io.cwd).text === recordedTexts(text)[0]?.text ? textsOf(file, io) : []
  } catch (error) {
    if (error instanceof Fault) return []
    throw error
  }
}

function beside(dir: string): readonly string[] {
  const folder = dirname(dir)
  let names: readonly string[]
  try {
    names = readdirSync(folder)
  } catch (error) {
    // A folder that may be entered and not read: then the operator names the file.
    if (error instanceof Error && 'code' in error) return []
    throw error
  }
  return names
    .filter((name) => /\.(?:ya?ml|json)$/.test(name))
    .sort((a, b) => order(a) - order(b))
    .slice(0, MAX_FILES)
    .map((name) => join(folder, name))
}

const order = (name: string): number => (name.startsWith('eclusa.') ? 0 : 1)
