// The Store on SQLite: requests go to the writer's thread, promises wait for its commit.

import { resolve } from 'node:path'

import { canonical, hmacOfPieces, hmacOfText } from '../canonical.ts'
import { STOPPED } from '../decision.ts'
import { parseStored } from '../egress/stored.ts'
import { Fault } from '../fault.ts'
import type { Draft } from '../ledger/entry.ts'
import type { ClientRow, Closing, Intent, Opened, Pin, Store, Ticket } from '../ports.ts'
import { STORE_LIMITS } from './limits.ts'
import { placeOf } from './place.ts'
import { type Recall, recallIn } from './recall.ts'
import { type Link, openLink } from './link.ts'
import { sealsOf } from './seal.ts'
import type { CloseWork, OpenDone, OpenWork, PinRow, SettleWork } from './wire.ts'

export { warmSqlite } from './link.ts'

/** What a store on SQLite is made of. `dir`: the state directory. `create`: whether a directory with
 *  nothing in it may become a new ledger. `policy`: the set in force, kept under its digest. `limits`:
 *  bytes of a stored answer; days in which a finished key is replayed and then refused. `minFreeBytes`:
 *  with less free space health is red. `say` gets lines for the operator. `onFatal`: nothing more can be
 *  recorded, everything that waited has been rejected, and the process must exit with the fault's status
 *  by `process.exit`, without closing anything. */
export type SqliteOptions = {
  readonly dir: string
  readonly create: boolean
  readonly policy: { readonly digest: string; readonly text: string }
  readonly limits: {
    readonly storedAnswerBytes: number
    readonly keyDays: number
    readonly keyRefusedDays: number
  }
  readonly minFreeBytes: number
  readonly say: (line: string) => void
  readonly onFatal: (fault: Fault) => void
}

/** The store in `dir`, checked and mended as the start-up table says, with its `start` record and lease.
 *  Errors: `Fault('state_refused')`: something is missing, open to others, or in use; the message says
 *  what to do. `Fault('state_tampered')`: the mirror says what the ledger does not. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const pins = new Map<string, Pin>()
  const clients = new Map<string, ClientRow>()
  const named = new Map<string, ClientRow>()
  const heardClients = (rows: readonly ClientRow[]): void => {
    setClients(clients, named, rows)
  }
  const owed: CloseWork[] = []
  const setup = {
    dir: resolve(options.dir),
    create: options.create,
    policy: options.policy,
    keptUs: options.limits.keyDays * DAY_US,
    refusedUs: options.limits.keyRefusedDays * DAY_US,
    minFreeBytes: options.minFreeBytes,
  }
  const state = { opened: false }
  const link = openLink(setup, {
    pins: (rows) => setPins(pins, rows),
    clients: heardClients,
    recordsAgain: () => payOwed(link, owed),
    say: options.say,
    fatal: (fault) => {
      // A start that fails is told to its caller alone.
      if (state.opened) options.onFatal(fault)
    },
  })
  const started = await link.started
  state.opened = true
  for (const line of started.said) options.say(line)
  setPins(pins, started.pins)
  heardClients(started.clients)
  return storeOn({
    link,
    pins,
    clients,
    named,
    owed,
    options,
    recall: recallIn(placeOf(setup.dir).ledger, setup),
    segment: started.segment,
    key: Buffer.from(started.key, 'hex'),
    sealKey: Buffer.from(started.sealKey, 'hex'),
  })
}

const DAY_US = 24 * 3600 * 1_000_000

type Desk = {
  readonly link: Link
  readonly pins: Map<string, Pin>
  readonly clients: ReadonlyMap<string, ClientRow>
  /** The same by name. */
  readonly named: ReadonlyMap<string, ClientRow>
  readonly owed: CloseWork[]
  readonly options: SqliteOptions
  readonly recall: Recall
  readonly segment: string
  readonly key: Uint8Array
  readonly sealKey: Uint8Array
}

/** What a ticket stands for; the store alone knows it. `row`: its key in `operations`; `desk`: its store. */
type Held = { readonly desk: Desk; readonly intent: Intent; readonly row: string; closes: number }

// On the ticket itself, under a name that nobody else has. A weak map from tickets would keep what each
// stands for alive until the next full collection.
const HELD: unique symbol = Symbol('held')
type Made = Pick<Ticket, 'operation' | 'does'> & { readonly [HELD]?: Held }
const heldOf = (ticket: Made): Held | undefined => ticket[HELD]

function storeOn(desk: Desk): Store {
  const { link, pins, segment, key } = desk
  const seals = sealsOf(desk.sealKey)
  const mint = (intent: Intent, row: string): Opened => {
    const held: Held = { desk, intent, row, closes: 0 }
    const operation = row === '' ? (intent.continues ?? intent.operation) : row
    const made: Made = { operation, does: intent.does, [HELD]: held }
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the one place that mints tickets
    return { kind: 'ticket', ticket: made as Ticket }
  }
  const record = async (
    draft: Draft,
    code: 'not_recorded' | 'outcome_not_recorded',
  ): Promise<void> => {
    await link.ask({ kind: 'record', draft, segment }, code)
  }
  return {
    digest: (text) => ({ ...hmacOfText(key, text), segment }),
    digester: () => digesterOf(desk),
    pins: () => pins,
    seal: (purpose, text, untilUs) => seals.seal(purpose, text, untilUs),
    unseal: (purpose, token, nowUs) => seals.unseal(purpose, token, nowUs),
    clients: () => desk.clients,
    async pin(list, client) {
      const works = list.map(({ tool, definition, state }) => {
        const text = canonical(definition.value)
        return { tool, hash: definition.hash, text, state }
      })
      await link.ask({ kind: 'pin', pins: works, client }, 'not_recorded')
    },
    recall: async (asked) => desk.recall.ask(asked),
    append: (draft) => record(draft, 'not_recorded'),
    async open(intent) {
      if (intent.does === 'read') return openRead(desk, intent, mint, record)
      const late = (done: OpenDone): void => giveBack(desk, intent, done)
      const done = await link.ask({ kind: 'open', work: openWork(intent) }, 'not_recorded', late)
      if (done === null) throw new Fault('internal', 'a claim was answered without its outcome')
      return done.kind === 'ticket' ? mint(intent, done.operation) : opened(done)
    },
    async close(ticket, closing) {
      const held = heldOf(ticket)
      if (held === undefined || held.desk !== desk) throw new Fault('outcome_not_recorded', FOREIGN)
      const again = held.closes++ > 0
      if (held.intent.does === 'read')
        return record(readDraft(held, closing, again), 'outcome_not_recorded')
      await closeMutation(desk, closeWork(desk, held, closing))
    },
    async settle(operation, closing) {
      await link.ask(
        { kind: 'settle', work: settleWork(desk, operation, closing) },
        'outcome_not_recorded',
      )
    },
    health: link.health,
    async stop() {
      desk.recall.close()
      await link.ask({ kind: 'stop' }, 'not_recorded')
    },
  }
}

function digesterOf({ key, segment }: Desk): ReturnType<Store['digester']> {
  const { add, end } = hmacOfPieces(key)
  return { add, end: () => ({ ...end(), segment }) }
}

const FOREIGN = 'outcome not recorded: the ticket is of another store'

/** A read is not claimed: its one record is written at its end. */
async function openRead(
  desk: Desk,
  intent: Intent,
  mint: (intent: Intent, row: string) => Opened,
  record: (draft: Draft, code: 'not_recorded') => Promise<void>,
): Promise<Opened> {
  const { pins, link } = desk
  if (!link.records()) throw new Fault('not_recorded', `not recorded: ${String(link.health())}`)
  const pinned = pins.get(`${intent.upstream}/${intent.tool}`)?.hash ?? null
  const changed = intent.pin !== null && pinned !== intent.pin
  const revoked = isRevoked(desk, intent)
  if (!changed && !revoked) return mint(intent, '')
  const kind = revoked ? 'revoked' : 'withheld'
  const code = STOPPED[kind]
  await record({ ...intent.draft, decision: 'deny', outcome: 'not_executed', code }, 'not_recorded')
  return { kind }
}

/** As of at most 1 s ago; a mutation asks the table itself. */
function isRevoked({ named }: Desk, { client, draft }: Intent): boolean {
  if (draft.identity !== 'token') return false
  const row = named.get(client)
  if (row === undefined || row.revokedUs !== null) return true
  return row.expiresUs !== null && row.expiresUs <= draft.ts
}

const openWork = (intent: Intent): OpenWork => ({
  attempt: intent.operation,
  draft: intent.draft,
  does: intent.does,
  client: intent.client,
  upstream: intent.upstream,
  tool: intent.tool,
  key: intent.key,
  honoured: intent.honoured,
  argsDigest: intent.args.digest,
  segment: intent.args.segment,
  pin: intent.pin,
  continues: intent.continues,
  round: intent.round,
})

function opened(done: Exclude<OpenDone, { readonly kind: 'ticket' }>): Opened {
  if (done.kind !== 'replayed') return { kind: done.kind }
  const { answer, digest, bytes, failed } = done
  const stored = { answer: answer === null ? null : parseStored(answer), digest, bytes, failed }
  return { kind: 'replayed', stored }
}

/** A claim that was committed after its caller had been told that it was not: nothing was sent. */
function giveBack(desk: Desk, intent: Intent, done: OpenDone): void {
  if (done.kind !== 'ticket') return
  const held = { desk, intent, row: done.operation, closes: 0 }
  const nowUs = Date.now() * 1_000
  const closing: Closing = {
    outcome: 'unsent',
    awaits: null,
    code: 'not_recorded',
    answer: null,
    store: null,
    durationUs: nowUs - intent.draft.ts,
    nowUs,
  }
  // It is owed when it fails, and tried again.
  closeMutation(desk, closeWork(desk, held, closing)).catch(() => undefined)
}

async function closeMutation({ link, owed }: Desk, work: CloseWork): Promise<void> {
  try {
    await link.ask({ kind: 'close', work }, 'outcome_not_recorded')
  } catch (error) {
    // The caller is told that it is not recorded; when the disk is well again it shall be.
    owe(owed, work)
    throw error
  }
}

// What there is no room for becomes unknown when this process ends, as every open send does.
function owe(owed: CloseWork[], work: CloseWork): void {
  if (owed.length < STORE_LIMITS.owed) owed.push(work)
}

function payOwed(link: Link, owed: CloseWork[]): void {
  for (const work of owed.splice(0)) {
    link.ask({ kind: 'close', work }, 'outcome_not_recorded').catch(() => owe(owed, work))
  }
}

function outcomeDraft({ intent }: Held, closing: Closing): Draft {
  return {
    ...intent.draft,
    ts: closing.nowUs,
    outcome: closing.outcome,
    code: closing.code,
    result_digest: closing.answer?.digest ?? null,
    result_bytes: closing.answer?.bytes ?? null,
    duration_us: closing.durationUs,
  }
}

const awaits = ({ awaits: what }: Closing): Draft['more'] => (what === null ? {} : { awaits: what })

function readDraft(held: Held, closing: Closing, again: boolean): Draft {
  const { continues, operation } = held.intent
  const plain: Draft = { ...outcomeDraft(held, closing), kind: 'call' }
  // One of several rounds: without a row, only its record tells which operation it is of.
  const draft: Draft =
    continues === null && closing.awaits === null
      ? plain
      : { ...plain, more: { ...plain.more, ...awaits(closing), operation: continues ?? operation } }
  if (!again) return draft
  return { ...draft, outcome: 'late', more: { ...draft.more, late_outcome: closing.outcome } }
}

function settleWork({ options }: Desk, operation: string, closing: Closing): SettleWork {
  const { store, answer } = closing
  const kept = store !== null && Buffer.byteLength(store) <= options.limits.storedAnswerBytes
  return {
    operation,
    outcome: closing.outcome,
    code: closing.code,
    resultDigest: answer?.digest ?? null,
    resultBytes: answer?.bytes ?? null,
    durationUs: closing.durationUs,
    stored: kept ? store : null,
    nowUs: closing.nowUs,
  }
}

function closeWork({ options }: Desk, held: Held, closing: Closing): CloseWork {
  const { intent, row } = held
  const { store } = closing
  const kept = store !== null && Buffer.byteLength(store) <= options.limits.storedAnswerBytes
  return {
    operation: row,
    attempt: intent.operation,
    segment: intent.args.segment,
    draft: { ...outcomeDraft(held, closing), kind: 'outcome' },
    outcome: closing.outcome,
    awaits: closing.awaits,
    stored: kept && intent.key !== null ? store : null,
    nowUs: closing.nowUs,
  }
}

function setClients(
  clients: Map<string, ClientRow>,
  named: Map<string, ClientRow>,
  rows: readonly ClientRow[],
): void {
  clients.clear()
  named.clear()
  for (const row of rows) {
    clients.set(row.digest, row)
    named.set(row.name, row)
  }
}

function setPins(pins: Map<string, Pin>, rows: readonly PinRow[]): void {
  pins.clear()
  for (const [tool, hash, waiting] of rows) pins.set(tool, { tool, hash, waiting })
}
