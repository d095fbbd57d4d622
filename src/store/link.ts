// The main thread's end of the line to the writer: requests out in batches, promises kept, waits bounded.

import type { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'

import { Fault, type FaultCode } from '../fault.ts'
import type { ClientRow } from '../ports.ts'
import { type FormsOut, formsOut } from './forms.ts'
import { placeOf } from './place.ts'
import { type Promises, promisesOf } from './promises.ts'
import {
  fromWire,
  type Message,
  type OpenDone,
  type PinRow,
  type Request,
  type Setup,
} from './wire.ts'

/** A request without its number. */
export type Wish = Request extends infer One
  ? One extends Request
    ? Omit<One, 'id'>
    : never
  : never

/** What the writer said when it had started. */
export type Started = Extract<Message, { readonly kind: 'started' }>

/** The line to one writer. */
export type Link = {
  /** Resolves when the writer has done it. Rejects with a `Fault` of `code` when it was not done. `late`
   *  gets what is done after all, once the wait was given up. */
  readonly ask: (
    wish: Wish,
    code: FaultCode,
    late?: (done: OpenDone) => void,
  ) => Promise<OpenDone | null>
  readonly health: () => true | string
  /** False while nothing can be recorded; little space alone does not stop records. */
  readonly records: () => boolean
  /** Resolves with what the writer had to say, once it has started. */
  readonly started: Promise<Started>
}

/** Who is told of what the writer says by itself. */
export type Ears = {
  readonly pins: (pins: readonly PinRow[]) => void
  readonly clients: (clients: readonly ClientRow[]) => void
  readonly recordsAgain: () => void
  readonly say: (line: string) => void
  readonly fatal: (fault: Fault) => void
}

let spare: Worker | null = null

/** Starts a writer's thread ahead of `openSqlite`, so that its start overlaps with other work. */
export function warmSqlite(): void {
  spare ??= spawn()
}

/** Memory in which new objects of the thread begin. Little of it is alive at any time; left to itself, V8
 *  lets it grow to 192 MiB on a large machine. */
const YOUNG_MB = 24

function spawn(): Worker {
  // Beside this file: source under type stripping, JavaScript in the package.
  const name = import.meta.url.endsWith('.ts') ? './writer.ts' : './writer.js'
  const worker = new Worker(new URL(name, import.meta.url), {
    name: 'ledger',
    // Node 22 calls its SQLite experimental in every thread; MCP clients show stderr as errors.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  })
  // Only from then on is it heeded.
  worker.once('online', () => worker.unref())
  return worker
}

type State = {
  readonly setup: Setup
  readonly ears: Ears
  readonly worker: Worker
  readonly promises: Promises
  readonly forms: FormsOut
  health: true | string
  records: boolean
  over: Fault | null
  outbox: string[]
}

/** Opens the line and hands the writer its setup. */
export function openLink(setup: Setup, ears: Ears): Link {
  const worker = spare ?? spawn()
  spare = null
  const promises = promisesOf(worker)
  const well = { health: true, records: true } as const
  const forms = formsOut()
  const state: State = { setup, ears, worker, promises, forms, ...well, over: null, outbox: [] }
  const guard = setInterval(() => {
    if (state.over !== null) clearInterval(guard)
    else if (promises.rejectOld(HANGS) > 0) turn(state, HANGS, false)
  }, GUARD_MS)
  guard.unref()
  const started = listen(state)
  worker.once('online', () => worker.ref())
  worker.ref()
  worker.postMessage(JSON.stringify(setup))
  return {
    started,
    health: () => state.health,
    records: () => state.records,
    ask(wish, code, late) {
      const { over, outbox } = state
      if (over !== null) return Promise.reject(new Fault(code, `not recorded: ${over.message}`))
      if (promises.full()) return Promise.reject(new Fault(code, `not recorded: ${TOO_MANY}`))
      const id = promises.nextId()
      const request = { ...wish, id }
      const text = request.kind === 'record' ? state.forms.text(request) : JSON.stringify(request)
      // What is asked in one turn of the event loop goes over together, but not so much that the writer
      // would wait for us and we then for it.
      if (outbox.length === 0) setImmediate(() => flush(state))
      outbox.push(text)
      if (outbox.length === FLUSH_AT) flush(state)
      return promises.wait(id, { code, chars: text.length, late })
    },
  }
}

const GUARD_MS = 1_000
/** Requests that go over at once although the turn of the event loop is not over. */
const FLUSH_AT = 12
const HANGS = 'the ledger does not answer: its disk hangs; check the disk'
const TOO_MANY = 'too many records wait for the disk; ask again later'

function flush(state: State): void {
  const batch = state.outbox
  if (batch.length === 0) return
  state.outbox = []
  if (state.over === null) state.worker.postMessage(`[${batch.join(',')}]`)
}

/** Resolves when the writer has started, rejects when it could not. */
function listen(state: State): Promise<Started> {
  const { worker, ears } = state
  return new Promise((resolve, reject) => {
    worker.on('message', (text: string) => {
      const message = fromWire.message(text)
      if (message.kind === 'started') {
        worker.unref()
        resolve(message)
      } else if (message.kind === 'broken') {
        const fault = new Fault(message.code, message.why)
        worker.unref()
        reject(fault)
        breakDown(state, fault)
      } else hear(state, message)
    })
    worker.on('error', (error) => {
      const fault = new Fault('internal', 'the ledger thread failed; report this as a defect', {
        cause: error,
      })
      reject(fault)
      end(state, fault)
      ears.fatal(fault)
    })
    worker.on('exit', () => end(state, new Fault('not_recorded', 'the ledger is closed')))
  })
}

function hear(
  state: State,
  message: Exclude<Message, { readonly kind: 'started' | 'broken' }>,
): void {
  const { ears, promises } = state
  switch (message.kind) {
    case 'replies':
      // A disk that hung goes on.
      if (state.health === HANGS) turn(state, true, true)
      return promises.settle(message.replies)
    case 'pins':
      return ears.pins(message.pins)
    case 'clients':
      return ears.clients(message.clients)
    case 'say':
      return ears.say(message.line)
    case 'health':
      turn(state, message.health, message.records)
      if (message.records) ears.recordsAgain()
  }
}

/** Takes over what is known of the ledger's health. The operator hears of each turn: the agent is only told
 *  that nothing could be recorded, not why. */
function turn(state: State, health: true | string, records: boolean): void {
  const was = state.health
  state.health = health
  state.records = records
  if (was === true && health !== true) state.ears.say(`the ledger is in trouble: ${health}`)
  if (was !== true && health === true) state.ears.say('the ledger is well again')
}

function end(state: State, fault: Fault): void {
  if (state.over !== null) return
  state.over = fault
  state.health = fault.message
  state.records = false
  state.promises.rejectAll(fault.message)
}

// After a failed sync the writer's connection must outlive the process: closed by the exit, it would
// copy the log into the database and sync, as if nothing had been. A second connection prevents that.
const kept: DatabaseSync[] = []
function breakDown(state: State, fault: Fault): void {
  if (state.over !== null) return
  if (fault.code === 'sync_failed') keepOpen(placeOf(state.setup.dir).ledger)
  end(state, fault)
  state.ears.fatal(fault)
}

function keepOpen(file: string): void {
  // Loaded only now: the main thread has no other use for SQLite.
  const { DatabaseSync: Database } = process.getBuiltinModule('node:sqlite')
  try {
    const db = new Database(file, { readOnly: true, timeout: 0 })
    kept.push(db)
    db.prepare('SELECT count(*) FROM meta').get()
  } catch {
    // The disk is failing; what is promised is to go, and that follows.
  }
}
