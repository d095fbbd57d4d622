// THE HALL: a call walks through its stages in plain sight, and nothing is sent without a ticket.

import type { Call, Client } from './call.ts'
import { sha256 } from './canonical.ts'
import { builtIn, type Code, type Facts, type Failure } from './decision.ts'
import { recordAnswers, responsesOf } from './hall/asks.ts'
import { type Ended, record } from './hall/outcome.ts'
import {
  type Allowed,
  blank,
  type Doors,
  draft,
  FIRST,
  type Line,
  type Page,
  pageOf,
  since,
  type Visit,
} from './hall/page.ts'
import { learn, visible } from './hall/pins.ts'
import { outward, refused, withoutSending } from './hall/refuse.ts'
import { askClient, begun, type Next, takeUp } from './hall/rounds.ts'
import { handOver, isTaskMade, shown, taskParams } from './hall/tasks.ts'
import { type JsonObject, withMembers } from './json.ts'
import type { Draft } from './ledger/entry.ts'
import { grants } from './policy/asks.ts'
import { decide } from './policy/decide.ts'
import type { Attempt, Intent, ListKind, Shown } from './ports.ts'
import type { Reply } from './refusal.ts'

export type { Doors, Line } from './hall/page.ts'
export { taskOf } from './hall/tasks.ts'

/** Views remembered before all are forgotten; forgetting costs one more record a view, nothing else. */
const MAX_VIEWS = 10_000
/** Failed checks that one record names. */
const MAX_FAILURES = 20

/** Decides one call, records the decision, sends it if it is allowed and records what came of it; in this
 *  order, each before the next. A server may ask something of the client first: then each round is decided
 *  anew and recorded, and all are one operation. Rejects only with a `Fault` of the store: `not_recorded`
 *  (nothing was sent) or `outcome_not_recorded` (it was sent). */
export async function handle(call: Call, doors: Doors, line: Line): Promise<Reply> {
  let round = takeUp(call, doors)
  if (round === null) return refuse(pageOf(call, doors, FIRST), null, [builtIn('state_invalid')])
  for (;;) {
    const went = await walk(pageOf(call, doors, round), line)
    if (went.kind !== 'next') return went
    round = went.round
  }
}

const AWAY: Attempt = { kind: 'unsent', code: 'upstream_down', why: 'it cannot be asked' }

async function walk(page: Page, line: Line): Promise<Reply | Next> {
  const { call, doors } = page

  const learned = await learn(page)
  if (learned === 'down') return refuse(page, null, [builtIn('upstream_down')])
  const { facts, away } = learned
  const decision = decide(call, page.set, facts)
  if (decision.effect === 'deny') return refuse(page, facts, decision.failures)
  if (line.signal.aborted) return refuse(page, facts, [builtIn('cancelled')])

  if (page.round.answers.length > 0) await recordAnswers(page, operationOf(page))
  const opened = await doors.store.open(intent(page, decision, facts))
  if (opened.kind !== 'ticket') return withoutSending(page, opened)

  const visit: Visit = { page, decision, ticket: opened.ticket, line }
  // What the server offers now is not known: what was recalled of the key a moment ago holds no more.
  const attempt = away ? AWAY : await send(visit)
  if (attempt.kind === 'asks') return askClient(visit, attempt)
  const reply = await (isTaskMade(attempt) ? handOver(visit, attempt) : release(visit, attempt))
  if (!line.signal.aborted) return reply
  if (call.method === 'resources/subscribe' && attempt.kind === 'answered') unsubscribe(call, doors)
  return { kind: 'silent' }
}

/** What this client may see of one kind: the items of every upstream that could be allowed, in the order
 *  of the configuration, each as it is advertised to this client. Tools seen for the first time are
 *  pinned before they are shown; a changed view has its record before it is returned. */
export async function list(
  client: Client,
  kind: ListKind,
  doors: Doors,
): Promise<{ readonly shown: readonly Shown[]; readonly complete: boolean }> {
  const set = doors.policy()
  const { names } = doors.upstreams
  const lists = await Promise.all(
    names.map((name) => doors.upstreams.list(name, kind, client.name)),
  )
  const items: Shown[] = []
  for (const [at, upstream] of names.entries()) {
    const listed = lists[at]
    if (listed !== undefined)
      items.push(...(await visible({ client, set, doors }, kind, upstream, listed)))
  }
  const text = items.map((one) => `${one.upstream} ${one.definition.hash}`).join('\n')
  await recordView(doors, client, { method: LIST_METHODS[kind], text, items: items.length })
  return { shown: items, complete: lists.every((listed) => listed.complete) }
}

/** Writes the record of a view (list, discover, initialize) when it is not the one last shown to this
 *  client by this process. `text` identifies the view; only its digest is recorded. */
export async function recordView(
  doors: Doors,
  client: Client,
  view: { readonly method: string; readonly text: string; readonly items: number },
): Promise<void> {
  const digest = sha256(view.text)
  const place = `${client.name} ${client.profile} ${view.method}`
  if (doors.views.get(place) === digest) return
  await doors.store.append({
    ...blank(doors, client),
    kind: 'view',
    method: view.method,
    decision: 'allow',
    outcome: 'observed',
    more: { items: view.items, view_sha256: digest },
  })
  if (doors.views.size >= MAX_VIEWS) doors.views.clear()
  doors.views.set(place, digest)
}

/** Writes the record of a message that is no call: malformed, or a method that is not served. Resolves
 *  when it is durable, so that the answer can follow it. */
export async function recordRefusal(
  doors: Doors,
  client: Client,
  refusal: {
    readonly kind: 'malformed' | 'call'
    readonly code: Code
    readonly method: string
    readonly name: string
    readonly transport: Draft['transport']
    readonly more: Draft['more']
  },
): Promise<void> {
  await doors.store.append({
    ...blank(doors, client),
    kind: refusal.kind,
    method: refusal.method,
    name: refusal.name,
    decision: 'deny',
    outcome: 'not_executed',
    code: refusal.code,
    transport: refusal.transport,
    more: refusal.more,
  })
}

/** Writes the record of what is only counted. Resolves when it is durable. */
export async function recordCounts(
  doors: Doors,
  client: Client,
  counted: {
    readonly transport: Draft['transport']
    readonly counts: Readonly<Record<string, number>>
  },
): Promise<void> {
  const { transport, counts } = counted
  await doors.store.append({ ...blank(doors, client), kind: 'count', transport, more: counts })
}

const LIST_METHODS = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  templates: 'resources/templates/list',
} as const satisfies Record<ListKind, string>

// Stage 2, the other exit: a denial is in the ledger before the agent hears of it.
async function refuse(
  page: Page,
  facts: Facts | null,
  failures: readonly [Failure, ...Failure[]],
): Promise<Reply> {
  const [first] = failures
  await page.doors.store.append({
    ...draft(page, facts),
    decision: 'deny',
    outcome: 'not_executed',
    code: first.code,
    rule: first.rule,
    failures: failures.slice(0, MAX_FAILURES).map(({ rule, field }) => ({ rule, field })),
    duration_us: since(page),
  })
  // What has passed the gate once and does not any more must not wait behind it.
  const { parked } = page.round
  if (parked !== null && !PASSING.has(first.code)) page.doors.upstreams.drop(parked, first.code)
  return first.code === 'cancelled' ? { kind: 'silent' } : refused(page, first)
}

/** Denials that say nothing of the call: the client may come again. */
const PASSING: ReadonlySet<Code> = new Set<Code>(['upstream_down', 'cancelled'])

// Stage 3.
function intent(page: Page, decision: Allowed, facts: Facts): Intent {
  const { call, doors, args, round } = page
  return {
    operation: doors.random(),
    draft: {
      ...draft(page, facts),
      kind: decision.does === 'read' ? 'call' : 'intent',
      request_id: decision.key ?? (decision.does === 'read' ? 'observe' : 'missing'),
      decision: 'allow',
      outcome: 'pending',
      rule: decision.rule,
      duration_us: since(page),
    },
    does: decision.does,
    upstream: call.target?.upstream ?? '',
    tool: call.target?.name ?? '',
    client: call.client.name,
    key: decision.key,
    honoured: decision.honoured,
    args,
    pin: facts.definition?.hash ?? null,
    continues: round.operation,
    round: round.number,
  }
}

const operationOf = ({ call, round }: Page): string => round.operation ?? call.task?.operation ?? ''

// Stage 4: what is sent is written anew from the value that was decided on. A call that waits here is gone on
// with; that it does not any more says nothing of what it did.
async function send({ page, decision, ticket, line }: Visit): Promise<Attempt> {
  const { call, doors, round } = page
  const { watch, signal } = line
  const responses = responsesOf(round.answers)
  if (round.parked !== null) {
    const came = await doors.upstreams.resume(ticket, round.parked, { responses, watch, signal })
    return came.kind === 'unsent' ? begun(came) : came
  }
  const { target } = call
  if (target === null) throw new TypeError('an allowed call names a target')
  return doors.upstreams.attempt(ticket, {
    method: call.method,
    target,
    params: paramsOf(page, target.name, decision),
    client: call.client.name,
    capabilities: grants(page.set, call.client, call.capabilities),
    retry: isPlain(page) ? null : { state: round.state, responses },
    headers: call.headers ?? {},
    watch,
    signal,
  })
}

/** A first round that brings no answers; a task's are in its params. */
const isPlain = ({ call, round }: Page): boolean =>
  round.number === 1 && (round.answers.length === 0 || call.task !== null)

function paramsOf({ call, round }: Page, name: string, decision: Allowed): JsonObject {
  if (call.task !== null) return taskParams(call, round.answers)
  return call.method === 'tools/call' || call.method === 'prompts/get'
    ? withCallParams(call, name, decision)
    : call.params
}

function withCallParams({ params }: Call, name: string, decision: Allowed): JsonObject {
  const { args } = decision
  const given = params['arguments']
  const same = given === undefined ? Object.keys(args).length === 0 : given === args
  // The value that was decided on: a copy of it would say nothing else.
  if (same && params['name'] === name) return params
  return withMembers(params, same ? { name } : { name, arguments: args })
}

// Stages 6 and 7: the outcome is in the ledger before anything goes back.
async function release(visit: Visit, attempt: Ended): Promise<Reply> {
  await record(visit, attempt)
  return visit.page.call.task === null ? outward(visit.page, attempt) : shown(visit, attempt)
}

/** Its client is gone and will not end what it never heard of. */
function unsubscribe({ target, client }: Call, { upstreams }: Doors): void {
  if (target !== null) upstreams.release(target.upstream, target.name, client.name)
}

/** The refusal of a call that was not taken up at all: it has been recorded when this resolves. */
export const turnAway = (
  call: Call,
  code: 'too_many_calls' | 'draining',
  doors: Doors,
): Promise<Reply> => refuse(pageOf(call, doors, FIRST), null, [builtIn(code)])
