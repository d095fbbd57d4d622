// Where a recorded policy text came from: a file that still has it, the flags of the short form, or nobody knows.

import { readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

import { Fault } from '../fault.ts'
import { policyReference, recordedTexts } from '../policy/config.ts'
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
  const recorded = recordedTexts(text)
  if (config !== undefined) {
    const file = resolve(io.cwd, config)
    const found = foundIn(file, recorded, io)
    return found === null
      ? { kind: 'changed', file, sources: recorded }
      : { kind: 'file', file, sources: found.sources }
  }
  const candidates = [...beside(dir), join(io.cwd, 'eclusa.yaml')]
  const all = candidates.flatMap((file) => {
    const found = foundIfReadable(file, recorded, io)
    return found === null ? [] : [{ file, ...found }]
  })
  const best = all.find(({ whole }) => whole) ?? all[0]
  if (best !== undefined) return { kind: 'file', file: best.file, sources: best.sources }
  // `.eclusa` beside an `eclusa.yaml` is that file's.
  const own = candidates.find((file) => basename(file) === 'eclusa.yaml')
  const likely = basename(dir) === '.eclusa' && own !== undefined && dirname(own) === dirname(dir)
  return likely
    ? { kind: 'changed', file: own, sources: recorded }
    : { kind: 'unknown', sources: recorded }
}

/** The recorded texts under the names of files. `whole`: all stand in files; else the configuration was made
 *  by a program, and only the policy's own file is one. */
type Found = { readonly sources: readonly Source[]; readonly whole: boolean }

function foundIn(file: string, [main, policy]: readonly Source[], io: Io): Found | null {
  const source = readSource(file, io.cwd)
  if (main === undefined) return null
  if (policy !== undefined && source.text === policy.text) {
    return { sources: [main, source], whole: false }
  }
  if (source.text !== main.text) return null
  if (policy === undefined) return { sources: [source], whole: true }
  const reference = policyReference(source, lookup({ ...io, err: () => undefined }))
  const other = reference === null ? null : readBeside(reference, source.file)
  return other?.text === policy.text ? { sources: [source, other], whole: true } : null
}

/** A file that was only guessed and cannot be read is not the one. */
function foundIfReadable(file: string, recorded: readonly Source[], io: Io): Found | null {
  try {
    return foundIn(file, recorded, io)
  } catch (error) {
    if (error instanceof Fault) return null
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
