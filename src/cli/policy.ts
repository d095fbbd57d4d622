// The verbs about policy: check a file, say what its rules make of a call, and look behind a record.

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { type Call, type Kind, type Method, qualified } from '../call.ts'
import type { Facts } from '../decision.ts'
import { EXIT, Fault } from '../fault.ts'
import { isObject, type JsonObject, object, parseText, REQUEST_LIMITS } from '../json.ts'
import { type Config, loadConfig, policyReference } from '../policy/config.ts'
import { declared } from '../policy/decide.ts'
import { faultLine, type Source } from '../policy/position.ts'
import type { PolicySet } from '../policy/set.ts'
import { readsArguments, trace } from '../policy/trace.ts'
import { openReader, type Reader } from '../store/reader.ts'
import type { Io } from './io.ts'
import { lookup, readBeside, readSource, stateFor } from './place.ts'
import { originOf } from './policy-origin.ts'
import {
  argumentsMatch,
  isCut,
  type Recorded,
  recordedCall,
  seenDefinition,
} from './policy-record.ts'
import { type Ground, type Line, placeText } from './policy-ground.ts'
import { stepsFor } from './policy-step.ts'
import { agreement, findingLines } from './policy-words.ts'
import { summary, visible } from './record.ts'

/** `policy check FILE [--json]`: every fault and warning, one a line, `file:line:column`. Exit 0 when the
 *  program would start with it, 1 when not. */
export async function policyCheck(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false } },
  })
  const loaded = await load(only(positionals, 'policy check FILE'), io)
  const faults = loaded.kind === 'faults' ? loaded.faults : loaded.warnings
  for (const fault of faults)
    io.out(values.json ? JSON.stringify(fault) : visible(faultLine(fault)))
  const errors = faults.filter((fault) => fault.level === 'error').length
  io.err(`eclusa: ${errors} error(s), ${faults.length - errors} warning(s)`)
  return loaded.kind === 'faults' ? EXIT.finding : EXIT.ok
}

const EXPLAIN = 'policy explain FILE --profile P --tool UPSTREAM/TOOL [--args FILE|-] [--set k=v]'

/** `policy explain FILE --profile P --tool UPSTREAM/TOOL [--args FILE|-] [--definition FILE] [--set k=v]`:
 *  what each rule makes of a call; `--resource URI` or `--prompt UPSTREAM/PROMPT` in place of a tool. Without `--definition` (a tool as its server lists it, in JSON) the
 *  server's own schema is taken to fit anything. Exit 0 = allow, 1 = deny. */
export async function policyExplain(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      profile: { type: 'string' },
      tool: { type: 'string' },
      resource: { type: 'string' },
      prompt: { type: 'string' },
      args: { type: 'string' },
      definition: { type: 'string' },
      key: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
    },
  })
  const file = only(positionals, EXPLAIN)
  const loaded = await load(file, io)
  if (loaded.kind === 'faults') {
    for (const fault of loaded.faults) io.err(visible(faultLine(fault)))
    return EXIT.finding
  }
  const set = loaded.config.policy
  const client = declared(set, values.profile ?? null, pairs(values.set))
  if ('kind' in client) {
    throw usage(`name a profile with --profile: ${client.profiles.join(', ')}`)
  }
  const call: Call = {
    ...callOf(loaded.config, set, targetOf(values)),
    client,
    args: values.args === undefined ? object({}) : readObject(values.args, io),
    key: values.key ?? null,
  }
  const value = values.definition === undefined ? ANYTHING : readObject(values.definition, io)
  const facts: Facts = { definition: { hash: 'given', value }, pin: 'approved' }
  const origin = { kind: 'file', file: resolve(io.cwd, file), sources: loaded.sources } as const
  const bare = { recorded: null, pins: [], seen: null, cut: false } as const
  return told({ call, set, facts, origin, io, ...bare })
}

async function told(ground: Ground): Promise<number> {
  const { call, set, facts, io } = ground
  const { decision, findings } = trace(call, set, facts)
  for (const line of findingLines(findings, (rule) => placeText(set, rule))) io.out(visible(line))
  if (decision.effect === 'allow') {
    io.out('allow')
    return EXIT.ok
  }
  const [first] = decision.failures
  io.out(visible(`deny: ${first.code}`))
  const lines = await stepsFor(ground, first)
  for (const [index, line] of lines.entries()) io.err(lineText(line, index === 0 ? 'eclusa: ' : ''))
  return EXIT.finding
}

/** Words are made safe for a terminal; a command already is, and must stay what a shell reads. */
const lineText = ({ kind, text }: Line, prefix = ''): string =>
  kind === 'command' ? `  ${text}` : visible(`${prefix}${text}`)

/** `explain SEQ [--state DIR] [--config FILE]`: the rule, its line and the field behind a record, and what
 *  would allow it: a command where one can, else the line to write and the command that proves it. */
export async function explain(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { state: { type: 'string' }, config: { type: 'string' } },
  })
  const seq = seqOf(positionals, 'explain SEQ [--config FILE]')
  return reading(values.state, io, async (reader, dir) => {
    const recorded = await recordedCall(reader, seq, lookup(io))
    const { entry, set, call, facts, failures } = recorded
    const origin = originOf(set.text, { dir, config: values.config }, io)
    const place = (rule: string): string => placeText(set, rule, origin.sources)
    io.out(summary(entry))
    if (entry.decision !== 'deny' || entry.code === null) {
      io.out(visible(`allowed by ${entry.rule ?? 'no rule'}  ${place(entry.rule ?? '')}`))
      return EXIT.ok
    }
    for (const failure of failures) {
      const field = failure.field === null ? '' : `  field ${failure.field}`
      io.out(visible(`${failure.rule}  ${place(failure.rule)}${field}`))
    }
    const tool = call.target === null ? null : qualified(call.target)
    const seen = tool === null ? null : seenDefinition(reader, tool)
    const cut = isCut(entry)
    const base = { call, facts, set, origin, io, seen, cut }
    const ground: Ground = { ...base, recorded: { seq, dir }, pins: reader.pins() }
    const lines = await Promise.all(failures.map((failure) => stepsFor(ground, failure)))
    // Several rules may ask for the same step.
    for (const line of new Set(lines.flat().map((one) => lineText(one)))) io.out(line)
    return EXIT.ok
  })
}

/** `audit redecide SEQ [--args FILE|-] [--set k=v] [--state DIR]`: decides a recorded call again from its
 *  entry, its recorded facts and policy, and the arguments, which the record's digest proves. Exit 0 when
 *  the decision is the recorded one, 1 when it is not. */
export async function redecide(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      args: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
      state: { type: 'string' },
    },
  })
  const seq = seqOf(positionals, 'audit redecide SEQ [--args FILE]')
  return reading(values.state, io, async (reader) => {
    const recorded = await recordedCall(reader, seq, lookup(io))
    const { set, facts } = recorded
    const given = values.args === undefined ? null : readObject(values.args, io)
    const call = withArguments(reader, recorded, given)
    const client = {
      ...call.client,
      attributes: { ...call.client.attributes, ...pairs(values.set) },
    }
    const { decision, findings } = trace({ ...call, client }, set, facts)
    for (const line of findingLines(findings, (rule) => placeText(set, rule))) io.out(visible(line))
    const { agrees, words } = agreement(recorded.entry, decision)
    io.out(visible(words))
    return agrees ? EXIT.ok : EXIT.finding
  })
}

/** The recorded call with its arguments: those given, once the digest has proved them; none where the
 *  decision read none. */
function withArguments(reader: Reader, recorded: Recorded, given: JsonObject | null): Call {
  const { call, set, facts, entry } = recorded
  if (given !== null) {
    if (argumentsMatch(reader, entry, given)) return { ...call, args: given }
    throw usage(`these are not the arguments of record ${entry.seq}; give them as they were sent`)
  }
  if (!readsArguments(call, set, facts) || argumentsMatch(reader, entry, call.args)) return call
  throw usage(`the decision of record ${entry.seq} read its arguments; give them with --args FILE`)
}

type Loaded = Awaited<ReturnType<typeof loadConfig>> & { readonly sources: readonly Source[] }

async function load(path: string, io: Io): Promise<Loaded> {
  const main = readSource(path, io.cwd)
  const values = lookup(io)
  const reference = policyReference(main, values)
  const policy = reference === null ? null : readBeside(reference, main.file)
  const loaded = await loadConfig(main, policy, values)
  return { ...loaded, sources: policy === null ? [main] : [main, policy] }
}

const usage = (sentence: string): Fault => new Fault('usage', sentence)

function only(positionals: readonly string[], form: string): string {
  const [path, ...more] = positionals
  if (path === undefined || more.length > 0) throw usage(`use: eclusa ${form}`)
  return path
}

function seqOf(positionals: readonly string[], form: string): number {
  const text = only(positionals, form)
  if (!/^(?:0|[1-9][0-9]{0,14})$/.test(text)) throw usage(`use: eclusa ${form}`)
  return Number(text)
}

function pairs(list: readonly string[]): Readonly<Record<string, string>> {
  const made = new Map<string, string>()
  for (const one of list) {
    const at = one.indexOf('=')
    if (at < 1) throw usage(`--set ${one}: write --set NAME=VALUE`)
    made.set(one.slice(0, at), one.slice(at + 1))
  }
  return Object.fromEntries(made)
}

/** A JSON object from a file, or from stdin where the path is `-`. */
function readObject(path: string, io: Io): JsonObject {
  const text = path === '-' ? readFileSync(0, 'utf8') : readSource(path, io.cwd).text
  const parsed = parseText(text, REQUEST_LIMITS)
  if (parsed.kind === 'json' && isObject(parsed.value)) return parsed.value
  throw usage(`${path} does not hold one strict JSON object; put it there as it was sent`)
}

const ANYTHING: JsonObject = object({
  inputSchema: object({ type: 'object', additionalProperties: true }),
})

type Named = { readonly kind: Kind; readonly name: string }

function targetOf(values: {
  readonly tool?: string | undefined
  readonly resource?: string | undefined
  readonly prompt?: string | undefined
}): Named {
  const { tool, resource, prompt } = values
  const given = Object.entries({ tool, resource, prompt }).flatMap(([kind, name]) =>
    name === undefined ? [] : [{ kind, name }],
  )
  const [one, ...more] = given
  const kind = KINDS.find((each) => each === one?.kind)
  if (one === undefined || kind === undefined || more.length > 0) {
    throw usage(`use: eclusa ${EXPLAIN}, or --resource URI or --prompt UPSTREAM/PROMPT`)
  }
  return { kind, name: one.name }
}

const KINDS: readonly Kind[] = ['tool', 'resource', 'prompt']
const METHODS = {
  tool: 'tools/call',
  resource: 'resources/read',
  prompt: 'prompts/get',
} as const satisfies Readonly<Record<Kind, Method>>

function callOf(
  config: Config,
  set: PolicySet,
  { kind, name: whole }: Named,
): Omit<Call, 'client' | 'args' | 'key'> {
  const slash = kind === 'resource' ? -1 : whole.indexOf('/')
  const [first = { name: 'server' }, ...others] = config.upstreams
  const single = config.upstreams.length === 1
  if (kind !== 'resource' && slash < 0 && !single && (set.qualified || others.length > 0)) {
    throw usage(`--${kind} is UPSTREAM/NAME`)
  }
  const upstream = slash < 0 ? first.name : whole.slice(0, slash)
  const name = whole.slice(slash + 1)
  return {
    method: METHODS[kind],
    asked: name,
    target: { kind, upstream, name },
    params: object({}),
    capabilities: object({}),
    retry: null,
    task: null,
    transport: 'library',
    trace: null,
    receivedUs: 0,
  }
}

async function reading(
  state: string | undefined,
  io: Io,
  work: (reader: Reader, dir: string) => Promise<number>,
): Promise<number> {
  const dir = stateFor(state, io)
  io.err(`eclusa: state directory ${dir}`)
  const reader = openReader(dir)
  try {
    return await work(reader, dir)
  } finally {
    reader.close()
  }
}
