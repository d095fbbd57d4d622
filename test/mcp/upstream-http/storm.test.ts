// Many sessions with one ailing server: they share one patience.

import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { httpServer } from '../../servers/http-scripted.ts'
import { far } from './rig.ts'
import { call, start, textOf, until } from '../upstream/rig.ts'

const CLIENTS = Array.from({ length: 20 }, (_, at) => `client-${at}`)

for (const [name, script] of [
  ['closes every connection', ({ reply }) => void setTimeout(() => reply.destroy(), 100)],
  ['answers nothing but errors of its own', ({ reply }) => void reply.writeHead(502).end()],
] as const satisfies [string, (turn: { reply: ServerResponse }) => void][]) {
  test(`a server with twenty sessions that ${name} is tried by one at a time`, async (t) => {
    const server = await httpServer(t, { era: 'legacy' })
    const rig = start(t, [far(server.url)], { principals: 'many' })
    const all = (): Promise<Awaited<ReturnType<typeof call>>[]> =>
      Promise.all(CLIENTS.map((client) => call(rig, 'get', {}, { client, does: 'read' })))
    assert.deepEqual(new Set((await all()).map(textOf)), new Set(['get']))
    assert.equal(server.sessions.size, CLIENTS.length + 1)

    server.script = (turn) => {
      script(turn)
      return true
    }
    server.sessions.clear()
    for (const socket of server.sockets) socket.destroy()
    await sleep(50)
    const before = server.connections
    const end = performance.now() + 4000
    while (performance.now() < end) {
      for (const { kind } of await all()) assert.ok(kind === 'unsent' || kind === 'unknown')
      await sleep(300)
    }
    const attempts = server.connections - before
    assert.ok(attempts < 40, `${attempts} connections`)
    assert.ok(rig.said.length < 20, rig.said.join('\n'))

    server.script = () => false
    await until(() => rig.explain('s') === null)
    assert.deepEqual(new Set((await all()).map(textOf)), new Set(['get']))
  })
}
