// The decision once more: slow, over the raw document, written from docs/policy.md and not from src/policy.

import type { Call } from '../../src/call.ts'
import { canonical } from '../../src/canonical.ts'
import type { Facts } from '../../src/decision.ts'
import { isExact, isObject, type Json, type JsonObject, object } from '../../src/json.ts'
import { cel, exactValue, fits, type Found, get, list, word } from './reference-values.ts'

/** One failure. A check that both does not fit and reads a number that is not exact may be told as either,
 *  so `codes` lists those that are right. */
export type Refused = { readonly codes: readonly string[]; readonly rule: string }

export type Verdict =
  | {
      readonly effect: 'allow'
      readonly rule: string
      readonly does: string
      readonly args: string
      readonly key: string | null
      readonly honoured: boolean
    }
  | { readonly effect: 'deny'; readonly failures: readonly Refused[] }

const refused = (code: string, rule: string): Refused => ({ codes: [code], rule })
const deny = (code: string, rule: string): Verdict => ({
  effect: 'deny',
  failures: [refused(code, rule)],
})
const escape = (name: string): string => name.split('~').join('~0').split('/').join('~1')

type Link = { readonly name: string; readonly profile: JsonObject }

/** A profile and what it extends, the farthest first. */
function chain(policy: Json, name: string): readonly Link[] {
  const profile = get(policy, 'profiles', name)
  if (!isObject(profile)) return []
  const parent = profile['extends']
  return [...(typeof parent === 'string' ? chain(policy, parent) : []), { name, profile }]
}

type Listed = { readonly text: string; readonly path: string }

const entries = (links: readonly Link[], key: string): readonly Listed[] =>
  links.flatMap((one) =>
    list(one.profile[key]).map((text, at) => ({
      text: word(text),
      path: `/profiles/${one.name}/${key}/${at}`,
    })),
  )

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

type Case = {
  readonly policy: Json
  readonly links: readonly Link[]
  readonly call: Call
  readonly facts: Facts
  readonly tool: string
  readonly contract: Json | undefined
  readonly path: string
}

/** Decides as docs/policy.md says. */
export function referenceDecide(policy: Json, call: Call, facts: Facts): Verdict {
  const who = call.client.profile
  const links = chain(policy, who)
  if (call.client.identity === 'unknown' || links.length === 0)
    return deny('client_unknown', 'client')
  const tool = `${call.target?.upstream}/${call.target?.name}`
  const denied = find(entries(links, 'deny'), tool)
  if (denied !== null) return deny('tool_denied', denied.path)
  const allowed = find(entries(links, 'allow'), tool)
  if (allowed === null) return deny('tool_denied', `/profiles/${who}/allow`)
  const contract = get(policy, 'tools', tool)
  const of = { policy, links, call, facts, tool, contract, path: `/tools/${escape(tool)}` }
  return (
    destructive(of, allowed.exact) ??
    definition(of, allowed.exact) ??
    decideArguments(of, allowed.path)
  )
}

function destructive({ links, call, tool, contract, path }: Case, exact: boolean): Verdict | null {
  if (get(contract, 'effect') !== 'destructive') return null
  if (!exact) return deny('tool_denied', `${path}/effect`)
  const approve = links.findLast((one) => one.profile['approve'] !== undefined)?.profile['approve']
  if (get(approve, tool) === 'none') return null
  return deny('tool_denied', `/profiles/${call.client.profile}/approve`)
}

function definition({ policy, facts }: Case, exact: boolean): Verdict | null {
  if (facts.definition === null) return deny('tool_unknown', 'definition')
  if (facts.pin === 'changed') return deny('definition_changed', 'definition')
  if (facts.pin === 'approved') return null
  if (facts.pin === 'new' && exact && get(policy, 'pins') !== 'strict') return null
  return deny('definition_waits', 'definition')
}

function decideArguments(of: Case, rule: string): Verdict {
  const { call, contract, facts } = of
  const pinned = pinnedOf(of)
  const args = object({ ...call.args, ...pinned.values })
  const rules = rulesOf(of)
  const schema = get(contract, 'args')
  const server = facts.definition?.value['inputSchema'] ?? null
  const failures: Refused[] = []
  if (schema !== undefined)
    failures.push(...told('arguments_denied', fits(schema, args, false), `${of.path}/args`))
  failures.push(...pinned.failures)
  if (schema !== undefined || rules.length > 0) {
    failures.push(...told('arguments_invalid', fits(server, args, true), 'inputSchema'))
  }
  failures.push(...rules.flatMap((one) => judge(of, args, one)))
  const key = keyOf(contract, args, call.key)
  if ('code' in key)
    failures.push(refused(key.code, get(contract, 'key') === undefined ? 'key' : `${of.path}/key`))
  if (failures.length > 0 || 'code' in key) return { effect: 'deny', failures }
  return { effect: 'allow', rule, does: does(contract, facts), args: canonical(args), ...key }
}

function told(code: string, found: Found, rule: string): readonly Refused[] {
  const codes = [...(found.misfit ? [code] : []), ...(found.inexact ? ['number_not_exact'] : [])]
  return codes.length === 0 ? [] : [{ codes, rule }]
}

function pinnedOf({ links, call, tool }: Case): {
  readonly values: Readonly<Record<string, Json>>
  readonly failures: readonly Refused[]
} {
  const owner = links.findLast((one) => one.profile['set'] !== undefined)
  const set = get(owner?.profile['set'], tool)
  const values: Record<string, Json> = {}
  const failures: Refused[] = []
  for (const [name, value] of Object.entries(isObject(set) ? set : {})) {
    values[name] = value ?? null
    if (!Object.hasOwn(call.args, name)) continue
    const place = `/profiles/${owner?.name}/set/${escape(tool)}/${escape(name)}`
    failures.push(refused('arguments_denied', place))
  }
  return { values, failures }
}

type Placed = { readonly rule: Json; readonly place: string }

const rulesOf = ({ links, tool }: Case): readonly Placed[] =>
  links
    .flatMap((one) =>
      list(one.profile['rules']).map((rule, at) => ({
        rule,
        place: `/profiles/${one.name}/rules/${at}`,
      })),
    )
    .filter(({ rule }) => find([{ text: word(get(rule, 'tool')), path: '' }], tool) !== null)

function judge(
  { call, facts }: Case,
  args: JsonObject,
  { rule, place }: Placed,
): readonly Refused[] {
  const when = get(rule, 'when')
  if (when !== undefined) {
    const applies = cel(word(when), args, call, facts)
    if (applies.inexact) return [refused('number_not_exact', place)]
    if (applies.value === false) return []
    if (applies.value !== true) return [refused('arguments_denied', place)]
  }
  const holds = cel(word(get(rule, 'require')), args, call, facts)
  if (holds.inexact) return [refused('number_not_exact', place)]
  return holds.value === true ? [] : [refused('arguments_denied', place)]
}

function does(contract: Json | undefined, facts: Facts): string {
  const effect = contract === undefined ? 'undeclared' : word(get(contract, 'effect'))
  const hint = get(facts.definition?.value, 'annotations')
  const harmful = get(hint, 'readOnlyHint') === false || get(hint, 'destructiveHint') === true
  return effect === 'read' && harmful ? 'undeclared' : effect
}

type Key = { readonly key: string | null; readonly honoured: boolean } | { readonly code: string }

function keyOf(contract: Json | undefined, args: JsonObject, sent: string | null): Key {
  const wanted = get(contract, 'key')
  const at = word(get(wanted, 'at'))
  const found = at === '' ? undefined : get(args, at.slice(1))
  if (found !== undefined && found !== null) {
    return keyFrom(found, get(wanted, 'honoured') === true)
  }
  if (sent !== null) return keyFrom(sent, false)
  return wanted === undefined ? { key: null, honoured: false } : { code: 'key_missing' }
}

function keyFrom(value: Json, honoured: boolean): Key {
  const plain = isExact(value) ? exactValue(value.rawJSON) : value
  if (plain === null) return { code: 'number_not_exact' }
  const text = typeof plain === 'number' && Number.isInteger(plain) ? String(plain) : plain
  if (typeof text !== 'string' || text.length < 1 || text.length > 200)
    return { code: 'key_invalid' }
  const printable = Array.from(text).every((one) => one >= ' ' && one <= '~')
  return printable ? { key: text, honoured } : { code: 'key_invalid' }
}
