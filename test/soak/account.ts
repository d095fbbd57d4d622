// What was done against what was told: calls that were lost, doubled or reported wrongly.

import { createReadStream, readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

import type { Case } from './load.ts'

/** The books of all servers. `executed`: how often each call ran; `crashed`: those whose server died before
 *  it answered; `unheard`: those that were cancelled in time and never answered; `fleeting`: writes of which nobody hears
 *  once they are cancelled. */
export type Done = {
  readonly executed: Map<string, number>
  readonly crashed: Set<string>
  readonly unheard: Set<string>
  readonly fleeting: Set<string>
  crashes: number
}

/** Reads what the servers wrote down. */
export function readDone(files: readonly string[]): Done {
  const done: Done = {
    executed: new Map(),
    crashed: new Set(),
    unheard: new Set(),
    fleeting: new Set(),
    crashes: 0,
  }
  for (const file of files) {
    for (const line of readFileSync(file, 'utf8').split('\n')) {
      const rest = line.slice(1)
      if (line[0] === '+') done.executed.set(rest, (done.executed.get(rest) ?? 0) + 1)
      if (line[0] === '?') done.unheard.add(rest)
      if (line[0] === '~') done.fleeting.add(rest)
      if (line[0] !== '!') continue
      done.crashes++
      for (const id of rest.split(' ')) done.crashed.add(id)
    }
  }
  return done
}

/** What the ledger holds of each write: its outcomes in the order of the records. */
export async function readOutcomes(file: string): Promise<Map<string, string[]>> {
  const found = new Map<string, string[]>()
  for await (const line of createInterface({ input: createReadStream(file, 'utf8') })) {
    const at = line.indexOf('"request_id":"w-')
    if (at < 0) continue
    const { request_id: id, outcome } = JSON.parse(line) as { request_id: string; outcome: string }
    const outcomes = found.get(id)
    if (outcomes === undefined) found.set(id, [outcome])
    else outcomes.push(outcome)
  }
  return found
}

/** Refusals after which it is certain that nothing was executed. */
const UNSENT: ReadonlySet<string> = new Set(['upstream_down', 'too_many_calls', 'draining'])
/** Refusals that say that nobody knows. */
const UNKNOWN: ReadonlySet<string> = new Set(['outcome_unknown', 'timeout'])

/** What a soak came to. `wrong`: one line a call that was lost, doubled or reported wrongly. */
export type Account = {
  readonly calls: number
  readonly executed: number
  readonly answered: number
  readonly unknown: number
  readonly unsent: number
  readonly crashes: number
  readonly inFlightAtCrashes: number
  readonly wrong: readonly string[]
}

/** Compares what clients were told with what servers did and with what the ledger holds. */
export function account(
  cases: Iterable<Case>,
  done: Done,
  outcomes: ReadonlyMap<string, readonly string[]>,
): Account {
  const wrong: string[] = []
  const counts = { calls: 0, answered: 0, unknown: 0, unsent: 0 }
  for (const one of cases) {
    counts.calls += one.told.length
    for (const { kind, code } of one.told) {
      if (kind === 'ok') counts.answered++
      if (UNKNOWN.has(code)) counts.unknown++
      if (UNSENT.has(code)) counts.unsent++
    }
    const problem = problemOf(one, done) ?? recordProblem(one, done, outcomes.get(one.id) ?? [])
    if (problem !== null) wrong.push(`${one.id}: ${problem}; told ${JSON.stringify(one.told)}`)
  }
  const executed = [...done.executed.values()].reduce((sum, times) => sum + times, 0)
  return {
    ...counts,
    executed,
    crashes: done.crashes,
    inFlightAtCrashes: done.crashed.size,
    wrong,
  }
}

function problemOf(one: Case, done: Done): string | null {
  const { id, told } = one
  const { executed } = done
  const times = executed.get(id) ?? 0
  const last = told.at(-1)
  if (times > 1) return `executed ${times} times`
  const odd = told.find(({ kind }) => kind === 'odd')
  if (odd !== undefined || last === undefined) return 'an answer that nobody expects'
  const good = told.find(({ kind }) => kind === 'ok')
  if (good !== undefined && times === 0) return 'answered and not executed'
  if (good !== undefined && good.text !== id) return `answered with ${good.text}`
  if (last.kind === 'ok' || last.kind === 'gone') return null
  // An earlier try that its client did not wait for may have been executed: this is about the last one.
  const isFirst = !told.some(({ kind }) => kind === 'gone')
  if (UNSENT.has(last.code)) return times === 0 || !isFirst ? null : 'executed and told unsent'
  if (!UNKNOWN.has(last.code)) return 'a refusal that nobody expects'
  // What a server never saw can only have been on its way when it died.
  return times === 0 || isUnheard(one, done) ? null : 'executed, answered and lost'
}

/** True when the answer may have been lost on its way without a fault of ours. */
const isUnheard = ({ id, told }: Case, { crashed, unheard, fleeting }: Done): boolean =>
  crashed.has(id) ||
  unheard.has(id) ||
  (fleeting.has(id) && told.some(({ kind }) => kind === 'gone'))

function recordProblem(one: Case, done: Done, outcomes: readonly string[]): string | null {
  const { id, isRead } = one
  const { executed } = done
  if (isRead) return null
  const isExecuted = executed.has(id)
  if (isExecuted && !outcomes.includes('pending')) return 'executed without a record before it'
  const ends = outcomes.filter((outcome) => outcome === 'committed').length
  if (ends > 1) return `recorded as committed ${ends} times`
  if (ends === 1 && !isExecuted) return 'recorded as committed and not executed'
  if (ends === 0 && isExecuted && !isUnheard(one, done)) {
    return `executed, answered and recorded as ${outcomes.join(', ')}`
  }
  return null
}
