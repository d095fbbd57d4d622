// The tasks extension of the fixture, on raw messages: the SDK does not serve it.

import { randomUUID } from 'node:crypto'

import {
  type CallToolResult,
  type JsonSchemaType,
  type JSONRPCMessage,
  MissingRequiredClientCapabilityError,
} from '@modelcontextprotocol/server'

import { said } from './fixture-stage.ts'

const EXTENSION = 'io.modelcontextprotocol/tasks'
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'
const TTL_MS = 600_000

type Json = Record<string, unknown>
type Request = { readonly id: string | number; readonly method: string; readonly params: Json }
type Job = (task: Work) => void
type Work = {
  readonly id: string
  status: 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled'
  readonly created: string
  updated: string
  result?: CallToolResult
  error?: { readonly code: number; readonly message: string }
  readonly asks: Map<string, Json>
  readonly answers: Json
  timer?: NodeJS.Timeout
  readonly resume: () => void
}

/** A tool that may become a task. `run` serves whoever did not declare the extension. */
export type TaskTool = {
  readonly name: string
  readonly description: string
  readonly schema: JsonSchemaType
  readonly run: (args: Json) => Promise<CallToolResult>
}

const required = async (): Promise<CallToolResult> => {
  throw new MissingRequiredClientCapabilityError({
    requiredCapabilities: { extensions: { [EXTENSION]: {} } },
  })
}

const NONE: JsonSchemaType = { type: 'object', properties: {} }

/** Tools of the extension as the SDK lists them, and as it calls them without it. */
export const TASK_TOOLS: readonly TaskTool[] = [
  {
    name: 'greet',
    description: 'greets at once',
    schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    run: async ({ name }) => said(`Hello, ${String(name)}!`),
  },
  {
    name: 'slow_compute',
    description: 'takes its time',
    schema: {
      type: 'object',
      properties: { seconds: { type: 'number' }, label: { type: 'string' } },
    },
    run: async ({ seconds }) => {
      await new Promise((resolve) => setTimeout(resolve, Number(seconds ?? 0) * 1000))
      return said('computed')
    },
  },
  { name: 'failing_job', description: 'fails as a tool', schema: NONE, run: required },
  { name: 'protocol_error_job', description: 'fails as a request', schema: NONE, run: required },
  {
    name: 'confirm_delete',
    description: 'asks before it goes on',
    schema: { type: 'object', properties: { filename: { type: 'string' } } },
    run: required,
  },
  { name: 'multi_input', description: 'asks two things at once', schema: NONE, run: required },
  { name: 'test_tool_with_task', description: 'asks, then works', schema: NONE, run: required },
]

/** Answers what the SDK does not know; undefined: the message is for the SDK. */
export type Tasks = (message: unknown) => JSONRPCMessage | undefined

/** Begins a table of tasks. */
export function taskTable(): Tasks {
  const table = new Map<string, Work>()
  return (message) => {
    const request = requestOf(message)
    if (request === null) return undefined
    const { id, method, params } = request
    const declared = declares(params)
    if (/^tasks\/(get|update|cancel)$/.test(method)) {
      if (!declared) return failure(id, -32021, 'needs the tasks extension', NEEDS)
      const task = table.get(String(params['taskId']))
      if (task === undefined) return failure(id, -32602, 'no such task')
      return success(id, turn(task, method, params))
    }
    if (method !== 'tools/call') return undefined
    const name = String(params['name'])
    const starts = JOBS[name]
    if (starts === undefined) return undefined
    if (!declared) {
      return name === 'slow_compute'
        ? undefined
        : failure(id, -32021, 'needs the tasks extension', NEEDS)
    }
    const asked = name === 'test_tool_with_task' ? nameOf(params) : ''
    if (asked === null) return success(id, ASK_NAME)
    const task = begin(starts((params['arguments'] ?? {}) as Json, asked))
    table.set(task.id, task)
    return success(id, { resultType: 'task', ...shown(task) })
  }
}

const NEEDS = { requiredCapabilities: { extensions: { [EXTENSION]: {} } } }

const form = (message: string, name: string): Json => ({
  method: 'elicitation/create',
  params: {
    message,
    requestedSchema: {
      type: 'object',
      properties: { [name]: { type: name === 'confirm' ? 'boolean' : 'string' } },
      required: [name],
    },
  },
})

const ASK_NAME = {
  resultType: 'input_required',
  inputRequests: { user_name: form('What is your name?', 'name') },
}

/** The name that a retry carries; null when the client has to be asked. */
function nameOf(params: Json): string | null {
  const responses = (params['inputResponses'] ?? {}) as Record<string, Json>
  const content = responses['user_name']?.['content'] as Json | undefined
  return typeof content?.['name'] === 'string' ? content['name'] : null
}

const settle = (task: Work, status: Work['status']): void => {
  if (task.status === 'cancelled') return
  task.status = status
  task.updated = new Date().toISOString()
}

const after =
  (ms: number, end: (task: Work) => void): Job =>
  (task) => {
    task.timer = setTimeout(() => end(task), ms)
  }

const complete =
  (result: CallToolResult) =>
  (task: Work): void => {
    task.result = result
    settle(task, 'completed')
  }

const asking =
  (asks: Record<string, Json>): Job =>
  (task) => {
    for (const [key, ask] of Object.entries(asks)) task.asks.set(key, ask)
    settle(task, 'input_required')
  }

const JOBS: Record<string, (args: Json, asked: string) => Job> = {
  slow_compute: ({ seconds }) => after(Number(seconds ?? 0) * 1000, complete(said('computed'))),
  failing_job: () => after(1000, complete({ ...said('the job failed'), isError: true })),
  protocol_error_job: () =>
    after(100, (task) => {
      task.error = { code: -32603, message: 'the job broke' }
      settle(task, 'failed')
    }),
  confirm_delete: ({ filename }) =>
    asking({ confirm: form(`Delete ${String(filename)}?`, 'confirm') }),
  multi_input: () => asking({ first: form('First?', 'name'), second: form('Second?', 'name') }),
  test_tool_with_task: (_args, asked) => after(300, complete(said(`Hello, ${asked}!`))),
}

function begin(job: Job): Work {
  const now = new Date().toISOString()
  const task: Work = {
    id: randomUUID(),
    status: 'working',
    created: now,
    updated: now,
    asks: new Map(),
    answers: {},
    resume: () => complete(said(JSON.stringify(task.answers)))(task),
  }
  job(task)
  return task
}

function shown(task: Work): Json {
  return {
    taskId: task.id,
    status: task.status === 'completed' || task.status === 'failed' ? 'working' : task.status,
    createdAt: task.created,
    lastUpdatedAt: task.updated,
    ttlMs: TTL_MS,
    pollIntervalMs: 100,
  }
}

function turn(task: Work, method: string, params: Json): Json {
  const resultType = 'complete'
  if (method === 'tasks/get') {
    return {
      resultType,
      ...shown(task),
      status: task.status,
      ...(task.status === 'input_required' ? { inputRequests: Object.fromEntries(task.asks) } : {}),
      ...(task.result === undefined ? {} : { result: task.result }),
      ...(task.error === undefined ? {} : { error: task.error }),
    }
  }
  if (method === 'tasks/cancel') {
    clearTimeout(task.timer)
    if (task.status === 'working' || task.status === 'input_required') settle(task, 'cancelled')
    return { resultType }
  }
  for (const [key, response] of Object.entries((params['inputResponses'] ?? {}) as Json)) {
    if (task.asks.delete(key)) task.answers[key] = response
  }
  if (task.status === 'input_required' && task.asks.size === 0) task.resume()
  return { resultType }
}

const success = (id: Request['id'], result: Json): JSONRPCMessage => ({
  jsonrpc: '2.0',
  id,
  result,
})

const failure = (
  id: Request['id'],
  code: number,
  message: string,
  data?: Json,
): JSONRPCMessage => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
})

function requestOf(message: unknown): Request | null {
  if (typeof message !== 'object' || message === null) return null
  const { id, method, params } = message as Partial<Request>
  if (typeof method !== 'string' || (typeof id !== 'string' && typeof id !== 'number')) return null
  if (typeof params !== 'object' || params === null) return null
  const meta = params['_meta'] as Json | undefined
  return meta?.['io.modelcontextprotocol/protocolVersion'] === undefined
    ? null
    : { id, method, params }
}

function declares(params: Json): boolean {
  const meta = params['_meta'] as Json | undefined
  const capabilities = meta?.[CAPABILITIES] as Json | undefined
  const extensions = capabilities?.['extensions'] as Json | undefined
  return extensions?.[EXTENSION] !== undefined
}
