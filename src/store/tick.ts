// What the writer looks after twice a second: files that moved, the mirror's sync, pins, space, its lease.

import { statfsSync } from 'node:fs'

import { Fault } from '../fault.ts'
import { guarded, mirrorFollows, shareClients, sharePins, tellHealth, type Writer } from './desk.ts'
import { STORE_LIMITS } from './limits.ts'
import { look } from './place.ts'

/** Looks after everything once. True when a transaction is due. Throws what ends all writing. */
export function lookAfter(writer: Writer): boolean {
  const { room } = writer
  checkLedger(writer)
  const failed = mirrorFollows(writer, null)
  if (failed !== null) throw failed
  room.mirror.sync((error) => {
    if (error === null || writer.over) return
    guarded(writer, () => {
      throw error
    })
  })
  readOthers(writer)
  const now = performance.now()
  if (now - writer.lookedAt >= STORE_LIMITS.renewMs) {
    writer.lookedAt = now
    checkSpace(writer)
    room.lease.sweep()
  }
  tellHealth(writer)
  const due = now - writer.renewedAt >= STORE_LIMITS.renewMs
  // While commits fail each look is a try, so that health is good again soon after the disk is.
  return due || writer.mended.length > 0 || writer.trouble.commit !== null
}

// What is committed to a file that has lost its name is lost at the end of the process.
function checkLedger({ room, file }: Writer): void {
  const stats = look(room.place.ledger)
  if (stats !== null && stats.ino === file?.ino && stats.dev === file.dev) return
  throw new Fault(
    'state_tampered',
    `${room.place.ledger} was moved or replaced while eclusa runs; put it back, then start again`,
  )
}

/** Pins that another process approved or saw, and clients that were added or revoked. */
function readOthers(writer: Writer): void {
  const version = Number(writer.room.book.sql('PRAGMA data_version').get()?.['data_version'])
  if (version === writer.dataVersion) return
  writer.dataVersion = version
  sharePins(writer)
  shareClients(writer)
}

function checkSpace(writer: Writer): void {
  const { bavail, bsize } = statfsSync(writer.room.place.dir)
  const free = bavail * bsize
  writer.trouble.space =
    free >= writer.setup.minFreeBytes
      ? null
      : `only ${free} bytes are free for the ledger; free some space before it is full`
}
