// `eclusa init -- COMMAND`: drafts an eclusa.yaml that a person then reviews.

import { writeFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { EXIT, Fault } from '../fault.ts'
import { discover, type Found } from './discover.ts'
import type { Io } from './io.ts'
import { literal, upstreamName } from './short.ts'

/** Writes `eclusa.yaml` (or `--out FILE`); refuses to replace a file that is there. */
export async function init(args: string[], io: Io): Promise<number> {
  const { values, positionals: command } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      out: { type: 'string', default: 'eclusa.yaml' },
      name: { type: 'string' },
      env: { type: 'string', multiple: true, default: [] },
    },
  })
  if (command.length === 0) {
    throw new Fault('usage', 'name the server to look at: eclusa init -- COMMAND')
  }
  const name = values.name ?? upstreamName(command).replace(/-[0-9a-f]{8}$/, '')
  if (!/^[a-z0-9-]{1,20}$/.test(name)) {
    throw new Fault('usage', `--name ${name}: use 1 to 20 of a-z, 0-9 and -`)
  }
  const found = await discover(command, values.env, io)
  const file = resolve(io.cwd, values.out)
  try {
    // A server of the file runs in the file's folder; this one was looked at here.
    const cwd = dirname(file) === io.cwd ? null : io.cwd
    writeFileSync(file, draft({ name, command, cwd, env: values.env, found }), { flag: 'wx' })
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'failed'
    throw new Fault('usage', `cannot write ${file} (${reason}); name another with --out`, {
      cause: error,
    })
  }
  io.err(`eclusa: wrote ${file} with ${found.length} tools; review every line marked "review"`)
  io.err(
    `eclusa: then run: eclusa policy check ${values.out} && eclusa stdio --config ${values.out}`,
  )
  return EXIT.ok
}

type Draft = {
  readonly name: string
  readonly command: readonly string[]
  readonly cwd: string | null
  readonly env: readonly string[]
  readonly found: readonly Found[]
}

// JSON strings are YAML strings: nothing that a server says can become a key or an anchor.
const text = (value: string): string => JSON.stringify(literal(value))

function draft({ name, command, cwd, env, found }: Draft): string {
  const tool = (one: Found): string => text(`${name}/${one.name}`)
  const allowed = found.filter((one) => one.does !== 'destructive')
  const passed = env.map((one) => one.split('=', 1)[0] ?? '').filter((one) => one !== '')
  const tools = found.map((one) => `  ${tool(one)}: { effect: ${one.does} } # review: guessed`)
  const withheld = found.filter((one) => one.does === 'destructive')
  const lines = [
    'version: 2',
    'upstreams:',
    `  ${name}:`,
    `    command: [${command.map(text).join(', ')}]`,
    ...(cwd === null ? [] : [`    cwd: ${text(cwd)}`]),
    ...(passed.length === 0 ? [] : [`    pass_env: [${passed.map(text).join(', ')}]`]),
    '# What each tool does to the world, whoever calls it.',
    ...(tools.length === 0 ? ['tools: {}'] : ['tools:', ...tools]),
    '# What a kind of client may do. A tool that is not allowed here is not shown and cannot be called.',
    'profiles:',
    '  default:',
    ...(allowed.length === 0 ? ['    allow: []'] : ['    allow:']),
    ...allowed.map((one) => `      - ${tool(one)}`),
    ...withheld.map(
      (one) => `      # - ${tool(one)} # destructive: also needs approve: { ${tool(one)}: none }`,
    ),
  ]
  return `${lines.join('\n')}\n`
}
