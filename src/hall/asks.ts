// What a server asks of the client in the middle of a call: whether it may, and its records.

import type { Ask, AskMethod, Responses } from '../call.ts'
import { canonical } from '../canonical.ts'
import { builtIn, type Failure } from '../decision.ts'
import { type JsonObject, object } from '../json.ts'
import type { Draft } from '../ledger/entry.ts'
import { admitsAsk, narrow } from '../policy/asks.ts'
import { type Answered, draft, type Page } from './page.ts'

/** Asks of one round; a server that asks more is refused. */
export const MAX_ASKS = 64

/** Why these asks may not reach the client: the first that may not. Null when all may. */
export function barred({ call, set }: Page, asks: readonly Ask[]): Failure | null {
  if (asks.length > MAX_ASKS) return builtIn('not_bridged')
  for (const ask of asks) {
    const failure = admitsAsk(set, call.client, call.capabilities, ask)
    if (failure !== null) return failure
  }
  return null
}

/** Writes a record for each ask, in one commit: allowed and about to be asked, or refused for this failure.
 *  Durable when it resolves. */
export async function recordAsks(
  page: Page,
  operation: string,
  asks: readonly Ask[],
  failure: Failure | null,
): Promise<void> {
  const { store } = page.doors
  const verdict =
    failure === null
      ? ({ decision: 'allow', outcome: 'pending' } as const)
      : ({
          decision: 'deny',
          outcome: 'not_executed',
          code: failure.code,
          rule: failure.rule,
        } as const)
  await Promise.all(
    asks.slice(0, MAX_ASKS).map((ask, at) => {
      const { digest, bytes } = store.digest(canonical(ask.params))
      const asked = askDraft(page, { method: ask.method, place: at + 1, operation })
      return store.append({ ...asked, ...verdict, args_digest: digest, args_bytes: bytes })
    }),
  )
}

/** Writes a record for each answer that goes to the server. Durable when it resolves. */
export async function recordAnswers(page: Page, operation: string): Promise<void> {
  const { store } = page.doors
  await Promise.all(
    page.round.answers.map(({ method, place, response }) => {
      const { digest, bytes } = store.digest(canonical(response))
      return store.append({
        ...askDraft(page, { method: method ?? 'tasks/update', place, operation }),
        decision: 'allow',
        outcome: 'answered',
        args_digest: null,
        args_bytes: null,
        result_digest: digest,
        result_bytes: bytes,
      })
    }),
  )
}

function askDraft(
  page: Page,
  {
    method,
    place,
    operation,
  }: { readonly method: string; readonly place: number; readonly operation: string },
): Draft {
  const made = draft(page, null)
  const { number } = page.round
  return {
    ...made,
    kind: 'ask',
    ts: page.doors.clock.nowUs(),
    method,
    more: { ...made.more, round: number, ask: place, ...(operation === '' ? {} : { operation }) },
  }
}

/** The answers to these asks as they may go on, each cut to what its profile lets out; answers that nobody asked
 *  for are left out. Null when one is not of the form that its ask demands. */
export function answersOf(
  page: Pick<Page, 'call' | 'set'>,
  methods: Readonly<Record<string, AskMethod>>,
  responses: Responses,
): readonly Answered[] | null {
  const answers: Answered[] = []
  for (const [at, [key, method]] of Object.entries(methods).entries()) {
    const given = Object.hasOwn(responses, key) ? responses[key] : undefined
    if (given === undefined) continue
    const response = narrow(page.set, page.call.client, { method }, given)
    if (response === null) return null
    answers.push({ place: at + 1, method, key, response })
  }
  return answers
}

/** Answers that nobody of us asked for: what their form says they are, where that may be asked of this client
 *  with these capabilities. Others are left out, as any name that a server does not know. */
export function unaskedAnswers(
  { client, capabilities }: Pick<Page['call'], 'client' | 'capabilities'>,
  set: Page['set'],
  responses: Responses,
): readonly Answered[] {
  const answers: Answered[] = []
  for (const [key, given] of Object.entries(responses)) {
    const method = methodOf(given)
    if (answers.length === MAX_ASKS || method === null) continue
    const ask = { method, params: object({}) }
    if (admitsAsk(set, client, capabilities, ask) !== null) continue
    const response = narrow(set, client, ask, given)
    if (response !== null) answers.push({ place: answers.length + 1, method, key, response })
  }
  return answers
}

function methodOf(response: JsonObject): AskMethod | null {
  if (response['action'] !== undefined) return 'elicitation/create'
  if (response['roots'] !== undefined) return 'roots/list'
  return response['model'] === undefined ? null : 'sampling/createMessage'
}

/** Answers by the keys of their asks. */
export const responsesOf = (answers: readonly Answered[]): Responses =>
  Object.fromEntries(answers.map(({ key, response }) => [key, response]))
