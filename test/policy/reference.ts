// The decision once more: slow, over the raw document, written from the documents and not from src/policy.

import { Environment } from '@marcbachmann/cel-js'

import type { Call } from '../../src/call.ts'
import { canonical } from '../../src/canonical.ts'
import type { Facts } from '../../src/decision.ts'
import { isExact, isObject, type Json, type JsonObject } from '../../src/json.ts'

/** What the reference says. A check that both does not fit and reads a number that is not exact may be told
 *  as either, so each failure lists the codes that are right for it. */
export type Verdict =
  | {
      readonly effect: 'allow'
      readonly rule: string
      readonly does: string
      readonly args: string
      readonly key: string | null
      readonly honoured: boolean
    }
  | {
      readonly effect: 'deny'
      readonly failures: readonly (readonly [codes: readonly string[], rule: string])[]
    }

const get = (value: Json | undefined, ...path: readonly string[]): Json | undefined => {
  let at: Json | undefined = value
  for (const key of path) at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined
  return at
}
const list = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : [])
const escape = (name: string): string => name.split('~').join('~0').split('/').join('~1')

/** Ancestors first. */
function chain(
  policy: Json,
  name: string,
): readonly { readonly name: string; readonly profile: JsonObject }[] {
  const profile = get(policy, 'profiles', name)
  if (!isObject(profile)) return []
  const parent = profile['extends']
  return [...(typeof parent === 'string' ? chain(policy, parent) : []), { name, profile }]
}

type Listed = { readonly text: string; readonly path: string }

const entries = (policy: Json, name: string, key: string): readonly Listed[] =>
  chain(policy, name).flatMap((one) =>
    list(one.profile[key]).map((text, at) => ({
      text: String(text),
      path: `/profiles/${one.name}/${key}/${at}`,
    })),
  )

const nearest = (policy: Json, name: string, key: string): Json | undefined =>
  chain(policy, name).findLast((one) => one.profile[key] !== undefined)?.profile[key]

function find(
  all: readonly Listed[],
  tool: string,
): { readonly path: string; readonly exact: boolean } | null {
  const [upstream] = tool.split('/')
  const exact = all.find((one) => one.text === tool)
  if (exact !== undefined) return { path: exact.path, exact: true }
  const pattern =
    all.find((one) => one.text === `${upstream}/*`) ?? all.find((one) => one.text === '*')
  return pattern === undefined ? null : { path: pattern.path, exact: false }
}

/** Decides as docs/policy.md says. */
export function referenceDecide(policy: Json, call: Call, facts: Facts): Verdict {
  const deny = (...failures: (readonly [readonly string[], string])[]): Verdict => ({
    effect: 'deny',
    failures,
  })
  const who = call.client.profile
  if (call.client.identity === 'unknown' || chain(policy, who).length === 0)
    return deny([['client_unknown'], 'client'])
  const tool = `${call.target?.upstream}/${call.target?.name}`
  const denied = find(entries(policy, who, 'deny'), tool)
  if (denied !== null) return deny([['tool_denied'], denied.path])
  const allowed = find(entries(policy, who, 'allow'), tool)
  if (allowed === null) return deny([['tool_denied'], `/profiles/${who}/allow`])
  const contract = get(policy, 'tools', tool)
  const path = `/tools/${escape(tool)}`
  if (get(contract, 'effect') === 'destructive') {
    if (!allowed.exact) return deny([['tool_denied'], `${path}/effect`])
    if (get(nearest(policy, who, 'approve'), tool) !== 'none')
      return deny([['tool_denied'], `/profiles/${who}/approve`])
  }
  if (facts.definition === null) return deny([['tool_unknown'], 'definition'])
  if (facts.pin === 'changed') return deny([['definition_changed'], 'definition'])
  const fresh = facts.pin === 'new' && allowed.exact && get(policy, 'pins') !== 'strict'
  if (facts.pin !== 'approved' && !fresh) return deny([['definition_waits'], 'definition'])
  return decideArguments({ policy, call, facts, tool, who, path, contract, rule: allowed.path })
}

type Case = {
  readonly policy: Json
  readonly call: Call
  readonly facts: Facts
  readonly tool: string
  readonly who: string
  readonly path: string
  readonly contract: Json | undefined
  readonly rule: string
}

function decideArguments(of: Case): Verdict {
  const { policy, call, facts, tool, who, path, contract } = of
  const failures: (readonly [readonly string[], string])[] = []
  const owner = chain(policy, who).findLast((one) => one.profile['set'] !== undefined)
  const pinned = get(owner?.profile['set'], tool)
  const args: Record<string, Json> = { ...call.args } as Record<string, Json>
  const setFailures: (readonly [readonly string[], string])[] = []
  for (const [name, value] of Object.entries(isObject(pinned) ? pinned : {})) {
    const place = `/profiles/${owner?.name}/set/${escape(tool)}/${escape(name)}`
    if (Object.hasOwn(call.args, name)) setFailures.push([['arguments_denied'], place])
    args[name] = value ?? null
  }
  const codes = (code: string, misfit: boolean, inexact: boolean): readonly string[] => [
    ...(misfit ? [code] : []),
    ...(inexact ? ['number_not_exact'] : []),
  ]

  const schema = get(contract, 'args')
  if (schema !== undefined) {
    const found = fits(schema, args as JsonObject, false)
    if (found.misfit || found.inexact)
      failures.push([codes('arguments_denied', found.misfit, found.inexact), `${path}/args`])
  }
  failures.push(...setFailures)
  const rules = chain(policy, who).flatMap((one) =>
    list(one.profile['rules']).map((rule, at) => ({
      rule,
      place: `/profiles/${one.name}/rules/${at}`,
    })),
  )
  const mine = rules.filter(
    ({ rule }) => find([{ text: String(get(rule, 'tool')), path: '' }], tool) !== null,
  )
  if (schema !== undefined || mine.length > 0) {
    const found = fits(facts.definition?.value['inputSchema'] ?? null, args as JsonObject, true)
    if (found.misfit || found.inexact)
      failures.push([codes('arguments_invalid', found.misfit, found.inexact), 'inputSchema'])
  }
  for (const { rule, place } of mine) {
    const when = get(rule, 'when')
    const applies =
      when === undefined ? { value: true, inexact: false } : cel(String(when), args, call, facts)
    if (applies.value === false && !applies.inexact) continue
    const holds =
      applies.value === true && !applies.inexact
        ? cel(String(get(rule, 'require')), args, call, facts)
        : applies
    if (holds.inexact) failures.push([['number_not_exact'], place])
    else if (holds.value !== true || applies.value !== true)
      failures.push([['arguments_denied'], place])
  }
  const key = keyOf(contract, args as JsonObject, call.key)
  if (key.code !== null)
    failures.push([[key.code], get(contract, 'key') === undefined ? 'key' : `${path}/key`])
  if (failures.length > 0) return { effect: 'deny', failures }
  return {
    effect: 'allow',
    rule: of.rule,
    does: does(contract, facts),
    args: canonical(args as JsonObject),
    key: key.key,
    honoured: key.honoured,
  }
}

function does(contract: Json | undefined, facts: Facts): string {
  const effect = String(get(contract, 'effect') ?? 'undeclared')
  const hint = get(facts.definition?.value, 'annotations')
  const contradicted = get(hint, 'readOnlyHint') === false || get(hint, 'destructiveHint') === true
  return effect === 'read' && contradicted ? 'undeclared' : effect
}

function keyOf(
  contract: Json | undefined,
  args: JsonObject,
  sent: string | null,
): { key: string | null; code: string | null; honoured: boolean } {
  const wanted = get(contract, 'key')
  const at = get(wanted, 'at')
  const found = typeof at === 'string' ? get(args, at.slice(1)) : undefined
  let text: Json = sent
  let honoured = false
  if (found !== undefined && found !== null) {
    const number = isExact(found) ? exactValue(found.rawJSON) : found
    if (number === null) return { key: null, code: 'number_not_exact', honoured: false }
    text = typeof number === 'number' && Number.isInteger(number) ? String(number) : number
    honoured = get(wanted, 'honoured') === true
  }
  if (text === null)
    return { key: null, code: wanted === undefined ? null : 'key_missing', honoured: false }
  const good =
    typeof text === 'string' &&
    text.length >= 1 &&
    text.length <= 200 &&
    [...text].every((one) => one >= ' ' && one <= '~')
  return good
    ? { key: String(text), code: null, honoured }
    : { key: null, code: 'key_invalid', honoured: false }
}

/** The number a source means when a double holds it, by integer arithmetic; null otherwise. */
function exactValue(source: string): number | null {
  const value = Number(source)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER && Number.isInteger(value)) return null
  const scaled = (text: string): { readonly digits: bigint; readonly scale: number } => {
    const [mantissa = '', power = '0'] = text.toLowerCase().split('e')
    const [whole = '', fraction = ''] = mantissa.split('.')
    return { digits: BigInt(whole + fraction), scale: Number(power) - fraction.length }
  }
  const a = scaled(source)
  const b = scaled(String(value))
  const low = Math.min(a.scale, b.scale)
  const up = (one: { readonly digits: bigint; readonly scale: number }): bigint =>
    one.digits * 10n ** BigInt(one.scale - low)
  return up(a) === up(b) ? value + 0 : null
}

/** An interpreter of the keywords that the generator uses. */
function fits(schema: Json, value: Json, closed: boolean): { misfit: boolean; inexact: boolean } {
  if (!isObject(schema)) return { misfit: true, inexact: false }
  const found = { misfit: false, inexact: false }
  const walk = (one: Json, given: Json, top: boolean): void => {
    if (!isObject(one) || Object.keys(one).every((key) => key === 'default')) return
    let plain: Json = given
    if (isExact(given)) {
      const number = exactValue(given.rawJSON)
      if (number === null) {
        found.inexact = true
        return
      }
      plain = number
    }
    const type = one['type']
    if (typeof type === 'string' && !isType(plain, type)) found.misfit = true
    if (typeof plain === 'string') {
      const length = [...plain].length
      if (length < Number(one['minLength'] ?? 0) || length > Number(one['maxLength'] ?? Infinity))
        found.misfit = true
    }
    if (typeof plain === 'number' && plain > Number(one['maximum'] ?? Infinity)) found.misfit = true
    if (
      one['enum'] !== undefined &&
      !list(one['enum']).some((each) => canonical(each) === canonical(plain))
    )
      found.misfit = true
    if (Array.isArray(plain) && one['items'] !== undefined)
      for (const item of plain as readonly Json[]) walk(one['items'], item, false)
    if (!isObject(plain)) return
    for (const name of list(one['required']))
      if (plain[String(name)] === undefined) found.misfit = true
    for (const [name, member] of Object.entries(plain)) {
      const declared = get(one['properties'], name)
      if (declared !== undefined) walk(declared, member ?? null, false)
      else if (one['additionalProperties'] === false) found.misfit = true
      else if (
        closed &&
        one['additionalProperties'] === undefined &&
        (top || one['properties'] !== undefined)
      )
        found.misfit = true
    }
  }
  walk(schema, value, true)
  // `required` looks at the members it names.
  const named = list(schema['required']).map((name) => get(value, String(name)))
  if (named.some((one) => isExact(one) && exactValue(one.rawJSON) === null)) found.inexact = true
  return found
}

function isType(value: Json, type: string): boolean {
  if (type === 'integer') return typeof value === 'number' && Number.isInteger(value)
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  return typeof value === type
}

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  homogeneousAggregateLiterals: false,
})

/** What another implementation of CEL makes of an expression; undefined for an error. */
function cel(
  text: string,
  args: Readonly<Record<string, Json>>,
  call: Call,
  facts: Facts,
): { value: unknown; inexact: boolean } {
  const state = { inexact: false }
  const lift = (value: Json): unknown => {
    if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : value
    if (Array.isArray(value)) return (value as readonly Json[]).map(lift)
    if (!isObject(value)) return value
    const made: Record<string, unknown> = {}
    for (const [key, one] of Object.entries(value)) {
      const number = isExact(one) ? exactValue(one.rawJSON) : null
      if (isExact(one) && number === null) {
        Object.defineProperty(made, key, {
          enumerable: true,
          get: () => void (state.inexact = true),
        })
      } else made[key] = lift(isExact(one) ? number : (one ?? null))
    }
    return made
  }
  const context = {
    args: lift(args as JsonObject),
    client: {
      name: call.client.name,
      profile: call.client.profile,
      attributes: { ...call.client.attributes },
    },
    facts: { definition: facts.definition?.hash ?? null, pin: facts.pin },
  }
  try {
    const value: unknown = environment.evaluate(text, context)
    return { value, inexact: state.inexact }
  } catch {
    return { value: undefined, inexact: state.inexact }
  }
}
