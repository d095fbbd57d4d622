// Regular expressions in linear time: RE2's syntax, no look-around, no back-references.

import { createRequire } from 'node:module'

import type { RE2JS } from 're2js'

/** Ceilings of patterns. `work`: characters of a text times instructions of the program. */
export const REGEX_LIMITS: {
  readonly characters: number
  readonly program: number
  readonly work: number
} = { characters: 1_000, program: 5_000, work: 50_000_000 }

/** A compiled pattern. `fits`: the text is short enough for it. `test`: it occurs anywhere in the text;
 *  throws a RangeError for a text that does not fit, since neither answer would be safe. */
export type Linear = {
  readonly fits: (text: string) => boolean
  readonly test: (text: string) => boolean
}

// Loaded at first use: a start without patterns does not pay for it.
const require = createRequire(import.meta.url)
let library: typeof RE2JS | null = null
const load = (): typeof RE2JS =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the library's own module
  (library ??= (require('re2js') as { readonly RE2JS: typeof RE2JS }).RE2JS)

/** The engine for one pattern as ECMA-262 writes it, or why it is refused. */
export function linear(pattern: string): Linear | { readonly problem: string } {
  if (pattern.length > REGEX_LIMITS.characters) {
    return { problem: `a pattern longer than ${REGEX_LIMITS.characters} characters` }
  }
  let compiled: RE2JS
  try {
    const RE2 = load()
    compiled = RE2.compile(RE2.translateRegExp(pattern))
  } catch (error) {
    // What the library throws becomes a value here: its message names the construct, never a text.
    return { problem: error instanceof Error ? error.message : 'the pattern cannot be read' }
  }
  const size = compiled.programSize()
  if (size > REGEX_LIMITS.program) return { problem: 'the pattern is too large' }
  const fits = (text: string): boolean => text.length * size <= REGEX_LIMITS.work
  const test = (text: string): boolean => {
    if (!fits(text)) throw new RangeError('the text is too long for this pattern')
    return compiled.test(text)
  }
  return { fits, test }
}
