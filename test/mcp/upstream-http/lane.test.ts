// Exchanges with a server that ends, closes or says too much at the worst moment.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'

import { lanes, type Passage } from '../../../src/mcp/upstream-http/lane.ts'
import { type Ending, type Head, send, type Sending } from '../../../src/mcp/upstream-http/send.ts'
import { type Site, site, type SiteOptions } from '../../../src/mcp/upstream-http/site.ts'
import { type RawServer, rawServer, said } from '../../servers/raw-http.ts'
import { until } from '../upstream/rig.ts'

type Asked = {
  readonly sending: Sending
  readonly heard: string[]
  readonly heads: Head[]
  readonly ended: Promise<Ending>
  /** What was heard before `send` returned. */
  readonly early: number
}

function ask(place: Site, body = '{}', some: Partial<Parameters<typeof send>[1]> = {}): Asked {
  const heard: string[] = []
  const heads: Head[] = []
  const { promise, resolve } = Promise.withResolvers<Ending>()
  const letter = {
    method: 'POST',
    headers: {},
    own: {},
    body,
    limitBytes: 1e6,
    long: false,
  } as const
  const sending = send(
    place,
    { ...letter, ...some },
    {
      handed: (kept) => heard.push(kept ? 'kept' : 'new'),
      head(head) {
        heard.push('head')
        heads.push(head)
      },
      event: ({ data }) => heard.push(data.toString()),
      end(ending) {
        heard.push(ending.kind)
        resolve(ending)
      },
    },
  )
  return { sending, heard, heads, ended: promise, early: heard.length }
}

function placed(
  t: TestContext,
  { url }: Pick<RawServer, 'url'>,
  more: Partial<SiteOptions> = {},
): Site {
  const place = site({ url, allowPrivate: true, allowRedirects: false, ...more })
  t.after(() => place.close())
  return place
}

const bodyOf = (ending: Ending): string => (ending.kind === 'whole' ? ending.body.toString() : '')

test('requests one after the other share a connection, and nothing is heard before send has returned', async (t) => {
  const server = await rawServer(t, (socket, { body }) => socket.write(said(body), 'latin1'))
  const place = placed(t, server)
  for (const [at, body] of [
    '{"a":1}',
    '{"é":"ü"}',
    `"${'x'.repeat(100_000)}"`,
    `"${'é'.repeat(100_000)}"`,
  ].entries()) {
    const { early, ended, heard } = ask(place, body)
    assert.equal(early, 0)
    const ending = await ended
    assert.equal(bodyOf(ending), body)
    assert.deepEqual(heard, [at === 0 ? 'new' : 'kept', 'head', 'whole'])
  }
  assert.equal(server.sockets.length, 1)
  assert.match(
    server.requests[0]?.head ?? '',
    /^POST \/mcp HTTP\/1\.1\r\nHost: 127\.0\.0\.1:\d+\r\n/,
  )
})

const CUTS: [name: string, reply: string | null][] = [
  ['before it reads', null],
  ['when it has read', ''],
  ['in the first line of its reply', 'HTTP/1.1 2'],
  ['after an interim head', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ['in the head of its reply', 'HTTP/1.1 200 OK\r\nContent-Le'],
  ['after the head of its reply', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'],
  ['in a body', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel'],
  ['in a part of a body', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel'],
]
for (const method of ['POST', 'GET', 'DELETE'] as const) {
  for (const how of ['ends', 'resets'] as const) {
    test(`what a server that ${how} its connection has got by a ${method} is never sent again`, async (t) => {
      let reply: string | null = ''
      const cut = (socket: Socket): void => {
        if (how === 'ends') socket.end(reply ?? '')
        else socket.write(reply ?? '', () => socket.resetAndDestroy())
      }
      const server = await rawServer(
        t,
        (socket, { head }) => {
          if (head.includes('X-Good')) socket.write(said('{}'))
          else cut(socket)
        },
        {
          begun(socket) {
            if (reply === null) cut(socket)
            return reply === null
          },
        },
      )
      for (const kept of [false, true]) {
        for (const [name, bytes] of CUTS) {
          if (kept && bytes === null) continue
          reply = ''
          const place = placed(t, server)
          const body = method === 'POST' ? '{}' : null
          if (kept) await ask(place, '{}', { headers: { 'X-Good': '1' } }).ended
          reply = bytes
          const before = server.requests.length
          const connections = server.sockets.length
          const { ended, heard, sending } = ask(place, '', { method, body })
          const ending = await ended
          // One that was reset before it was made has got nothing, and we know it.
          if (bytes === null && how === 'resets' && ending.kind === 'unreached') {
            assert.equal(sending.handed(), false)
            continue
          }
          assert.ok(ending.kind === 'broken', `${name}: ${JSON.stringify(ending)}`)
          // What was said before a reset may be lost with it.
          const stale = kept && (bytes === '' || (how === 'resets' && !heard.includes('head')))
          if (how === 'ends' || !stale || bytes === '') {
            assert.equal(ending.stale, stale, `${name}: stale`)
          }
          assert.equal(heard[0], kept ? 'kept' : 'new', name)
          assert.equal(sending.handed(), true, name)
          await sleep(20)
          assert.ok(server.requests.length - before <= 1, `${name}: sent again`)
          assert.equal(
            server.sockets.length - connections,
            kept ? 0 : 1,
            `${name}: connected again`,
          )
        }
      }
    })
  }
}

test('a kept connection that its server has closed meanwhile is not written on', async (t) => {
  const server = await rawServer(t, (socket, { body }) => socket.write(said(body)))
  const place = placed(t, server)
  await ask(place).ended
  server.sockets[0]?.end()
  await until(() => server.sockets[0]?.destroyed === true)
  const { ended, heard } = ask(place)
  assert.equal((await ended).kind, 'whole')
  assert.equal(heard[0], 'new')
})

for (const [name, reply] of [
  ['says that it closes', said('{}', 'Connection: close\r\n')],
  ['keeps it for no time', said('{}', 'Keep-Alive: timeout=1\r\n')],
  ['speaks HTTP/1.0', said('{}').replace('1.1', '1.0')],
  ['says more than its reply', `${said('{}')}HTTP/1.1`],
  ['says two replies', `${said('{}')}${said('{"x":1}')}`],
] as const) {
  test(`the connection of a server that ${name} is not used again`, async (t) => {
    const server = await rawServer(t, (socket) => socket.write(reply))
    const place = placed(t, server)
    for (let at = 0; at < 3; at++) assert.equal(bodyOf(await ask(place).ended), '{}')
    assert.equal(server.sockets.length, 3)
    await until(() => server.sockets.every(({ destroyed }) => destroyed))
  })
}

test('a reply that ends with its connection is whole', async (t) => {
  const server = await rawServer(t, (socket) =>
    socket.end('HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}'),
  )
  assert.equal(bodyOf(await ask(placed(t, server)).ended), '{}')
})

test('what a server says unasked is no answer to the next request', async (t) => {
  const server = await rawServer(t, (socket, _request, at) => socket.write(said(`${at}`)))
  const place = placed(t, server)
  assert.equal(bodyOf(await ask(place).ended), '0')
  server.sockets[0]?.write(said('"forged"'))
  await until(() => server.sockets[0]?.destroyed === true)
  assert.equal(bodyOf(await ask(place).ended), '1')
  assert.equal(server.sockets.length, 2)
})

test('a free connection is closed after some seconds', async (t) => {
  const server = await rawServer(t, (socket) => socket.write(said('{}')))
  await ask(placed(t, server)).ended
  await until(() => server.sockets[0]?.destroyed === true, 8000)
})

test('an answer to half of a request is heard, and its connection is closed', async (t) => {
  const server = await rawServer(t, () => {}, {
    begun(socket) {
      socket.once('data', () => {
        socket.pause()
        socket.write(said('{"early":1}'))
      })
      return true
    },
  })
  const { ended } = ask(placed(t, server), `"${'x'.repeat(30_000_000)}"`)
  assert.equal(bodyOf(await ended), '{"early":1}')
  server.sockets[0]?.resume()
  await until(() => server.sockets[0]?.destroyed === true)
})

test('one that is stopped before there is a connection is not written', async (t) => {
  const server = await rawServer(t, (socket) => socket.write(said('{}')))
  const place = placed(t, server)
  const { heard, sending } = ask(place)
  assert.equal(sending.handed(), false)
  sending.stop()
  await ask(place).ended
  await until(() => server.sockets[0]?.destroyed === true || server.sockets.length === 1)
  assert.equal(server.requests.length, 1)
  assert.deepEqual(heard, [])
})

test('one that is stopped later is closed, and hears nothing more', async (t) => {
  const server = await rawServer(t, (socket) =>
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx'),
  )
  const { heard, sending } = ask(placed(t, server))
  await until(() => heard.includes('head'))
  sending.stop()
  await until(() => server.sockets[0]?.destroyed === true)
  assert.deepEqual(heard, ['new', 'head'])
})

const EVENTS =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n'
const event = (text: string): string => {
  const one = `data: ${text}\n\n`
  return `${one.length.toString(16)}\r\n${one}\r\n`
}

test('a stream of which nothing more is wanted is let end, and only then its connection is used again', async (t) => {
  const server = await rawServer(t, (socket) => {
    socket.write(EVENTS + event('a'))
    setTimeout(() => socket.write(`${event('b')}0\r\n\r\n`), 30)
  })
  const place = placed(t, server)
  const first = ask(place)
  await until(() => first.heard.includes('a'))
  first.sending.finish()
  ask(place)
  await sleep(60)
  const third = ask(place)
  await until(() => third.heard.includes('a'))
  assert.equal(third.heard[0], 'kept')
  assert.equal(server.sockets.length, 2)
  assert.deepEqual(first.heard, ['new', 'head', 'a'])
})

test('a stream of which nothing more is wanted and that does not end is closed', async (t) => {
  const server = await rawServer(t, (socket) => socket.write(EVENTS + event('a')))
  const { heard, sending } = ask(placed(t, server))
  await until(() => heard.includes('a'))
  sending.finish()
  await until(() => server.sockets[0]?.destroyed === true)
})

test('a server that is held has to wait, and is heard to its end, also when it resets', async (t) => {
  let drained = false
  const server = await rawServer(t, (socket) => {
    socket.write(`${EVENTS.replace('Transfer-Encoding: chunked', 'Connection: close')}data: a\n\n`)
    socket.once('drain', () => {
      drained = true
    })
    setTimeout(
      () =>
        socket.write(`:${'x'.repeat(30_000_000)}\n\ndata: b\n\n`, () => socket.resetAndDestroy()),
      20,
    )
  })
  const { ended, heard, sending } = ask(placed(t, server), '{}', { limitBytes: 1e9 })
  await until(() => heard.includes('a'))
  sending.hold(300)
  await sleep(150)
  assert.equal(drained, false)
  await ended
  assert.equal(heard[2], 'a')
})

test('no more connections are made than there may be; who waits is served in turn, and may be taken back', async (t) => {
  const server = await rawServer(
    t,
    (socket, { body }) => void setTimeout(() => socket.write(said(body)), 5),
  )
  const { port } = new URL(server.url)
  const pool = lanes({
    secure: false,
    host: '127.0.0.1',
    port: Number(port),
    lookup: () => assert.fail('an address is not looked up'),
    maxOpen: 2,
    maxFree: 2,
  })
  t.after(() => pool.close())
  const ends: number[] = []
  const passages: Passage[] = []
  const failures: unknown[] = []
  for (let at = 0; at < 10; at++) {
    const ears = {
      handed: () => {},
      head: () => {},
      data: () => {},
      end: () => ends.push(at),
      failed: (fault: unknown) => failures.push(fault),
    }
    const head = `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n`
    passages.push(pool.open({ head, body: String(at) }, ears))
  }
  assert.equal(passages[7]?.handed(), false)
  passages[7]?.stop()
  await until(() => ends.length === 9)
  assert.deepEqual(
    server.requests.map(({ body }) => body),
    ['0', '1', '2', '3', '4', '5', '6', '8', '9'],
  )
  assert.equal(server.sockets.length, 2)
  assert.deepEqual(failures, [])
  pool.close()
  await until(() => pool.isEmpty())
})

test('a place that is closed ends what is under way, and can be used again', async (t) => {
  let answers = false
  const server = await rawServer(t, (socket) => void (answers && socket.write(said('{}'))))
  const place = placed(t, server)
  const { ended, heard } = ask(place)
  await until(() => heard.includes('new') && server.requests.length === 1)
  place.close()
  assert.equal((await ended).kind, 'broken')
  answers = true
  assert.equal((await ask(place).ended).kind, 'whole')
})

for (const [name, headers] of [
  ['a value with a new line', { 'X-A': 'a\r\nX-B: b' }],
  ['a name with a colon', { 'X-A: b': 'a' }],
  ['a value that is not Latin', { 'X-A': '€' }],
] as const) {
  test(`a request whose header has ${name} is not sent`, async (t) => {
    const server = await rawServer(t, (socket) => socket.write(said('{}')))
    const { early, ended } = ask(placed(t, server), '{}', { headers })
    assert.equal(early, 0)
    assert.equal((await ended).kind, 'unreached')
    assert.equal(server.sockets.length, 0)
  })
}

test('a connection that is only kept does not keep the process', async (t) => {
  const server = await rawServer(t, (socket) => socket.write(said('{}')))
  const path = fileURLToPath(new URL('../../../src/mcp/', import.meta.url))
  const script = `
    const { site } = await import(${JSON.stringify(`${path}upstream-http/site.ts`)})
    const { send } = await import(${JSON.stringify(`${path}upstream-http/send.ts`)})
    const place = site({ url: ${JSON.stringify(server.url)}, allowPrivate: true, allowRedirects: false })
    const letter = { method: 'POST', headers: {}, own: {}, body: '{}', limitBytes: 1000, long: false }
    send(place, letter, { end: ({ kind }) => { console.log(kind); globalThis.from = performance.now() } })
    process.on('exit', () => console.log(performance.now() - from < 1500))`
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { timeout: 10_000 },
  )
  assert.equal(stdout, 'whole\ntrue\n')
})
