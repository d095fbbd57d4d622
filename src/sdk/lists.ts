// The lists of a tapped server, asked in the name of one request.

import type { JSONRPCRequest, Result, ServerContext } from '@modelcontextprotocol/server'

import type { Listed, ListKind } from '../ports.ts'
import { admit, definitionOf } from './definition.ts'
import type { Tap } from './tap.ts'

/** The methods that list. */
export type ListMethod =
  | 'tools/list'
  | 'prompts/list'
  | 'resources/list'
  | 'resources/templates/list'

/** Which method asks for a list, and which member of its result holds the items. */
export const LISTS: Readonly<
  Record<ListKind, { readonly method: ListMethod; readonly member: string }>
> = {
  tools: { method: 'tools/list', member: 'tools' },
  prompts: { method: 'prompts/list', member: 'prompts' },
  resources: { method: 'resources/list', member: 'resources' },
  templates: { method: 'resources/templates/list', member: 'resourceTemplates' },
}

/** Pages and items asked of one list before it is called incomplete. */
const MAX_PAGES = 100
const MAX_ITEMS = 10_000

/** The request in whose name a server is asked, with its context. */
export type Asked = { readonly request: JSONRPCRequest; readonly ctx: ServerContext }

const remembered = new WeakMap<Tap, { readonly version: number; readonly listed: Listed }>()

/** All pages of one list, before any gate, asked anew. `complete` is false when the server failed, had no
 *  end, or listed something that strict admission refuses. */
export async function listOf(tap: Tap, kind: ListKind, asked: Asked): Promise<Listed> {
  const version = tap.version()
  const { items, complete } = await pagesOf(tap, kind, asked)
  const definitions = items.flatMap((item) => definitionOf(kind, admit(item)))
  const listed = { items: definitions, complete: complete && definitions.length === items.length }
  if (kind === 'tools' && version !== null) remembered.set(tap, { version, listed })
  return listed
}

/** As `listOf`, but tools that the server has not changed since they were last listed are not asked for
 *  again: their schemas are made anew at each listing, which with 50 tools takes 2 ms. */
export async function knownOf(tap: Tap, kind: ListKind, asked: Asked): Promise<Listed> {
  const known = kind === 'tools' ? remembered.get(tap) : undefined
  if (known !== undefined && known.version === tap.version()) return known.listed
  return await listOf(tap, kind, asked)
}

async function pagesOf(
  tap: Tap,
  kind: ListKind,
  { request, ctx }: Asked,
): Promise<{ readonly items: readonly unknown[]; readonly complete: boolean }> {
  const items: unknown[] = []
  let cursor: unknown
  for (let page = 0; page < MAX_PAGES && items.length <= MAX_ITEMS; page++) {
    const result = await pageOf(tap, kind, { request: { ...request, params: { cursor } }, ctx })
    if (result === null) return { items, complete: false }
    items.push(...result.items)
    cursor = result.next
    if (cursor === undefined) return { items, complete: items.length <= MAX_ITEMS }
  }
  return { items, complete: false }
}

/** One page; null when the server did not give one. */
async function pageOf(
  tap: Tap,
  kind: ListKind,
  { request, ctx }: Asked,
): Promise<{ readonly items: readonly unknown[]; readonly next: unknown } | null> {
  const { method, member } = LISTS[kind]
  const own = tap.own(method)
  if (own === undefined) return { items: [], next: undefined }
  let result: Result
  try {
    result = await own({ ...request, method }, ctx)
  } catch {
    return null
  }
  const items = result[member]
  return Array.isArray(items) ? { items, next: result['nextCursor'] } : null
}
