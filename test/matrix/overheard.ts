// What came over the wire to a client of the official SDK, before the client did anything with it.

/** A message as a client of the official SDK receives it, as far as a test looks. */
export type Heard = {
  readonly id?: unknown
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
}

/** A transport of either SDK. Both clients keep what listens to it before they connect. */
type Ear = { readonly onmessage?: ((message: never) => void) | undefined }

/**
 * Every message that comes from now on, in the order of the wire. Has to stand before the client connects.
 * A client looks at a notification in a later microtask than at a response, so it never tells of
 * progress that came in one piece with the result: only here is all of it.
 */
export function overhear(transport: Ear): readonly Heard[] {
  const heard: Heard[] = []
  Object.assign(transport, { onmessage: (message: Heard) => void heard.push(message) })
  return heard
}

/** The progress of a conversation in which one call at a time is made, without its tokens. */
export const progressIn = (heard: readonly Heard[]): readonly Record<string, unknown>[] =>
  heard
    .filter(({ method }) => method === 'notifications/progress')
    .map(({ params }) => {
      const { progressToken: _token, ...told } = params as Record<string, unknown>
      return told
    })
