// The lists of a tapped server, asked in the name of one request.

import type { JSONRPCRequest, Result, ServerContext } from '@modelcontextprotocol/server'

import type { ListKind } from '../ports.ts'
import type { Inside } from './inside.ts'
import type { Tap } from './tap.ts'

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

/** All pages of one list, before any gate. `complete` is false when the server failed or had no end. */
export async function listOf(
  tap: Tap,
  kind: ListKind,
  { request, ctx }: Asked,
): ReturnType<Inside['list']> {
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
