// How a server over HTTP fares, as all who speak to it know it together: one patience, one burst, one attempt.

import { site, type Site, type SiteOptions } from './site.ts'

/** How many requests may start. A new connection is proved by a reply, or by living for a while. */
export type Gate = {
  /** Those that wait for their turn, oldest first, and whose they are. `go` starts one, if it still wants. */
  waiting: { readonly owner: object; readonly go: () => void }[]
  /** Requests on new connections that are not proved, and how many there may be. */
  starting: number
  window: number
  /** Requests without a reply. */
  silent: number
  /** Nothing is known of its health yet: it gets few requests at once. */
  careful: boolean
}

/** One that speaks to the server, in a session of its own or in none. */
export type Member = {
  /** The server is not spoken to until the next attempt. */
  readonly fall: (why: string) => void
  /** Asks anew what the server speaks, if that is this one's to find out. */
  readonly recheck: () => void
}

/** What all sessions with one server share. `attempt`: the one that is under way while it is not `healthy`. */
export type Health = {
  readonly site: Site
  readonly gate: Gate
  readonly members: Set<Member>
  healthy: boolean
  healthySince: number
  attempt: Promise<void> | null
  /** When the next attempt may be made. */
  dueAt: number
  failures: number
  broken: number
  /** It was given up because it cut its replies, and has answered no call since: that it greets and lists its
   *  tools says nothing of that. */
  cuts: boolean
}

/** A place for it, filled by the first who speaks to the server. */
export type Shared = { health: Health | null }

/** The wait before the first new attempt; it doubles with each that fails. Each wait is varied by a quarter,
 *  so that many gateways do not return to one server at the same time. */
const FIRST_WAIT_MS = 500
const MAX_WAIT_MS = 30_000
const MAX_DOUBLINGS = 16
/** Only a server that was well for so long takes the growth of the waits back. */
const SUSTAINED_MS = 60_000
/** Replies in a row that did not come whole, until a server counts as down. One may be the call's own fault. */
const MAX_BROKEN = 3
/** New connections at once of which nothing is known yet, at first and at most: what a server that closes
 *  them all is spared, however many calls wait. */
const FIRST_WINDOW = 4
const MAX_WINDOW = 256
/** The same for a server that has failed again: it has shown what it does to them. */
const ILL_WINDOW = 1
/** Requests without a reply while nothing is known of the server's health. */
const MAX_CAREFUL = 1

/** A server of which nothing is known yet. */
export const httpHealth = (options: SiteOptions): Health => ({
  site: site(options),
  gate: { waiting: [], starting: 0, window: FIRST_WINDOW, silent: 0, careful: true },
  members: new Set(),
  healthy: false,
  healthySince: 0,
  attempt: null,
  dueAt: 0,
  failures: 0,
  broken: 0,
  cuts: false,
})

/** True when one more request may start. */
export const hasRoom = (gate: Gate): boolean =>
  gate.starting < gate.window && (!gate.careful || gate.silent < MAX_CAREFUL)

/** Lets go whoever waits for a place that is free now. */
export function pump(gate: Gate): void {
  while (gate.waiting.length > 0 && hasRoom(gate)) gate.waiting.shift()?.go()
}

/** Nothing is feared of the server any more. */
export function trust(gate: Gate): void {
  if (!gate.careful) return
  gate.careful = false
  pump(gate)
}

/** One new connection is proved: so many more may start. */
export function widen(gate: Gate): void {
  gate.window = Math.min(MAX_WINDOW, gate.window + 1)
}

/** It was greeted. */
export function well(health: Health): void {
  if (!health.healthy) health.healthySince = performance.now()
  health.healthy = true
  health.broken = 0
}

/** It failed: the next attempt has to wait, whoever makes it. */
export function strike(health: Health, how: 'unreached' | 'broken' = 'unreached'): void {
  const now = performance.now()
  if (health.healthy && now - health.healthySince > SUSTAINED_MS) health.failures = 0
  const wait = Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** health.failures)
  health.failures = Math.min(health.failures + 1, MAX_DOUBLINGS)
  health.dueAt = now + wait * (0.75 + Math.random() / 2)
  health.healthy = false
  health.gate.careful = true
  health.cuts = how === 'broken'
  narrow(health)
}

function narrow({ gate, failures }: Health): void {
  gate.window = failures > 1 ? ILL_WINDOW : FIRST_WINDOW
}

/** A request was lost. For a server that nobody can reach, or that breaks what it says again and again, it is
 *  the same for all who speak to it. */
export function lost(health: Health, how: 'unreached' | 'broken', why: string): void {
  health.broken++
  narrow(health)
  if (!health.healthy) return
  const isMet = health.gate.careful || health.cuts || health.broken >= MAX_BROKEN
  if (how === 'broken' && !isMet) return
  strike(health, how)
  for (const member of health.members) member.fall(why)
}
