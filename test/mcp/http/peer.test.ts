// The official SDK's clients, old and new, as peers over HTTP.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

import { type Heard, overhear, progressIn } from '../../matrix/overheard.ts'
import { eventually, house, type House } from './rig.ts'

const NAMES = ['echo', 'progress', 'fail', 'dump', 'after', 'asks', 'inquire', 'change']
const open = (t: TestContext, flags: readonly string[]): Promise<House> =>
  house(t, {
    upstreams: { up: flags },
    profile: {
      allow: NAMES.map((name) => `up/${name}`),
      prompts: ['*'],
      resources: ['notes://*'],
      client: { elicitation: true },
    },
  })
const steps = (heard: readonly Heard[]): readonly unknown[] =>
  progressIn(heard).map(({ progress }) => progress)
const urlOf = ({ url }: House): URL => new URL(`${url}/mcp`)

for (const upstream of ['modern', 'legacy']) {
  for (const mode of ['legacy', 'auto'] as const) {
    test(`the new client (${mode}) works over HTTP in front of a ${upstream} server`, async (t) => {
      const one = await open(t, ['--era', upstream])
      const client = new Client({ name: 'peer', version: '1' }, { versionNegotiation: { mode } })
      const transport = new StreamableHTTPClientTransport(urlOf(one))
      const heard = overhear(transport)
      await client.connect(transport)
      t.after(() => client.close())
      const { tools } = await client.listTools()
      assert.ok(tools.some(({ name }) => name === 'echo'))
      const said = await client.callTool({ name: 'echo', arguments: { text: 'olá' } })
      assert.deepEqual(said.content, [{ type: 'text', text: 'olá' }])
      const failed = await client.callTool({ name: 'fail', arguments: { message: 'no' } })
      assert.equal(failed.isError, true)
      await assert.rejects(client.callTool({ name: 'env', arguments: {} }), { code: -32602 })
      await client.callTool(
        { name: 'progress', arguments: { values: [1, 2], ms: 5 } },
        { onprogress: () => undefined },
      )
      assert.deepEqual(steps(heard), [1, 2])
      const { contents } = await client.readResource({ uri: 'notes://a' })
      assert.equal(contents.length, 1)
      const big = await client.callTool({ name: 'dump', arguments: { bytes: 3_000_000 } })
      assert.equal(JSON.stringify(big.content).length > 3_000_000, true)
    })
  }

  test(`the old client works over HTTP in front of a ${upstream} server`, async (t) => {
    const one = await open(t, ['--era', upstream])
    const client = new OldClient({ name: 'old', version: '1' }, { capabilities: {} })
    const transport = new OldTransport(urlOf(one))
    const heard = overhear(transport)
    await client.connect(transport)
    t.after(() => client.close())
    assert.match(transport.sessionId ?? '', /^[0-9a-f]{64}$/)
    const { tools } = await client.listTools()
    assert.ok(tools.some(({ name }) => name === 'echo'))
    const said = await client.callTool({ name: 'echo', arguments: { text: 'olá' } })
    assert.deepEqual(said.content, [{ type: 'text', text: 'olá' }])
    await client.callTool({ name: 'progress', arguments: { values: [1, 2], ms: 5 } }, undefined, {
      onprogress: () => undefined,
    })
    assert.deepEqual(steps(heard), [1, 2])
    const changed: string[] = []
    client.fallbackNotificationHandler = async ({ method }) => void changed.push(method)
    await client.callTool({ name: 'change', arguments: { tools: [], hide: ['echo'] } })
    await eventually('the change is told', () =>
      changed.includes('notifications/tools/list_changed'),
    )
    await transport.terminateSession()
    await assert.rejects(client.listTools())
  })

  test(`the old client answers what a ${upstream} server asks, over HTTP`, async (t) => {
    const one = await open(t, ['--era', upstream])
    const client = new OldClient(
      { name: 'old', version: '1' },
      { capabilities: { elicitation: {} } },
    )
    client.setRequestHandler(ElicitRequestSchema, async () => ({
      action: 'accept' as const,
      content: { n: 'ana' },
    }))
    await client.connect(new OldTransport(urlOf(one)))
    t.after(() => client.close())
    const params = {
      message: 'who?',
      requestedSchema: { type: 'object', properties: { n: { type: 'string' } } },
    }
    const question = { method: 'elicitation/create', params }
    const call =
      upstream === 'legacy'
        ? { name: 'asks', arguments: { requests: [question] } }
        : { name: 'inquire', arguments: { requests: { who: question } } }
    const said = await client.callTool(call)
    assert.match(JSON.stringify(said), /ana/)
  })
}
