// Every check of one tool call whose name is allowed: `args`, `set`, the server's schema, `rules`, key.

import type { Call } from '../call.ts'
import type { Code, Facts, Failure } from '../decision.ts'
import { type Json, type JsonObject, object } from '../json.ts'
import { type Check, serverCheck } from './arguments.ts'
import type { Expression } from './cel.ts'
import { isFailed, jsonOf, type Scope } from './cel-value.ts'
import { keyText } from './key.ts'
import { patternMatches } from './pattern.ts'
import { pointer } from './position.ts'
import {
  type Contract,
  type LengthRule,
  MAX_CHECKS,
  type PolicySet,
  type Profile,
  type Rule,
} from './set.ts'
import { codePoints } from './value.ts'
import { type View, viewOf } from './view.ts'

/** A failure of a built-in check. */
export const failure = (code: Code, rule: string, field: string | null = null): Failure => ({
  code,
  rule,
  field,
  reason: null,
  message: null,
})

/** The name under which a policy speaks of a target. */
export const nameOf = (
  set: PolicySet,
  target: { readonly upstream: string; readonly name: string },
): string => (set.qualified ? `${target.upstream}/${target.name}` : target.name)

/** A tool call whose name is allowed and whose definition is known. */
export type Case = {
  readonly call: Call
  readonly set: PolicySet
  readonly facts: Facts
  readonly profile: Profile
  readonly name: string
}

/** One check of a case and what came of it. `skipped`: a rule whose `when` does not hold. */
export type Finding = {
  readonly rule: string
  readonly state: 'holds' | 'fails' | 'skipped'
  readonly failure: Failure | null
}

/** What the checks of a case found. `args`: to send. */
export type Judged = {
  readonly failures: readonly Failure[]
  readonly args: JsonObject
  readonly key: string | null
  readonly honoured: boolean
}

/** Every check of a case, all failures in the order in which they are told. `note` hears of each check as it
 *  is made. */
export function judge(of: Case, note: ((finding: Finding) => void) | null = null): Judged {
  const contract = of.set.tools.get(of.name) ?? null
  const pinned = setArguments(of)
  const { args } = pinned
  const view = viewOf(args)
  if (view === null) {
    return { failures: [failure('arguments_denied', 'depth')], args, key: null, honoured: false }
  }
  const failures: Failure[] = []
  const add = (rule: string, found: Failure | null): void => {
    if (found !== null) failures.push(found)
    note?.({ rule, state: found === null ? 'holds' : 'fails', failure: found })
  }
  const bench = { of, view, add, note }
  judgeContract(contract, bench)
  for (const [path, found] of pinned.findings) add(path, found)
  const rules = of.profile.rules.filter((rule) => patternMatches(rule.tool, of.name))
  if (rules.length > 0 || checksArguments(contract)) add('inputSchema', inputFailure(of, view))
  if (rules.length > 0) judgeRules(rules, bench)
  return { failures, args, ...judgeKey(contract, bench) }
}

const checksArguments = (contract: Contract | null): boolean =>
  contract !== null && (contract.args !== null || contract.bounds.length > 0)

type Bench = {
  readonly of: Case
  readonly view: View
  readonly add: (rule: string, found: Failure | null) => void
  readonly note: ((finding: Finding) => void) | null
}

function judgeContract(contract: Contract | null, { view, add }: Bench): void {
  if (contract === null) return
  const path = `${contract.path}/args`
  if (contract.args !== null) {
    add(path, schemaFailure(contract.args, view, 'arguments_denied', path))
  }
  for (const bound of contract.bounds) add(bound.path, boundFailure(bound, view))
}

function judgeKey(
  contract: Contract | null,
  { of, view, add }: Bench,
): { readonly key: string | null; readonly honoured: boolean } {
  const key = keyText(contract?.key ?? null, view, of.call.key)
  if (key.kind === 'key') return key
  const path = contract?.key?.path ?? 'key'
  if (key.kind === 'failed') add(path, failure(key.code, path, key.field))
  return { key: null, honoured: false }
}

function judgeRules(rules: readonly Rule[], bench: Bench): void {
  const scope = scopeOf(bench.of, bench.view)
  for (const rule of rules) judgeRule(rule, scope, bench)
}

const scopeOf = ({ call, facts }: Case, view: View): Scope => ({
  args: view.value,
  client: object({
    name: call.client.name,
    profile: call.client.profile,
    attributes: object(call.client.attributes),
  }),
  facts: object({ definition: facts.definition?.hash ?? null, pin: facts.pin }),
})

/** What was read since the last look and is not exact; looking forgets it. */
function touched(view: View): string | null {
  const { touched: path } = view
  view.touched = null
  return path
}

function schemaFailure(check: Check, view: View, code: Code, rule: string): Failure | null {
  const misfit = check.run(view)
  const inexact = touched(view)
  if (inexact !== null) return failure('number_not_exact', rule, inexact)
  return misfit === null ? null : failure(code, rule, misfit.field)
}

function boundFailure(rule: LengthRule, view: View): Failure | null {
  const field = pointer('', rule.field)
  const value = Object.hasOwn(view.value, rule.field) ? view.value[rule.field] : undefined
  const inexact = touched(view)
  if (inexact !== null) return failure('number_not_exact', rule.path, inexact)
  const length = typeof value === 'string' ? codePoints(value) : -1
  const fits = length >= rule.least && length <= rule.most
  return fits ? null : failure('arguments_denied', rule.path, field)
}

function inputFailure(of: Case, view: View): Failure | null {
  const { definition } = of.facts
  if (definition === null) return failure('tool_unknown', 'definition')
  let check = of.set.checks.get(definition.hash)
  if (check === undefined) {
    check = serverCheck(definition.value['inputSchema'])
    if (of.set.checks.size >= MAX_CHECKS) of.set.checks.clear()
    of.set.checks.set(definition.hash, check)
  }
  if ('problem' in check) return failure('arguments_invalid', 'inputSchema')
  return schemaFailure(check, view, 'arguments_invalid', 'inputSchema')
}

function judgeRule(rule: Rule, scope: Scope, { view, add, note }: Bench): void {
  const applies = rule.when === null ? true : truth(rule.when, scope, view)
  if (applies === false) return note?.({ rule: rule.path, state: 'skipped', failure: null })
  const holds = applies === true ? truth(rule.require, scope, view) : applies
  if (holds === true) return add(rule.path, null)
  const words = { rule: rule.path, reason: rule.code, message: rule.message }
  if (holds !== null && holds !== false) {
    return add(rule.path, { ...words, code: 'number_not_exact', field: holds.inexact })
  }
  const field = rule.require.reads ?? rule.when?.reads ?? null
  add(rule.path, { ...words, code: 'arguments_denied', field })
}

/** True or false; null when it is neither (an error, or over budget); the path of a number that is not exact. */
function truth(
  expression: Expression,
  scope: Scope,
  view: View,
): boolean | null | { readonly inexact: string } {
  const value = expression.run(scope)
  const inexact = touched(view)
  if (inexact !== null) return { inexact }
  return typeof value === 'boolean' ? value : null
}

// Set first and judged with the rest: what is checked is what is sent.
function setArguments(of: Case): {
  readonly args: JsonObject
  readonly findings: readonly (readonly [string, Failure | null])[]
} {
  const { args } = of.call
  const pinned = of.profile.set.get(of.name)
  if (pinned === undefined) return { args, findings: [] }
  const view = viewOf(args)
  if (view === null) return { args, findings: [] }
  const scope = scopeOf(of, view)
  const members: Record<string, Json> = {}
  const findings: (readonly [string, Failure | null])[] = []
  for (const { path, name, value } of pinned) {
    const sent = Object.hasOwn(args, name)
      ? failure('arguments_denied', path, pointer('', name))
      : null
    const made = 'constant' in value ? value.constant : computed(value.cel, scope)
    const inexact = touched(view)
    if (inexact !== null) findings.push([path, failure('number_not_exact', path, inexact)])
    else
      findings.push([
        path,
        made === undefined ? failure('arguments_denied', path, pointer('', name)) : sent,
      ])
    if (made !== undefined) members[name] = made
  }
  return { args: object({ ...args, ...members }), findings }
}

function computed(expression: Expression, scope: Scope): Json | undefined {
  const value = expression.run(scope)
  return isFailed(value) ? undefined : jsonOf(value)
}
