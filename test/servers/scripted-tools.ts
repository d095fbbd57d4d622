// The tools of scripted.ts. Results are text blocks; where a caller wants values, structuredContent.
//
//   echo(text)              the text                    source()      the request line as received
//   after(ms, label)        the label, later            slow(ms)      "done" after ms (20 s); stops
//                                                       at nothing, so that its effect can be late
//   env() argv() meta() pid()   what the process sees; meta = params._meta
//   dump(bytes)             so many characters `x`      wide(n)       n times a four-byte emoji
//   mutate(request_id, text)    appends to --effects, answers {"status":"written"}
//   crash(when)             exits with 1: `before` the effect of mutate, or `after` it, unanswered;
//                           with code: that status
//   junk(lines, text)       writes these lines, $ID replaced by its request id, then answers text
//   raw(result)             answers with this source text as its result, byte for byte
//   line(text)              writes text with every $ID replaced by its request id, and nothing else
//   progress(values, ms)    one progress a value, ms apart, then "done", then progress 9
//   log(entries)            one notifications/message an entry {level, data}, then "done"
//   fail(message)           isError: true               refuse(code, message, data)  a JSON-RPC error
//   ask(method, params)     asks the other side, answers with what it said
//   change(tools, hide, times, ms)  sets the further tools, hides own ones, announces it `times`
//                           times over ms, answers "changed" at once
//   input() task()          resultType input_required, task
//   hang()                  never answers               shut()        closes its stdin, goes on
//   spawn()                 starts a grandchild that ignores SIGTERM, answers its pid
//   stderr(text, times)     writes to stderr            flood(n)      n log notifications, then "done"

import { spawn } from 'node:child_process'
import { appendFileSync, closeSync } from 'node:fs'

export type Json = { [key: string]: unknown }

export type Context = {
  readonly id: string | number
  readonly args: Json
  readonly params: Json
  readonly line: string
  readonly argv: readonly string[]
  readonly effects: string | undefined
  result(value: Json): void
  error(code: number, message: string, data?: unknown): void
  send(message: Json): void
  sendText(line: string): void
  changed(kind: string): void
  setTools(next: Json[], hide: readonly string[]): void
  ask(method: string, params: unknown, then: (answer: Json) => void): string
}

export type Tool = { readonly definition: Json; run(context: Context): void }

export const text = (value: string): Json => ({ content: [{ type: 'text', text: value }] })
export const structured = (value: Json): Json => ({
  ...text(JSON.stringify(value)),
  structuredContent: value,
})

export function tool(name: string, properties: Json, run: (context: Context) => void): Tool {
  const definition = {
    name,
    description: `scripted ${name}`,
    inputSchema: { type: 'object', properties },
  }
  return { definition, run }
}

const string = { type: 'string' }
const integer = { type: 'integer' }

function mutate(c: Context): void {
  if (c.effects !== undefined)
    appendFileSync(c.effects, `${String(c.args['request_id'])}\t${String(c.args['text'])}\n`)
}

function progress(c: Context): void {
  const token = (c.params['_meta'] as Json | undefined)?.['progressToken']
  const values = [...(c.args['values'] as number[])]
  const tell = (value: number): void =>
    c.send({
      method: 'notifications/progress',
      params: { progressToken: token, progress: value, message: `at ${value}` },
    })
  const step = (): void => {
    const value = values.shift()
    if (value === undefined) {
      c.result(text('done'))
      tell(9)
      return
    }
    tell(value)
    setTimeout(step, Number(c.args['ms'] ?? 0))
  }
  step()
}

function change(c: Context): void {
  c.setTools((c.args['tools'] ?? []) as Json[], (c.args['hide'] ?? []) as string[])
  c.result(text('changed'))
  const times = Number(c.args['times'] ?? 1)
  const gap = Number(c.args['ms'] ?? 0) / times
  for (let n = 0; n < times; n++) setTimeout(() => c.changed('tools'), n * gap)
}

function grandchild(c: Context): void {
  const script = 'process.on("SIGTERM",()=>{});setInterval(()=>{},1000);console.log("up")'
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.once('data', () => c.result(structured({ pid: child.pid })))
}

const message = (level: unknown, data: unknown): Json => ({
  method: 'notifications/message',
  params: { level, logger: 'scripted', data },
})

export const TOOLS: readonly Tool[] = [
  tool('echo', { text: string }, (c) => c.result(text(String(c.args['text'])))),
  tool('source', {}, (c) => c.result(text(c.line))),
  tool('after', { ms: integer, label: string }, (c) => {
    setTimeout(() => c.result(text(String(c.args['label']))), Number(c.args['ms']))
  }),
  tool('slow', { ms: integer }, (c) => {
    setTimeout(() => c.result(text('done')), Number(c.args['ms'] ?? 20_000))
  }),
  tool('env', {}, (c) => c.result(structured({ env: { ...process.env } }))),
  tool('argv', {}, (c) => c.result(structured({ argv: c.argv }))),
  tool('meta', {}, (c) => c.result(structured({ meta: c.params['_meta'] ?? null }))),
  tool('pid', {}, (c) => c.result(structured({ pid: process.pid }))),
  tool('dump', { bytes: integer }, (c) => c.result(text('x'.repeat(Number(c.args['bytes']))))),
  tool('wide', { n: integer }, (c) => c.result(text('\u{1f600}'.repeat(Number(c.args['n']))))),
  tool('mutate', { request_id: string, text: string }, (c) => {
    mutate(c)
    c.result(structured({ status: 'written' }))
  }),
  tool('crash', { when: string, code: integer, request_id: string, text: string }, (c) => {
    if (c.args['when'] === 'after') mutate(c)
    process.exit(Number(c.args['code'] ?? 1))
  }),
  tool('junk', { lines: { type: 'array' }, text: string }, (c) => {
    for (const line of c.args['lines'] as string[]) {
      c.sendText(line.replaceAll('$ID', JSON.stringify(c.id)))
    }
    c.result(text(String(c.args['text'])))
  }),
  tool('raw', { result: string }, (c) =>
    c.sendText(
      `{"jsonrpc":"2.0","id":${JSON.stringify(c.id)},"result":${String(c.args['result'])}}`,
    ),
  ),
  tool('line', { text: string }, (c) =>
    c.sendText(String(c.args['text']).replaceAll('$ID', JSON.stringify(c.id))),
  ),
  tool('progress', { values: { type: 'array' }, ms: integer }, progress),
  tool('log', { entries: { type: 'array' } }, (c) => {
    for (const one of c.args['entries'] as Json[]) c.send(message(one['level'], one['data']))
    c.result(text('done'))
  }),
  tool('log_after', { ms: integer, data: string }, (c) => {
    setTimeout(() => c.send(message('info', c.args['data'])), Number(c.args['ms']))
  }),
  tool('fail', { message: string }, (c) =>
    c.result({ ...text(String(c.args['message'])), isError: true }),
  ),
  tool('refuse', { code: integer, message: string }, (c) =>
    c.error(Number(c.args['code']), String(c.args['message']), c.args['data']),
  ),
  tool('ask', { method: string, params: { type: 'object' } }, (c) =>
    c.ask(String(c.args['method']), c.args['params'] ?? {}, (answer) =>
      c.result(structured({ answer })),
    ),
  ),
  tool('ask_after', { ms: integer, method: string, params: { type: 'object' } }, (c) => {
    setTimeout(() => {
      c.ask(String(c.args['method']), c.args['params'] ?? {}, (answer) =>
        c.result(structured({ answer })),
      )
    }, Number(c.args['ms']))
  }),
  tool(
    'change',
    { tools: { type: 'array' }, hide: { type: 'array' }, times: integer, ms: integer },
    change,
  ),
  tool('input', {}, (c) =>
    c.result({ resultType: 'input_required', requestState: 's', inputRequests: {}, content: [] }),
  ),
  tool('task', {}, (c) => c.result({ resultType: 'task', taskId: 't', status: 'working' })),
  tool('hang', {}, () => {}),
  tool('shut', {}, (c) => {
    c.result(text('shut'))
    process.stdin.removeAllListeners('end')
    // Node leaves the descriptor of its stdin open, whatever becomes of the stream.
    process.stdin.once('close', () => closeSync(0)).destroy()
    setInterval(() => {}, 60_000)
  }),
  tool('spawn', {}, grandchild),
  tool('stderr', { text: string, times: integer }, (c) => {
    for (let n = 0; n < Number(c.args['times'] ?? 1); n++)
      process.stderr.write(`${String(c.args['text'])}\n`)
    c.result(text('done'))
  }),
  tool('flood', { n: integer }, (c) => {
    for (let n = 0; n < Number(c.args['n']); n++) c.send(message('info', n))
    c.result(text('done'))
  }),
]
