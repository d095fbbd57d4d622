// What the findings of `audit verify` are called, for people and for scripts.

import type { Verified } from '../ledger/chain.ts'
import type { StateProblem } from '../ledger/state.ts'
import { isGood, type Findings, type MirrorFinding, type StateFinding } from './audit-check.ts'
import { visible } from './record.ts'

/** The findings for people, a line each, and three lines on what they do not prove. */
export function findingsText({ chain, state, mirror }: Findings): readonly string[] {
  return [
    ...chainText(chain),
    ...(state === null ? [] : stateText(state)),
    ...(mirror === null ? [] : [`mirror: ${mirrorText(mirror)}`]),
    ...NOT_PROVED.map((line) => `not proved: ${line}`),
  ]
}

/** The findings for scripts: one JSON object on one line. */
export const findingsJson = (findings: Findings): string =>
  JSON.stringify({ ok: isGood(findings), ...findings, not_proved: NOT_PROVED })

const records = (count: number): string => `${count} ${count === 1 ? 'record' : 'records'}`

/** What no check of a log alone can show. */
const NOT_PROVED: readonly [string, string, string] = [
  'that a server did what it answered; the log tells what was asked, decided and answered',
  'that nobody rewrote the log as a whole, unless --head is a head that was kept elsewhere',
  'that clocks were right, nor anything of limits and leases, which are not in the chain',
]

function chainText(chain: Verified): readonly string[] {
  if (chain.kind !== 'ok') {
    const what = chain.kind === 'broken' ? 'BROKEN' : 'UNKNOWN FORMAT, use a newer eclusa'
    return [`chain: ${what}: line ${chain.line}: ${chain.problem.why} (${chain.problem.code})`]
  }
  const { entries, head, origin, anchored } = chain
  const after = entries - 1 - (anchored ?? 0)
  return [
    `chain: ${records(entries)}, each as chained`,
    `origin: ${origin}`,
    `head: ${head.seq}:${head.sha256}`,
    anchored === null
      ? 'anchor: unanchored tail: records may have been cut off the end; compare with --head'
      : `anchor: the head given is record ${anchored}; ${records(after)} after it not anchored`,
  ]
}

function stateText({ rows, problems, unknownTables }: StateFinding): readonly string[] {
  const counts = Object.entries(rows).map(([table, count]) => `${table} ${count}`)
  const good = problems.length === 0 && unknownTables.length === 0
  return [
    `tables: ${counts.join(', ')}: ${good ? 'as the log says' : 'NOT AS THE LOG SAYS'}`,
    ...problems.map((one) => `tables: ${problemText(one)}`),
    ...unknownTables.map((table) => `tables: UNKNOWN TABLE ${visible(table)}, use a newer eclusa`),
  ]
}

function problemText({ kind, table, row, seq }: StateProblem): string {
  const name = `${table} row ${visible(row)}`
  switch (kind) {
    case 'changed':
      return `CHANGED: ${name} is not as record ${seq} left it`
    case 'missing':
      return `MISSING: ${name}, written by record ${seq}`
    case 'extra':
      return `EXTRA: ${name} has no record`
    default:
      return name
  }
}

function mirrorText(mirror: MirrorFinding): string {
  switch (mirror.kind) {
    case 'same':
      return 'audit.jsonl is the log byte for byte'
    case 'behind':
      return `audit.jsonl is ${records(mirror.records)} behind; a running process or the next start appends them`
    case 'absent':
      return 'ABSENT: there is no audit.jsonl; start eclusa to have it rebuilt'
    case 'differs':
      return `DIFFERS: audit.jsonl line ${mirror.line} is not the line of the ledger`
    case 'ahead':
      return `AHEAD: audit.jsonl line ${mirror.line} is not in the ledger, which may be an older copy`
    default:
      return ''
  }
}
