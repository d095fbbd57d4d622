// Commands as a person can paste them into a POSIX shell.

import { quoted } from './discover.ts'
import { visible } from './record.ts'

/** A command line: `env` is set for this command alone. A backslash stands as itself, since the shell must
 *  read it; where other characters would not be seen, they are written as codes and a note says so. */
export function commandLine(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): string {
  const set = Object.entries(env).map(([name, value]) => `${name}=${quoted(value)}`)
  const line = [...set, ...argv.map(quoted)].join(' ')
  const seen = line.split('\\').map(visible).join('\\')
  return seen === line ? line : `${seen}   # put the characters back that are written \\u{..} here`
}
