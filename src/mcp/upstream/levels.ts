// How talkative a legacy server is: it has one log level for all, set to what the calls in flight want.

import { type Json, object } from '../../json.ts'
import { LEVELS } from '../wire/era.ts'
import type { Connection } from './upstream.ts'

/** The levels that the calls in flight on each connection want. */
export type Levels = {
  /** A call that wants this level, or none, is about to be sent. Resolves when the server was told, or does
   *  not answer, or need not be told; the result is to be called when the call is over. */
  readonly enter: (connection: Connection, level: Json | undefined) => Promise<() => void>
}

/** How long a call waits for its server to take the level. */
const LEVEL_MS = 1000

type Wanted = { readonly levels: Map<string, number>; told: string | null }

/** Nothing is wanted yet. */
export function upstreamLevels(): Levels {
  const all = new WeakMap<Connection, Wanted>()
  return {
    async enter(connection, level) {
      const { hop, hello } = connection
      const isBridged = hop.era === 'legacy' && hello.capabilities['logging'] !== undefined
      if (!isBridged || typeof level !== 'string' || !LEVELS.includes(level)) return () => undefined
      const wanted = all.get(connection) ?? { levels: new Map(), told: null }
      all.set(connection, wanted)
      count(wanted, level, 1)
      // A server that said more than is wanted now is only told when a call comes that it matters to: the
      // client's own level still holds for each message.
      const most = LEVELS.find((one) => wanted.levels.has(one))
      if (most !== undefined && most !== wanted.told) {
        wanted.told = most
        await connection.ask('logging/setLevel', object({ level: most }), LEVEL_MS)
      }
      return () => count(wanted, level, -1)
    },
  }
}

function count({ levels }: Wanted, level: string, by: number): void {
  const left = (levels.get(level) ?? 0) + by
  if (left > 0) levels.set(level, left)
  else levels.delete(level)
}
