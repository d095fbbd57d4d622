// Tells the operator which definitions wait: the agent is only told that the tool is denied.

import type { Store } from '../ports.ts'
import { visible } from './record.ts'

/** Tools that are named in one line, and over the life of a process: a server may change its definitions
 *  as often as it likes. */
const NAMES_A_LINE = 5
const MAX_TOLD = 1000
/** How long names are gathered for one line. */
const GATHER_MS = 100

/** The same store, which tells `say` of what waits already and, each tool once, of what begins to wait. */
export function tellingWaits(store: Store, say: (line: string) => void): Store {
  const told = new Set<string>()
  let fresh: string[] = []
  const tell = (): void => {
    const names = fresh
    fresh = []
    say(waitLine(names))
  }
  const add = (tool: string): void => {
    if (told.has(tool) || told.size >= MAX_TOLD) return
    told.add(tool)
    // Those of one list are told together.
    if (fresh.push(tool) === 1) setTimeout(tell, GATHER_MS)
  }
  for (const [tool, { waiting }] of store.pins()) if (waiting !== null) add(tool)
  return {
    ...store,
    async pin(pins, client) {
      await store.pin(pins, client)
      for (const { tool, state } of pins) if (state === 'waits') add(tool)
    },
  }
}

function waitLine(tools: readonly string[]): string {
  const more = tools.length > NAMES_A_LINE ? ', ...' : ''
  const names = visible(tools.slice(0, NAMES_A_LINE).join(', ')) + more
  const what = tools.length === 1 ? 'a definition waits' : `${tools.length} definitions wait`
  return `${what} (${names}); look at them: eclusa pin list; to use one: eclusa pin approve SERVER/TOOL`
}
