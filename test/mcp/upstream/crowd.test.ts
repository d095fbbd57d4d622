// More clients than a legacy server has places: an idle one makes room, and only a busy crowd is refused.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { LONG } from '../../cases/harness.ts'
import { httpServer, type Turn } from '../../servers/http-scripted.ts'
import { far } from '../upstream-http/rig.ts'
import { call, config, type Rig, scripted, start, textOf, until } from './rig.ts'

/** MAX_PEERS of src/mcp/upstream/peers.ts. */
const PLACES = 32
const CROWD = Array.from({ length: PLACES }, (_, at) => `client-${at}`)

const get = (rig: Rig, client: string): ReturnType<typeof call> =>
  call(rig, 'get', {}, { client, does: 'read' })

test('with every session taken, the one that was idle longest makes room for a new client', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  const rig = start(t, [far(server.url)], { principals: 'many' })
  for (const client of CROWD) assert.equal(textOf(await get(rig, client)), 'get')
  const used = (at: number): string => String(server.of('tools/call').at(at)?.headers[SESSION])
  const [first, second] = [used(0), used(1)]
  assert.equal(textOf(await get(rig, 'client-0')), 'get')
  assert.equal(textOf(await get(rig, 'one more')), 'get')
  await until(() => server.seen.some(({ verb }) => verb === 'DELETE'))
  const ended = server.seen.filter(({ verb }) => verb === 'DELETE')
  assert.deepEqual(
    ended.map(({ headers }) => headers[SESSION]),
    [second],
  )
  assert.equal(textOf(await get(rig, 'client-0')), 'get')
  assert.equal(used(-1), first)
})

test('a session with a call under way or a subscription is not taken, and a crowd that is all busy is refused', async (t) => {
  const held: Turn[] = []
  const server = await httpServer(t, {
    era: 'legacy',
    script(turn) {
      const { method } = turn.seen.body
      if (method === 'tools/call') held.push(turn)
      else if (method === 'resources/subscribe') turn.result({})
      return method === 'tools/call' || method === 'resources/subscribe'
    },
  })
  const rig = start(t, [far(server.url)], { principals: 'many' })
  const [waiting = '', ...callers] = CROWD
  assert.equal((await call(rig, 'notes://a', {}, subscribe(waiting))).kind, 'answered')
  const calls = callers.map((client) => get(rig, client))
  await until(() => held.length === callers.length)
  const refused = await get(rig, 'one more')
  assert.equal(refused.kind === 'unsent' && refused.code, 'too_many_calls')
  assert.ok(!server.seen.some(({ verb }) => verb === 'DELETE'))
  server.script = () => false
  for (const { result } of held) result({ content: [{ type: 'text', text: 'held' }] })
  assert.deepEqual(new Set((await Promise.all(calls)).map(textOf)), new Set(['held']))
  assert.equal(textOf(await get(rig, 'one more')), 'get')
})

test(
  'a process that is idle makes room too',
  { skip: !LONG && 'thirty-four processes' },
  async (t) => {
    const command = scripted('--era', 'legacy')
    const rig = start(t, [config('s', { command })], { principals: 'many' })
    for (const client of [...CROWD, 'one more', 'another'])
      assert.equal(textOf(await call(rig, 'echo', { text: client }, { client })), client)
  },
)

const SESSION = 'mcp-session-id'

const subscribe = (client: string): Parameters<typeof call>[3] => ({
  client,
  does: 'read',
  method: 'resources/subscribe',
})
