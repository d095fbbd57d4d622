// The members of a record as they are written one after the other, in their canonical order.

import { PLAIN, textParts } from './text.ts'

/** One member of a record: its `lead` is `,"key":`, its json the value. Leads sort as their keys do, since no
 *  character of a key sorts before the quote. */
export type Part = { readonly lead: string; readonly json: string }

/** Members so far, each after a comma. A text that grows at its end is put together once, when it
 *  is hashed. `further` are those that the format does not know, sorted, each passed on when its turn comes;
 *  `nextLead` is that of `further[next]`, kept beside it since it is compared with every member. */
export type Sink = {
  out: string
  readonly further: readonly Part[]
  next: number
  nextLead: string
}

/** Sorts after every lead. */
export const LAST: string = '~'

/** An empty sink that waits to pass on `further`. */
export const sinkOf = (further: readonly Part[]): Sink => ({
  out: '',
  further,
  next: 0,
  nextLead: further[0]?.lead ?? LAST,
})

/** For what has only members of the format. */
export const NO_PARTS: readonly Part[] = []

/** Adds a member, and before it whatever further ones sort before it. */
export function put(sink: Sink, lead: string, json: string): void {
  if (sink.nextLead < lead) passFurther(sink, lead)
  sink.out = sink.out + lead + json
}

/** Passes on what sorts before `lead`. */
export function passFurther(sink: Sink, lead: string): void {
  for (let part = sink.further[sink.next]; part !== undefined && part.lead < lead;) {
    sink.out = sink.out + part.lead + part.json
    part = sink.further[++sink.next]
    sink.nextLead = part?.lead ?? LAST
  }
}

/** The members as an object has them: without the comma before the first. */
export const inBraces = ({ out }: Sink): string => `{${out.slice(1)}}`

/** Adds the member and, where the text was encoded or cut, its marks. */
export function putText(sink: Sink, lead: string, text: string | null, limitBytes: number): void {
  if (text === null) put(sink, lead, 'null')
  else if (text.length <= limitBytes && PLAIN.test(text)) put(sink, lead, `"${text}"`)
  else putMarked(sink, lead, text, limitBytes)
}

function putMarked(sink: Sink, lead: string, text: string, limitBytes: number): void {
  const key = lead.slice(0, -QUOTE_AND_COLON.length)
  for (const [mark, json] of textParts(text, limitBytes)) {
    put(sink, `${key}${mark}${QUOTE_AND_COLON}`, json)
  }
}

const QUOTE_AND_COLON = '":'
