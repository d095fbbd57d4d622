// Notices of changed lists to one session: few, and only of what that client can see.

import type { ListKind } from '../../ports.ts'

/** The notices of one session. */
export type Changes = {
  /** Remembers what the client was last shown of a kind. */
  shown(kind: ListKind, view: string): void
  /** A server said that a list may have changed. Of what the client never asked for it is never told. */
  changed(kind: ListKind): void
  /** Nothing is told any more. */
  stop(): void
}

/** Changes within this time of each other are one. */
const NEAR_MS = 50
/** Between two looks at one kind: a storm reaches the client as at most two notices a second. */
export const QUIET_MS = 500

/** Compares, soon after a change, the view of a kind (`look`) with the one last shown, and tells the client
 *  when they differ. `failed`: a view that could not be had; the next change tries again. */
export function changes(options: {
  readonly look: (kind: ListKind) => Promise<string>
  readonly tell: (method: string) => boolean
  readonly failed: (error: unknown) => void
}): Changes {
  const views = new Map<ListKind, string>()
  const timers = new Map<ListKind, NodeJS.Timeout>()
  const looking = new Set<ListKind>()
  const again = new Set<ListKind>()
  const looks = new Map<ListKind, number>()
  let stopped = false

  const compare = async (kind: ListKind): Promise<void> => {
    const view = await options.look(kind)
    if (stopped || views.get(kind) === view) return
    // A notice that was dropped is due again with the next change.
    if (options.tell(NOTICES[kind])) views.set(kind, view)
  }
  const wake = (kind: ListKind): void => {
    timers.delete(kind)
    looking.add(kind)
    looks.set(kind, performance.now())
    void compare(kind)
      .catch(options.failed)
      .finally(() => {
        looking.delete(kind)
        if (again.delete(kind)) changed(kind)
      })
  }
  const changed = (kind: ListKind): void => {
    if (stopped || !views.has(kind) || timers.has(kind)) return
    if (looking.has(kind)) {
      again.add(kind)
      return
    }
    const next = (looks.get(kind) ?? -Infinity) + QUIET_MS - performance.now()
    const timer = setTimeout(wake, Math.max(NEAR_MS, next), kind)
    timer.unref()
    timers.set(kind, timer)
  }
  return {
    shown: (kind, view) => void views.set(kind, view),
    changed,
    stop() {
      stopped = true
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}

const NOTICES = {
  tools: 'notifications/tools/list_changed',
  prompts: 'notifications/prompts/list_changed',
  resources: 'notifications/resources/list_changed',
  templates: 'notifications/resources/list_changed',
} as const satisfies Record<ListKind, string>
