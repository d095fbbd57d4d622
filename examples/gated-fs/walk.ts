// Plays the agent: the same calls through the gate inside and through the gateway in front, in both eras,
// each answer compared with what must come. Exits with 1 at the first deviation.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { z } from 'zod'

const HERE = dirname(fileURLToPath(import.meta.url))
const ROOT = join(HERE, '..', '..')
const NOTE = { request_id: 'req-0001', text: 'gate aplicado' }

const WAYS = [
  { way: 'inside', args: [join(HERE, 'server.ts')], audit: 'ledger' },
  {
    way: 'in front',
    args: [join(ROOT, 'src/cli/main.ts'), 'stdio', '--config', join(HERE, 'eclusa.yaml')],
    audit: 'state',
  },
] as const
const ERAS = [
  { era: '2026-07-28', mode: 'auto' },
  { era: '2025-11-25', mode: 'legacy' },
] as const

const RECORD = z.object({
  name: z.string(),
  decision: z.string(),
  outcome: z.string(),
  code: z.string().nullable(),
})

/** What one call came to, as the agent sees it. */
type Told = { readonly kind: 'answer' | 'failure' | 'refused'; readonly text: string }

/** One step of the walk: the call, and what must come of it. `outcomes`: what the last record may say. */
type Step = {
  readonly name: string
  readonly args: Record<string, unknown>
  readonly told: Told['kind']
  readonly says: RegExp
  readonly decision: 'allow' | 'deny'
  readonly outcomes: readonly string[]
}

const stepsWith = (target: string): readonly Step[] => [
  {
    name: 'write_note',
    args: NOTE,
    told: 'answer',
    says: /"status":"committed"/,
    decision: 'allow',
    outcomes: ['committed'],
  },
  {
    name: 'write_note',
    args: NOTE,
    told: 'answer',
    says: /"status":"(committed|replay)"/,
    decision: 'allow',
    outcomes: ['replay'],
  },
  {
    name: 'write_note',
    args: { ...NOTE, text: 'outro texto' },
    told: 'failure',
    says: /other arguments/,
    decision: 'deny',
    outcomes: ['not_executed'],
  },
  {
    name: 'read_ledger',
    args: {},
    told: 'answer',
    says: /gate aplicado/,
    decision: 'allow',
    outcomes: ['observed'],
  },
  {
    name: 'write_note',
    args: { request_id: 'curto', text: 'x' },
    told: 'refused',
    says: /^arguments denied: write_note$/,
    decision: 'deny',
    outcomes: ['not_executed'],
  },
  {
    name: 'rm_rf',
    args: { path: target },
    told: 'refused',
    says: /^tool denied: rm_rf$/,
    decision: 'deny',
    outcomes: ['not_executed'],
  },
]

type Stage = (typeof WAYS)[number] & (typeof ERAS)[number]

/** Walks once. Resolves with a line a step; rejects at the first deviation. */
async function walk(stage: Stage): Promise<readonly string[]> {
  const dir = mkdtempSync(join(tmpdir(), 'gated-fs-walk-'))
  const client = await connect(stage, dir)
  try {
    assert.equal(client.getNegotiatedProtocolVersion(), stage.era)
    const { tools } = await client.listTools()
    assert.deepEqual(tools.map((tool) => tool.name).toSorted(), ['read_ledger', 'write_note'])

    const target = join(dir, 'ledger', 'scratch', 'precious')
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, 'still here')
    const before = stateOf(target)
    const lines: string[] = []
    for (const step of stepsWith(target)) {
      lines.push(await take(client, step, join(dir, stage.audit, 'audit.jsonl')))
    }
    assert.deepEqual(stateOf(target), before)
    assert.deepEqual(notesIn(join(dir, 'ledger', 'notes')), [NOTE])
    return lines
  } finally {
    await client.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

async function connect({ mode, args }: Stage, dir: string): Promise<Client> {
  const client = new Client({ name: 'walk', version: '1.0.0' }, { versionNegotiation: { mode } })
  const path = `${join(ROOT, 'node_modules', '.bin')}${delimiter}${process.env['PATH'] ?? ''}`
  const env = { PATH: path, LEDGER_DIR: join(dir, 'ledger'), ECLUSA_STATE: join(dir, 'state') }
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...args],
    env,
    stderr: 'ignore',
  })
  await client.connect(transport)
  return client
}

async function take(client: Client, step: Step, audit: string): Promise<string> {
  const { name, args } = step
  const told = await ask(client, name, args)
  assert.equal(told.kind, step.told, `${name}: ${told.text}`)
  assert.match(told.text, step.says)
  const record = lastRecord(audit)
  assert.equal(record.name, name)
  assert.equal(record.decision, step.decision)
  assert.ok(step.outcomes.includes(record.outcome), `${name} is recorded ${record.outcome}`)
  const cells = [name.padEnd(12), told.kind.padEnd(8), record.decision.padEnd(6)]
  return [...cells, record.outcome.padEnd(13), told.text.slice(0, 60)].join(' ')
}

async function ask(client: Client, name: string, args: Record<string, unknown>): Promise<Told> {
  try {
    const result = await client.callTool({ name, arguments: args })
    const text = result.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
    return { kind: result.isError === true ? 'failure' : 'answer', text }
  } catch (error) {
    assert.ok(error instanceof Error && 'code' in error)
    assert.equal(error.code, -32602)
    return { kind: 'refused', text: error.message }
  }
}

function lastRecord(audit: string): z.infer<typeof RECORD> {
  const last = readFileSync(audit, 'utf8').trimEnd().split('\n').at(-1)
  return RECORD.parse(JSON.parse(last ?? '{}'))
}

/** Four signs that a file was touched. */
function stateOf(path: string): readonly unknown[] {
  if (!existsSync(path)) return ['missing']
  const { size, mtimeNs } = lstatSync(path, { bigint: true })
  return [size, mtimeNs, createHash('sha256').update(readFileSync(path)).digest('hex')]
}

const notesIn = (dir: string): unknown[] =>
  readdirSync(dir).map((name): unknown => JSON.parse(readFileSync(join(dir, name), 'utf8')))

async function main(): Promise<void> {
  const stages = WAYS.flatMap((way) => ERAS.map((era) => ({ ...way, ...era })))
  for (const stage of stages) {
    const lines = await walk(stage)
    console.log([`gate ${stage.way}, ${stage.era}`, ...lines].join('\n  '))
  }
}

main().catch((error: unknown) => {
  console.error(error)
  process.exitCode = 1
})
