// What one server offers: its lists, as fresh as it says, and never asked for in a storm.

import type { Definition } from '../../call.ts'
import { type JsonObject, member } from '../../json.ts'
import type { Listed, ListKind } from '../../ports.ts'
import { askAll, LISTS, type PageOptions, type Pages, type Source } from './pages.ts'

/** The lists of one upstream, over all its processes. */
export type Lists = {
  /** As `Upstreams.list`, asked of this process; without one, what was had before. */
  readonly list: (kind: ListKind, source: Source | null) => Promise<Listed>
  /** As `Upstreams.definition`, asked of this process. */
  readonly definition: (tool: string, source: Source) => Promise<Definition | 'absent' | 'down'>
  /** The tool as it was last seen, whether or not that is still believed. Asks nobody. */
  readonly known: (tool: string) => JsonObject | undefined
  /** The server says that a list is not what it was. */
  readonly changed: (kind: ListKind) => void
  /** Another process answers from now on. */
  readonly renewed: () => void
}

/** `onChange` is told that a list may have changed, at most once in `CHANGE_GAP_MS`. */
export type ListOptions = PageOptions & { readonly onChange: (kind: ListKind) => void }

/** Between two askings that announcements of change cause: 500 of them in 2 s cause at most 4. */
const CHANGE_GAP_MS = 700
/** How long an empty or incomplete list is believed: servers that warm up answer so. */
const DOUBTED_MS = 1000
/** How long a list is believed of which the server says nothing, and how long calls are judged by
 *  definitions that the server calls stale at once. */
const BELIEVED_MS = 60_000
/** How long it is believed that a server which announces its changes has had none. */
const ANNOUNCED_MS = 600_000
/** A server may not make us believe it for longer. */
const MAX_TTL_MS = 24 * 3600 * 1000
/** Between two askings for names that the list lacks, whatever names: else a client that makes names up
 *  would cost the server a list for each. */
const MISSED_MS = 1000

type State = {
  items: readonly Definition[]
  names: ReadonlyMap<string, Definition>
  complete: boolean
  /** A complete list was had once: what a failed asking leaves does not replace it. */
  whole: boolean
  /** When the last asking began, and until when its answer is believed. */
  askedAt: number
  believedUntil: number
  /** From an announced change until an asking that began after it leaves; again when that one fails. */
  stale: boolean
  /** An asking that such a change caused is under way: what was had before it is not given meanwhile. */
  renewing: boolean
  /** The server says that it has no such method. */
  absent: boolean
  asking: Promise<Listed> | null
  /** The request of `asking` has left: a change from now on is newer than its answer. */
  left: boolean
  announcing: boolean
  announcedAt: number
}

const KINDS: readonly ListKind[] = ['tools', 'prompts', 'resources', 'templates']
const NOTHING: Listed = { items: [], complete: true }
/** No announced change makes what was had doubtful. */
const isSettled = ({ stale, renewing }: State): boolean => !stale && !renewing
const now = (): number => performance.now()

/** Lists of which nothing is known yet. */
export function upstreamLists(options: ListOptions): Lists {
  const states: Record<ListKind, State> = {
    tools: unknown(),
    prompts: unknown(),
    resources: unknown(),
    templates: unknown(),
  }
  const desk: Desk = { states, missedAt: -MISSED_MS, options }
  return {
    async list(kind, source) {
      const state = states[kind]
      if (source === null) return { items: state.items, complete: false }
      if (state.absent || !declares(source, kind)) return NOTHING
      const believed = isSettled(state) && now() < state.believedUntil
      return believed
        ? { items: state.items, complete: state.complete }
        : refresh(desk, kind, source)
    },
    async definition(tool, source) {
      const state = states.tools
      if (state.absent || !declares(source, 'tools')) return 'absent'
      const until = Math.max(state.believedUntil, state.askedAt + BELIEVED_MS)
      if (!isSettled(state) || now() >= until) return seek(desk, tool, source)
      const found = state.names.get(tool)
      if (found !== undefined) return found
      return now() - desk.missedAt < MISSED_MS ? 'absent' : seek(desk, tool, source)
    },
    known: (tool) => states.tools.names.get(tool)?.value,
    changed(kind) {
      for (const one of kind === 'resources' ? (['resources', 'templates'] as const) : [kind]) {
        states[one].stale = true
        announce(states[one], () => options.onChange(one))
      }
    },
    renewed() {
      desk.missedAt = -MISSED_MS
      for (const kind of KINDS) {
        Object.assign(states[kind], { stale: true, absent: false, askedAt: -CHANGE_GAP_MS })
        announce(states[kind], () => options.onChange(kind))
      }
    },
  }
}

type Desk = {
  readonly states: Readonly<Record<ListKind, State>>
  /** When a name was last not found in a list that was asked for it. */
  missedAt: number
  readonly options: ListOptions
}

/** The answer to an asking that has not left yet or that nothing announced has overtaken. */
async function refresh(desk: Desk, kind: ListKind, source: Source): Promise<Listed> {
  const state = desk.states[kind]
  if (state.asking !== null && state.left && state.stale) await state.asking
  state.asking ??= ask(desk, kind, source)
  return state.asking
}

async function ask({ states, options }: Desk, kind: ListKind, source: Source): Promise<Listed> {
  const state = states[kind]
  // The first asking after a quiet time is at once; in a storm they keep their distance.
  const wait = state.stale ? state.askedAt + CHANGE_GAP_MS - now() : 0
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  state.askedAt = now()
  state.left = true
  const wasStale = state.stale
  state.stale = false
  state.renewing = wasStale
  learn(state, await askAll(kind, source, options), { kind, source, wasStale })
  state.renewing = false
  state.asking = null
  state.left = false
  return { items: state.items, complete: state.complete }
}

async function seek(
  desk: Desk,
  tool: string,
  source: Source,
): Promise<Definition | 'absent' | 'down'> {
  const state = desk.states.tools
  const wasStale = !isSettled(state)
  const { complete } = await refresh(desk, 'tools', source)
  const found = state.names.get(tool)
  // After an announced change, what was had before says nothing.
  if (!complete && (found === undefined || wasStale)) return 'down'
  if (found !== undefined) return found
  desk.missedAt = now()
  return 'absent'
}

const unknown = (): State => ({
  items: [],
  names: new Map(),
  complete: false,
  whole: false,
  askedAt: -BELIEVED_MS,
  believedUntil: 0,
  stale: true,
  renewing: false,
  absent: false,
  asking: null,
  left: false,
  announcing: false,
  announcedAt: -CHANGE_GAP_MS,
})

const declares = ({ hello }: Source, kind: ListKind): boolean =>
  hello.capabilities[LISTS[kind].capability] !== undefined

type Asked = { readonly kind: ListKind; readonly source: Source; readonly wasStale: boolean }

function learn(state: State, pages: Pages, asked: Asked): void {
  state.absent = pages.absent
  state.whole ||= pages.complete
  if (pages.complete || !state.whole) {
    state.items = pages.items
    state.names = new Map(pages.items.map((one) => [one.name, one]))
  }
  state.complete = pages.complete
  if (!pages.complete && asked.wasStale) state.stale = true
  const doubted = !pages.complete || pages.items.length === 0
  state.believedUntil = now() + (doubted ? DOUBTED_MS : lifetime(pages, asked))
}

function lifetime(pages: Pages, { kind, source }: Asked): number {
  if (pages.ttlMs !== null) return Math.min(pages.ttlMs, MAX_TTL_MS)
  const capability = source.hello.capabilities[LISTS[kind].capability]
  return member(capability, 'listChanged') === true ? ANNOUNCED_MS : BELIEVED_MS
}

function announce(state: State, tell: () => void): void {
  if (state.announcing) return
  state.announcing = true
  const wait = Math.max(0, state.announcedAt + CHANGE_GAP_MS - now())
  setTimeout(() => {
    state.announcing = false
    state.announcedAt = now()
    tell()
  }, wait)
}
