// Classes of JSON texts and what they are made with.

import { Buffer } from 'node:buffer'

import type { JsonProblem } from '../../src/json.ts'

/** One class of texts that are admitted: each is a text, or bytes. */
export type Class = { readonly name: string; readonly texts: readonly (string | Uint8Array)[] }

/** One class of texts that are refused with the same problem. */
export type Wrong = Class & { readonly problem: JsonProblem }

/** Bytes of texts and of numbers, joined. */
export const bytes = (...parts: readonly (string | number)[]): Uint8Array =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.of(part))),
  )

/** The texts between line ends or two spaces, as they stand. */
export const each = ({ raw }: TemplateStringsArray): string[] =>
  raw
    .join('')
    .trim()
    .split(/\s*\n\s*|  +/)

/** In a document of its own, in an array, as a member, deep inside, with spaces of every kind. */
export const everywhere = (...values: readonly string[]): string[] =>
  values.flatMap((value) => [
    value,
    `[${value}]`,
    `{"k":${value}}`,
    `[0,[{"k":[${value},1]}]]`,
    ` \t\r\n[ \n${value}\t,\r${value} ]\n`,
  ])
