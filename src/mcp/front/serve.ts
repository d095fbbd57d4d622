// The methods that a client may ask for, each from its request to its response.

import type { ListKind } from '../../ports.ts'
import { callOf, hasRetry, NO_ROUNDS } from './calls.ts'
import type { Said } from './channel.ts'
import { type Face, LEVELS } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import { listen } from './listen.ts'
import { FIRST_PAGE, isPageOf, LIST_PAGE, nextCursor, readCursor } from './pages.ts'
import { allDown, invalidParams, said, unknownMethod } from './refuse.ts'
import { resultText } from './render.ts'
import { serveCall } from './serve-call.ts'
import type { Serves, Stage } from './stage.ts'
import { type Capability, discover, listText, offer, view } from './views.ts'

/** The response, or null when there is none to give. Records come first: what is refused here is in the
 *  ledger when this resolves. Rejects with a `Fault` of the store. */
export async function serve(stage: Stage, flight: Flight): Promise<Said | null> {
  const { request, face } = flight
  const method = callOf(face.era, request.method)
  if (method === null && face.era === 'modern' && hasRetry(request.params)) {
    return invalidParams(stage, request, { problem: 'retry', message: NO_ROUNDS })
  }
  if (method !== null) return serveCall(stage, flight, method)
  const serves = METHODS[face.era].get(request.method)
  return serves === undefined ? unknownMethod(stage, flight) : serves(stage, flight)
}

const listing = (kind: ListKind, capability: Capability): Serves => {
  return async (stage, flight) => {
    const { request, face } = flight
    const { scene, changes } = stage
    const cursor = request.params?.['cursor']
    const page = cursor === undefined ? FIRST_PAGE : readCursor(scene, kind, cursor)
    if (page === null) return invalidParams(stage, request, NO_CURSOR)
    const offered = await offer(scene.doors, capability)
    if (offered === 'absent') return unknownMethod(stage, flight)
    const seen = await view(scene, face, kind)
    if (offered === 'down' && seen.view === '') return allDown(stage, flight)
    if (!isPageOf(page, seen.view)) return invalidParams(stage, request, OLD_CURSOR)
    if (face.era === 'legacy') changes.shown(kind, seen.view)
    const to = page.from + LIST_PAGE
    const items = seen.items.slice(page.from, to)
    const isLast = to >= seen.items.length
    const next = isLast ? null : nextCursor(scene, kind, { from: to, view: seen.view })
    return said(resultText(request.id, listText(scene, face, kind, { items, cursor: next })))
  }
}

const NO_CURSOR = {
  problem: 'cursor',
  message: 'params.cursor is not one that was given here; ask for the list without it',
}
const OLD_CURSOR = {
  problem: 'cursor',
  message: 'the list changed since params.cursor was given; ask for it from the beginning',
}

const LISTS: readonly (readonly [string, Serves])[] = [
  ['tools/list', listing('tools', 'tools')],
  ['prompts/list', listing('prompts', 'prompts')],
  ['resources/list', listing('resources', 'resources')],
  ['resources/templates/list', listing('templates', 'resources')],
]

const METHODS: Readonly<Record<Face['era'], ReadonlyMap<string, Serves>>> = {
  modern: new Map([
    ...LISTS,
    ['subscriptions/listen', listen],
    [
      'server/discover',
      async ({ scene }, { request, face }) =>
        said(resultText(request.id, await discover(scene, face))),
    ],
  ]),
  legacy: new Map([
    ...LISTS,
    [
      'ping',
      async ({ tally }, { request }) => {
        tally.add('pings')
        return said(resultText(request.id, '{}'))
      },
    ],
    ['logging/setLevel', setLevel],
    ['resources/unsubscribe', unsubscribe],
  ]),
}

async function setLevel(stage: Stage, flight: Flight): Promise<Said> {
  const { request } = flight
  if ((await offer(stage.scene.doors, 'logging')) === 'absent') return unknownMethod(stage, flight)
  const level = request.params?.['level']
  if (typeof level !== 'string' || !LEVELS.includes(level)) {
    const message = `params.level must be one of ${LEVELS.join(', ')}`
    return invalidParams(stage, request, { problem: 'log_level', message })
  }
  stage.setLevel(level)
  return said(resultText(request.id, '{}'))
}

/** Nothing is asked of policy: who stops listening learns nothing. */
async function unsubscribe(stage: Stage, flight: Flight): Promise<Said> {
  const { request } = flight
  if ((await offer(stage.scene.doors, 'subscribe')) === 'absent')
    return unknownMethod(stage, flight)
  const uri = request.params?.['uri']
  if (typeof uri !== 'string' || uri === '') {
    const message = 'params.uri must be a string that is not empty'
    return invalidParams(stage, request, { problem: 'uri', message })
  }
  stage.subscriptions.remove(uri)
  return said(resultText(request.id, '{}'))
}
