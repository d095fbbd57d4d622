// The verbs about pins: what is remembered of each tool's definition, and letting a waiting one be used.

import { parseArgs } from 'node:util'

import { EXIT, Fault } from '../fault.ts'
import { approvePin, openReader } from '../store/reader.ts'
import type { Io } from './io.ts'
import { stateFor } from './place.ts'
import { visible } from './record.ts'
import { commandLine } from './shell.ts'

/** Prints one line a tool: `approved`, `waiting` (never approved) or `changed` (approved, and another
 *  definition waits), the hashes and the tool; on stderr, for each that waits, the commands that show and
 *  approve it. */
export async function pinList(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { state: { type: 'string' }, json: { type: 'boolean', default: false } },
  })
  const dir = named(stateFor(values.state, io), io)
  const reader = openReader(dir)
  try {
    for (const row of reader.rows('pins')) {
      const tool = String(row['tool'])
      const hash = textOrNull(row['hash'])
      const waiting = textOrNull(row['waiting'])
      const state = waiting === null ? 'approved' : hash === null ? 'waiting' : 'changed'
      if (values.json) {
        io.out(JSON.stringify({ tool, state, hash, waiting }))
        continue
      }
      io.out([state.padEnd(8), short(hash), short(waiting), visible(tool)].join('  '))
      if (waiting === null) continue
      io.err(`eclusa: to see what ${visible(tool)} changes, then to use it (as it was seen), run:`)
      const at = ['--state', dir]
      io.err(`  ${commandLine(['eclusa', 'pin', 'diff', tool, ...at])}`)
      io.err(`  ${commandLine(['eclusa', 'pin', 'approve', tool, '--hash', waiting, ...at])}`)
    }
  } finally {
    reader.close()
  }
  return EXIT.ok
}

/** Approves what waits for one tool; with `--hash` only that definition. Needs access to the state
 *  directory; the record names the operating-system user. Exit 1 when nothing was approved. */
export async function pinApprove(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { state: { type: 'string' }, hash: { type: 'string' } },
  })
  const [tool, ...more] = positionals
  if (tool === undefined || more.length > 0) {
    throw new Fault('usage', 'name one tool: eclusa pin approve UPSTREAM/TOOL')
  }
  const dir = named(stateFor(values.state, io), io)
  const done = approvePin(dir, { tool, hash: values.hash ?? null })
  switch (done.kind) {
    case 'approved':
      io.err(`eclusa: ${visible(tool)} is used as ${done.hash} from now on`)
      return EXIT.ok
    case 'unknown_tool':
      io.err(`eclusa: ${visible(tool)} was never seen; run: eclusa pin list`)
      return EXIT.finding
    case 'nothing_waits':
      io.err(`eclusa: nothing waits for ${visible(tool)}; run: eclusa pin list`)
      return EXIT.finding
    case 'other_hash':
      io.err(
        `eclusa: another definition waits: ${done.waiting}; look at it, then name it with --hash`,
      )
      return EXIT.finding
  }
}

/** The directory, after it was named on stderr. */
function named(dir: string, io: Io): string {
  io.err(`eclusa: state directory ${dir}`)
  return dir
}

const HASH_DIGITS = 12
const short = (hash: string | null): string =>
  (hash ?? '-').slice(0, HASH_DIGITS).padEnd(HASH_DIGITS)

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null)
