// The writer's thread: what waits is committed together, then mirrored, then answered.

import { parentPort } from 'node:worker_threads'

import { commitBatch, startFault, type Committed } from './batch.ts'
import { readClients } from './clients.ts'
import { guarded, mirrorFollows, refuse, sharePins, tellHealth, type Writer } from './desk.ts'
import { inboxOf, type Waiting } from './inbox.ts'
import { STORE_LIMITS } from './limits.ts'
import { readPins } from './pins.ts'
import { look } from './place.ts'
import { openRoom, type Room } from './start.ts'
import { lookAfter } from './tick.ts'
import { troubleOf } from './trouble.ts'
import { fromWire, type Message, type Reply } from './wire.ts'

const port = parentPort
if (port === null) throw new TypeError('this file runs in a worker thread only')
const tell = (message: Message): void => port.postMessage(JSON.stringify(message))

// The first message is the setup, so that the thread can be on its way before the setup is known.
port.once('message', (text: string) => {
  const setup = fromWire.setup(text)
  let room: Room
  try {
    room = openRoom(setup)
  } catch (error) {
    const { code, message } = startFault(error)
    tell({ kind: 'broken', code, why: message })
    // After a failed sync the thread stays: its end would close the ledger, and sync.
    if (code === 'sync_failed') port.on('message', () => undefined)
    else port.close()
    return
  }
  const pins = readPins(room.book)
  const clients = readClients(room.book)
  const key = Buffer.from(room.key).toString('hex')
  const sealKey = Buffer.from(room.sealKey).toString('hex')
  tell({ kind: 'started', segment: room.segment, key, sealKey, said: room.said, pins, clients })
  serve({
    room,
    setup,
    inbox: inboxOf(port),
    tell,
    mended: [],
    late: false,
    over: false,
    renewedAt: performance.now(),
    lookedAt: Number.NEGATIVE_INFINITY,
    health: true,
    file: look(room.place.ledger),
    pins: JSON.stringify(pins),
    clients: JSON.stringify(clients),
    dataVersion: -1,
    trouble: { commit: null, mirror: null, space: null },
  })
})

function serve(writer: Writer): void {
  const { inbox } = writer
  const work = (): void => {
    inbox.drain()
    if (writer.over || inbox.size() === 0) return
    cycle(writer, inbox.next())
    // Through the event loop, so that timers have their turn under any load.
    if (inbox.size() > 0) setImmediate(work)
  }
  port?.on('message', (text: string) => {
    if (writer.over) return
    inbox.take(text)
    work()
  })
  const ticking = setInterval(() => {
    if (writer.over) return clearInterval(ticking)
    guarded(writer, () => {
      if (lookAfter(writer)) cycle(writer, inbox.next())
    })
    // What arrived while that transaction waited for the lock will send no second message.
    work()
  }, STORE_LIMITS.tickMs)
}

/** One transaction and what follows it. Every one of `waiting` is answered, unless the writer breaks. */
function cycle(writer: Writer, waiting: Waiting[]): void {
  guarded(writer, () => {
    const taken = catchUp(writer, waiting)
    const committed = commit(writer, taken)
    if (committed === null) return
    writer.trouble.commit = null
    if (committed.pins) sharePins(writer)
    const after = mirrorFollows(writer, committed.fresh)
    const last = taken.at(-1)?.request
    const stop = last?.kind === 'stop' ? last.id : null
    answer(
      writer,
      committed.replies.filter(({ id }) => id !== stop),
    )
    tellHealth(writer)
    if (after !== null) throw after
    if (stop !== null) finish(writer, stop)
    else if (writer.room.book.pages() > STORE_LIMITS.checkpointPages) trimLog(writer)
  })
}

const ENDS: ReadonlySet<string> = new Set(['close', 'settle', 'stop'])

/** While the mirror cannot be written nothing new is begun; what has been sent is still recorded. */
function catchUp(writer: Writer, waiting: Waiting[]): Waiting[] {
  if (writer.trouble.mirror === null) return waiting
  const failed = mirrorFollows(writer, null)
  if (failed !== null) throw failed
  const why = writer.trouble.mirror
  if (why === null) return waiting
  const ends = waiting.filter(({ request }) => ENDS.has(request.kind))
  refuse(
    writer,
    waiting.filter((one) => !ends.includes(one)),
    why,
  )
  return ends
}

/** Null when nothing was committed: everything has been answered then. */
function commit(writer: Writer, taken: Waiting[]): Committed | null {
  const { room, inbox } = writer
  const start = performance.now()
  const giveUp = (): boolean => {
    inbox.drain()
    const now = performance.now()
    const limit = STORE_LIMITS.lockWaitMs
    const late = taken.filter(({ since }) => now - since > limit)
    if (late.length > 0) {
      for (const one of late) taken.splice(taken.indexOf(one), 1)
      writer.trouble.commit = HELD
      tellHealth(writer)
      refuse(writer, late, HELD)
    }
    return taken.length === 0 && now - start > (late.length > 0 ? 0 : STORE_LIMITS.mirrorWaitMs)
  }
  try {
    if (!room.turn.take(room.book.begin, giveUp)) return null
    const due = start - writer.renewedAt >= STORE_LIMITS.renewMs
    // A transaction that writes nothing would prove nothing of the disk.
    const renew = due || writer.trouble.commit !== null
    const { keptUs, refusedUs } = writer.setup
    const done = commitBatch(
      room,
      taken.map(({ request }) => request),
      { retention: { keptUs, refusedUs }, mended: writer.mended, renew },
    )
    writer.mended = []
    if (renew) writer.renewedAt = start
    return done
  } catch (error) {
    const trouble = troubleOf(error)
    if (trouble.kind !== 'refuse' && trouble.kind !== 'busy') throw error
    writer.trouble.commit = trouble.why
    tellHealth(writer)
    refuse(writer, taken, trouble.why)
    return null
  } finally {
    room.turn.ended()
  }
}

const HELD = 'another process has held the ledger for 5 s; see whether one of them is stopped'

/** Keeps the write-ahead log short. Where there is no room for that nothing is lost: the log has it all. */
function trimLog(writer: Writer): void {
  const { book, turn } = writer.room
  try {
    if (book.checkpoint() < STORE_LIMITS.logPages) return
    const start = performance.now()
    turn.take(book.renewLog, () => performance.now() - start > STORE_LIMITS.logWaitMs)
    turn.ended()
  } catch (error) {
    const { kind, why } = troubleOf(error)
    if (kind !== 'refuse' && kind !== 'busy') throw error
    writer.trouble.commit = why
    tellHealth(writer)
  }
}

function answer(writer: Writer, replies: readonly Reply[]): void {
  if (replies.length > 0) writer.tell({ kind: 'replies', replies })
}

function finish(writer: Writer, stop: number): void {
  const { book, mirror, lease, mirrorLock, turn } = writer.room
  writer.over = true
  mirror.syncNow()
  // By hand, so that the close has nothing left to sync.
  trimLog(writer)
  lease.close()
  mirrorLock.close()
  mirror.close()
  turn.close()
  book.close()
  answer(writer, [{ id: stop }])
  port?.close()
}
