// Requests on their way in one session: whose ids are taken, how many may fly, and how each ends.

import type { Channel, Hop, Said } from './channel.ts'
import type { Face } from '../wire/era.ts'
import type { Id, Request } from '../wire/message.ts'
import { type Shelf, shelf } from '../wire/shelf.ts'

/** What came in at once, on which channel, while anything of it is open. */
export type Place = {
  readonly channel: Channel
  /** The ids taken by requests that may still be answered. */
  readonly ids: Ids
  /** What is open; with the last the place is left. */
  stays: number
}

/** Requests by their ids. */
export type Ids = Pick<Shelf<Id, Flight>, 'get' | 'set' | 'delete'>

/** How a request counts. `call`: it takes a place of those that may be in flight at once; `stream`: it stays
 *  open for as long as its client wants. */
export type Weighs = 'call' | 'stream' | 'other'

/** One request on its way. `cancelled`: nothing more is said of it. `refuse`: the call is turned away.
 *  `weighs`: a call that is turned away weighs as `other`. */
export type Flight = {
  readonly request: Request
  readonly face: Face
  readonly receivedUs: number
  readonly stop: AbortController
  readonly refuse: 'too_many_calls' | 'draining' | null
  readonly weighs: Weighs
  readonly place: Place
  readonly number: number
  readonly hop: Hop | null
  cancelled: boolean
  /** It was answered, or needs no answer. */
  over: boolean
}

/** The flights of one session. */
export type Flights = {
  readonly options: FlightOptions
  /** The ids of a session whose requests share them. */
  readonly shared: Shelf<Id, Flight>
  /** Requests whose work has not ended, the cancelled ones too, by their numbers. */
  readonly inFlight: Shelf<number, Flight>
  /** Pieces of work that have not ended, and who waits for the last of them. */
  working: number
  readonly waiting: (() => void)[]
  /** The last number that was given. */
  last: number
  calls: number
  /** Of the requests in flight, calls that were cancelled. */
  cancelled: number
  streams: number
  draining: boolean
}

/** `ids`: whether a request's id is taken in the session or only in its channel. `failed` tells the client
 *  of what broke; `onReady` is called when `isReady` becomes true again. */
export type FlightOptions = {
  readonly calls: number
  readonly ids: 'session' | 'channel'
  readonly failed: (error: unknown, id: Id | null) => Said
  readonly write: (place: Place, said: Said) => void
  readonly onReady: () => void
}

/** Messages in work beside calls and streams before the session stops reading. */
const MAX_WAITING = 64
/** Cancelled calls whose outcome is still awaited: they hold no place of a call, but not without end. */
const MAX_CANCELLED = 1_024

/** No flights. */
export const flights = (options: FlightOptions): Flights => ({
  options,
  shared: shelf(),
  inFlight: shelf(),
  working: 0,
  waiting: [],
  last: 0,
  calls: 0,
  cancelled: 0,
  streams: 0,
  draining: false,
})

/** False while so much waits that no further message should be given. */
export const isReady = (self: Flights): boolean =>
  self.working - self.calls - self.cancelled - self.streams < MAX_WAITING

/** The place of what came in now on a channel, with one stay: `leave` ends it. */
export const arrive = ({ shared, options }: Flights, channel: Channel): Place => ({
  channel,
  ids: options.ids === 'session' ? shared : few(),
  stays: 1,
})

/** The ids of one channel, on which hardly more than one request comes in. */
function few(): Ids {
  const open: Flight[] = []
  const placeOf = (id: Id): number => open.findIndex(({ request }) => request.id === id)
  return {
    get: (id) => open[placeOf(id)],
    set: (_id, flight) => void open.push(flight),
    delete(id) {
      const place = placeOf(id)
      return place >= 0 && open.splice(place, 1).length > 0
    },
  }
}

/** Ends one stay; the last one tells the channel that it is done. */
export function leave(place: Place): void {
  if (--place.stays === 0) place.channel.done()
}

/** Counts a request in. It takes its id, and stays, until it is answered or cancelled. */
export function takeOff(
  self: Flights,
  what: Pick<Flight, 'request' | 'face' | 'receivedUs' | 'weighs' | 'hop' | 'place'>,
): Flight {
  const isCall = what.weighs === 'call'
  const full = self.calls >= self.options.calls || self.cancelled >= MAX_CANCELLED
  const refuse = !isCall ? null : self.draining ? 'draining' : full ? 'too_many_calls' : null
  const flight: Flight = {
    ...what,
    weighs: refuse === null ? what.weighs : 'other',
    stop: new AbortController(),
    refuse,
    number: ++self.last,
    cancelled: false,
    over: false,
  }
  what.place.stays++
  what.place.ids.set(what.request.id, flight)
  self.inFlight.set(flight.number, flight)
  return flight
}

/** Makes the response and says it, unless the request was cancelled meanwhile. */
export async function fly(
  self: Flights,
  flight: Flight,
  make: () => Promise<Said | null>,
): Promise<void> {
  const { id } = flight.request
  if (flight.weighs === 'call') self.calls++
  if (flight.weighs === 'stream') self.streams++
  self.working++
  try {
    let said: Said | null
    try {
      said = await make()
    } catch (error) {
      said = self.options.failed(error, id)
    } finally {
      land(self, flight)
    }
    if (flight.cancelled) return
    flight.over = true
    flight.place.ids.delete(id)
    if (said !== null) self.options.write(flight.place, said)
    leave(flight.place)
  } finally {
    ended(self)
  }
}

/** Runs one piece of work that is no request; what it gives is said. What breaks in it breaks nothing else. */
export async function work(
  self: Flights,
  place: Place,
  id: Id | null,
  run: () => Promise<Said | null>,
): Promise<void> {
  place.stays++
  self.working++
  try {
    const said = await run().catch((error: unknown) => self.options.failed(error, id))
    if (said !== null) self.options.write(place, said)
    leave(place)
  } finally {
    ended(self)
  }
}

/** Nothing more is said of the request, its id is free, and its work is told to stop. */
export function cancel(self: Flights, flight: Flight): void {
  if (flight.cancelled || flight.over) return
  // What goes on without its client takes no place from the calls that follow.
  if (flight.weighs === 'call' && self.inFlight.has(flight.number)) {
    self.calls--
    self.cancelled++
  }
  flight.cancelled = true
  const { place, request } = flight
  place.ids.delete(request.id)
  flight.stop.abort()
  leave(place)
}

/** Cancels what came in on a channel that its client closed. A legacy request goes on: there, a broken
 *  connection says nothing of what was asked over it. */
export function gone(self: Flights, channel: Channel): void {
  for (const flight of self.inFlight.values()) {
    if (flight.place.channel === channel && flight.face.era === 'modern') cancel(self, flight)
  }
}

/** Cancels every request in flight. */
export function cancelAll(self: Flights): void {
  for (const flight of self.inFlight.values()) cancel(self, flight)
}

/** Resolves when nothing is in work. */
export async function settled(self: Flights): Promise<void> {
  while (self.working > 0) await new Promise<void>((done) => void self.waiting.push(done))
}

/** The work of a request has ended. */
function land(self: Flights, flight: Flight): void {
  self.inFlight.delete(flight.number)
  if (flight.weighs === 'stream') self.streams--
  if (flight.weighs !== 'call') return
  if (flight.cancelled) self.cancelled--
  else self.calls--
}

/** One piece of work has ended. */
function ended(self: Flights): void {
  const was = isReady(self)
  self.working--
  if (self.working === 0) for (const done of self.waiting.splice(0)) done()
  if (!was && isReady(self)) self.options.onReady()
}
