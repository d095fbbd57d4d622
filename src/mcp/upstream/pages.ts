// One list of one server, read through all its pages and admitted item by item.

import type { Definition } from '../../call.ts'
import { canonical, sha256 } from '../../canonical.ts'
import { isObject, type Json, type JsonObject, object } from '../../json.ts'
import type { Hello, ListKind } from '../../ports.ts'
import { visible } from '../wire/words.ts'
import type { Heard } from './heard.ts'

/** No answer came in time. */
export type Timeout = { readonly kind: 'timeout' }

/** One process of a server, ready to answer. `ask` resolves within `waitMs`. */
export type Source = {
  readonly hello: Hello
  readonly ask: (method: string, params: JsonObject, waitMs: number) => Promise<Heard | Timeout>
}

/** `waitMs` is for all pages together. `warn` is told of items that were left out. */
export type PageOptions = {
  readonly waitMs: number
  readonly maxItems: number
  readonly maxPages: number
  readonly warn: (text: string) => void
}

/** What a list held. Incomplete: `items` are those of the pages that came. `absent`: the server has no such
 *  method. `ttlMs` is what the server said of the first page, null when it said nothing. */
export type Pages = {
  readonly items: readonly Definition[]
  readonly complete: boolean
  readonly absent: boolean
  readonly ttlMs: number | null
}

/** How each kind of list is asked for, where its items stand and what names them. */
export const LISTS: Readonly<
  Record<ListKind, Readonly<Record<'method' | 'items' | 'name' | 'capability', string>>>
> = {
  tools: { method: 'tools/list', items: 'tools', name: 'name', capability: 'tools' },
  prompts: { method: 'prompts/list', items: 'prompts', name: 'name', capability: 'prompts' },
  resources: { method: 'resources/list', items: 'resources', name: 'uri', capability: 'resources' },
  templates: {
    method: 'resources/templates/list',
    items: 'resourceTemplates',
    name: 'uriTemplate',
    capability: 'resources',
  },
}

const METHOD_NOT_FOUND = -32601
/** Items that were left out and are told of one by one. */
const MAX_WARNINGS = 3
const MAX_NAME_SHOWN = 80

/** Reads all pages. The same cursor twice, too many pages or items, no answer, or one that holds no list end
 *  it incomplete. */
export async function askAll(kind: ListKind, source: Source, options: PageOptions): Promise<Pages> {
  const until = performance.now() + options.waitMs
  const basket = collect(kind, options)
  const cursors = new Set<string>()
  let ttlMs: number | null = null
  let cursor: string | undefined
  for (let page = 0; page < options.maxPages; page++) {
    const waitMs = Math.max(0, until - performance.now())
    const heard = await source.ask(LISTS[kind].method, object({ cursor }), waitMs)
    if (page === 0 && heard.kind === 'error' && heard.code === METHOD_NOT_FOUND) return ABSENT
    const read = pageOf(kind, heard)
    if (read === null || !basket.put(read.items)) break
    if (page === 0) ttlMs = read.ttlMs
    if (read.next === null) return { ...basket.done(true), ttlMs }
    if (cursors.has(read.next)) break
    cursors.add(read.next)
    cursor = read.next
  }
  return { ...basket.done(false), ttlMs }
}

const ABSENT: Pages = { items: [], complete: true, absent: true, ttlMs: null }

type Page = {
  readonly items: readonly Json[]
  /** The cursor of the next page; the empty string is one too. */
  readonly next: string | null
  readonly ttlMs: number | null
}

/** One page, or null when it is none. */
function pageOf(kind: ListKind, heard: Heard | Timeout): Page | null {
  if (heard.kind !== 'result') return null
  const items = heard.value[LISTS[kind].items]
  const { nextCursor: next = null, ttlMs } = heard.value
  if (!isList(items) || (next !== null && typeof next !== 'string')) return null
  const says = typeof ttlMs === 'number' && Number.isInteger(ttlMs) && ttlMs >= 0
  return { items, next, ttlMs: says ? ttlMs : null }
}

/** SHA-256 over all that a definition tells a model; members that are absent are left out. */
export function definitionHash(item: JsonObject): string {
  const { name, title, description, inputSchema, outputSchema, annotations, _meta } = item
  const told = object({ name, title, description, inputSchema, outputSchema, annotations, _meta })
  return sha256(canonical(told))
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

type Basket = {
  /** False when there are more items than may be. */
  readonly put: (items: readonly Json[]) => boolean
  readonly done: (complete: boolean) => Omit<Pages, 'ttlMs'>
}

function collect(kind: ListKind, options: PageOptions): Basket {
  const found = new Map<string, Definition>()
  let left = 0
  const leave = (why: string): void => {
    if (++left <= MAX_WARNINGS) options.warn(`an item of its ${kind} ${why}; it is left out`)
  }
  return {
    put(items) {
      for (const item of items) {
        const admitted = admit(kind, item)
        if (typeof admitted === 'string') leave(admitted)
        else if (found.has(admitted.name)) leave(`comes twice (${shown(admitted.name)})`)
        else if (found.size >= options.maxItems) {
          options.warn(
            `it lists more than ${options.maxItems} ${kind}; raise list_items to see them all`,
          )
          return false
        } else found.set(admitted.name, admitted)
      }
      return true
    },
    done(complete) {
      if (left > MAX_WARNINGS) options.warn(`${left} items of its ${kind} were left out in all`)
      return { items: [...found.values()], complete, absent: false }
    },
  }
}

const shown = (name: string): string => visible(name).slice(0, MAX_NAME_SHOWN)

/** The item as a definition, or why it cannot be one. */
function admit(kind: ListKind, item: Json): Definition | string {
  if (!isObject(item)) return 'is no object that can be admitted'
  const name = item[LISTS[kind].name]
  if (typeof name !== 'string' || name === '') return 'has no name'
  // Every client demands a schema of a tool, and many refuse the whole list for one that has none.
  if (kind === 'tools' && !isObject(item['inputSchema'])) {
    return `has no inputSchema (${shown(name)})`
  }
  return { name, value: item, hash: definitionHash(item) }
}
