// The main thread's end of the line to the writer: requests out in batches, promises kept, waits bounded.

import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'

import { Fault, type FaultCode } from '../fault.ts'
import { placeOf } from './place.ts'
import { promisesOf } from './promises.ts'
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
  /** Resolves with what the writer had to say, once it has started. */
  readonly started: Promise<Started>
}

/** Who is told of what the writer says by itself. */
export type Ears = {
  readonly pins: (pins: readonly PinRow[]) => void
  readonly healthy: () => void
  readonly say: (line: string) => void
  readonly fatal: (fault: Fault) => void
}

let spare: Worker | null = null

/** Starts a writer's thread ahead of `openSqlite`, so that its start overlaps with other work. */
export function warmSqlite(): void {
  spare ??= spawn()
}

function spawn(): Worker {
  // Beside this file: source under type stripping, JavaScript in the package.
  const name = import.meta.url.endsWith('.ts') ? './writer.ts' : './writer.js'
  const worker = new Worker(new URL(name, import.meta.url), {
    name: 'ledger',
    // Node 22 calls its SQLite experimental in every thread; MCP clients show stderr as errors.
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  // Only from then on is it heeded.
  worker.once('online', () => worker.unref())
  return worker
}

/** Opens the line and hands the writer its setup. */
export function openLink(setup: Setup, ears: Ears): Link {
  const worker = spare ?? spawn()
  spare = null
  const promises = promisesOf(worker)
  let health: true | string = true
  let over: Fault | null = null
  let outbox: string[] = []

  const flush = (): void => {
    const batch = outbox
    outbox = []
    if (over === null) worker.postMessage(`[${batch.join(',')}]`)
  }
  const end = (fault: Fault): void => {
    if (over !== null) return
    over = fault
    health = fault.message
    clearInterval(guard)
    promises.rejectAll(fault.message)
  }
  const guard = setInterval(() => {
    if (promises.rejectOld(HANGS) > 0) health = HANGS
  }, GUARD_MS)
  guard.unref()

  const started = new Promise<Started>((resolve, reject) => {
    const hear = (message: Message): void => {
      switch (message.kind) {
        case 'started':
          worker.unref()
          return resolve(message)
        case 'replies':
          return promises.settle(message.replies)
        case 'pins':
          return ears.pins(message.pins)
        case 'say':
          return ears.say(message.line)
        case 'health':
          health = message.health
          if (health === true) ears.healthy()
          return
        case 'broken': {
          const fault = new Fault(message.code, message.why)
          worker.unref()
          reject(fault)
          if (over === null) fatal(setup, fault, { end, ears })
          return
        }
      }
    }
    worker.on('message', (text: string) => hear(fromWire.message(text)))
    worker.on('error', (error) => {
      const fault = new Fault('internal', 'the ledger thread failed; report this as a defect', {
        cause: error,
      })
      reject(fault)
      end(fault)
      ears.fatal(fault)
    })
    worker.on('exit', () => end(new Fault('not_recorded', 'the ledger is closed')))
  })
  worker.once('online', () => worker.ref())
  worker.ref()
  worker.postMessage(JSON.stringify(setup))
  return {
    started,
    health: () => health,
    ask(wish, code, late) {
      if (over !== null) return Promise.reject(new Fault(code, `not recorded: ${over.message}`))
      if (promises.full()) return Promise.reject(new Fault(code, `not recorded: ${TOO_MANY}`))
      const id = promises.nextId()
      const text = JSON.stringify({ ...wish, id })
      if (outbox.length === 0) setImmediate(flush)
      outbox.push(text)
      return promises.wait(id, { code, chars: text.length, late })
    },
  }
}

const GUARD_MS = 1_000
const HANGS = 'the ledger does not answer: its disk hangs; check the disk'
const TOO_MANY = 'too many records wait for the disk; ask again later'

// After a failed sync the writer's connection must outlive the process: closed by the exit, it would
// copy the log into the database and sync, as if nothing had been. A second connection prevents that.
const kept: DatabaseSync[] = []
function fatal(
  setup: Setup,
  fault: Fault,
  { end, ears }: { readonly end: (fault: Fault) => void; readonly ears: Ears },
): void {
  if (fault.code === 'sync_failed') keepOpen(placeOf(setup.dir).ledger)
  end(fault)
  ears.fatal(fault)
}

function keepOpen(file: string): void {
  try {
    const db = new DatabaseSync(file, { readOnly: true, timeout: 0 })
    kept.push(db)
    db.prepare('SELECT count(*) FROM meta').get()
  } catch {
    // The disk is failing; what is promised is to go, and that follows.
  }
}
