// Further tools of scripted.ts, for cases about framing, floods and early answers.
//
//   together(count, text)   holds its answer until so many calls are held, then answers all in one write
//   pieces(text, ms)        the text, written in three pieces ms apart
//   drip(ms)                answers "dripping", then a log notification each ms and for ever
//   babble(ms, text)        answers "babbling", then the text on stderr each ms and for ever
//   bytes(base64, text)     these bytes as they are, then the text in a line of its own
//   split(text, at)         the text, its line cut in two writes after so many bytes; at -1: a write a byte
//   torrent(bytes, to)      an answer of so many bytes on one line; to `noise`: so many bytes of a line
//                           that is no message, to `words`: of one on stderr, then "done"
//   cwd()                   the folder it runs in
//   remember(value) recall()    keeps a text in this process, and tells it

import { once } from 'node:events'

import { type Context, type Json, structured, text, type Tool, tool } from './scripted-tools.ts'

const string = { type: 'string' }
const integer = { type: 'integer' }

const isModern = (c: Context): boolean =>
  (c.params['_meta'] as Json | undefined)?.['io.modelcontextprotocol/protocolVersion'] !== undefined

const answerLine = (c: Context): string => {
  const result = {
    ...(isModern(c) ? { resultType: 'complete' } : {}),
    ...text(String(c.args['text'])),
  }
  return `${JSON.stringify({ jsonrpc: '2.0', id: c.id, result })}\n`
}

let held: string[] = []
function together(c: Context): void {
  held.push(answerLine(c))
  if (held.length < Number(c.args['count'])) return
  process.stdout.write(held.join(''))
  held = []
}

function pieces(c: Context): void {
  const bytes = Buffer.from(answerLine(c))
  const third = Math.ceil(bytes.length / 3)
  for (const n of [0, 1, 2]) {
    const piece = bytes.subarray(n * third, (n + 1) * third)
    setTimeout(() => process.stdout.write(piece), n * Number(c.args['ms'] ?? 20))
  }
}

function drip(c: Context): void {
  const params = { level: 'info', logger: 'scripted', data: 'drip' }
  setInterval(() => c.send({ method: 'notifications/message', params }), Number(c.args['ms']))
  c.result(text('dripping'))
}

function babble(c: Context): void {
  process.stderr.on('error', () => undefined)
  setInterval(() => process.stderr.write(`${String(c.args['text'])}\n`), Number(c.args['ms']))
  c.result(text('babbling'))
}

function split(c: Context): void {
  const line = Buffer.from(answerLine(c))
  const at = Number(c.args['at'])
  const next = (from: number): void => {
    if (from >= line.length) return
    const to = at < 0 ? from + 1 : from === 0 && at > 0 ? at : line.length
    process.stdout.write(line.subarray(from, to), () => setImmediate(next, to))
  }
  next(0)
}

async function torrent(c: Context): Promise<void> {
  const [head = '', tail = ''] = answerLine({ ...c, args: { text: '@' } }).split('@')
  const isAnswer = c.args['to'] === undefined
  const out = c.args['to'] === 'words' ? process.stderr : process.stdout
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  if (isAnswer) out.write(head)
  for (let left = Number(c.args['bytes']); left > 0; left -= chunk.length) {
    if (!out.write(chunk)) await once(out, 'drain')
  }
  out.write(isAnswer ? tail : '\n')
  if (!isAnswer) c.result(text('done'))
}

let remembered = 'nothing'

export const CASE_TOOLS: readonly Tool[] = [
  tool('together', { count: integer, text: string }, together),
  tool('pieces', { text: string, ms: integer }, pieces),
  tool('drip', { ms: integer }, drip),
  tool('babble', { ms: integer, text: string }, babble),
  tool('bytes', { base64: string, text: string }, (c) => {
    process.stdout.write(Buffer.from(String(c.args['base64']), 'base64'))
    c.result(text(String(c.args['text'])))
  }),
  tool('split', { text: string, at: integer }, split),
  tool('torrent', { bytes: integer, to: string }, (c) => void torrent(c)),
  tool('remember', { value: string }, (c) => {
    remembered = String(c.args['value'])
    c.result(text('remembered'))
  }),
  tool('recall', {}, (c) => c.result(text(remembered))),
  tool('cwd', {}, (c) => c.result(structured({ cwd: process.cwd() }))),
]
