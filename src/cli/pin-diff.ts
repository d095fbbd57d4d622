// The two texts of a definition side by side: what is pinned, and what waits to be approved.

import { parseArgs } from 'node:util'

import { EXIT, Fault } from '../fault.ts'
import { isObject, type Json, parseText, UPSTREAM_LIMITS, writeJson } from '../json.ts'
import { openReader, type Reader } from '../store/reader.ts'
import type { Io } from './io.ts'
import { stateFor } from './place.ts'
import { visible } from './record.ts'
import { commandLine } from './shell.ts'

/** `pin diff UP/TOOL [--state DIR] [--json]`: the lines of the pinned definition (`-`) and of the one that
 *  waits (`+`), members sorted by name; with `--json` both definitions in one object, null for none. Exit 1
 *  when nothing waits. */
export async function pinDiff(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { state: { type: 'string' }, json: { type: 'boolean', default: false } },
  })
  const [tool, ...more] = positionals
  if (tool === undefined || more.length > 0) {
    throw new Fault('usage', 'name one tool: eclusa pin diff UPSTREAM/TOOL')
  }
  const dir = stateFor(values.state, io)
  io.err(`eclusa: state directory ${dir}`)
  const reader = openReader(dir)
  try {
    const pin = reader.pins().find((one) => one.tool === tool)
    if (pin === undefined || pin.waiting === null) {
      const why = pin === undefined ? 'was never seen' : 'has nothing that waits'
      io.err(`eclusa: ${visible(tool)} ${why}; run: eclusa pin list`)
      return EXIT.finding
    }
    const { hash, waiting } = pin
    const pinned = hash === null ? null : definitionOf(reader, tool, hash)
    const waits = definitionOf(reader, tool, waiting)
    if (values.json) io.out(writeJson({ tool, hash, waiting, pinned, waits }))
    else for (const line of difference(linesOf(pinned), linesOf(waits))) io.out(line)
    io.err(`eclusa: ${hash === null ? 'nothing is pinned yet' : `- is pinned, ${hash}`}`)
    io.err(`eclusa: + waits, ${waiting}; to use it, run:`)
    const approve = ['eclusa', 'pin', 'approve', tool, '--hash', waiting, '--state', dir]
    io.err(`  ${commandLine(approve)}`)
    return EXIT.ok
  } finally {
    reader.close()
  }
}

function definitionOf(reader: Reader, tool: string, hash: string): Json {
  const text = reader.definitionText(hash)
  const parsed = text === null ? null : parseText(text, UPSTREAM_LIMITS)
  if (parsed?.kind === 'json') return parsed.value
  throw new Fault(
    'state_tampered',
    `the definition ${hash} of ${visible(tool)} is not in the ledger; run: eclusa audit verify`,
  )
}

const linesOf = (value: Json): readonly string[] => (value === null ? [] : pretty(value, ''))

/** JSON over lines; what would not be seen, or would move what is seen, is written as a code. */
function pretty(value: Json, indent: string): readonly string[] {
  const inner = `${indent}  `
  if (Array.isArray(value) && value.length > 0) {
    return wrapped(
      '[]',
      indent,
      value.map((one: Json) => pretty(one, inner)),
    )
  }
  if (isObject(value) && Object.keys(value).length > 0) {
    const members = Object.keys(value).map((name) => {
      const [first = '', ...rest] = pretty(value[name] ?? null, inner)
      return [`${inner}${plain(name)}: ${first.slice(inner.length)}`, ...rest]
    })
    return wrapped('{}', indent, members)
  }
  return [`${indent}${plain(value)}`]
}

// JSON doubles a backslash itself.
const plain = (value: Json): string => writeJson(value).split('\\').map(visible).join('\\')

function wrapped(
  marks: string,
  indent: string,
  parts: readonly (readonly string[])[],
): readonly string[] {
  const lines = parts.flatMap((part, at) => {
    const last = part.at(-1) ?? ''
    return [...part.slice(0, -1), at < parts.length - 1 ? `${last},` : last]
  })
  return [`${indent}${marks.charAt(0)}`, ...lines, `${indent}${marks.charAt(1)}`]
}

/** Pairs of lines that are compared; beyond that all of one text is shown before all of the other. */
const MAX_PAIRS = 4_000_000

const same = (line: string): string => `  ${line}`
const gone = (line: string): string => `- ${line}`
const come = (line: string): string => `+ ${line}`

/** Each line of both texts once: `  ` in both, `- ` only before, `+ ` only after. */
function difference(before: readonly string[], after: readonly string[]): readonly string[] {
  let start = 0
  while (start < before.length && before[start] === after[start]) start++
  let end = 0
  const room = Math.min(before.length, after.length) - start
  while (end < room && before.at(-1 - end) === after.at(-1 - end)) end++
  const middle = changes(
    before.slice(start, before.length - end),
    after.slice(start, after.length - end),
  )
  return [
    ...before.slice(0, start).map(same),
    ...middle,
    ...before.slice(before.length - end).map(same),
  ]
}

function changes(before: readonly string[], after: readonly string[]): readonly string[] {
  if (before.length * after.length > MAX_PAIRS) return [...before.map(gone), ...after.map(come)]
  const common = lengths(before, after)
  const width = after.length + 1
  const lines: string[] = []
  let a = 0
  let b = 0
  while (a < before.length && b < after.length) {
    const [one = '', other = ''] = [before[a], after[b]]
    if (one === other) {
      lines.push(same(one))
      a++
      b++
    } else if ((common[(a + 1) * width + b] ?? 0) >= (common[a * width + b + 1] ?? 0)) {
      lines.push(gone(one))
      a++
    } else {
      lines.push(come(other))
      b++
    }
  }
  return [...lines, ...before.slice(a).map(gone), ...after.slice(b).map(come)]
}

/** The length of the longest common part of what follows each pair of places. */
function lengths(before: readonly string[], after: readonly string[]): Uint32Array {
  const width = after.length + 1
  const made = new Uint32Array((before.length + 1) * width)
  for (let a = before.length - 1; a >= 0; a--) {
    for (let b = after.length - 1; b >= 0; b--) {
      const at = a * width + b
      made[at] =
        before[a] === after[b]
          ? (made[at + width + 1] ?? 0) + 1
          : Math.max(made[at + width] ?? 0, made[at + 1] ?? 0)
    }
  }
  return made
}
