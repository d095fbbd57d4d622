// Many connections, readers that do not read, clients that vanish: bounded, and nobody else notices.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'

import { tried } from '../../pace.ts'
import { META26 } from '../front/desk.ts'
import { eventually, house, type House, modernHeaders } from './rig.ts'

const dump = (bytes: number): Readonly<Record<string, unknown>> => ({
  name: 'dump',
  arguments: { bytes },
})
const DUMPS = {
  profile: { allow: ['up/dump', 'up/echo', 'up/log', 'up/slow'] },
  tools: { 'up/dump': { effect: 'read' }, 'up/slow': { effect: 'read' } },
}

const dialled = (t: TestContext, { port }: House): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
    t.after(() => socket.destroy())
  })

function request(params: Readonly<Record<string, unknown>>, meta: object = {}): string {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { ...params, _meta: { ...META26, ...meta } },
  })
  const lines = [
    'POST /mcp HTTP/1.1',
    'Host: localhost',
    ...Object.entries(modernHeaders('tools/call', params)).map(([k, v]) => `${k}: ${v}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}

/** How long one small call takes, ms. */
async function timed({ modern }: Pick<House, 'modern'>): Promise<number> {
  const from = performance.now()
  const got = await modern('tools/call', { name: 'echo', arguments: { text: 'x' } })
  assert.equal(got.status, 200, got.text)
  return performance.now() - from
}

async function slowest(one: House, times: number): Promise<number> {
  const all: number[] = []
  for (let at = 0; at < times; at++) all.push(await timed(one))
  return all.sort((a, b) => a - b)[Math.floor(times * 0.95)] ?? 0
}

test('a thousand connections that do nothing cost nobody an answer', async (t) => {
  const one = await house(t, DUMPS)
  await slowest(one, 20)
  const quiet = await slowest(one, 60)
  const most = Math.max(quiet * 3, 250)
  const idle: Socket[] = []
  for (let at = 0; at < 10; at++) {
    idle.push(...(await Promise.all(Array.from({ length: 100 }, () => dialled(t, one)))))
  }
  const crowded = await tried(
    () => slowest(one, 60),
    (ms) => ms < most,
  )
  assert.ok(crowded < most, `${crowded} ms beside ${quiet} ms`)
  assert.equal(idle.filter((socket) => socket.destroyed).length, 0)
})

test('answers that nobody reads are bounded: their client is refused, others are served', async (t) => {
  const one = await house(t, {
    ...DUMPS,
    clients: { reads: 'agent', greedy: 'agent' },
  })
  const bytes = 8 * 1024 * 1024
  const { Authorization: token } = one.as('greedy')
  const text = request(dump(bytes)).replace('Host:', `Authorization: ${token ?? ''}\r\nHost:`)
  const asks = async (name: string): Promise<number> =>
    (await one.modern('tools/list', {}, one.as(name))).status
  const answered = (): number => one.audit().filter(({ outcome }) => outcome === 'observed').length
  let status = 200
  for (let at = 1; at <= 16 && status === 200; at++) {
    const socket = await dialled(t, one)
    socket.pause()
    socket.write(text)
    await eventually('it was answered', () => answered() >= at)
    status = await asks('greedy')
  }
  assert.equal(status, 429)
  assert.equal(await asks('reads'), 200)
})

test('bodies that never end are bounded: their client is refused, others are served', async (t) => {
  const one = await house(t, { ...DUMPS, clients: { reads: 'agent', endless: 'agent' } })
  const { Authorization: token } = one.as('endless')
  const params = { name: 'echo', arguments: { text: 'x'.repeat(3 * 1024 * 1024) } }
  const whole = request(params).replace('Host:', `Authorization: ${token ?? ''}\r\nHost:`)
  const refused: string[] = []
  const sockets = await Promise.all(Array.from({ length: 40 }, () => dialled(t, one)))
  for (const socket of sockets) {
    socket.on('data', (chunk: Buffer) => void refused.push(chunk.toString().slice(0, 12)))
    socket.write(whole.slice(0, -10))
  }
  await eventually('some are refused', () => refused.includes('HTTP/1.1 429'))
  const asks = async (name: string): Promise<number> =>
    (await one.modern('tools/list', {}, one.as(name))).status
  assert.equal(await asks('reads'), 200)
  for (const socket of sockets) socket.destroy()
  await eventually('there is room again', async () => (await asks('endless')) === 200)
  assert.ok(refused.length <= 40 - 18, `${refused.length} of 40 were refused`)
})

test('a client that vanishes in the middle of a large answer leaves nothing behind', async (t) => {
  const one = await house(t, DUMPS)
  for (let at = 0; at < 20; at++) {
    const socket = await dialled(t, one)
    socket.write(request(dump(4 * 1024 * 1024)))
    await new Promise((resolve) => {
      socket.once('data', resolve)
    })
    socket.destroy()
  }
  await timed(one)
})

test('a reader that stops reading loses notices, but not its answer', async (t) => {
  const one = await house(t, DUMPS)
  const socket = await dialled(t, one)
  socket.pause()
  const entries = Array.from({ length: 12_000 }, () => ({ level: 'info', data: 'x'.repeat(250) }))
  const level = { 'io.modelcontextprotocol/logLevel': 'debug' }
  socket.write(request({ name: 'log', arguments: { entries } }, level))
  await eventually('the call ended', () =>
    one.audit().some(({ outcome }) => outcome === 'answered'),
  )
  await timed(one)
  let text = ''
  socket.on('data', (chunk: Buffer) => void (text += chunk.toString()))
  socket.resume()
  await eventually('the answer is there', () => text.includes('"done"'))
})
