// `eclusa clock accept`: a person says that the clock is right, although the ledger has later records.

import { parseArgs } from 'node:util'

import { EXIT } from '../fault.ts'
import { timeText } from '../store/clock.ts'
import { acceptClock } from '../store/reader.ts'
import type { Io } from './io.ts'
import { stateFor } from './place.ts'

/** `clock accept [--state DIR]`: the next start is not refused for the clock. It is a verb and no flag, so that
 *  nothing that starts the program again and again can carry it along; the record names the
 *  operating-system user. Exit 1 when the clock is not behind: nothing was written then. */
export async function clockAccept(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({ args, options: { state: { type: 'string' } } })
  const dir = stateFor(values.state, io)
  io.err(`eclusa: state directory ${dir}`)
  const { behind } = acceptClock(dir)
  if (behind === null) {
    io.err('eclusa: the clock is not behind the ledger, so that there is nothing to accept')
    return EXIT.finding
  }
  const { ledgerUs, nowUs } = behind
  io.err(
    `eclusa: the clock is accepted: ${timeText(nowUs)}, after records of ${timeText(ledgerUs)}; it is recorded in your name`,
  )
  return EXIT.ok
}
