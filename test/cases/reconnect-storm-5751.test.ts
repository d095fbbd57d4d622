// A flapping server is reached again with growing patience and by one attempt at a time, however many wait.

import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { roomy } from '../pace.ts'
import { httpServer, type HttpServer } from '../servers/http-scripted.ts'
import { startFar, succeeds } from './far.ts'
import { LONG } from './harness.ts'
import { ERAS, refusalCode, textOf } from './wire.ts'

/** How long the server is ill, and what it may cost: the growth of the waits makes both figures of one kind. */
const ILL_S = LONG ? 60 : 4
const MOST_ATTEMPTS = LONG ? 40 : 20
const CLIENTS = 50
const LINES = 40

type Illness = (server: HttpServer) => Promise<() => Promise<number>>

/** Accepts, and closes every connection after 100 ms; counts them. */
const closes: Illness = async (server) => {
  await server.close()
  let attempts = 0
  const held = new Set<Socket>()
  const sick = createServer((socket) => {
    attempts++
    held.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => held.delete(socket))
    setTimeout(() => socket.destroy(), 100)
  })
  await new Promise<void>((resolve) => sick.listen(server.port, '127.0.0.1', resolve))
  return async () => {
    for (const socket of held) socket.destroy()
    await new Promise((resolve) => sick.close(resolve))
    await server.listen()
    return attempts
  }
}

/** Answers the first words and cuts every request of these. */
const cuts =
  (...methods: readonly unknown[]): Illness =>
  (server) => {
    const before = server.connections
    server.script = ({ seen, reply }) => {
      if (!methods.includes(seen.body['method'])) return false
      setTimeout(() => reply.destroy(), 100)
      return true
    }
    return Promise.resolve(() => {
      server.script = () => false
      return Promise.resolve(server.connections - before)
    })
  }

/** Takes no connections: attempts are not seen, so they are counted by what the gateway says. */
const refuses: Illness = async (server) => {
  await server.close()
  return async () => {
    await server.listen()
    return 0
  }
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 3 }, () => {
  for (const era of ERAS) {
    for (const [name, illness, share] of [
      ['closes every connection', closes, true],
      ['cuts every call and every list', cuts('tools/call', 'tools/list'), true],
      ['cuts every call', cuts('tools/call'), true],
      ['cuts every call, with a session a client,', cuts('tools/call'), false],
      ['refuses connections', refuses, true],
    ] as const) {
      // Nobody has a session with a modern one.
      if (era === 'modern' && !share) continue
      test(`${era}: a server that ${name} costs few attempts, calls fail fast, and it is found again`, async (t) => {
        const server = await httpServer(t, { era })
        const well = await httpServer(t, { era })
        const urls = { ill: server.url, well: well.url }
        const gate = await startFar(t, urls, { front: 'http', era, more: { share } })
        assert.equal(textOf(await gate.call('ill__get')), 'get')
        assert.equal(textOf(await gate.call('well__get')), 'get')
        const heal = await illness(server)
        const end = Date.now() + ILL_S * 1000
        let slowest = 0
        while (Date.now() < end) {
          const begun = Date.now()
          const [answers] = await Promise.all([
            Promise.all(Array.from({ length: CLIENTS }, () => gate.call('ill__put', {}))),
            gate.call('well__get').then((said) => assert.equal(textOf(said), 'get')),
          ])
          for (const answer of answers) {
            assert.equal(answer.result?.isError, true)
            assert.match(refusalCode(answer) ?? '', /^(upstream_down|outcome_unknown)$/)
          }
          slowest = Math.max(slowest, Date.now() - begun)
          await sleep(Math.max(0, 1000 - (Date.now() - begun)))
        }
        const attempts = await heal()
        assert.ok(attempts < MOST_ATTEMPTS, `${attempts} attempts`)
        assert.ok(slowest < roomy(3_000), `${slowest} ms`)
        const lines = gate.errors().split('\n').length
        assert.ok(lines < LINES, `${lines} lines`)
        assert.equal(await succeeds(gate, 'ill__get', 90_000), 'get')
      })
    }
  }
})
