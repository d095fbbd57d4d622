// The verbs about policy: check a file, say what its rules make of a call, and look behind a record.

import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import type { Call } from '../call.ts'
import type { Facts } from '../decision.ts'
import { EXIT, Fault } from '../fault.ts'
import { isObject, type JsonObject, object, parseText, REQUEST_LIMITS } from '../json.ts'
import { type Config, loadConfig, policyReference } from '../policy/config.ts'
import { declared } from '../policy/decide.ts'
import { faultLine } from '../policy/position.ts'
import type { PolicySet } from '../policy/set.ts'
import { readsArguments, trace } from '../policy/trace.ts'
import { openReader, type Reader } from '../store/reader.ts'
import type { Io } from './io.ts'
import { lookup, readBeside, readSource, stateFor } from './place.ts'
import { agreement, findingLines, nextStep, placeText } from './policy-words.ts'
import { argumentsMatch, type Recorded, recordedCall } from './policy-record.ts'
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
 *  what each rule makes of a call. Without `--definition` (a tool as its server lists it, in JSON) the
 *  server's own schema is taken to fit anything. Exit 0 = allow, 1 = deny. */
export async function policyExplain(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      profile: { type: 'string' },
      tool: { type: 'string' },
      args: { type: 'string' },
      definition: { type: 'string' },
      key: { type: 'string' },
      set: { type: 'string', multiple: true, default: [] },
    },
  })
  const loaded = await load(only(positionals, EXPLAIN), io)
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
    ...toolCall(loaded.config, set, values.tool),
    client,
    args: values.args === undefined ? object({}) : readObject(values.args, io),
    key: values.key ?? null,
  }
  const value = values.definition === undefined ? ANYTHING : readObject(values.definition, io)
  return told(call, set, { definition: { hash: 'given', value }, pin: 'approved' }, io)
}

function told(call: Call, set: PolicySet, facts: Facts, io: Io): number {
  const { decision, findings } = trace(call, set, facts)
  for (const line of findingLines(set, findings)) io.out(visible(line))
  if (decision.effect === 'allow') {
    io.out('allow')
    return EXIT.ok
  }
  const [first] = decision.failures
  io.out(visible(`deny: ${first.code}`))
  io.err(visible(`eclusa: ${nextStep(set, call, first)}`))
  return EXIT.finding
}

/** `explain SEQ [--state DIR]`: the rule, its line and the field behind a record, and what would allow it. */
export async function explain(args: string[], io: Io): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { state: { type: 'string' } },
  })
  const seq = seqOf(positionals, 'explain SEQ')
  return reading(values.state, io, async (reader) => {
    const recorded = await recordedCall(reader, seq, lookup(io))
    const { entry, set, call } = recorded
    io.out(summary(entry))
    if (entry.decision !== 'deny' || entry.code === null) {
      io.out(visible(`allowed by ${entry.rule ?? 'no rule'}  ${placeText(set, entry.rule ?? '')}`))
      return EXIT.ok
    }
    for (const failure of recorded.failures) {
      const field = failure.field === null ? '' : `  field ${failure.field}`
      io.out(visible(`${failure.rule}  ${placeText(set, failure.rule)}${field}`))
    }
    const [first] = recorded.failures
    if (first !== undefined) io.out(visible(nextStep(set, call, first)))
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
    for (const line of findingLines(set, findings)) io.out(visible(line))
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

type Loaded = Awaited<ReturnType<typeof loadConfig>>

async function load(path: string, io: Io): Promise<Loaded> {
  const main = readSource(path, io.cwd)
  const values = lookup(io)
  const beside = policyReference(main, values)
  return loadConfig(main, beside === null ? null : readBeside(beside, main.file), values)
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

function toolCall(
  config: Config,
  set: PolicySet,
  tool: string | undefined,
): Omit<Call, 'client' | 'args' | 'key'> {
  if (tool === undefined) throw usage(`use: eclusa ${EXPLAIN}`)
  const slash = tool.indexOf('/')
  const [only_ = { name: 'server' }, ...others] = config.upstreams
  if (slash < 0 && (set.qualified || others.length > 0) && config.upstreams.length !== 1) {
    throw usage('--tool is UPSTREAM/TOOL')
  }
  const upstream = slash < 0 ? only_.name : tool.slice(0, slash)
  return {
    method: 'tools/call',
    asked: tool.slice(slash + 1),
    target: { kind: 'tool', upstream, name: tool.slice(slash + 1) },
    params: object({}),
    transport: 'library',
    trace: null,
    receivedUs: 0,
  }
}

async function reading(
  state: string | undefined,
  io: Io,
  work: (reader: Reader) => Promise<number>,
): Promise<number> {
  const dir = stateFor(state, io)
  io.err(`eclusa: state directory ${dir}`)
  const reader = openReader(dir)
  try {
    return await work(reader)
  } finally {
    reader.close()
  }
}
