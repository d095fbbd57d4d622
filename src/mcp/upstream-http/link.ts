// What is shared by all requests to one server over HTTP: its session, its tools' headers, how many may start.

import { isObject, type Json, type JsonObject, object, writeJson } from '../../json.ts'
import type { Waiter } from '../upstream/wire.ts'
import { type Mirror, mirrorsIn } from '../wire/mirrors.ts'
import type { HeaderSet } from './headers.ts'
import type { Gate } from './health.ts'
import type { Ground } from './read.ts'
import { send } from './send.ts'
import { POSTED, type Talking } from './talk.ts'
import { visible } from '../wire/words.ts'

/** A legacy session. `id` is null where the server keeps none. `epoch` counts them from 1. */
export type Session = {
  readonly id: string | null
  readonly version: string
  readonly epoch: number
}

/** What a link asks of whoever keeps the server. `renew` resolves with false when there is no new session;
 *  `renewing` is null when none is being made. `refresh` asks for the list of tools. */
export type Keeper = {
  readonly lost: (how: 'unreached' | 'broken', why: string) => void
  readonly alive: () => void
  readonly outdated: () => void
  readonly renew: (epoch: number) => Promise<boolean>
  readonly renewing: () => Promise<unknown> | null
  readonly refresh: () => Promise<void>
}

/** One request of ours. `params` is null once nobody can want it again. */
export type Flight = {
  readonly id: number
  readonly method: string
  readonly waiter: Waiter
  readonly passed: HeaderSet
  params: JsonObject | null
  talking: Talking | null
  state: 'waiting' | 'out' | 'over'
  /** The session it went out on; 0 for a modern one. */
  epoch: number
  readonly tried: Set<'session' | 'headers' | 'stale'>
  readonly asks: Set<string | number>
  progress: number
  cancelled: boolean
  /** Counted among those whose connection is new and not proved, and among those without a reply. */
  starting: boolean
  proving: NodeJS.Timeout | undefined
  /** Until its end once nobody waits for it. */
  patience: NodeJS.Timeout | undefined
  silent: boolean
}

/** The conversation with one server, from its greeting until it is lost. */
export type Link = {
  readonly name: string
  readonly ground: Ground
  readonly keeper: Keeper
  readonly nextId: () => number
  readonly notified: (method: string, params: JsonObject) => void
  readonly say: (text: string) => void
  readonly flights: Set<Flight>
  readonly abandoned: Set<Flight>
  readonly mirrors: Map<string, readonly Mirror[]>
  /** Tools that were told of as left out. */
  readonly warned: Set<string>
  /** How many requests may start, shared by all who speak to the server. */
  readonly gate: Gate
  /** First words that are under way: each is given up when called. */
  readonly words: Set<() => void>
  /** Null: a modern one. */
  session: Session | null
  open: boolean
}

const MAX_MIRRORED = 10_000
const MAX_WARNED = 1000
const MAX_NAME_SHOWN = 80

/** The headers of a session. */
export function sessionHeaders(session: Session): HeaderSet {
  const version = { 'MCP-Protocol-Version': session.version }
  return session.id === null ? version : { ...version, 'Mcp-Session-Id': session.id }
}

/** Sends what needs no answer. What becomes of it is not known. */
export function tell(
  link: Link,
  message: Readonly<Record<string, Json>>,
  headers: HeaderSet,
): void {
  send(
    link.ground.site,
    {
      method: 'POST',
      headers: { ...POSTED, ...headers },
      own: link.ground.own,
      body: writeJson(object({ jsonrpc: '2.0', ...message })),
      limitBytes: MAX_ACK_BYTES,
      long: false,
    },
    { end: () => {} },
  )
}

const MAX_ACK_BYTES = 64 * 1024

/** The list without the tools that no client may use over HTTP; what headers mirror of the others is
 *  remembered. The same object where nothing was left out. Source: MCP 2026-07-28, x-mcp-header. */
export function learn(link: Link, list: JsonObject): JsonObject {
  const { tools } = list
  if (!isList(tools)) return list
  const kept = tools.filter((tool) => {
    if (!isObject(tool) || typeof tool['name'] !== 'string') return true
    const { name } = tool
    const { mirrors, problem } = mirrorsIn(tool['inputSchema'])
    if (problem !== null) {
      warn(link, name, problem)
      link.mirrors.delete(name)
      return false
    }
    if (mirrors.length === 0) link.mirrors.delete(name)
    else if (link.mirrors.size < MAX_MIRRORED) link.mirrors.set(name, mirrors)
    return true
  })
  return kept.length === tools.length ? list : object({ ...list, tools: kept })
}

function warn({ warned, say }: Link, name: string, why: string): void {
  if (warned.has(name) || warned.size >= MAX_WARNED) return
  warned.add(name)
  say(`its tool ${visible(name).slice(0, MAX_NAME_SHOWN)} ${why}; it is left out`)
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)
