// The program: finds the verb, runs it, and turns what it throws into one line and an exit status.

import { EXIT, exitStatus, Fault } from '../fault.ts'
import { type Io, processIo } from './io.ts'
import { version } from './version.ts'

/** One verb: its line in the help, and its code, loaded only when it is asked for. */
type Verb = {
  readonly help: string
  readonly run: () => Promise<(args: string[], io: Io) => Promise<number>>
}

const VERBS: ReadonlyMap<string, Verb> = new Map<string, Verb>([
  [
    'stdio',
    {
      help: 'stand between an MCP client on stdin and servers: stdio [--config FILE | --read a --write b] [-- COMMAND]',
      run: async () => (await import('./stdio.ts')).stdio,
    },
  ],
  [
    'serve',
    {
      help: 'stand between MCP clients over HTTP and servers: serve --config FILE [--port N]',
      run: async () => (await import('./serve.ts')).serve,
    },
  ],
  [
    'demo',
    { help: 'show it at work on real files', run: async () => (await import('./demo.ts')).demo },
  ],
  [
    'init',
    {
      help: 'draft an eclusa.yaml for a server: init -- COMMAND',
      run: async () => (await import('./init.ts')).init,
    },
  ],
  [
    'policy check',
    {
      help: 'name every fault of a configuration: policy check FILE',
      run: async () => (await import('./policy.ts')).policyCheck,
    },
  ],
  [
    'policy explain',
    {
      help: 'say what each rule makes of a call: policy explain FILE --profile P --tool UP/TOOL --args FILE',
      run: async () => (await import('./policy.ts')).policyExplain,
    },
  ],
  [
    'explain',
    {
      help: 'say why a record says what it says, and what would allow it: explain SEQ [--config FILE]',
      run: async () => (await import('./policy.ts')).explain,
    },
  ],
  [
    'audit verify',
    {
      help: 'check a ledger or a log: audit verify DIR|FILE [--head HEAD]',
      run: async () => (await import('./audit.ts')).verify,
    },
  ],
  [
    'audit show',
    {
      help: 'print one record: audit show SEQ',
      run: async () => (await import('./audit.ts')).show,
    },
  ],
  [
    'audit tail',
    {
      help: 'print the last records: audit tail [-n N] [--follow]',
      run: async () => (await import('./audit.ts')).tail,
    },
  ],
  [
    'audit disclose',
    {
      help: 'prove the arguments of a record: audit disclose SEQ --args FILE',
      run: async () => (await import('./audit.ts')).disclose,
    },
  ],
  [
    'audit redecide',
    {
      help: 'decide a recorded call again: audit redecide SEQ [--args FILE]',
      run: async () => (await import('./policy.ts')).redecide,
    },
  ],
  [
    'client add',
    {
      help: 'let a client come with a token: client add NAME --profile P [--config FILE]',
      run: async () => (await import('./client.ts')).clientAdd,
    },
  ],
  [
    'client list',
    {
      help: 'list clients',
      run: async () => (await import('./client.ts')).clientList,
    },
  ],
  [
    'client revoke',
    {
      help: 'end a client for good: client revoke NAME',
      run: async () => (await import('./client.ts')).clientRevoke,
    },
  ],
  [
    'clock accept',
    {
      help: 'start although the clock is before the ledger: clock accept [--state DIR]',
      run: async () => (await import('./clock-accept.ts')).clockAccept,
    },
  ],
  [
    'pin list',
    {
      help: 'list what is pinned and what waits',
      run: async () => (await import('./pin.ts')).pinList,
    },
  ],
  [
    'pin diff',
    {
      help: 'show what a waiting definition changes: pin diff UP/TOOL',
      run: async () => (await import('./pin-diff.ts')).pinDiff,
    },
  ],
  [
    'pin approve',
    {
      help: 'let a waiting definition be used: pin approve UP/TOOL',
      run: async () => (await import('./pin.ts')).pinApprove,
    },
  ],
])

/** Runs `argv` (without the program's own name). Resolves to the exit status; never rejects. */
export async function main(argv: readonly string[], io: Io): Promise<number> {
  try {
    return await dispatch(argv, io)
  } catch (error) {
    return failed(error, io)
  }
}

async function dispatch(argv: readonly string[], io: Io): Promise<number> {
  const [first = 'help', second = ''] = argv
  if (first === '--version' || first === '-v') {
    io.out(version())
    return EXIT.ok
  }
  if (first === 'help' || first === '--help' || first === '-h') {
    help((line) => io.out(line))
    return argv.length === 0 ? EXIT.usage : EXIT.ok
  }
  const two = VERBS.get(`${first} ${second}`)
  const verb = two ?? VERBS.get(first)
  if (verb === undefined) {
    throw new Fault('usage', noVerb(first, second))
  }
  const run = await verb.run()
  return run(argv.slice(two === undefined ? 1 : 2), io)
}

function noVerb(first: string, second: string): string {
  const longer = [...VERBS.keys()].filter((name) => name.startsWith(`${first} `))
  const what = longer.length === 0 ? 'run: eclusa help' : `there are: ${longer.join(', ')}`
  return `there is no verb "${`${first} ${second}`.trim()}"; ${what}`
}

function failed(error: unknown, io: Io): number {
  if (error instanceof Fault) {
    io.err(`eclusa: ${error.message}`)
    return exitStatus(error.code)
  }
  if (
    error instanceof TypeError &&
    'code' in error &&
    String(error.code).startsWith('ERR_PARSE_ARGS')
  ) {
    io.err(`eclusa: ${error.message.split('. ')[0]}; run: eclusa help`)
    return EXIT.usage
  }
  const place = unreadable(error)
  if (place !== null) {
    io.err(`eclusa: cannot read ${place}; check the path and who may read it`)
    return EXIT.state
  }
  io.err(`eclusa: internal error: ${error instanceof Error ? error.stack : String(error)}`)
  return EXIT.internal
}

/** The path and reason of an error of the file system, or null. Files that an operator names have words of
 *  their own; what is left is a state directory. */
function unreadable(error: unknown): string | null {
  if (!(error instanceof Error) || !('path' in error) || !('code' in error)) return null
  const isRead = 'syscall' in error && ['stat', 'lstat', 'open'].includes(String(error.syscall))
  return isRead ? `${String(error.path)} (${String(error.code)})` : null
}

function help(line: (text: string) => void): void {
  line(`eclusa ${version()}: a lock between AI agents and MCP servers`)
  line('')
  for (const [name, { help: text }] of VERBS) line(`  ${name.padEnd(16)} ${text}`)
  line('')
  line('Try it: eclusa demo')
}

// Whoever read our words has gone (`eclusa audit tail --follow | head -1`): that is the end, not a fault.
// The session of `stdio` has its own rule, since calls may be in flight.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' && process.argv[2] !== 'stdio') process.exit(EXIT.ok)
})
// Nobody reads what an operator is told any more: that ends no call and no record. Whatever else is wrong with
// the ledger or a server shows in health and in answers.
process.stderr.on('error', () => {})
// An unhandled rejection is a record that may be lost: the process must not go on.
process.on('unhandledRejection', (error) => {
  process.exit(failed(error, processIo()))
})
process.exitCode = await main(process.argv.slice(2), processIo())
