// What has arrived at the writer's thread and waits for its transaction.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

import { formsIn } from './forms.ts'
import { STORE_LIMITS } from './limits.ts'
import { fromWire, type Request } from './wire.ts'

/** A request and when it arrived, by the thread's own clock. */
export type Waiting = { readonly request: Request; readonly since: number }

/** The queue of the thread, in order of arrival. */
export type Inbox = {
  /** Takes over a message: a JSON array of requests. */
  readonly take: (text: string) => void
  /** Takes over whatever else has arrived meanwhile. */
  readonly drain: () => void
  /** The requests of the next transaction; `stop` is always the last of one. */
  readonly next: () => Waiting[]
  readonly size: () => number
}

/** The queue that `port` fills. */
export function inboxOf(port: MessagePort): Inbox {
  let queue: Waiting[] = []
  const forms = formsIn()
  const take = (text: string): void => {
    const since = performance.now()
    for (const element of fromWire.requests(text)) {
      queue.push({ request: forms.request(element), since })
    }
  }
  return {
    take,
    drain() {
      for (;;) {
        const next: { readonly message: string } | undefined = receiveMessageOnPort(port)
        if (next === undefined) return
        take(next.message)
      }
    },
    next() {
      const stop = queue.findIndex(({ request }) => request.kind === 'stop')
      const most = stop < 0 ? STORE_LIMITS.batch : Math.min(STORE_LIMITS.batch, stop + 1)
      if (queue.length <= most) {
        const all = queue
        queue = []
        return all
      }
      return queue.splice(0, most)
    },
    size: () => queue.length,
  }
}
