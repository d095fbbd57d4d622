// THE HALL: a call walks through its stages in plain sight, and nothing is sent without a ticket.

import {
  type Answer,
  type Asks,
  type Call,
  type Client,
  isFailure,
  type Responses,
} from './call.ts'
import { canonical, sha256 } from './canonical.ts'
import { builtIn, type Code, type Decision, type Facts, type Failure } from './decision.ts'
import { neutral, notKept, sourceOf } from './egress/stored.ts'
import { type JsonObject, object } from './json.ts'
import { blankDraft, callDraft } from './ledger/draft.ts'
import type { Draft, Outcome } from './ledger/entry.ts'
import { admits, advertise, decide, firstUse, keyOf, tell } from './policy/decide.ts'
import type { PolicySet } from './policy/set.ts'
import type {
  Attempt,
  Clock,
  Closing,
  Digest,
  Listed,
  ListKind,
  Opened,
  Shown,
  Store,
  Stored,
  Ticket,
  Upstreams,
  Watch,
} from './ports.ts'
import { codeOf, echo, refusalOf, type Reply } from './refusal.ts'

/** Everything the hall touches. `policy` gives the set in force; `random` 32 fresh hex digits; `broken` is
 *  told of a record that failed where no caller waits any more; `views` remembers, a client and list, the
 *  digest of what was last shown, and is the hall's own. */
export type Doors = {
  readonly store: Store
  readonly upstreams: Upstreams
  readonly policy: () => PolicySet
  readonly clock: Clock
  readonly random: () => string
  readonly broken: (error: unknown) => void
  readonly views: Map<string, string>
}

/** What a call may use while it runs: where progress and logs go, and the client's wish to stop. */
export type Line = {
  readonly watch: Watch
  readonly signal: AbortSignal
  /** Asks the client what a server wants of it, on a session that can; null: the asks are the answer. Resolves
   *  with null when the client is gone, did not answer in time, or answered inadmissibly. */
  readonly ask: ((asks: Asks, signal: AbortSignal) => Promise<Responses | null>) | null
}

/** Views remembered before all are forgotten; forgetting costs one more record a view, nothing else. */
const MAX_VIEWS = 10_000
/** Failed checks that one record names. */
const MAX_FAILURES = 20

/** Decides one call, records the decision, sends it if it is allowed and records what came of it; in this
 *  order, each before the next. Rejects only with a `Fault` of the store: `not_recorded` (nothing was
 *  sent) or `outcome_not_recorded` (it was sent). */
export async function handle(call: Call, doors: Doors, line: Line): Promise<Reply> {
  const page = pageOf(call, doors)

  const facts = await learn(page)
  if (facts === 'down') return refuse(page, null, [builtIn('upstream_down')])
  const decision = decide(call, page.set, facts)
  if (decision.effect === 'deny') return refuse(page, facts, decision.failures)
  if (line.signal.aborted) return refuse(page, facts, [builtIn('cancelled')])

  const opened = await doors.store.open(intent(page, decision, facts))
  if (opened.kind !== 'ticket') return withoutSending(page, opened)

  const made = await doors.upstreams.attempt(opened.ticket, send(page, decision, line))
  const attempt = made.kind === 'asks' ? unasked(page, made) : made
  await record(page, opened.ticket, attempt, { key: decision.key, signal: line.signal })
  return line.signal.aborted ? { kind: 'silent' } : outward(page, attempt)
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
  const lists = await Promise.all(names.map((name) => doors.upstreams.list(name, kind)))
  const shown: Shown[] = []
  for (const [at, upstream] of names.entries()) {
    const listed = lists[at]
    if (listed !== undefined)
      shown.push(...(await visible({ client, set, doors }, kind, upstream, listed)))
  }
  const text = shown.map((one) => `${one.upstream} ${one.definition.hash}`).join('\n')
  await recordView(doors, client, { method: LIST_METHODS[kind], text, items: shown.length })
  return { shown, complete: lists.every((listed) => listed.complete) }
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

/** A call with what stays the same while it walks. */
type Page = {
  readonly call: Call
  readonly set: PolicySet
  readonly args: Digest
  readonly doors: Doors
}

type Allowed = Extract<Decision, { readonly effect: 'allow' }>

const LIST_METHODS = {
  tools: 'tools/list',
  prompts: 'prompts/list',
  resources: 'resources/list',
  templates: 'resources/templates/list',
} as const satisfies Record<ListKind, string>

const NOTHING: Facts = { definition: null, pin: 'none' }
// Stage 1. A name that is not allowed never makes us ask the server: neither its list nor our timing
// tells a hidden name from an unknown one.
async function learn({ call, set, doors }: Page): Promise<Facts | 'down'> {
  const { target, client } = call
  if (call.method !== 'tools/call' || target === null) return NOTHING
  if (admits(set, client, target) !== null) return NOTHING
  const definition = await doors.upstreams.definition(target.upstream, target.name)
  if (definition === 'down') return 'down'
  if (definition === 'absent') return NOTHING
  const pin = await settle({ client, set, doors }, target.upstream, definition)
  return { definition, pin }
}

type Desk = { readonly client: Client; readonly set: PolicySet; readonly doors: Doors }

/** The pin's state for this definition, after remembering it when it is new or changed. */
async function settle(
  desk: Desk,
  upstream: string,
  definition: Shown['definition'],
): Promise<Facts['pin']> {
  const { pin, news } = pinOf(desk, upstream, definition)
  if (news === null) return pin
  await desk.doors.store.pin([news], desk.client.name)
  return holds(desk, news) ? pin : 'changed'
}

// What was known may be a second old: another process may have pinned another definition meanwhile.
const holds = ({ doors }: Desk, { tool, definition, state }: News): boolean =>
  state === 'waits' || doors.store.pins().get(tool)?.hash === definition.hash

type News = Parameters<Store['pin']>[0][number]
/** What is known of a definition, and what of it the ledger does not know yet. */
function pinOf(
  { client, set, doors }: Desk,
  upstream: string,
  definition: Shown['definition'],
): { readonly pin: Facts['pin']; readonly news: News | null } {
  const tool = `${upstream}/${definition.name}`
  const known = doors.store.pins().get(tool)
  if (known?.hash === definition.hash) return { pin: 'approved', news: null }
  const state = known === undefined ? firstUse(set, client, tool) : 'waits'
  const news = known?.waiting === definition.hash ? null : { tool, definition, state }
  if (state === 'approved') return { pin: 'new', news }
  return { pin: known === undefined || known.hash === null ? 'waits' : 'changed', news }
}

async function visible(
  desk: Desk,
  kind: ListKind,
  upstream: string,
  listed: Listed,
): Promise<readonly Shown[]> {
  const { client, set, doors } = desk
  const target = kind === 'tools' ? 'tool' : kind === 'prompts' ? 'prompt' : 'resource'
  const allowed = listed.items.filter(
    ({ name }) => admits(set, client, { kind: target, upstream, name }) === null,
  )
  if (kind !== 'tools') return allowed.map((definition) => ({ upstream, definition }))
  const pins = allowed.map((definition) => pinOf(desk, upstream, definition))
  const news = pins.flatMap((one) => one.news ?? [])
  if (news.length > 0) await doors.store.pin(news, client.name)
  const shown: Shown[] = []
  for (const [at, definition] of allowed.entries()) {
    const { pin, news: fresh } = pins[at] ?? { pin: 'none', news: null }
    if ((pin !== 'approved' && pin !== 'new') || (fresh !== null && !holds(desk, fresh))) continue
    const value = advertise(set, client, upstream, definition)
    shown.push({ upstream, definition: { ...definition, value } })
  }
  return shown
}

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
    duration_us: page.doors.clock.nowUs() - page.call.receivedUs,
  })
  return first.code === 'cancelled' ? { kind: 'silent' } : refused(page, first)
}

// Stage 3.
function intent(page: Page, decision: Allowed, facts: Facts): Parameters<Store['open']>[0] {
  const { call, doors, args } = page
  return {
    operation: doors.random(),
    draft: {
      ...draft(page, facts),
      kind: decision.does === 'read' ? 'call' : 'intent',
      request_id: decision.key ?? (decision.does === 'read' ? 'observe' : 'missing'),
      decision: 'allow',
      outcome: 'pending',
      rule: decision.rule,
      duration_us: doors.clock.nowUs() - call.receivedUs,
    },
    does: decision.does,
    upstream: call.target?.upstream ?? '',
    tool: call.target?.name ?? '',
    client: call.client.name,
    key: decision.key,
    honoured: decision.honoured,
    args,
    pin: facts.definition?.hash ?? null,
    continues: null,
    round: 1,
  }
}

const withoutSending = (page: Page, opened: Exclude<Opened, { kind: 'ticket' }>): Reply =>
  opened.kind === 'replayed'
    ? replayed(page, opened.stored)
    : refused(page, builtIn(STOPPED[opened.kind]))

const STOPPED = {
  busy: 'busy',
  conflict: 'key_conflict',
  unknown: 'outcome_unknown',
  expired: 'key_expired',
  withheld: 'definition_changed',
  ended: 'state_invalid',
  revoked: 'client_revoked',
} as const satisfies Record<Exclude<Opened['kind'], 'ticket' | 'replayed'>, Code>

const replayed = ({ call }: Page, stored: Stored): Reply => ({
  kind: 'answered',
  answer: stored.answer ?? notKept(echo(call), stored),
  replayed: true,
})

// Stage 4: what is sent is written anew from the value that was decided on.
function send({ call }: Page, decision: Allowed, line: Line): Parameters<Upstreams['attempt']>[1] {
  const { target } = call
  if (target === null) throw new TypeError('an allowed call names a target')
  const params =
    call.method === 'tools/call' || call.method === 'prompts/get'
      ? { ...call.params, name: target.name, ...argumentsOf(call, decision) }
      : call.params
  return {
    method: call.method,
    target,
    params: object(params),
    client: call.client.name,
    capabilities: object({}),
    retry: null,
    headers: {},
    watch: line.watch,
    signal: line.signal,
  }
}

const argumentsOf = (call: Call, decision: Allowed): { readonly arguments?: JsonObject } =>
  call.params['arguments'] === undefined && Object.keys(decision.args).length === 0
    ? {}
    : { arguments: decision.args }

type Ended = Exclude<Attempt, { readonly kind: 'asks' }>

/** What a server asks of the client is refused, and the server told so. */
function unasked({ doors }: Page, made: Extract<Attempt, { readonly kind: 'asks' }>): Ended {
  if (made.parked !== null) doors.upstreams.drop(made.parked, 'ask_denied')
  return { kind: 'unknown', code: 'not_bridged', why: 'it asks the client', late: null }
}

// Stage 7. An answer that comes after its outcome was recorded as unknown is recorded too.
async function record(
  page: Page,
  ticket: Ticket,
  attempt: Ended,
  held: { readonly key: string | null; readonly signal: AbortSignal },
): Promise<void> {
  const { store, broken } = page.doors
  await store.close(ticket, closing(page, ticket, attempt, held))
  if (attempt.kind !== 'unknown' || attempt.late === null) return
  attempt.late
    .then((answer) =>
      store.close(ticket, closing(page, ticket, { kind: 'answered', answer }, held)),
    )
    .catch(broken)
}

function closing(
  page: Page,
  ticket: Ticket,
  attempt: Ended,
  held: { readonly key: string | null; readonly signal: AbortSignal },
): Closing {
  const nowUs = page.doors.clock.nowUs()
  const times = { durationUs: nowUs - page.call.receivedUs, nowUs }
  const cancelled = held.signal.aborted ? ('cancelled' as const) : null
  if (attempt.kind !== 'answered') {
    const code = cancelled ?? attempt.code
    return { outcome: attempt.kind, awaits: null, code, answer: null, store: null, ...times }
  }
  const { answer } = attempt
  const digest = page.doors.store.digest(sourceOf(answer))
  const outcome = outcomeOf(ticket, answer)
  const kept = held.key === null || ticket.does === 'read' ? null : neutral(answer)
  return { outcome, awaits: null, code: cancelled, answer: digest, store: kept, ...times }
}

function outcomeOf(ticket: Ticket, answer: Answer): Outcome {
  if (isFailure(answer)) return 'failed'
  if (ticket.does === 'read') return 'observed'
  return ticket.does === 'undeclared' ? 'answered' : 'committed'
}

function outward(page: Page, attempt: Ended): Reply {
  if (attempt.kind === 'answered') {
    return { kind: 'answered', answer: attempt.answer, replayed: false }
  }
  return refused(page, builtIn(codeOf(attempt)))
}

const refused = (page: Page, failure: Failure): Reply =>
  refusalOf(page.call, failure, tell(page.set, failure))

/** The refusal of a call that was not taken up at all: it has been recorded when this resolves. */
export const turnAway = (
  call: Call,
  code: 'too_many_calls' | 'draining',
  doors: Doors,
): Promise<Reply> => refuse(pageOf(call, doors), null, [builtIn(code)])

const pageOf = (call: Call, doors: Doors): Page => ({
  call,
  set: doors.policy(),
  args: doors.store.digest(canonical(call.args)),
  doors,
})

const draft = ({ call, set, args, doors }: Page, facts: Facts | null): Draft =>
  callDraft(call, { args, facts, key: keyOf(set, call), blank: blank(doors, call.client) })

const blank = (doors: Doors, client: Client): Draft =>
  blankDraft(client, { ts: doors.clock.nowUs(), policy: doors.policy().digest })
