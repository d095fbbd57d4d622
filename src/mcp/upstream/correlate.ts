// Which request a message of a server is about, where no field says so.

/** One request under way, as far as it may be meant. `waits`: it is asked already, or was told to stop. */
export type Candidate<T> = {
  readonly of: T
  readonly client: string | null
  readonly waits: boolean
}

/** The only one that can be meant. One that waits is not the one that speaks now while another one of the same
 *  client runs; were it, that client would see its own question beside another call of its own, and the
 *  answer would reach the server where it was asked. Across clients nothing is supposed. */
export function only<T>(candidates: Iterable<Candidate<T>>): T | 'none' | 'several' {
  let running: Candidate<T> | null = null
  let waiting: Candidate<T> | null = null
  let count = 0
  const clients = new Set<string | null>()
  for (const one of candidates) {
    clients.add(one.client)
    if (clients.size > 1) return 'several'
    if (one.waits) {
      waiting = one
      count++
    } else if (running !== null) return 'several'
    else running = one
  }
  if (running !== null) return running.of
  if (waiting === null) return 'none'
  return count === 1 ? waiting.of : 'several'
}
