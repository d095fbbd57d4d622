import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer } from '../../servers/http-scripted.ts'
import { reach } from './rig.ts'
import { call, textOf } from '../upstream/rig.ts'

const annotated = (header: unknown, property = 'region') => ({
  name: 'deploy',
  inputSchema: {
    type: 'object',
    properties: { [property]: { type: 'string', 'x-mcp-header': header } },
  },
})
const BAD = annotated('no good\r\nX-Evil: 1')

test('arguments that a tool mirrors go as headers too, made from what is sent', async (t) => {
  const server = await httpServer(t)
  server.tools = [annotated('Region')]
  const rig = reach(t, server.url)
  assert.notEqual(await rig.definition('s', 'deploy'), 'absent')
  await call(rig, 'deploy', { region: 'Évora' })
  await call(rig, 'deploy', { region: null })
  const [first, second] = server.of('tools/call')
  assert.equal(first?.headers['mcp-param-region'], '=?base64?w4l2b3Jh?=')
  assert.equal(second?.headers['mcp-param-region'], undefined)
})

test('a tool that no client may use over HTTP is left out with one warning, the others stay', async (t) => {
  const server = await httpServer(t)
  server.tools = [{ ...BAD, name: 'bad' }, ...server.tools]
  const rig = reach(t, server.url)
  const { complete, items } = await rig.list('s', 'tools')
  assert.ok(complete)
  assert.deepEqual(
    items.map(({ name }) => name),
    ['echo', 'get', 'put'],
  )
  assert.equal(await rig.definition('s', 'bad'), 'absent')
  assert.deepEqual(rig.said, [
    's: its tool bad has an x-mcp-header that is no name of a header; it is left out',
  ])
})

test('a legacy server knows nothing of such headers, and keeps its tools', async (t) => {
  const server = await httpServer(t, { era: 'legacy' })
  server.tools = [BAD, annotated('Region', 'other')]
  const rig = reach(t, server.url)
  assert.equal((await rig.list('s', 'tools')).items.length, 1)
  await call(rig, 'deploy', { region: 'x' })
  assert.equal(server.of('tools/call')[0]?.headers['mcp-param-region'], undefined)
})

test('a server that refuses the headers is asked for its list once, and the call sent once more', async (t) => {
  const server = await httpServer(t, {
    script({ seen, error }) {
      if (seen.body['method'] !== 'tools/call') return false
      if (seen.headers['mcp-param-zone'] === 'z1') return false
      error(400, -32020, 'Header mismatch: Mcp-Param-Zone')
      return true
    },
  })
  server.tools = [annotated('Region', 'zone')]
  const rig = reach(t, server.url)
  await rig.definition('s', 'deploy')
  server.tools = [annotated('Zone', 'zone')]
  assert.equal(textOf(await call(rig, 'deploy', { zone: 'z1' })), 'deploy')
  assert.equal(server.of('tools/call').length, 2)
  assert.equal(server.of('tools/list').length, 2)

  const refused = await call(rig, 'deploy', { zone: 'z2' })
  assert.ok(refused.kind === 'unsent', JSON.stringify(refused))
  assert.match(refused.why, /refuses the headers/)
  assert.equal(server.of('tools/call').length, 4)
})
