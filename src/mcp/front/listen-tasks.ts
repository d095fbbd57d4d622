// Tasks on a stream that listens: each is looked at for its client as by a `tasks/get`, and told when it changed.

import { Fault } from '../../fault.ts'
import { handle, taskOf } from '../../gateway.ts'
import { type Json, type JsonObject, object, writeJson } from '../../json.ts'
import { readCall } from './calls.ts'
import { metaOf } from '../wire/era.ts'
import type { Flight } from './flights.ts'
import { cleanNotice } from './render.ts'
import type { Stage } from './stage.ts'

/** Characters of a name of a task; longer ones are none of ours. */
const MAX_NAME = 16_384
/** How often a task is looked at: as its server says, within these, or this often where it says nothing. */
const MIN_LOOK_MS = 1_000
const MAX_LOOK_MS = 60_000
const LOOK_MS = 5_000

/** The tasks among these names that are this client's. */
export const tasksAmong = ({ scene }: Stage, names: readonly string[]): readonly string[] =>
  names.filter(
    (name) => name.length <= MAX_NAME && taskOf(name, scene.client, scene.doors) !== null,
  )

/** Looks at each task until it has ended, its client may not look any more, or `signal` is aborted. Every look
 *  is decided and recorded like one that the client asks for. `tell` gets the params of a notice; false: it was
 *  not said, and is tried again. */
export function followTasks(
  stage: Stage,
  flight: Flight,
  wish: Pick<Following, 'tell' | 'signal'> & { readonly names: readonly string[] },
): void {
  const { names, tell, signal } = wish
  for (const name of names) void follow({ stage, flight, name, tell, signal })
}

type Following = {
  readonly stage: Stage
  readonly flight: Flight
  readonly name: string
  readonly tell: (task: JsonObject) => boolean
  readonly signal: AbortSignal
}

async function follow(one: Following): Promise<void> {
  const { tell, signal } = one
  let last = ''
  while (!signal.aborted) {
    const seen = await look(one)
    if (seen === 'over' || signal.aborted) return
    if (seen !== 'away') {
      const text = writeJson(seen)
      const isTold = text === last || tell(seen)
      if (isTold) last = text
      if (isTold && ENDS.has(seen['status'])) return
    }
    await pause(seen === 'away' ? LOOK_MS : patience(seen['pollIntervalMs']), signal)
  }
}

const ENDS: ReadonlySet<Json | undefined> = new Set(['completed', 'failed', 'cancelled'])

/** The task as its client may see it now. away: nobody can say; over: it is not the client's to see any more. */
async function look({
  stage,
  flight,
  name,
  signal,
}: Following): Promise<JsonObject | 'away' | 'over'> {
  const { scene, routes, transport } = stage
  const { face, request } = flight
  const _meta = metaOf(request.params) ?? undefined
  const receivedUs = scene.doors.clock.nowUs()
  try {
    const read = await readCall(
      { ...request, params: object({ taskId: name, _meta }) },
      'tasks/get',
      {
        desk: scene,
        routes,
        transport,
        receivedUs,
        face,
        level: null,
      },
    )
    if (read.kind === 'invalid') return 'over'
    const silent = { progress: () => undefined, log: () => undefined }
    const reply = await handle(read.call, scene.doors, { watch: silent, signal, ask: null })
    if (reply.kind === 'refused') return PASSING.has(reply.refusal.code) ? 'away' : 'over'
    if (reply.kind !== 'answered') return 'over'
    if (reply.answer.kind === 'error') return reply.answer.code === NO_TASK ? 'over' : 'away'
    const { resultType: _type, ...task } = reply.answer.value
    return cleanNotice(object(task))
  } catch (error) {
    if (!(error instanceof Fault)) scene.doors.broken(error)
    scene.say('a task could not be looked at for a client that listens to it; it is tried again')
    return 'away'
  }
}

/** Refusals that say nothing of the task. */
const PASSING: ReadonlySet<string> = new Set(['upstream_down', 'timeout', 'outcome_unknown'])
const NO_TASK = -32_602

const patience = (asked: Json | undefined): number =>
  typeof asked === 'number' ? Math.min(MAX_LOOK_MS, Math.max(MIN_LOOK_MS, asked)) : LOOK_MS

function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms).unref()
  const stopped = (): void => {
    clearTimeout(timer)
    resolve()
  }
  signal.addEventListener('abort', stopped)
  return promise.finally(() => signal.removeEventListener('abort', stopped))
}
