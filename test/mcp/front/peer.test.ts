// The official SDK's clients, old and new, as peers of the real program.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/stdio.js'

import { folder } from '../../folder.ts'
import { overhear, progressIn } from '../../matrix/overheard.ts'
import { COMPILED } from '../../servers/compiled.ts'
import { SERVER } from './desk.ts'

const MAIN = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url))

/** How to start the program in front of one scripted server. */
function gateway(flags: readonly string[]): {
  command: string
  args: string[]
  env: Record<string, string>
  stderr: 'ignore'
} {
  const dir = folder('eclusa-peer-')
  const config = {
    version: 2,
    upstreams: { up: { command: [process.execPath, SERVER, ...flags], env: COMPILED } },
    profiles: {
      agent: {
        allow: ['up/echo', 'up/progress', 'up/hang', 'up/fail', 'up/dump'],
        prompts: ['*'],
        resources: ['notes://*'],
      },
    },
  }
  const file = join(dir, 'eclusa.json')
  writeFileSync(file, JSON.stringify(config))
  return {
    command: process.execPath,
    args: [MAIN, 'stdio', '--config', file],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: dir,
      ECLUSA_STATE: join(dir, 'state'),
      ...COMPILED,
    },
    stderr: 'ignore',
  }
}

for (const upstream of ['modern', 'legacy']) {
  for (const mode of ['legacy', 'auto'] as const) {
    test(`the new client (${mode}) works in front of a ${upstream} server`, async (t) => {
      const client = new Client({ name: 'peer', version: '1' }, { versionNegotiation: { mode } })
      const transport = new StdioClientTransport(gateway(['--era', upstream]))
      const heard = overhear(transport)
      await client.connect(transport)
      t.after(() => client.close())
      const { tools } = await client.listTools()
      const names = tools.map(({ name }) => name)
      assert.deepEqual(names.sort(), ['dump', 'echo', 'fail', 'hang', 'progress'])
      const said = await client.callTool({ name: 'echo', arguments: { text: 'olá' } })
      assert.deepEqual(said.content, [{ type: 'text', text: 'olá' }])
      const failed = await client.callTool({ name: 'fail', arguments: { message: 'no' } })
      assert.equal(failed.isError, true)
      await assert.rejects(
        client.callTool({ name: 'mutate', arguments: {} }),
        /tool denied: mutate/,
      )
      await client.callTool(
        { name: 'progress', arguments: { values: [1, 2, 3], ms: 5 } },
        { onprogress: () => undefined },
      )
      assert.deepEqual(
        progressIn(heard).map(({ progress }) => progress),
        [1, 2, 3],
      )
      const stop = new AbortController()
      const hung = client.callTool({ name: 'hang', arguments: {} }, { signal: stop.signal })
      stop.abort()
      await assert.rejects(hung)
      assert.equal((await client.listPrompts()).prompts[0]?.name, 'greet')
      assert.ok(
        (await client.getPrompt({ name: 'greet', arguments: { name: 'A' } })).messages.length > 0,
      )
      assert.ok((await client.listResources()).resources.length > 0)
      assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1)
      assert.ok((await client.readResource({ uri: 'notes://77' })).contents.length > 0)
      const completed = await client.complete({
        ref: { type: 'ref/prompt', name: 'greet' },
        argument: { name: 'name', value: 'A' },
      })
      assert.deepEqual(completed.completion.values, ['A1', 'A2'])
      const big = await client.callTool({ name: 'dump', arguments: { bytes: 3_000_000 } })
      assert.equal((big.content as { text: string }[])[0]?.text.length, 3_000_000)
    })
  }
}

test('the old client works in front of a modern server', async (t) => {
  const client = new OldClient({ name: 'peer', version: '1' })
  await client.connect(new OldTransport(gateway(['--era', 'modern'])))
  t.after(() => client.close())
  assert.equal((await client.listTools()).tools.length, 5)
  const said = await client.callTool({ name: 'echo', arguments: { text: 'olá' } })
  assert.deepEqual(said, { content: [{ type: 'text', text: 'olá' }] })
  await client.ping()
  await client.setLoggingLevel('warning')
  await assert.rejects(client.callTool({ name: 'mutate', arguments: {} }), /tool denied: mutate/)
})
