// What servers ask of a legacy client, as real requests on its session, and the answers that count.

import type { Ask, Asks, Responses } from '../../call.ts'
import { type JsonObject, object } from '../../json.ts'
import type { Weight } from './channel.ts'
import type { Response } from '../wire/message.ts'
import { isAdmissible, shownAs } from './ask-shapes.ts'
import { type Shelf, shelf } from '../wire/shelf.ts'
import { noticeText, requestText } from './render.ts'

/** How long a client may take for what one round asks: a person may have to read. */
export const ASK_MS: number = 10 * 60 * 1000
/** Open requests of ours a session; a round that does not fit is not asked. */
export const MAX_ASKS = 64

/** To whom one round goes. `write` is the channel of the call that asks; false: it was dropped. */
export type AskLine = {
  readonly version: string
  readonly signal: AbortSignal
  readonly write: (message: string, weight: Weight) => boolean
}

/** The requests of ours in one session. */
export type Asking = {
  /** Asks all of one round at once. Resolves with an admissible answer to each, or with null: the call was
   *  cancelled, the client is gone, refused with an error, answered inadmissibly or did not in time. What
   *  this client's revision cannot show is declined for it. */
  ask(asks: Asks, line: AskLine): Promise<Responses | null>
  /** Takes a response; false when no open request of ours bears its id. */
  answered(response: Response): boolean
  /** Ends every round with null. */
  stop(): void
}

/** No requests. `askMs` is ASK_MS but for tests of the time itself. */
export function asking(askMs: number = ASK_MS): Asking {
  const open = shelf<string, Settle>()
  let count = 0
  let stopped = false
  return {
    async ask(asks, line) {
      const wanted = Object.entries(asks.asks)
      if (stopped || line.signal.aborted || open.size() + wanted.length > MAX_ASKS) return null
      const round = new AbortController()
      const timer = setTimeout(() => round.abort(), askMs)
      timer.unref()
      const signal = AbortSignal.any([line.signal, round.signal])
      const one = async ([key, ask]: readonly [string, Ask]): Promise<
        readonly [string, JsonObject] | null
      > => {
        const shown = shownAs(ask, line.version)
        if (shown.kind === 'declined') return [key, shown.response]
        const result = await request(
          { ask: shown.ask, id: `${PREFIX}${++count}`, open },
          { ...line, signal },
        )
        if (result !== null && isAdmissible(ask, result, line.version)) return [key, result]
        // One answer that is missing makes the round useless: the others need not be given any more.
        round.abort()
        return null
      }
      const made = await Promise.all(wanted.map(one))
      clearTimeout(timer)
      const whole = made.filter((pair) => pair !== null)
      return whole.length < made.length ? null : Object.fromEntries(whole)
    },
    answered({ id, result }) {
      const settle = typeof id === 'string' ? open.get(id) : undefined
      if (settle === undefined) return false
      settle(result)
      return true
    },
    stop() {
      stopped = true
      for (const settle of open.values()) settle(null)
    },
  }
}

type Settle = (result: JsonObject | null) => void

/** How the ids of our own requests begin. */
const PREFIX = 'eclusa-'

function request(
  {
    ask,
    id,
    open,
  }: {
    readonly ask: Ask
    readonly id: string
    readonly open: Shelf<string, Settle>
  },
  { write, signal }: AskLine,
): Promise<JsonObject | null> {
  const { promise, resolve } = Promise.withResolvers<JsonObject | null>()
  const settle = (result: JsonObject | null): void => {
    if (!open.delete(id)) return
    signal.removeEventListener('abort', aborted)
    resolve(result)
  }
  const aborted = (): void => {
    const params = object({ requestId: id, reason: 'the call that asked is over' })
    write(noticeText('notifications/cancelled', params), 'notice')
    settle(null)
  }
  open.set(id, settle)
  signal.addEventListener('abort', aborted)
  if (signal.aborted) settle(null)
  else if (!write(requestText(id, ask.method, ask.params), 'ask')) settle(null)
  return promise
}
