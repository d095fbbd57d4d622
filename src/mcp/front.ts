// One session of one client: lines in, messages out. It has no input or output of its own.

import type { Client, Transport } from '../call.ts'
import { Fault } from '../fault.ts'
import { type Doors, recordCounts } from '../gateway.ts'
import type { Json, JsonLimits, JsonObject } from '../json.ts'
import type { ListKind } from '../ports.ts'
import { unrecorded } from '../refusal.ts'
import { isCall } from './calls.ts'
import { changes } from './changes.ts'
import {
  BATCH_VERSION,
  type Face,
  isModern,
  isWanted,
  LEGACY_VERSIONS,
  negotiated,
  readFace,
  type Session,
} from './era.ts'
import {
  type Id,
  type Malformed,
  malformed,
  type Message,
  problemSentence,
  readLine,
  readMessage,
  type Request,
  RPC,
} from './message.ts'
import { cleanNotice, errorText, noticeText, resultText } from './render.ts'
import { routes } from './routes.ts'
import { type Flight, invalid, refusedText, serve, type Stage, type Weight } from './serve.ts'
import { tally } from './tally.ts'
import { initialize, view } from './views.ts'

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
  /** Takes one message without a line end. A `notice` may be dropped, then it gives false. */
  readonly write: (message: string, weight: Weight) => boolean
  /** Takes one line for the operator. */
  readonly say: (line: string) => void
  /** Called when `ready` becomes true again. */
  readonly onReady: () => void
}

/** One session of one client: lines in, messages out, no I/O of its own. */
export type Front = {
  /** Takes one line. Never throws; whatever comes of it is written when it is known. */
  receive(line: Uint8Array): void
  /** A line of so many bytes was dropped because it was longer than the limit. */
  tooLong(bytes: number): void
  /** False while so much waits that no further line should be given; calls in flight do not count, so a
   *  cancellation is always read. */
  ready(): boolean
  /** A server's list of this kind may have changed. */
  changed(kind: ListKind): void
  /** A server logged something that belongs to no single call. */
  logged(params: JsonObject): void
  /** New calls are refused from now on; resolves when nothing is in flight. */
  drain(): Promise<void>
  /** The client is gone or its time is up: every request in flight is cancelled, nothing more is written. */
  abandon(): void
}

/** Messages in work beside the calls before the session stops reading. */
const MAX_WAITING = 64
/** Cancelled calls whose outcome is still awaited: they hold no place of a call, but not without end. */
const MAX_CANCELLED = 1_024
/** Messages in one batch. */
const MAX_BATCH = 100

/** A session that has heard nothing yet. */
export function front(options: FrontOptions): Front {
  const self = assemble(options)
  return {
    receive: (line) => receive(self, line),
    tooLong: (bytes) => refuseMalformed(self, malformed('too_long', {}), bytes),
    ready: () => isReady(self),
    changed: (kind) => self.stage.changes.changed(kind),
    logged: (params) => logged(self, params),
    async drain() {
      self.draining = true
      while (self.work.size > 0) await Promise.allSettled(self.work)
      self.stage.changes.stop()
      await self.stage.tally.flush()
    },
    abandon() {
      self.silent = true
      for (const flight of self.inFlight) cancel(self, flight)
    },
  }
}

type Self = {
  readonly stage: Stage
  readonly limits: FrontLimits
  readonly json: JsonLimits
  readonly onReady: () => void
  /** Requests that may still be answered. An id is free again once its request was answered or cancelled. */
  readonly flights: Map<Id, Flight>
  /** Requests whose work has not ended, the cancelled ones too. */
  readonly inFlight: Set<Flight>
  readonly work: Set<Promise<void>>
  session: Session | null
  /** Resolves when `initialize` was answered: nothing of the session is said before. */
  greeted: Promise<void>
  calls: number
  /** Of the requests in flight, calls that were cancelled. */
  cancelled: number
  draining: boolean
  silent: boolean
}

function assemble(options: FrontOptions): Self {
  const { client, doors, version, limits } = options
  const scene = { client, doors, version, say: sayOnce(options.say) }
  const self: Self = {
    limits,
    json: {
      bytes: limits.requestBytes,
      depth: limits.depth,
      keys: limits.keys,
      nodes: limits.nodes,
    },
    onReady: options.onReady,
    flights: new Map(),
    inFlight: new Set(),
    work: new Set(),
    session: null,
    greeted: Promise.resolve(),
    calls: 0,
    cancelled: 0,
    draining: false,
    silent: false,
    stage: {
      scene,
      routes: routes(),
      transport: options.transport,
      write: (message, weight) => !self.silent && options.write(message, weight),
      session: () => self.session,
      setLevel: (level) => {
        if (self.session !== null) self.session = { ...self.session, level }
      },
      tally: tally(
        (counts) => recordCounts(doors, client, { transport: options.transport, counts }),
        () => scene.say('what was counted could not be recorded; it is kept for the next time'),
      ),
      changes: changes({
        look: async (kind) => (await view(scene, LOOK, kind)).view,
        tell: (method) => self.stage.write(noticeText(method, null), 'notice'),
        failed: () => scene.say('a changed list could not be recorded and is not announced'),
      }),
    },
  }
  return self
}

/** The face of a look that is only compared, never sent. */
const LOOK: Face = { era: 'legacy', version: LEGACY_VERSIONS[0] ?? '', level: null, token: null }

const isReady = (self: Self): boolean => self.work.size - self.calls - self.cancelled < MAX_WAITING

function receive(self: Self, line: Uint8Array): void {
  const read = readLine(line, self.json)
  if (read.kind !== 'batch') return take(self, read, line.length)
  if (self.session?.version !== BATCH_VERSION) return refuseMalformed(self, malformed('batch', {}))
  if (read.elements.length === 0) return refuseMalformed(self, malformed('batch_empty', {}))
  if (read.elements.length > MAX_BATCH) {
    return refuseMalformed(self, malformed('batch_too_long', {}))
  }
  for (const element of read.elements) take(self, readElement(element))
}

// Each element is a message of its own, but none may change what the others are read as.
function readElement(element: Json): Message {
  const message = readMessage(element)
  if (message.kind !== 'request') return message
  const { id, method, params } = message
  const isApart = method === 'initialize' || isModern(params)
  return isApart ? malformed('batch', { id, method }) : message
}

function take(self: Self, message: Message, bytes?: number): void {
  switch (message.kind) {
    case 'request':
      return begin(self, message)
    case 'notification':
      return notice(self, message.method, message.params)
    case 'malformed':
      return refuseMalformed(self, message, bytes)
    case 'response':
      // We ask clients nothing, so a response answers nothing.
      return self.stage.tally.add('responses')
  }
}

// Only a session can be told what no request asked for.
function logged({ session, stage }: Self, params: JsonObject): void {
  if (session !== null && isWanted(params, session.level)) {
    stage.tally.add('logs')
    stage.write(noticeText('notifications/message', cleanNotice(params)), 'notice')
  }
}

/** Notifications are never answered, and none is passed on as it is. */
function notice(self: Self, method: string, params: Request['params']): void {
  // A call without an id would be one that nobody has to answer for.
  if (isCall(method)) return refuseMalformed(self, malformed('id_missing', { method, told: false }))
  self.stage.tally.add('notifications')
  if (method !== 'notifications/cancelled') return
  const id = params?.['requestId']
  if (typeof id !== 'string' && typeof id !== 'number') return
  const flight = self.flights.get(id)
  if (flight !== undefined && flight.request.method !== 'initialize') cancel(self, flight)
}

function cancel(self: Self, flight: Flight): void {
  // What goes on without its client takes no place from the calls that follow.
  if (flight.counts && !flight.cancelled) {
    self.calls--
    self.cancelled++
  }
  flight.cancelled = true
  if (self.flights.get(flight.request.id) === flight) self.flights.delete(flight.request.id)
  flight.stop.abort()
}

function refuseMalformed(self: Self, message: Malformed, bytes?: number): void {
  const { id, problem, rpc, method, told } = message
  const from = bytes === undefined ? { id, method } : { id, method, bytes }
  const sentence = problemSentence(problem)
  void work(self, id, async () => {
    const text = await invalid(self.stage, from, {
      problem,
      rpc,
      message: sentence,
      data: null,
    }).catch((error: unknown) => faultText(self, id, error))
    if (told) self.stage.write(text, 'response')
  })
}

function begin(self: Self, request: Request): void {
  const { id, method, params } = request
  if (self.flights.has(id)) {
    const message = 'this id is in use by a request that was not answered yet; use another'
    return refuseRequest(self, request, {
      problem: 'id_in_use',
      rpc: RPC.request,
      message,
      data: null,
    })
  }
  if (method === 'initialize' && !isModern(params)) return greet(self, request)
  // A ping may come before the handshake.
  if (method === 'ping' && self.session === null && !isModern(params)) {
    self.stage.tally.add('pings')
    self.stage.write(resultText(id, '{}'), 'response')
    return
  }
  const faced = readFace(params, self.session)
  if (faced.kind === 'refused') return refuseRequest(self, request, faced)
  const flight = takeOff(self, request, faced.face)
  const { greeted } = self
  void fly(self, flight, async () => {
    if (flight.face.era === 'legacy') await greeted
    return serve(self.stage, flight)
  })
}

function refuseRequest(self: Self, request: Request, told: Parameters<typeof invalid>[2]): void {
  void work(self, request.id, async () => {
    self.stage.write(await invalid(self.stage, request, told), 'response')
  })
}

/** The handshake. The session stands at once, so that what follows on the input is read as its own. */
function greet(self: Self, request: Request): void {
  const asked = request.params?.['protocolVersion']
  if (typeof asked !== 'string') {
    const message = 'params.protocolVersion must be a string'
    return refuseRequest(self, request, {
      problem: 'protocol_version',
      rpc: RPC.params,
      message,
      data: null,
    })
  }
  const version = negotiated(asked)
  self.session = { version, level: null }
  const face: Face = { era: 'legacy', version, level: null, token: null }
  self.greeted = fly(self, takeOff(self, request, face), async () =>
    resultText(request.id, await initialize(self.stage.scene, face)),
  )
}

function takeOff(self: Self, request: Request, face: Face): Flight {
  const isOne = isCall(request.method)
  const full = self.calls >= self.limits.calls || self.cancelled >= MAX_CANCELLED
  const refuse = !isOne ? null : self.draining ? 'draining' : full ? 'too_many_calls' : null
  const flight: Flight = {
    request,
    face,
    receivedUs: self.stage.scene.doors.clock.nowUs(),
    stop: new AbortController(),
    refuse,
    counts: isOne && refuse === null,
    cancelled: false,
  }
  self.flights.set(request.id, flight)
  self.inFlight.add(flight)
  return flight
}

function fly(self: Self, flight: Flight, make: () => Promise<string | null>): Promise<void> {
  const { id } = flight.request
  if (flight.counts) self.calls++
  return work(self, id, async () => {
    const text = await make()
      .catch((error: unknown) => faultText(self, id, error))
      .finally(() => {
        if (flight.counts && flight.cancelled) self.cancelled--
        else if (flight.counts) self.calls--
        self.inFlight.delete(flight)
      })
    if (flight.cancelled) return
    self.flights.delete(id)
    if (text !== null) self.stage.write(text, 'response')
  })
}

/** Runs one piece of work; what breaks in it breaks nothing else. */
function work(self: Self, id: Id | null, run: () => Promise<void>): Promise<void> {
  const running = run()
    .catch((error: unknown) => {
      self.stage.write(faultText(self, id, error), 'response')
    })
    .finally(() => {
      const was = isReady(self)
      self.work.delete(running)
      if (!was && isReady(self)) self.onReady()
    })
  self.work.add(running)
  return running
}

/** What the client is told of a fault: whether anything was sent, where that is known. */
function faultText(self: Self, id: Id | null, error: unknown): string {
  const code = error instanceof Fault ? error.code : 'internal'
  if (code === 'not_recorded' || code === 'outcome_not_recorded') {
    const reply = unrecorded(code)
    if (reply.kind === 'refused') return refusedText(id, LOOK, reply)
  }
  self.stage.scene.doors.broken(error)
  const message = 'the gateway broke; check the state before you call again'
  return errorText(id, { code: RPC.internal, message, data: null })
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
