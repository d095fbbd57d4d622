// The methods that a client may ask for, each from its request to its response.

import { object } from '../json.ts'
import type { ListKind } from '../ports.ts'
import { callOf } from './calls.ts'
import type { Said } from './channel.ts'
import { type Face, LEVELS } from './era.ts'
import type { Flight } from './flights.ts'
import { invalidParams, allDown, said, unknownMethod } from './refuse.ts'
import { resultText } from './render.ts'
import { serveCall } from './serve-call.ts'
import type { Serves, Stage } from './stage.ts'
import { type Capability, discover, offer, view } from './views.ts'

/** The response, or null when there is none to give. Records come first: what is refused here is in the
 *  ledger when this resolves. Rejects with a `Fault` of the store. */
export async function serve(stage: Stage, flight: Flight): Promise<Said | null> {
  const { request, face } = flight
  const method = callOf(face.era, request.method)
  if (method !== null) return serveCall(stage, flight, method)
  const serves = METHODS[face.era].get(request.method)
  return serves === undefined ? unknownMethod(stage, flight) : serves(stage, flight)
}

const listing = (kind: ListKind, capability: Capability): Serves => {
  return async (stage, flight) => {
    const { request, face } = flight
    const { scene, changes } = stage
    if (request.params?.['cursor'] !== undefined) {
      const message = 'params.cursor is not one of ours; lists come whole, ask without it'
      return invalidParams(stage, request, { problem: 'cursor', message })
    }
    const offered = await offer(scene.doors, capability)
    if (offered === 'absent') return unknownMethod(stage, flight)
    const seen = await view(scene, face, kind)
    if (offered === 'down' && seen.view === '') return allDown(stage, flight)
    if (face.era === 'legacy') changes.shown(kind, seen.view)
    return said(resultText(request.id, seen.text))
  }
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
