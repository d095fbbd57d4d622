// What a caller is told of a call that was not answered.

import { builtIn, type Failure, STOPPED } from '../decision.ts'
import { notKept } from '../egress/stored.ts'
import { tell } from '../policy/decide.ts'
import type { Opened, Stored } from '../ports.ts'
import { codeOf, echo, refusalOf, type Refused, type Reply } from '../refusal.ts'
import type { Ended } from './outcome.ts'
import type { Page } from './page.ts'

/** The refusal of a call, in the words of its policy. */
export const refused = (page: Page, failure: Failure): Refused =>
  refusalOf(page.call, failure, tell(page.set, failure))

/** The reply to a call that was allowed and not sent. */
export function withoutSending(page: Page, opened: Exclude<Opened, { kind: 'ticket' }>): Reply {
  if (opened.kind === 'replayed') return replayed(page, opened.stored)
  const code = STOPPED[opened.kind]
  const { parked } = page.round
  const isOver = opened.kind === 'revoked' || opened.kind === 'withheld'
  if (parked !== null && isOver) page.doors.upstreams.drop(parked, code)
  return refused(page, builtIn(code))
}

const replayed = ({ call }: Page, stored: Stored): Reply => ({
  kind: 'answered',
  answer: stored.answer ?? notKept(echo(call), stored),
  replayed: true,
})

/** The reply to a call that was sent. */
export function outward(page: Page, attempt: Ended): Reply {
  if (attempt.kind === 'answered') {
    const { answer, lacks } = attempt
    return { kind: 'answered', answer, replayed: false, ...(lacks === undefined ? {} : { lacks }) }
  }
  return refused(page, builtIn(codeOf(attempt)))
}
