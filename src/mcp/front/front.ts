// One session or desk of one client: messages in, messages out. It has no input or output of its own.

import type { Client, Transport } from '../../call.ts'
import { Fault } from '../../fault.ts'
import type { Doors } from '../../gateway.ts'
import { type Json, type JsonLimits, type JsonObject, object } from '../../json.ts'
import type { ListKind } from '../../ports.ts'
import { unrecorded } from '../../refusal.ts'
import { asking, type Asking } from './asks.ts'
import { isCall } from './calls.ts'
import { type Channel, type Hop, type Said, STATUS, type Weight } from './channel.ts'
import {
  BATCH_VERSION,
  capabilitiesOf,
  type Face,
  isModern,
  isWanted,
  negotiated,
  readFace,
  type Session,
} from '../wire/era.ts'
import {
  cancel,
  cancelAll,
  arrive,
  flights,
  type Flights,
  fly,
  gone,
  isReady,
  leave,
  type Place,
  settled,
  takeOff,
  type Weighs,
  work,
} from './flights.ts'
import {
  type Id,
  type Line,
  type Malformed,
  malformed,
  type Message,
  problemSentence,
  readLine,
  readMessage,
  type Request,
  RPC,
} from '../wire/message.ts'
import { cleanNotice, errorText, noticeText, resultText } from './render.ts'
import { invalid, refusedText } from './refuse.ts'
import { serve } from './serve.ts'
import { type Stage, stageOf, type Told } from './stage.ts'
import { initialize, LOOK } from './views.ts'

/** The ceilings that a session keeps; `calls` are those in flight at once. */
export type FrontLimits = {
  readonly requestBytes: number
  readonly depth: number
  readonly keys: number
  readonly nodes: number
  readonly calls: number
}

/** What one session needs: whose it is, the hall's doors, its ceilings, and where its messages go. */
export type FrontOptions = {
  readonly client: Client
  readonly doors: Doors
  readonly transport: Transport
  readonly limits: FrontLimits
  /** The gateway's own version. */
  readonly version: string
  /** Whether an id is taken in the whole session, or only in the channel on which it came: many requests
   *  over modern HTTP may bear one id. */
  readonly ids: 'session' | 'channel'
  /** What is served here; requests of another era are refused. */
  readonly eras: 'both' | 'modern' | 'legacy'
  /** Takes one message that belongs to no incoming one, without a line end. A `notice` may be dropped, then
   *  it gives false. */
  readonly write: (message: string, weight: Weight) => boolean
  /** Takes one line for the operator. */
  readonly say: (line: string) => void
  /** Called when `ready` becomes true again. */
  readonly onReady: () => void
}

/** One session of one client, or all that a modern client asks of one endpoint. No I/O of its own. */
export type Front = {
  /** Takes one line. Never throws; whatever comes of it is written to `channel` when it is known. */
  receive(line: Uint8Array, channel: Channel): void
  /** As `receive`, for a line of so many bytes that was read with `readLine` before. */
  take(read: Line, bytes: number, channel: Channel, hop?: Hop): void
  /** Records a message that the door itself refuses, then says the error. */
  refuse(
    what: { readonly id: Id | null; readonly method: string; readonly bytes?: number },
    told: Told,
    channel: Channel,
  ): void
  /** The client closed a channel: modern requests that came in on it are cancelled, legacy ones go on. */
  gone(channel: Channel): void
  /** What `initialize` agreed on; null before it, and always where only the modern era is served. */
  session(): Session | null
  /** A line of so many bytes was dropped because it was longer than the limit. */
  tooLong(bytes: number, channel: Channel): void
  /** False while so much waits that no further line should be given; calls in flight do not count, so a
   *  cancellation is always read. */
  ready(): boolean
  /** A server's list of this kind may have changed. */
  changed(kind: ListKind): void
  /** A server says that a resource was updated: the params of its notice. `of`: the client to whose own
   *  process or session it said so, which is not told to others; null for what may concern everybody. */
  updated(upstream: string, params: JsonObject, of: string | null): void
  /** A server logged something that belongs to no single call. `of` as above. */
  logged(params: JsonObject, of: string | null): void
  /** New calls are refused from now on, streams are ended; resolves when nothing is in flight. */
  drain(): Promise<void>
  /** The client is gone or its time is up: every request in flight is cancelled, nothing more is written. */
  abandon(): void
}

/** Messages in one batch. */
const MAX_BATCH = 100

/** A session that has heard nothing yet. */
export function front(options: FrontOptions): Front {
  const self = assemble(options)
  return {
    receive: (line, channel) =>
      take(self, { read: readLine(line, self.json), bytes: line.length }, channel),
    take: (read, bytes, channel, hop) => take(self, { read, bytes }, channel, hop),
    refuse: (what, told, channel) => at(self, channel, (place) => refuse(self, what, told, place)),
    gone: (channel) => gone(self.flights, channel),
    session: () => self.session,
    tooLong: (bytes, channel) =>
      at(self, channel, (place) => refuseMalformed(self, malformed('too_long', {}), place, bytes)),
    ready: () => isReady(self.flights),
    changed(kind) {
      self.stage.changes.changed(kind)
      self.stage.subscriptions.changed(kind)
    },
    updated(upstream, params, of) {
      if (concerns(self, of)) self.stage.subscriptions.updated(upstream, params)
    },
    logged(params, of) {
      if (concerns(self, of)) logged(self, params)
    },
    async drain() {
      self.flights.draining = true
      self.stage.subscriptions.end()
      await settled(self.flights)
      self.stage.changes.stop()
      self.stage.subscriptions.stop()
      await self.stage.tally.flush()
    },
    abandon() {
      self.silent = true
      self.asking.stop()
      cancelAll(self.flights)
      self.stage.subscriptions.stop()
    },
  }
}

type Self = {
  readonly stage: Stage
  readonly flights: Flights
  readonly asking: Asking
  readonly json: JsonLimits
  readonly eras: FrontOptions['eras']
  session: Session | null
  /** Resolves when `initialize` was answered: nothing of the session is said before. */
  greeted: Promise<void>
  silent: boolean
  readonly isDraining: () => boolean
}

/** Where one message came from. */
type From = { readonly place: Place; readonly hop: Hop | null }

function assemble(options: FrontOptions): Self {
  const { limits } = options
  const self: Self = {
    json: {
      bytes: limits.requestBytes,
      depth: limits.depth,
      keys: limits.keys,
      nodes: limits.nodes,
    },
    eras: options.eras,
    flights: flights({
      calls: limits.calls,
      ids: options.ids,
      onReady: options.onReady,
      failed: (error, id) => faultSaid(self, id, error),
      write: ({ channel }, said) => {
        if (!self.silent) channel.write(said.text, { weight: 'response', status: said.status })
      },
    }),
    asking: asking(),
    session: null,
    greeted: Promise.resolve(),
    silent: false,
    isDraining: () => self.flights.draining,
    stage: stageOf(options, () => self),
  }
  return self
}

/** Does it at a place of its own on the channel: whatever of it stays open keeps the place. */
function at(self: Self, channel: Channel, run: (place: Place) => void): void {
  const place = arrive(self.flights, channel)
  run(place)
  leave(place)
}

function take(
  self: Self,
  { read, bytes }: { readonly read: Line; readonly bytes: number },
  channel: Channel,
  hop: Hop | null = null,
): void {
  at(self, channel, (place) => {
    if (read.kind === 'batch') takeAll(self, read.elements, { place, hop })
    else takeOne(self, read, { place, hop }, bytes)
  })
}

function takeAll(self: Self, elements: readonly Json[], from: From): void {
  const problem =
    self.session?.version !== BATCH_VERSION
      ? 'batch'
      : elements.length === 0
        ? 'batch_empty'
        : elements.length > MAX_BATCH
          ? 'batch_too_long'
          : null
  if (problem !== null) return refuseMalformed(self, malformed(problem, {}), from.place)
  for (const element of elements) takeOne(self, readElement(element), from)
}

// Each element is a message of its own, but none may change what the others are read as.
function readElement(element: Json): Message {
  const message = readMessage(element)
  if (message.kind !== 'request') return message
  const { id, method, params } = message
  const isApart = method === 'initialize' || isModern(params)
  return isApart ? malformed('batch', { id, method }) : message
}

function takeOne(self: Self, message: Message, from: From, bytes?: number): void {
  if (message.kind === 'request') return begin(self, message, from)
  if (message.kind === 'malformed') return unread(self, message, from, bytes)
  if (message.kind === 'notification') notice(self, message.method, message.params, from.place)
  else if (!self.asking.answered(message)) self.stage.tally.add('responses')
}

function unread(self: Self, message: Malformed, { place }: From, bytes?: number): void {
  const { problem, id } = message
  if (problem !== 'response') return refuseMalformed(self, message, place, bytes)
  // Whoever gave an answer that cannot be read gives no other: what was asked is over.
  self.asking.answered({ kind: 'response', id, result: null })
  refuseMalformed(self, { ...message, id: null }, place, bytes)
}

const concerns = ({ stage }: Self, of: string | null): boolean =>
  of === null || of === stage.scene.client.name

// Only a session can be told what no request asked for.
function logged({ session, stage }: Self, params: JsonObject): void {
  if (session !== null && isWanted(params, session.level)) {
    stage.tally.add('logs')
    stage.write(noticeText('notifications/message', cleanNotice(params)), 'notice')
  }
}

/** Notifications are never answered, and none is passed on as it is. */
function notice(self: Self, method: string, params: Request['params'], place: Place): void {
  // A call without an id would be one that nobody has to answer for.
  if (isCall(method)) {
    return refuseMalformed(self, malformed('id_missing', { method, told: false }), place)
  }
  self.stage.tally.add('notifications')
  if (method !== 'notifications/cancelled') return
  const id = params?.['requestId']
  if (typeof id !== 'string' && typeof id !== 'number') return
  const flight = place.ids.get(id)
  if (flight !== undefined && flight.request.method !== 'initialize') cancel(self.flights, flight)
}

function refuseMalformed(self: Self, message: Malformed, place: Place, bytes?: number): void {
  const { id, problem, rpc, method, told } = message
  const from = bytes === undefined ? { id, method } : { id, method, bytes }
  void work(self.flights, place, id, async () => {
    const sentence = problemSentence(problem)
    const said = await invalid(self.stage, from, { problem, rpc, message: sentence, data: null })
      // What can only have been a notification is never answered, not even with a fault.
      .catch((error: unknown) => faultSaid(self, id, error))
    return told ? said : null
  })
}

function refuse(
  self: Self,
  what: { readonly id: Id | null; readonly method: string; readonly bytes?: number },
  told: Told,
  place: Place,
): void {
  void work(self.flights, place, what.id, () => invalid(self.stage, what, told))
}

function begin(self: Self, request: Request, from: From): void {
  const { id, method, params } = request
  const { place } = from
  if (place.ids.get(id) !== undefined) refuse(self, request, ID_IN_USE, place)
  else if (method === 'initialize' && !isModern(params) && self.eras !== 'modern') {
    greet(self, request, place)
  } else if (method === 'ping' && self.session === null && !isModern(params)) {
    // A ping may come before the handshake.
    self.stage.tally.add('pings')
    self.flights.options.write(place, { text: resultText(id, '{}'), status: STATUS.ok })
  } else depart(self, request, from)
}

function depart(self: Self, request: Request, { place, hop }: From): void {
  const { method } = request
  const faced = readFace(request.params, self.session)
  if (faced.kind === 'refused') return refuse(self, request, faced, place)
  const { face } = faced
  if (face.era === 'modern' && self.eras === 'legacy') {
    return refuse(self, request, OTHER_ERA, place)
  }
  const weighs = weightOf(face, method)
  const receivedUs = self.stage.scene.doors.clock.nowUs()
  const flight = takeOff(self.flights, { request, face, receivedUs, weighs, hop, place })
  const { greeted } = self
  void fly(self.flights, flight, () =>
    flight.face.era === 'modern'
      ? serve(self.stage, flight)
      : greeted.then(() => serve(self.stage, flight)),
  )
}

const weightOf = ({ era }: Face, method: string): Weighs => {
  if (isCall(method)) return 'call'
  return era === 'modern' && method === 'subscriptions/listen' ? 'stream' : 'other'
}

const ID_IN_USE: Told = {
  problem: 'id_in_use',
  rpc: RPC.request,
  message: 'this id is in use by a request that was not answered yet; use another',
  data: null,
}
const OTHER_ERA: Told = {
  problem: 'era',
  rpc: RPC.request,
  message: 'this session speaks the revision of its initialize; send the request outside of it',
  data: null,
}

/** The handshake. The session stands at once, so that what follows on the input is read as its own. */
function greet(self: Self, request: Request, place: Place): void {
  const asked = request.params?.['protocolVersion']
  if (typeof asked !== 'string') {
    const message = 'params.protocolVersion must be a string'
    const told = { problem: 'protocol_version', rpc: RPC.params, message, data: null }
    return refuse(self, request, told, place)
  }
  const version = negotiated(asked)
  const capabilities = capabilitiesOf(version, request.params?.['capabilities'])
  self.session = { version, level: null, capabilities }
  const face: Face = { era: 'legacy', version, level: null, token: null, capabilities }
  const receivedUs = self.stage.scene.doors.clock.nowUs()
  const what = { request, face, receivedUs, weighs: 'other', hop: null, place } as const
  self.greeted = fly(self.flights, takeOff(self.flights, what), async () => ({
    text: resultText(request.id, await initialize(self.stage.scene, face)),
    status: STATUS.ok,
  }))
}

/** What the client is told of a fault: whether anything was sent, where that is known. */
function faultSaid(self: Self, id: Id | null, error: unknown): Said {
  const code = error instanceof Fault ? error.code : 'internal'
  if (code === 'not_recorded' || code === 'outcome_not_recorded') {
    const reply = unrecorded(code)
    if (reply.kind === 'refused') return refusedText(id, LOOK, reply, object({}))
  }
  self.stage.scene.doors.broken(error)
  const message = 'the gateway broke; check the state before you call again'
  return { text: errorText(id, { code: RPC.internal, message, data: null }), status: STATUS.ok }
}
