// One list of one server, read through all its pages and admitted item by item.

import type { Definition } from '../call.ts'
import { canonical, sha256 } from '../canonical.ts'
import { isObject, type Json, type JsonObject, object } from '../json.ts'
import type { Hello, ListKind } from '../ports.ts'
import { visible } from './child-words.ts'
import type { Heard } from './upstream-wire.ts'

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
  const { method, items: key } = LISTS[kind]
  const until = performance.now() + options.waitMs
  const basket = collect(kind, options)
  const cursors = new Set<string>()
  let ttlMs: number | null = null
  let cursor: string | undefined
  for (let page = 0; page < options.maxPages; page++) {
    const params = object({ cursor })
    const heard = await source.ask(method, params, Math.max(0, until - performance.now()))
    if (page === 0 && heard.kind === 'error' && heard.code === METHOD_NOT_FOUND) {
      return { items: [], complete: true, absent: true, ttlMs: null }
    }
    const found = heard.kind === 'result' ? heard.value[key] : undefined
    if (heard.kind !== 'result' || !isList(found) || !basket.put(found)) break
    if (page === 0) ttlMs = ttlOf(heard.value)
    const next = heard.value['nextCursor']
    if (next === undefined || next === null) return { ...basket.done(true), ttlMs }
    // The empty string is a cursor too.
    if (typeof next !== 'string' || cursors.has(next)) break
    cursors.add(next)
    cursor = next
  }
  return { ...basket.done(false), ttlMs }
}

/** SHA-256 over all that a definition tells a model; members that are absent are left out. */
export function definitionHash(item: JsonObject): string {
  const { name, title, description, inputSchema, outputSchema, annotations, _meta } = item
  const told = object({ name, title, description, inputSchema, outputSchema, annotations, _meta })
  return sha256(canonical(told))
}

const isList = (value: Json | undefined): value is readonly Json[] => Array.isArray(value)

function ttlOf(result: JsonObject): number | null {
  const ttl = result['ttlMs']
  return typeof ttl === 'number' && Number.isInteger(ttl) && ttl >= 0 ? ttl : null
}

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
  if (!isObject(item)) return 'is no object'
  const name = item[LISTS[kind].name]
  if (typeof name !== 'string' || name === '') return 'has no name'
  // Every client demands a schema of a tool, and many refuse the whole list for one that has none.
  if (kind === 'tools' && !isObject(item['inputSchema'])) {
    return `has no inputSchema (${shown(name)})`
  }
  return { name, value: item, hash: definitionHash(item) }
}
