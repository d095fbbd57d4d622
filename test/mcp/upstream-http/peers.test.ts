// Servers that others wrote, over HTTP: the official SDK in both eras, and a well-known program on the old one.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { reach } from './rig.ts'
import { answer, asksOf, call, json, textOf, until } from '../upstream/rig.ts'

const FIXTURE = join(import.meta.dirname, '../../servers/fixture.ts')
const EVERYTHING = join(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js',
)

/** Starts a program and resolves with what it says once that matches. */
async function program(
  t: TestContext,
  argv: readonly string[],
  says: RegExp,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const child = spawn(process.execPath, argv, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  t.after(() => child.kill('SIGKILL'))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await until(() => says.test(said))
  return says.exec(said)?.[1] ?? ''
}

for (const era of ['modern', 'legacy'] as const) {
  test(`a server on the official SDK over HTTP in the ${era} era is found out and called`, async (t) => {
    const url = await program(t, [FIXTURE, '--http', '--eras', era], /(http:\S+)\n/)
    const rig = reach(t, url)
    assert.equal((await rig.hello('s'))?.era, era)
    const { complete, items } = await rig.list('s', 'tools')
    assert.ok(complete && items.length > 10)
    assert.match(textOf(await call(rig, 'test_simple_text')), /./)

    const told: unknown[] = []
    await call(
      rig,
      'test_tool_with_progress',
      {},
      {
        meta: json({ progressToken: 'p' }),
        watch: { progress: (params) => told.push(params['progress']) },
      },
    )
    assert.deepEqual(told, [0, 50, 100])

    const capabilities = { elicitation: {} }
    const asking = await call(rig, 'test_elicitation', { message: 'who?' }, { capabilities })
    const [key = ''] = Object.keys(asksOf(asking).asks.asks)
    const responses = { [key]: { action: 'accept', content: { username: 'ana', email: 'a@x' } } }
    const attempt =
      era === 'legacy'
        ? await answer(rig, asking, responses)
        : await call(
            rig,
            'test_elicitation',
            { message: 'who?' },
            {
              capabilities,
              retry: { state: asksOf(asking).asks.state, responses },
            },
          )
    assert.match(textOf(attempt), /ana/)
    assert.deepEqual(rig.said, [])
  })
}

test('a stream that a legacy SDK server closes in the middle of a call is taken up', async (t) => {
  const url = await program(t, [FIXTURE, '--http', '--eras', 'legacy'], /(http:\S+)\n/)
  const rig = reach(t, url)
  assert.match(textOf(await call(rig, 'test_reconnection')), /./)
})

test('server-everything over HTTP is listed and called, and its sessions end with us', async (t) => {
  const free = createServer()
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve))
  const { port } = free.address() as AddressInfo
  await new Promise((resolve) => free.close(resolve))
  await program(t, [EVERYTHING, 'streamableHttp'], /(listening on port)/, { PORT: String(port) })
  const rig = reach(t, `http://127.0.0.1:${port}/mcp`)
  assert.equal((await rig.hello('s'))?.era, 'legacy')
  assert.ok((await rig.list('s', 'tools')).items.length >= 8)
  assert.equal(textOf(await call(rig, 'echo', { message: 'x' })), 'Echo: x')
  assert.ok((await rig.list('s', 'resources')).items.length > 0)
  await rig.stop()
})
