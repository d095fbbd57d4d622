// What passes through a session, and what of it is anybody's business.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { open } from './desk.ts'

const call = (name: string, args: object = {}): object => ({ name, arguments: args })

test('metadata crosses both ways, but for what the gateway and the hop own', async (t) => {
  const desk = await open(t, { profile: { allow: ['up/meta', 'up/raw'] } })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01'
  const sent = { traceparent, 'com.example/k': { n: 1 }, progressToken: 'p', 'eclusa/x': 1 }
  const answer = await desk.modern('tools/call', call('meta'), {
    ...sent,
    'eclusa/key': 'k-12345678',
  })
  const { meta } = (answer.result ?? {})['structuredContent'] as { meta: Record<string, unknown> }
  assert.equal(meta['traceparent'], traceparent)
  assert.deepEqual(meta['com.example/k'], { n: 1 })
  assert.notEqual(meta['progressToken'], 'p')
  assert.deepEqual(
    Object.keys(meta).filter((name) => name.startsWith('eclusa/')),
    [],
  )
  assert.equal(desk.audit().find(({ kind }) => kind === 'intent')?.['trace'], traceparent)

  const result =
    '{"resultType":"complete", "content":[],"n":1.0,"big":12345678901234567890,"_meta":{"com.example/r":2}}'
  await desk.modern('tools/call', call('raw', { result }))
  assert.ok(desk.lines().at(-1)?.endsWith(`"result":${result}}`), desk.lines().at(-1))

  const odd = await desk.modern('tools/call', call('meta'), { 'eclusa/key': 5 })
  assert.equal(odd.error?.code, -32602)
  await desk.modern('tools/call', call('meta'), { traceparent: 'ff-x' })
  assert.equal(desk.audit().at(-1)?.['trace'], null)
})

test('a hidden name and one that does not exist are told alike and asked of nobody', async (t) => {
  const asked: string[] = []
  const desk = await open(t, {
    coat: (doors) => ({
      ...doors,
      upstreams: {
        ...doors.upstreams,
        definition(upstream, tool) {
          asked.push(tool)
          return doors.upstreams.definition(upstream, tool)
        },
      },
    }),
  })
  const told = async (name: string): Promise<string> => {
    const answer = await desk.modern('tools/call', call(name))
    return JSON.stringify(answer.error).replaceAll(name, '?')
  }
  const hidden = await told('mutate')
  for (const name of [
    'nosuch',
    'Echo',
    'echo ',
    'ech\u043e',
    '__proto__',
    'constructor',
    'up/echo',
  ]) {
    assert.equal(await told(name), hidden, name)
  }
  assert.deepEqual(asked, [])
})
