// What of a server's bytes is taken for a reply, and where it ends: told by Node's own reader of HTTP as well.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { test, type TestContext } from 'node:test'

import { type ReplyHead, replyReader } from '../../../src/mcp/upstream-http/reply.ts'

type Read = {
  readonly heads: ReplyHead[]
  readonly body: string
  readonly state: string
  readonly whole: boolean
}

/** What a reader makes of these bytes, cut after every so many. */
function read(bytes: string | Buffer, step = Number.POSITIVE_INFINITY): Read {
  const heads: ReplyHead[] = []
  let body = ''
  const reader = replyReader({
    head: (head) => heads.push(head),
    data(chunk) {
      body += chunk.toString('latin1')
    },
  })
  const all = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
  let state = 'reading'
  for (let at = 0; at < all.length; at += step) {
    state = reader.push(all.subarray(at, Math.min(all.length, at + step)))
  }
  return { heads, body, state, whole: state === 'done' || reader.close() }
}

const OK = 'HTTP/1.1 200 OK\r\n'
const HEADS: [name: string, bytes: string, state: string, body: string][] = [
  ['a length', `${OK}Content-Length: 5\r\n\r\nhello`, 'done', 'hello'],
  ['a length of nothing', `${OK}Content-Length: 0\r\n\r\n`, 'done', ''],
  ['too little', `${OK}Content-Length: 5\r\n\r\nhel`, 'reading', 'hel'],
  ['more than it said', `${OK}Content-Length: 5\r\n\r\nhellox`, 'excess', 'hello'],
  [
    'parts',
    `${OK}Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n0\r\n\r\n`,
    'done',
    'hello!',
  ],
  [
    'parts and a trailer',
    `${OK}Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nX-A: b\r\n\r\n`,
    'done',
    '0123456789',
  ],
  [
    'a trailer without a colon',
    `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\nxxxx\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'parts without an end',
    `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    'reading',
    'hello',
  ],
  ['neither', `${OK}Content-Type: a/b\r\n\r\nhello`, 'reading', 'hello'],
  ['no reason', 'HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx', 'done', 'x'],
  ['status 204', 'HTTP/1.1 204 No Content\r\n\r\n', 'done', ''],
  [
    'status 304 with a length',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n',
    'done',
    '',
  ],
  [
    'interim heads',
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${OK}Content-Length: 1\r\n\r\nx`,
    'done',
    'x',
  ],
  ['interim heads without an end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(40), 'no_http', ''],
  [
    'another protocol',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    'no_http',
    '',
  ],
  ['a length twice', `${OK}Content-Length: 1\r\nContent-Length: 1\r\n\r\nx`, 'no_http', ''],
  ['two lengths', `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx`, 'no_http', ''],
  ['lengths in a list', `${OK}Content-Length: 1, 1\r\n\r\nx`, 'no_http', ''],
  ['a signed length', `${OK}Content-Length: +1\r\n\r\nx`, 'no_http', ''],
  ['a length in hex', `${OK}Content-Length: 0x1\r\n\r\nx`, 'no_http', ''],
  ['an endless length', `${OK}Content-Length: ${'9'.repeat(40)}\r\n\r\nx`, 'no_http', ''],
  ['no length after its name', `${OK}Content-Length:\r\n\r\nx`, 'no_http', ''],
  [
    'parts and a length',
    `${OK}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'a length and parts',
    `${OK}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  ['another coding', `${OK}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 'no_http', ''],
  [
    'parts twice',
    `${OK}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'a signed part',
    `${OK}Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'a part in C',
    `${OK}Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'an endless part',
    `${OK}Transfer-Encoding: chunked\r\n\r\n${'f'.repeat(17)}\r\nhello`,
    'no_http',
    '',
  ],
  [
    'a part that is longer',
    `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhelloo\r\n0\r\n\r\n`,
    'no_http',
    'hello',
  ],
  [
    'a part with a lone LF',
    `${OK}Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n`,
    'no_http',
    '',
  ],
  [
    'a line of a part without an end',
    `${OK}Transfer-Encoding: chunked\r\n\r\n5;${'x'.repeat(20_000)}`,
    'too_large',
    '',
  ],
  [
    'a trailer without an end',
    `${OK}Transfer-Encoding: chunked\r\n\r\n0\r\n${'X-A: b\r\n'.repeat(4000)}`,
    'no_http',
    '',
  ],
  ['a lone LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n', 'no_http', ''],
  ['a lone CR', `${OK}X: a\rb\r\nContent-Length: 0\r\n\r\n`, 'no_http', ''],
  ['a NUL', `${OK}X: a\0b\r\nContent-Length: 0\r\n\r\n`, 'no_http', ''],
  ['a name with a space', `${OK}Content-Length : 0\r\n\r\n`, 'no_http', ''],
  ['a folded line', `${OK}X: a\r\n b\r\nContent-Length: 0\r\n\r\n`, 'no_http', ''],
  ['a line without a colon', `${OK}Content-Length\r\n\r\n`, 'no_http', ''],
  ['an older HTTP', 'HTTP/0.9 200 OK\r\n\r\n', 'no_http', ''],
  ['a newer HTTP', 'HTTP/2.0 200 OK\r\n\r\n', 'no_http', ''],
  ['a status of two digits', 'HTTP/1.1 20 OK\r\n\r\n', 'no_http', ''],
  ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n', 'no_http', ''],
  ['TLS', '\u0015\u0003\u0003\u0000\u0002\u0002\u0032', 'no_http', ''],
  ['a large header', `${OK}X: ${'x'.repeat(20_000)}\r\n\r\n`, 'too_large', ''],
  ['a head without an end', `${OK}${'X: y\r\n'.repeat(4000)}`, 'too_large', ''],
]
for (const [name, bytes, state, body] of HEADS) {
  test(`a reply with ${name} is read alike however it is cut`, () => {
    for (const step of [Number.POSITIVE_INFINITY, 1, 2, 3, 7, 64]) {
      const got = read(bytes, bytes.length > 10_000 && step < 64 ? 64 : step)
      assert.deepEqual([got.state, got.body], [state, body], `${step} bytes at once`)
    }
  })
}

for (const [name, headers, version, keepMs] of [
  ['nothing', '', '1.1', Number.POSITIVE_INFINITY],
  ['that it closes', 'Connection: Close\r\n', '1.1', 0],
  ['that it closes, among others', 'Connection: x\r\nConnection: y, close\r\n', '1.1', 0],
  ['a time', 'Connection: keep-alive\r\nKeep-Alive: timeout=7, max=9\r\n', '1.1', 7000],
  ['nothing, as HTTP/1.0', '', '1.0', 0],
  ['that it keeps it, as HTTP/1.0', 'Connection: keep-alive\r\n', '1.0', Number.POSITIVE_INFINITY],
] as const) {
  test(`a server that says ${name} keeps its connection for ${keepMs} ms`, () => {
    const { heads } = read(`HTTP/${version} 200 OK\r\n${headers}Content-Length: 0\r\n\r\n`)
    assert.equal(heads[0]?.keepMs, keepMs)
  })
}

/** What Node makes of these bytes, as the last that a server says. */
function oracle(t: TestContext): (bytes: Buffer) => Promise<{ whole: boolean; body: string }> {
  let next: Buffer = Buffer.alloc(0)
  const server = createServer((socket) => {
    socket.once('data', () => socket.end(next))
    socket.on('error', () => {})
  })
  const ready = new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return async (bytes) => {
    await ready
    next = bytes
    return new Promise((resolve) => {
      const { port } = server.address() as AddressInfo
      const ask = request({ host: '127.0.0.1', port, agent: false }, (reply) => {
        let body = ''
        reply.setEncoding('latin1')
        reply.on('data', (text: string) => {
          body += text
        })
        reply.once('error', () => resolve({ whole: false, body }))
        reply.once('close', () => resolve({ whole: reply.complete, body }))
      })
      ask.once('upgrade', (_reply, socket) => {
        socket.destroy()
        resolve({ whole: false, body: '' })
      })
      ask.once('error', () => resolve({ whole: false, body: '' }))
      ask.end()
    })
  }
}

/** A reply that is often a good one, and seldom far from one. */
function invented(random: (below: number) => number): Buffer {
  const pick = <T>(of: readonly T[]): T => of[random(of.length)] as T
  const lines = [
    pick([
      'HTTP/1.1 200 OK',
      'HTTP/1.1 200 OK',
      'HTTP/1.0 200 OK',
      'HTTP/1.1 404 No',
      'HTTP/1.1 204 No',
      'HTTP/1.1 200',
    ]),
  ]
  const size = random(40)
  const body = 'x'.repeat(size)
  const way = random(4)
  if (way === 0) lines.push(`Content-Length: ${size + (random(6) === 0 ? random(3) - 1 : 0)}`)
  if (way === 1) lines.push('transfer-encoding: chunked')
  for (let at = random(3); at > 0; at--)
    lines.push(
      pick([
        'X-A: b',
        'Connection: close',
        'Connection: keep-alive',
        'Content-Type:  a/b ',
        'Keep-Alive: timeout=5',
      ]),
    )
  const cut = random(size + 1)
  const chunk = (text: string): string =>
    text === '' ? '' : `${text.length.toString(16)}\r\n${text}\r\n`
  const sent = way === 1 ? `${chunk(body.slice(0, cut))}${chunk(body.slice(cut))}0\r\n\r\n` : body
  const bytes = Buffer.from(`${lines.join('\r\n')}\r\n\r\n${sent}`, 'latin1')
  for (let at = random(4) === 0 ? 1 + random(2) : 0; at > 0; at--) {
    bytes[random(bytes.length)] = pick([
      0x0a, 0x0d, 0x20, 0x30, 0x31, 0x3a, 0x2c, 0x3b, 0x61, 0, 0xff, 0x78,
    ])
  }
  return random(5) === 0 ? bytes.subarray(0, random(bytes.length)) : bytes
}

test('what is taken for a whole reply is one for Node too, with the same body', async (t) => {
  const seed = Number(process.env['ECLUSA_SEED'] ?? Date.now() % 1_000_000)
  t.diagnostic(`ECLUSA_SEED=${seed}`)
  let at = seed
  const random = (below: number): number => {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((at / 2 ** 32) * below)
  }
  const ask = oracle(t)
  const rounds = process.env['ECLUSA_LONG'] === '1' ? 50_000 : 1500
  let whole = 0
  let stricter = 0
  for (let round = 0; round < rounds; round++) {
    const bytes = invented(random)
    const ours = read(bytes, 1 + random(60))
    const node = await ask(bytes)
    if (ours.whole) {
      whole++
      assert.deepEqual(
        { whole: node.whole, body: node.body },
        { whole: true, body: ours.body },
        JSON.stringify(bytes.toString('latin1')),
      )
    } else if (node.whole) {
      stricter++
      assert.ok(ours.state !== 'done', JSON.stringify(bytes.toString('latin1')))
    }
  }
  assert.ok(whole > rounds / 4, `${whole} whole ones`)
  t.diagnostic(`${whole} whole, ${stricter} that only Node takes`)
  assert.ok(stricter < rounds / 10, `${stricter} that only Node takes`)
})

test('parts of a few bytes are taken up to a limit, and so is what stands beside their sizes', () => {
  const coded = `${OK}Transfer-Encoding: chunked\r\n\r\n`
  const small = (count: number): string => `${coded}${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`
  assert.equal(read(small(65_535), 65_536).state, 'done')
  assert.equal(read(small(65_537), 65_536).state, 'no_http')
  const large = `10\r\n${'x'.repeat(16)}\r\n`
  assert.equal(read(`${coded}${large.repeat(70_000)}0\r\n\r\n`, 65_536).state, 'done')
  const extended = (count: number): string =>
    `${coded}${`1;${'e'.repeat(1_022)}\r\nx\r\n`.repeat(count)}0\r\n\r\n`
  assert.equal(read(extended(16)).state, 'done')
  assert.equal(read(extended(17)).state, 'no_http')
})
