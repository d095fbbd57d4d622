// A recorded call as policy saw it: the call, the facts and the policy text behind one record.

import type { Call, Identity, Method, Target, Transport } from '../call.ts'
import { canonical, hmac256 } from '../canonical.ts'
import type { Code, Facts, Failure } from '../decision.ts'
import { Fault } from '../fault.ts'
import { isObject, type JsonObject, object, parseText, UPSTREAM_LIMITS } from '../json.ts'
import type { Entry } from '../ledger/entry.ts'
import { parseEntry } from '../ledger/parse.ts'
import { loadPolicy } from '../policy/config.ts'
import { faultLine, type Lookup } from '../policy/position.ts'
import type { PolicySet } from '../policy/set.ts'
import type { Reader } from '../store/reader.ts'
import { textOf } from './record.ts'

/** What one record says of a decision. `call.args` is empty: arguments are not in the ledger. */
export type Recorded = {
  readonly entry: Entry
  readonly call: Call
  readonly facts: Facts
  readonly set: PolicySet
  readonly failures: readonly Failure[]
}

/** The decision behind record `seq`. Errors: `Fault('usage')` for a record that holds none;
 *  `Fault('state_tampered')` for one that cannot be read or whose policy or definition is gone. */
export async function recordedCall(reader: Reader, seq: number, lookup: Lookup): Promise<Recorded> {
  const entry = entryAt(reader, seq)
  const method = METHODS.find((one) => one === entry.method)
  if (method === undefined || (entry.kind !== 'call' && entry.kind !== 'intent')) {
    throw new Fault(
      'usage',
      `record ${seq} holds no decision on a call; choose one of kind call or intent`,
    )
  }
  const set = await policyOf(reader, entry, lookup)
  const text = (member: string): string | null => textOf(entry, member)
  const profile = text('profile') ?? ''
  const asked = text('name') ?? ''
  const key = text('request_id')
  const call: Call = {
    method,
    client: {
      name: text('client') ?? profile,
      profile,
      identity: IDENTITIES.find((one) => one === entry.identity) ?? 'unknown',
      attributes: attributesOf(text('attributes')),
    },
    asked,
    target: targetOf(method, text('upstream'), text('target') ?? asked),
    args: object({}),
    params: object({}),
    capabilities: object({}),
    retry: null,
    task: null,
    key: key === 'missing' || key === 'observe' ? null : key,
    transport: TRANSPORTS.find((one) => one === entry.transport) ?? 'stdio',
    trace: null,
    receivedUs: entry.ts,
  }
  return { entry, call, facts: factsOf(reader, entry), set, failures: failuresOf(entry) }
}

/** True when the record does not hold the whole name of what was called. */
export const isCut = (entry: Entry): boolean =>
  entry['name_cut'] !== undefined || entry['target_cut'] !== undefined

/** The definition of a tool that this ledger saw last, or null: of a tool that was never allowed nothing is
 *  kept. `tool`: `upstream/tool`. */
export function seenDefinition(reader: Reader, tool: string): JsonObject | null {
  const pin = reader.pins().find((one) => one.tool === tool)
  const hash = pin?.waiting ?? pin?.hash ?? null
  const text = hash === null ? null : reader.definitionText(hash)
  return text === null ? null : parsed(text)
}

/** True when the digest of the record is that of these arguments. */
export function argumentsMatch(reader: Reader, entry: Entry, args: JsonObject): boolean {
  if (entry.segment === null || entry.args_digest === null) return false
  return hmac256(reader.segmentKey(entry.segment), canonical(args)) === entry.args_digest
}

const METHODS: readonly Method[] = [
  'tools/call',
  'resources/read',
  'prompts/get',
  'completion/complete',
  'resources/subscribe',
  'tasks/get',
  'tasks/update',
  'tasks/cancel',
]
const TRANSPORTS: readonly Transport[] = ['stdio', 'http', 'library']
const IDENTITIES: readonly Identity[] = ['token', 'declared', 'anonymous', 'unknown']
const PINS: readonly Facts['pin'][] = ['none', 'new', 'approved', 'waits', 'changed']

const tampered = (seq: number, why: string): Fault =>
  new Fault('state_tampered', `record ${seq}: ${why}; run: eclusa audit verify`)

function entryAt(reader: Reader, seq: number): Entry {
  const line = reader.entry(seq)
  if (line === null) throw new Fault('usage', `there is no record ${seq}; run: eclusa audit tail`)
  const entry = parseEntry(line)
  if (entry.kind === 'problem') throw tampered(seq, entry.why)
  return entry
}

async function policyOf(reader: Reader, entry: Entry, lookup: Lookup): Promise<PolicySet> {
  const text = entry.policy === null ? null : reader.policyText(entry.policy)
  if (text === null) throw tampered(entry.seq, 'its policy is not in the ledger')
  const loaded = await loadPolicy(text, lookup)
  if (loaded.kind === 'policy') {
    if (loaded.policy.digest === entry.policy) return loaded.policy
    throw tampered(entry.seq, 'the policy in the ledger has another digest')
  }
  const [first] = loaded.faults
  const why = first === undefined ? 'it cannot be read' : faultLine(first)
  throw new Fault('usage', `the policy of record ${entry.seq} cannot be used here: ${why}`)
}

function targetOf(method: Method, upstream: string | null, name: string): Target | null {
  if (upstream === null) return null
  if (method === 'tools/call' || method.startsWith('tasks/'))
    return { kind: 'tool', upstream, name }
  if (method === 'prompts/get') return { kind: 'prompt', upstream, name }
  if (method === 'resources/read' || method === 'resources/subscribe')
    return { kind: 'resource', upstream, name }
  return { kind: /^[a-z][a-z0-9+.-]*:/i.test(name) ? 'resource' : 'prompt', upstream, name }
}

function attributesOf(text: string | null): Readonly<Record<string, string>> {
  const value = text === null ? null : parsed(text)
  if (value === null) return {}
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]) => (typeof one === 'string' ? [[key, one]] : [])),
  )
}

function parsed(text: string): JsonObject | null {
  const made = parseText(text, UPSTREAM_LIMITS)
  return made.kind === 'json' && isObject(made.value) ? made.value : null
}

function factsOf(reader: Reader, entry: Entry): Facts {
  const hash = entry.facts === null ? null : entry.facts['definition']
  const pin = PINS.find((one) => one === entry.facts?.['pin']) ?? 'none'
  if (typeof hash !== 'string') return { definition: null, pin }
  const text = reader.definitionText(hash)
  const value = text === null ? null : parsed(text)
  if (value === null) throw tampered(entry.seq, 'its definition is not in the ledger')
  return { definition: { hash, value }, pin }
}

/** The failed checks; a record names them all when there are several, else in `code` and `rule`. */
function failuresOf(entry: Entry): readonly Failure[] {
  if (entry.code === null) return []
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by this program from the list
  const code = entry.code as Code
  const bare = { code, reason: null, message: null }
  if (entry.failures.length === 0) {
    return [{ ...bare, rule: textOf(entry, 'rule') ?? code, field: null }]
  }
  return entry.failures.map((one) => ({
    ...bare,
    rule: textOf(one, 'rule') ?? code,
    field: textOf(one, 'field'),
  }))
}
