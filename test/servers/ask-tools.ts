// What scripted.ts can ask of a client, its tasks and its subscriptions.
//
//   inquire(requests, state)   modern: asks these (input_required), and once it is called with responses or
//                              a state answers {responses, state}
//   asks(requests)             legacy: sends all of them at once, answers {answers} when each has one
//   impatient(method, params, ms)  asks, withdraws the question after ms and answers "nobody answered"
//   url_first(url)             legacy: error -32042 at the first call, then "opened"
//   needs(method, params)      legacy: asks, and fails when it gets an error
//   level()                    the level that logging/setLevel set last, {level}
//   touch(uri)                 announces that this resource changed, to whoever subscribed
//   subscribed()               {uris} that are subscribed to, {listens} filters of open subscriptions
//   capabilities()             what the client declared, {initialized, request}
//   for_the_able()             legacy: only listed for who has roots
//   begin(id, told)            modern: a task of the extension; tasks/get says `told` of it, where it is given;
//                              forgotten: true is no longer known; looks: n is at work for so many more looks
//   laborious(ms)              legacy: can only be called as a task; its result comes after ms
//   tasks_seen()               {cancelled} ids of tasks that were cancelled

import { type Context, type Json, structured, text, type Tool, tool } from './scripted-tools.ts'

const META = 'io.modelcontextprotocol/'
const string = { type: 'string' }
const integer = { type: 'integer' }

/** What the rest of the server knows. */
export type Desk = {
  /** Filters of open subscriptions, by the ids of their requests. */
  readonly listeners: ReadonlyMap<string | number, Json>
  /** The capabilities in `initialize`. */
  readonly declared: () => unknown
}

type Reply = {
  result(value: Json): void
  error(code: number, message: string, data?: unknown): void
}

let level: unknown = null
let urlWasOpened = false
const uris = new Set<string>()
const cancelled: string[] = []
const results = new Map<string, { due: number; value: Json }>()
const told = new Map<string, Json>()

/** Methods beside those of scripted.ts. */
export const ASK_METHODS: Record<
  string,
  (id: string | number, params: Json, reply: Reply) => void
> = {
  'logging/setLevel': (_id, params, reply) => {
    level = params['level']
    reply.result({})
  },
  'resources/subscribe': (_id, params, reply) => {
    uris.add(String(params['uri']))
    reply.result({})
  },
  'resources/unsubscribe': (_id, params, reply) => {
    uris.delete(String(params['uri']))
    reply.result({})
  },
  'tasks/result': (_id, params, reply) => {
    const id = String(params['taskId'])
    const held = results.get(id)
    if (held === undefined) return reply.error(-32602, 'no such task')
    const look = (): void => {
      if (cancelled.includes(id)) reply.error(-32000, 'the task was cancelled')
      else if (Date.now() >= held.due) reply.result(held.value)
      else setTimeout(look, 10)
    }
    look()
  },
  'tasks/cancel': (_id, params, reply) => {
    cancelled.push(String(params['taskId']))
    reply.result({})
  },
  'tasks/get'(_id, params, reply) {
    const more = told.get(String(params['taskId']))
    if (more?.['forgotten'] === true) return reply.error(-32602, 'no such task')
    const { looks, ...rest } = more ?? {}
    if (typeof looks === 'number' && looks > 0) {
      told.set(String(params['taskId']), { ...rest, looks: looks - 1 })
      const times = timesOf()
      const status = { status: 'working', statusMessage: `${looks} to go`, pollIntervalMs: 10 }
      return reply.result({ taskId: params['taskId'], ...status, ...times, ttlMs: null })
    }
    reply.result({
      taskId: params['taskId'],
      status: 'completed',
      createdAt: '2026-11-30T00:00:00Z',
      lastUpdatedAt: '2026-11-30T00:00:00Z',
      ttlMs: null,
      result: text(`result of ${String(params['taskId'])}`),
      ...rest,
    })
  },
  'tasks/update': (_id, _params, reply) => reply.result({}),
}

/** False for the tool that is kept from those who did not declare roots. */
export const isFor = (declared: unknown, { name }: Json): boolean =>
  name !== 'for_the_able' || (declared as Json | null)?.['roots'] !== undefined

/** Of the filter of a subscription what is honoured: all, or of the resources only this one. */
export function honoured(params: Json, only: string | undefined): Json {
  const wanted = (params['notifications'] ?? {}) as Json
  const { resourceSubscriptions: asked } = wanted
  if (only === undefined || !Array.isArray(asked)) return wanted
  return { ...wanted, resourceSubscriptions: asked.filter((one) => one === only) }
}

/** What comes first on an open subscription. */
export const acknowledgement = (id: string | number, filter: Json | undefined): Json => ({
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications: filter, _meta: { [`${META}subscriptionId`]: id } },
})

const timesOf = (): Json => ({
  createdAt: '2026-11-30T00:00:00Z',
  lastUpdatedAt: '2026-11-30T00:00:00Z',
})

function inquire(c: Context): void {
  const { inputResponses, requestState } = c.params
  if (inputResponses === undefined && requestState === undefined) {
    c.result({
      resultType: 'input_required',
      inputRequests: c.args['requests'],
      requestState: c.args['state'],
    })
  } else {
    c.result(structured({ responses: inputResponses ?? null, state: requestState ?? null }))
  }
}

function asks(c: Context): void {
  const wanted = c.args['requests'] as Json[]
  const answers: Json[] = []
  for (const [at, { method, params }] of wanted.entries()) {
    c.ask(String(method), params, (answer) => {
      answers[at] = answer
      if (Object.keys(answers).length === wanted.length) c.result(structured({ answers }))
    })
  }
}

function impatient(c: Context): void {
  let open = true
  const id = c.ask(String(c.args['method']), c.args['params'] ?? {}, (answer) => {
    if (open) c.result(structured({ answer }))
    open = false
  })
  setTimeout(() => {
    if (!open) return
    open = false
    c.send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'timeout' } })
    c.result({ ...text('nobody answered'), isError: true })
  }, Number(c.args['ms']))
}

function laborious(c: Context): void {
  const wish = c.params['task'] as Json | undefined
  if (wish === undefined) return c.error(-32601, 'this tool must be called as a task')
  const taskId = `task-${c.id}`
  const value = {
    ...text('the work is done'),
    _meta: { [`${META}related-task`]: { taskId } },
  }
  results.set(taskId, { due: Date.now() + Number(c.args['ms']), value })
  c.result({ task: { taskId, status: 'working', ttl: wish['ttl'], ...timesOf() } })
}

function touch(c: Context, { listeners }: Desk): void {
  const uri = String(c.args['uri'])
  const method = 'notifications/resources/updated'
  if ([...uris].some((one) => uri.startsWith(one))) c.send({ method, params: { uri } })
  for (const [id, { resourceSubscriptions: wanted }] of listeners) {
    const isWanted = Array.isArray(wanted) && wanted.some((one) => uri.startsWith(String(one)))
    if (isWanted) c.send({ method, params: { uri, _meta: { [`${META}subscriptionId`]: id } } })
  }
}

const withExecution = (made: Tool): Tool => ({
  ...made,
  definition: { ...made.definition, execution: { taskSupport: 'required' } },
})

/** The tools told above. */
export const askTools = (desk: Desk): readonly Tool[] => [
  tool('inquire', { requests: { type: 'object' }, state: string }, inquire),
  tool('asks', { requests: { type: 'array' } }, asks),
  tool('impatient', { method: string, params: { type: 'object' }, ms: integer }, impatient),
  tool('url_first', { url: string }, (c) => {
    const elicitations = [
      { mode: 'url', elicitationId: 'e1', url: c.args['url'], message: 'please sign in' },
    ]
    if (urlWasOpened) c.result(text('opened'))
    else c.error(-32042, 'URL needed', { elicitations })
    urlWasOpened = true
  }),
  tool('needs', { method: string, params: { type: 'object' } }, (c) => {
    c.ask(String(c.args['method']), c.args['params'] ?? {}, (answer) =>
      c.result({ ...structured({ answer }), isError: answer['error'] !== undefined }),
    )
  }),
  tool('level', {}, (c) => c.result(structured({ level }))),
  tool('touch', { uri: string }, (c) => {
    touch(c, desk)
    c.result(text('touched'))
  }),
  tool('subscribed', {}, (c) =>
    c.result(structured({ uris: [...uris], listens: [...desk.listeners.values()] })),
  ),
  tool('capabilities', {}, (c) => {
    const meta = (c.params['_meta'] ?? {}) as Json
    c.result(
      structured({
        initialized: desk.declared() ?? null,
        request: meta[`${META}clientCapabilities`] ?? null,
      }),
    )
  }),
  tool('for_the_able', {}, (c) => c.result(text('able'))),
  tool('begin', { id: string, told: { type: 'object' } }, (c) => {
    if (c.args['told'] !== undefined) told.set(String(c.args['id']), c.args['told'] as Json)
    c.result({
      resultType: 'task',
      taskId: String(c.args['id']),
      status: 'working',
      ttlMs: null,
      ...timesOf(),
    })
  }),
  withExecution(tool('laborious', { ms: integer }, laborious)),
  tool('tasks_seen', {}, (c) => c.result(structured({ cancelled }))),
]
