// Tasks of a server: those of 2025-11-25 are driven here and hidden, those of the extension pass.

import { isObject, type JsonObject, member, object } from '../../json.ts'
import type { Hello } from '../../ports.ts'
import type { Heard } from './heard.ts'

/** The extension whose tasks a client may be handed. */
export const TASKS = 'io.modelcontextprotocol/tasks'

/** True when a request with these capabilities may be answered with a task. */
export const takesTasks = (capabilities: JsonObject): boolean =>
  isObject(member(capabilities['extensions'], TASKS))

/** True for a tool of a legacy server that can only be called as a task: no client of ours knows those, so
 *  the task is made, awaited and answered here. Source: MCP 2025-11-25, tasks. */
export function needsTask({ era, capabilities }: Hello, tool: JsonObject | undefined): boolean {
  if (era !== 'legacy' || member(tool?.['execution'], 'taskSupport') !== 'required') return false
  const requests = member(capabilities['tasks'], 'requests')
  return isObject(member(member(requests, 'tools'), 'call'))
}

/** The params of a call that is to become a task, which is kept for so long. */
export const asTask = (params: JsonObject, ttl: number): JsonObject =>
  object({ ...params, task: object({ ttl }) })

/** The id of the task that a legacy server made of a call, or null when this is another answer. */
export function createdTask(heard: Heard): string | null {
  const id = heard.kind === 'result' ? member(heard.value['task'], 'taskId') : undefined
  return typeof id === 'string' ? id : null
}
