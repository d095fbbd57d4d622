// Where what belongs to one incoming message goes: its answer, and what is said before it.

import type { Json, JsonObject } from '../../json.ts'

/** How urgent a message is. A `notice` may be dropped when the client does not read. An `ask` may not, and
 *  answers nothing: a request of ours, or the first message of a stream. */
export type Weight = 'response' | 'notice' | 'ask'

/** `status`: the HTTP status that this message deserves when it is the first on its stream. */
export type How = { readonly weight: Weight; readonly status: number }

/** The stream of one incoming message (HTTP: of one POST), or of a whole session (stdio). */
export type Channel = {
  /** Takes one message without a line end; false when it was dropped. */
  write(message: string, how: How): boolean
  /** All that came in at once has been answered or needs no answer: called once for each `receive`, `take` or
   *  `refuse`. */
  done(): void
}

/** What the hop of one message carries beside its body. Both are asked once the tool is known to be one that
 *  this client may use, with the tool's own `inputSchema`. */
export type Hop = {
  /** What is wrong with the headers that mirror arguments, in one sentence; null when nothing is. */
  checkParams(inputSchema: Json | undefined, args: JsonObject): string | null
  /** The headers of that kind which the schema does not name. They are passed on unread. */
  otherParams(inputSchema: Json | undefined): Readonly<Record<string, string>>
}

/** One response as it is to be said. */
export type Said = { readonly text: string; readonly status: number }

/** The HTTP statuses of responses. `request`: what came is no request of this protocol; `method`: a modern
 *  request for a method that is not served. All other errors are the server's word and pass as `ok`. */
export const STATUS: { readonly ok: 200; readonly request: 400; readonly method: 404 } = {
  ok: 200,
  request: 400,
  method: 404,
}
