// The demo: one gateway before two real servers and real files, played by the official client in both eras.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, lstatSync, mkdirSync, mkdtempSync } from 'node:fs'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..', '..')
const MAIN = join(ROOT, 'src', 'cli', 'main.ts')
const FILES_SERVER = join(
  ROOT,
  'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js',
)

/** Where the words go: `out` for what was shown, `err` for what went wrong. */
type Words = { readonly out: (line: string) => void; readonly err: (line: string) => void }

/** The folders of one play, all in one temporary folder. */
type Place = {
  readonly root: string
  readonly files: string
  readonly secret: string
  readonly notes: string
  readonly state: string
  readonly config: string
  readonly marker: string
}

/** Plays everything and checks each step. Resolves to 0, or to 1 with a sentence that says which step came
 *  out otherwise. Takes a few seconds and leaves nothing behind. */
export async function play({ out, err }: Words): Promise<number> {
  const place = prepare()
  try {
    out(
      'Eclusa stands between an agent and two MCP servers: notes (examples/gated-fs, no gate of its',
    )
    out("own) and the official filesystem server, on a folder with this project's own documents.")
    for (const era of ERAS) await calls(place, era, out)
    await untouched(place, out)
    await killAndRepeat(place, out)
    proof(place, out)
    out('')
    out('Try it before your own server:  npm run -s eclusa -- stdio -- node your-server.js')
    return 0
  } catch (error) {
    err(`demo: ${error instanceof Error ? error.message : String(error)}`)
    return 1
  } finally {
    rmSync(place.root, { recursive: true, force: true })
  }
}

const ERAS = [
  { era: '2026-07-28', mode: 'auto' },
  { era: '2025-11-25', mode: 'legacy' },
] as const

function prepare(): Place {
  const root = mkdtempSync(join(tmpdir(), 'eclusa-demo-'))
  const at = (name: string): string => join(root, name)
  const place = {
    root,
    files: at('files'),
    secret: at('secret.txt'),
    notes: at('notes'),
    state: at('state'),
    config: at('eclusa.yaml'),
    marker: at('before-commit'),
  }
  mkdirSync(place.files)
  for (const name of ['README.md', 'LICENSE', 'CHANGELOG.md']) {
    if (existsSync(join(ROOT, name))) copyFileSync(join(ROOT, name), join(place.files, name))
  }
  writeFileSync(join(place.files, 'plan.txt'), 'pour the foundation on Monday\n')
  writeFileSync(place.secret, 'not for agents\n')
  writeFileSync(place.config, configOf(place))
  return place
}

const configOf = ({ files, notes }: Place): string => `version: 2
upstreams:
  notes:
    command: ${JSON.stringify([process.execPath, join(ROOT, 'examples/gated-fs/naked.ts')])}
    env: { LEDGER_DIR: ${JSON.stringify(notes)} }
    pass_env: [CRASH_MARKER]
  files:
    command: ${JSON.stringify([process.execPath, FILES_SERVER, files])}
tools:
  notes/write_note:
    effect: write
    key: { at: /request_id, honoured: true }
    args:
      required: [request_id, text]
      properties: { request_id: { type: string, minLength: 8 }, text: { type: string, maxLength: 2000 } }
  notes/read_ledger: { effect: read }
  files/list_directory: { effect: read, args: { properties: { path: { path_under: ${JSON.stringify(files)} } } } }
  files/read_text_file: { effect: read, args: { properties: { path: { path_under: ${JSON.stringify(files)} } } } }
profiles:
  agent:
    allow: [notes/write_note, notes/read_ledger, files/list_directory, files/read_text_file]
must_deny:
  - { profile: agent, tool: notes/rm_rf, args: { path: / } }
`

/** One call of the table, and what must come of it. */
type Step = {
  readonly what: string
  readonly tool: string
  readonly args: Record<string, unknown>
  readonly decision: 'allow' | 'deny'
  readonly outcome: string
}

const stepsOf = ({ files, root }: Place, era: string): readonly Step[] => {
  const note = { request_id: `req-${era}`, text: 'the gate is closed' }
  const allow = 'allow'
  const deny = 'deny'
  return [
    {
      what: 'list a folder',
      tool: 'files__list_directory',
      args: { path: files },
      decision: allow,
      outcome: 'observed',
    },
    {
      what: 'read a file',
      tool: 'files__read_text_file',
      args: { path: join(files, 'plan.txt') },
      decision: allow,
      outcome: 'observed',
    },
    {
      what: 'climb out of it',
      tool: 'files__read_text_file',
      args: { path: `${files}/../secret.txt` },
      decision: deny,
      outcome: 'not_executed',
    },
    {
      what: 'write a note',
      tool: 'notes__write_note',
      args: note,
      decision: allow,
      outcome: 'committed',
    },
    {
      what: 'the same again',
      tool: 'notes__write_note',
      args: note,
      decision: allow,
      outcome: 'replay',
    },
    {
      what: 'same key, other text',
      tool: 'notes__write_note',
      args: { ...note, text: 'forged' },
      decision: deny,
      outcome: 'not_executed',
    },
    {
      what: 'read the notes',
      tool: 'notes__read_ledger',
      args: {},
      decision: allow,
      outcome: 'observed',
    },
    {
      what: 'delete everything',
      tool: 'notes__rm_rf',
      args: { path: root },
      decision: deny,
      outcome: 'not_executed',
    },
  ]
}

async function calls(
  place: Place,
  { era, mode }: (typeof ERAS)[number],
  out: Words['out'],
): Promise<void> {
  const client = await connect(place, mode)
  try {
    const { tools } = await client.listTools()
    expect(tools.length === 4, `4 tools are shown, not ${tools.length}`)
    out('')
    out(
      `MCP ${client.getNegotiatedProtocolVersion() ?? era}: ${tools.length} tools shown, rm_rf is not among them`,
    )
    out(row(['', 'call', 'decision', 'outcome', 'why', 'the agent reads']))
    for (const step of stepsOf(place, era)) out(await take(client, step, place))
  } finally {
    await client.close()
  }
}

const WIDTHS = [22, 24, 9, 13, 18]
const row = (cells: readonly string[]): string =>
  `  ${cells.map((cell, at) => cell.padEnd(WIDTHS[at] ?? 0)).join(' ')}`.trimEnd()

async function take(client: Client, step: Step, place: Place): Promise<string> {
  const said = await ask(client, step)
  const record = lastRecord(place)
  const { decision, outcome, code } = record
  expect(decision === step.decision, `${step.what}: ${step.tool} was decided ${decision}`)
  expect(outcome === step.outcome, `${step.what}: ${step.tool} came out ${outcome}`)
  const why = code ?? (decision === 'allow' ? 'policy allows it' : '')
  return row([step.what, step.tool, decision, outcome, why, said.slice(0, 60)])
}

async function ask(client: Client, { tool, args }: Step): Promise<string> {
  try {
    const result = await client.callTool({ name: tool, arguments: args })
    const text = result.content
      .map((block) => (block.type === 'text' ? block.text : block.type))
      .join(' ')
    return text.replaceAll(/\s+/g, ' ').trim()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

type Recorded = {
  readonly decision: string
  readonly outcome: string
  readonly code: string | null
}

function lastRecord({ state }: Place): Recorded {
  const lines = readFileSync(join(state, 'audit.jsonl'), 'utf8').trimEnd().split('\n')
  return JSON.parse(lines.at(-1) ?? '{}') as Recorded
}

async function connect(
  place: Place,
  mode: 'auto' | 'legacy',
  extra: Record<string, string> = {},
): Promise<Client> {
  const client = new Client({ name: 'demo', version: '1.0.0' }, { versionNegotiation: { mode } })
  await client.connect(transport(place, extra))
  return client
}

const transport = ({ config, state }: Place, extra: Record<string, string>): StdioClientTransport =>
  new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'stdio', '--config', config],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
      ECLUSA_STATE: state,
      ...extra,
    },
    stderr: 'ignore',
  })

/** Four signs of a file: hash, size, time of change, existence. */
function stateOf(path: string): string {
  if (!existsSync(path)) return 'missing'
  const { size, mtimeNs } = lstatSync(path, { bigint: true })
  return `${createHash('sha256').update(readFileSync(path)).digest('hex')} ${size} bytes, ${mtimeNs} ns`
}

async function untouched(place: Place, out: Words['out']): Promise<void> {
  const target = join(place.files, 'plan.txt')
  const before = [stateOf(target), stateOf(place.secret)].join('; ')
  const client = await connect(place, 'auto')
  try {
    for (const [tool, path] of [
      ['notes__rm_rf', place.files],
      ['rm_rf', place.files],
      ['files__read_text_file', `${place.files}/../secret.txt`],
    ] as const) {
      const said = await ask(client, {
        what: '',
        tool,
        args: { path },
        decision: 'deny',
        outcome: '',
      })
      expect(said.includes('denied'), `${tool} answered: ${said}`)
      expect(lastRecord(place).outcome === 'not_executed', `${tool} was executed`)
    }
  } finally {
    await client.close()
  }
  expect(
    before === [stateOf(target), stateOf(place.secret)].join('; '),
    'a refused call changed a file',
  )
  out('')
  out('Refused calls touched nothing: before and after rm_rf and the escape, plan.txt is')
  out(`  ${stateOf(target)}`)
}

async function killAndRepeat(place: Place, out: Words['out']): Promise<void> {
  const note = { request_id: 'req-killed-0001', text: 'once' }
  const before = notesIn(place)
  const client = new Client(
    { name: 'demo', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' } },
  )
  const wire = transport(place, { CRASH_MARKER: place.marker })
  await client.connect(wire)
  const lost = client.callTool({ name: 'notes__write_note', arguments: note }).catch(() => 'lost')
  await until(() => existsSync(place.marker), 'the write reached the point before its commit')
  process.kill(wire.pid ?? 0, 'SIGKILL')
  expect((await lost) === 'lost', 'the call of a killed gateway was answered')
  await client.close()
  const again = await connect(place, 'auto')
  try {
    const result = await again.callTool({ name: 'notes__write_note', arguments: note })
    expect(result.isError !== true, 'the repeated write failed')
  } finally {
    await again.close()
  }
  expect(notesIn(place) === before + 1, `${notesIn(place) - before} notes were written for one key`)
  out('')
  out(
    'The gateway was killed (SIGKILL) in the middle of a write, started again and asked again with the',
  )
  out('same key: one note on disk, no error. What was open was recorded as unknown, then settled.')
}

const notesIn = ({ notes }: Place): number =>
  existsSync(join(notes, 'notes'))
    ? readdirSync(join(notes, 'notes')).filter((name) => name.endsWith('.json')).length
    : 0

/** Verifies the ledger, flips one byte in a copy of the log and shows that the verifier names the line. */
function proof(place: Place, out: Words['out']): void {
  const sound = verify(place.state)
  expect(sound.status === 0, `the ledger does not verify: ${sound.text}`)
  out('')
  out(`The log verifies: ${sound.text.split('\n')[0] ?? ''}`)
  const copy = join(place.root, 'copy.jsonl')
  const bytes = readFileSync(join(place.state, 'audit.jsonl'))
  const at = Math.floor(bytes.length / 2)
  const line = bytes.subarray(0, at).filter((byte) => byte === 0x0a).length + 1
  bytes[at] = (bytes[at] ?? 0) ^ 1
  writeFileSync(copy, bytes)
  const forged = verify(copy)
  expect(forged.status === 1, 'a flipped byte was not found')
  expect(
    forged.text.includes(`line ${line}`),
    `the verifier did not name line ${line}: ${forged.text}`,
  )
  out(
    `One byte flipped in a copy, and it says: ${forged.text.split('\n').find((one) => one.includes(`line ${line}`)) ?? ''}`,
  )
}

function verify(path: string): { readonly status: number | null; readonly text: string } {
  const done = spawnSync(process.execPath, [MAIN, 'audit', 'verify', path], { encoding: 'utf8' })
  return { status: done.status, text: `${done.stdout}${done.stderr}` }
}

function expect(holds: boolean, sentence: string): void {
  if (!holds) throw new Error(sentence)
}

const WAIT_MS = 5_000
const LOOK_MS = 10

async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + WAIT_MS
  while (!holds()) {
    expect(Date.now() < deadline, `waited in vain until ${what}`)
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
