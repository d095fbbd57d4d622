// The digest of an answer: at once, or, of a long one, in pieces between which others have their turn.

import type { Answer } from '../call.ts'
import { pieces } from '../canonical.ts'
import { sourceOf } from '../egress/stored.ts'
import type { Digest } from '../ports.ts'
import type { Doors } from './page.ts'

/** UTF-16 units that are digested in one go: a third of a millisecond. */
const PIECE = 256 * 1024

/** The digest of what was answered; a promise only where the answer is long. */
export function digestOf(doors: Doors, answer: Answer): Digest | Promise<Digest> {
  const text = sourceOf(answer)
  return text.length <= PIECE ? doors.store.digest(text) : inPieces(doors, text)
}

async function inPieces({ store, turn }: Doors, text: string): Promise<Digest> {
  const digester = store.digester()
  for (const piece of pieces(text, PIECE)) {
    await turn()
    digester.add(piece)
  }
  return digester.end()
}
