// What scripted.ts serves instead of its own tools, prompts and resources: a menu that the test wrote.

import type { Context, Json, Tool } from './scripted-tools.ts'

/** One thing of a list, as it is listed, and what a call of it is answered. A tool without `result` answers
 *  with the line that it received. */
export type Dish = { readonly definition: unknown; readonly result?: unknown }

/** `reads`: results of resources/read by URI, listed or not; any other URI is not found. `fails`: methods
 *  that are answered with -32601, whatever the capabilities say. */
export type Menu = {
  readonly tools?: readonly Dish[]
  readonly prompts?: readonly Dish[]
  readonly resources?: readonly Dish[]
  readonly templates?: readonly Dish[]
  readonly reads?: { readonly [uri: string]: unknown }
  readonly fails?: readonly string[]
}

type Reply = {
  result(value: Json): void
  error(code: number, message: string, data?: unknown): void
}
type Serves = (id: string | number, params: Json, reply: Reply, line: string) => void
type Page = (all: readonly Json[], params: Json, key: string) => Json

const isModern = (params: Json): boolean =>
  (params['_meta'] as Json | undefined)?.['io.modelcontextprotocol/protocolVersion'] !== undefined

/** The menu of the flag `--menu`, or null where there is none. */
export const readMenu = (text: string | undefined): Menu | null =>
  text === undefined ? null : (JSON.parse(text) as Menu)

/** The tools of a menu; an item that is no object is listed and cannot be called. */
export const menuTools = ({ tools = [] }: Menu): readonly Tool[] =>
  tools.map(({ definition, result }) => ({
    definition: (definition ?? {}) as Json,
    run: (c: Context) =>
      c.result((result ?? { content: [{ type: 'text', text: c.line }] }) as Json),
  }))

/** The methods of a menu, which stand before those of scripted.ts. */
export function menuMethods(menu: Menu | null, page: Page): Record<string, Serves> {
  if (menu === null) return {}
  const { prompts = [], resources = [], templates = [], reads = {}, fails = [] } = menu
  const listed = (dishes: readonly Dish[], key: string): Serves => {
    const all = dishes.map(({ definition }) => definition as Json)
    return (_id, params, reply) => reply.result(page(all, params, key))
  }
  const methods: Record<string, Serves> = {
    'prompts/list': listed(prompts, 'prompts'),
    'resources/list': listed(resources, 'resources'),
    'resources/templates/list': listed(templates, 'resourceTemplates'),
    'resources/read': (_id, params, reply) => {
      const uri = String(params['uri'])
      const found = Object.hasOwn(reads, uri) ? reads[uri] : undefined
      if (found !== undefined) reply.result(found as Json)
      else reply.error(isModern(params) ? -32602 : -32002, 'Resource not found', { uri })
    },
  }
  for (const method of fails) {
    methods[method] = (_id, _params, reply) => reply.error(-32601, 'Method not found')
  }
  return methods
}
