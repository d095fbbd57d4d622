// What the tests of policy stand on: a loaded policy, a call, and what was decided on it.

import assert from 'node:assert/strict'

import type { Call, Client } from '../../src/call.ts'
import type { Decision, Facts } from '../../src/decision.ts'
import {
  isObject,
  type Json,
  type JsonObject,
  object,
  parseText,
  REQUEST_LIMITS,
} from '../../src/json.ts'
import { type Config, loadConfig } from '../../src/policy/config.ts'
import { decide } from '../../src/policy/decide.ts'
import { type ConfigFault, faultLine, type Lookup } from '../../src/policy/position.ts'
import type { PolicySet } from '../../src/policy/set.ts'

export const NOTHING: Lookup = { env: () => undefined, file: () => undefined }

/** An admitted value of this JSON text. */
export function json(text: string): Json {
  const parsed = parseText(text, REQUEST_LIMITS)
  assert.equal(parsed.kind, 'json', text)
  return parsed.kind === 'json' ? parsed.value : null
}

export function jsonObject(text: string): JsonObject {
  const value = json(text)
  assert.ok(isObject(value), text)
  return value
}

/** The faults of a text as lines, warnings included. */
export async function faultsOf(
  text: string,
  policy: string | null = null,
): Promise<readonly string[]> {
  const loaded = await loadConfig(
    { file: 'e.yaml', text },
    policy === null ? null : { file: 'p.json', text: policy },
    NOTHING,
  )
  const faults: readonly ConfigFault[] = loaded.kind === 'faults' ? loaded.faults : loaded.warnings
  return faults.map(faultLine)
}

export async function configOf(
  text: string,
  policy: string | null = null,
  lookup: Lookup = NOTHING,
): Promise<Config> {
  const loaded = await loadConfig(
    { file: 'e.yaml', text },
    policy === null ? null : { file: 'p.json', text: policy },
    lookup,
  )
  if (loaded.kind === 'faults') assert.fail(loaded.faults.map(faultLine).join('\n'))
  return loaded.config
}

export const policyOf = async (text: string, policy: string | null = null): Promise<PolicySet> =>
  (await configOf(text, policy)).policy

export const client = (
  profile: string,
  attributes: Readonly<Record<string, string>> = {},
): Client => ({
  name: profile,
  profile,
  identity: 'declared',
  attributes,
})

/** A call of `notes/<tool>`; `args` is JSON text. */
export const toolCall = (
  who: Client,
  tool: string,
  args: string,
  key: string | null = null,
): Call => ({
  method: 'tools/call',
  client: who,
  asked: tool,
  target: { kind: 'tool', upstream: 'notes', name: tool },
  args: jsonObject(args),
  params: object({}),
  capabilities: object({}),
  retry: null,
  task: null,
  key,
  transport: 'stdio',
  trace: null,
  receivedUs: 0,
})

let made = 0
/** Facts of an approved tool with this `inputSchema` (JSON text) and these annotations. */
export function approved(
  schema = '{"type":"object","additionalProperties":true}',
  annotations: string | null = null,
): Facts {
  const value = object({
    inputSchema: json(schema),
    annotations: annotations === null ? undefined : json(annotations),
  })
  made++
  return { definition: { hash: `hash ${made}`, value }, pin: 'approved' }
}

/** `allow`, or the codes of a denial in the order in which they are recorded. */
export const codes = (decision: Decision): string =>
  decision.effect === 'allow' ? 'allow' : decision.failures.map((one) => one.code).join(' ')

/** `code rule field` of each failure, or `allow`. */
export const told = (decision: Decision): readonly string[] =>
  decision.effect === 'allow'
    ? ['allow']
    : decision.failures.map((one) => `${one.code} ${one.rule} ${one.field ?? '-'}`)

/** Decides one call of one tool under a policy that allows it, with this contract and these rules (YAML). */
export async function judged(
  parts: { readonly contract?: string; readonly rules?: string; readonly schema?: string },
  args: string,
): Promise<Decision> {
  const set = await policyOf(
    `version: 2
upstreams: { notes: { command: [x] } }
tools: { notes/t: { effect: read, ${parts.contract ?? ''} } }
profiles: { p: { allow: [notes/t], rules: [${parts.rules ?? ''}] } }
`,
  )
  return decide(toolCall(client('p'), 't', args), set, approved(parts.schema))
}
