// The master secret of a ledger, from which each segment's key comes.

import { randomBytes } from 'node:crypto'
import { closeSync, constants, fsyncSync, openSync, readSync, writeSync } from 'node:fs'

import { createFile, refused, syncDirectory, type Place } from './place.ts'

const SECRET_BYTES = 32
/** 64 hex digits and an LF. */
const FILE_BYTES = SECRET_BYTES * 2 + 1

/** Makes the secret, durable when it returns. Throws where one is there. */
export function createMaster({ keys, master }: Place): void {
  const text = `${randomBytes(SECRET_BYTES).toString('hex')}\n`
  const fd = createFile(master)
  try {
    if (writeSync(fd, text) !== FILE_BYTES) throw refused(`${master} could not be written whole`)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  syncDirectory(keys)
}

/** The secret. Errors: `Fault('state_refused')` when it is not as it was made. */
export function readMaster({ master }: Place): Uint8Array {
  const fd = openSync(master, constants.O_RDONLY | constants.O_NOFOLLOW)
  const bytes = Buffer.alloc(FILE_BYTES + 1)
  let length: number
  try {
    length = readSync(fd, bytes)
  } finally {
    closeSync(fd)
  }
  const text = bytes.toString('latin1', 0, length)
  if (!/^[0-9a-f]{64}\n$/.test(text)) {
    throw refused(
      `${master} is damaged; put it back from a backup: without it digests cannot be proved`,
    )
  }
  return new Uint8Array(Buffer.from(text, 'hex'))
}
