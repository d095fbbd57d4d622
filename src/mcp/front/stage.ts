// What serving one request needs of the session it happens in.

import type { Asks, Client, Responses, Transport } from '../../call.ts'
import { type Doors, recordCounts } from '../../gateway.ts'
import type { JsonObject } from '../../json.ts'
import type { Asking } from './asks.ts'
import { type Changes, changes } from './changes.ts'
import { type Said, STATUS, type Weight } from './channel.ts'
import type { Session } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import { noticeText } from './render.ts'
import { type Routes, routes } from './routes.ts'
import { type Subscriptions, subscriptions } from './subscriptions.ts'
import { type Tally, tally } from './tally.ts'
import { LOOK, type Scene, view } from './views.ts'

/** Why a message is refused. `problem` is recorded, the rest is told. */
export type Told = {
  readonly problem: string
  readonly rpc: number
  readonly message: string
  readonly data: JsonObject | null
}

/** The session as those see it who serve one request. */
export type Stage = {
  readonly scene: Scene
  readonly routes: Routes
  /** The lists that a legacy client was shown. */
  readonly changes: Changes
  /** What a legacy client subscribed to, and the streams that a modern one listens on. */
  readonly subscriptions: Subscriptions
  readonly tally: Tally
  readonly transport: Transport
  /** Says what belongs to no request. */
  readonly write: (message: string, weight: Weight) => boolean
  /** Says a notice on the channel of a request, while anything may be said of it. */
  readonly tell: (flight: Flight, message: string) => boolean
  /** Says the first message of a stream; it is not dropped. */
  readonly begin: (flight: Flight, message: string) => boolean
  /** True once nothing new is begun. */
  readonly isDraining: () => boolean
  /** Asks the client what a server wants in the middle of a call. */
  readonly ask: (flight: Flight, asks: Asks, signal: AbortSignal) => Promise<Responses | null>
  readonly session: () => Session | null
  readonly setLevel: (level: string) => void
}

/** Serves one method: its response, or null when there is none to give. Records come first: what is refused
 *  is in the ledger when it resolves. Rejects with a `Fault` of the store. */
export type Serves = (stage: Stage, flight: Flight) => Promise<Said | null>

/** What a stage is made of: whose it is, and what changes while the session lives. */
export type StageOptions = {
  readonly client: Client
  readonly doors: Doors
  readonly transport: Transport
  readonly version: string
  readonly say: (line: string) => void
  readonly write: (message: string, weight: Weight) => boolean
}

/** What of a session changes while it lives. `silent`: its client is gone and hears nothing more. */
export type Living = {
  readonly asking: Asking
  session: Session | null
  silent: boolean
  readonly isDraining: () => boolean
}

/** The stage of a session. `self` is asked each time. */
export function stageOf(options: StageOptions, self: () => Living): Stage {
  const { client, doors, version, transport } = options
  const scene = { client, doors, version, say: sayOnce(options.say) }
  const write: Stage['write'] = (message, weight) =>
    !self().silent && options.write(message, weight)
  const writeTo = ({ cancelled, place }: Flight, message: string, weight: Weight): boolean =>
    !self().silent && !cancelled && place.channel.write(message, { weight, status: STATUS.ok })
  return {
    scene,
    routes: routes(),
    transport,
    write,
    session: () => self().session,
    isDraining: () => self().isDraining(),
    setLevel(level) {
      const one = self()
      if (one.session !== null) one.session = { ...one.session, level }
    },
    tally: tally(
      (counts) => recordCounts(doors, client, { transport, counts }),
      () => scene.say('what was counted could not be recorded; it is kept for the next time'),
    ),
    changes: changes({
      look: async (kind) => (await view(scene, LOOK, kind)).view,
      tell: (method) => write(noticeText(method, null), 'notice'),
      failed: () => scene.say('a changed list could not be recorded and is not announced'),
    }),
    subscriptions: subscriptions(scene, (params) => {
      write(noticeText('notifications/resources/updated', params), 'notice')
    }),
    tell: (flight, message) => writeTo(flight, message, 'notice'),
    begin: (flight, message) => writeTo(flight, message, 'ask'),
    ask: (flight, asks, signal) =>
      self().asking.ask(asks, {
        version: flight.face.version,
        signal,
        write: (message, weight) =>
          !self().silent && flight.place.channel.write(message, { weight, status: STATUS.ok }),
      }),
  }
}

/** Lines remembered as said; beyond them a line may be said again. */
const MAX_SAID = 1_000

function sayOnce(say: (line: string) => void): (line: string) => void {
  const said = new Set<string>()
  return (line) => {
    if (said.has(line)) return
    if (said.size >= MAX_SAID) said.clear()
    said.add(line)
    say(line)
  }
}
