// Sixteen legs: two fronts, two ways to a server, four pairs of eras, the official SDK on both ends.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import {
  configFile,
  FIXTURE_TOOLS,
  type Fixture,
  fixtureEntry,
  serve,
  stdioCommand,
  type Wish,
} from '../conformance/gateway.ts'
import { progressIn } from './overheard.ts'
import { type Front, type Peer, peer, USER } from './peers.ts'

/** The server of each era: the new SDK, and the one before it. */
const SERVERS: Readonly<Record<string, Pick<Fixture, 'eras' | 'program'>>> = {
  modern: { eras: 'modern' },
  legacy: { eras: 'legacy', program: join(import.meta.dirname, '../servers/fixture-v1.ts') },
}

const WATCHED = 'test://watched-resource'
const HELD_MS = 60_000
const PATIENCE_MS = 60_000

async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + PATIENCE_MS
  while (Date.now() < end) {
    if (await holds()) return
    await new Promise((next) => setTimeout(next, 20))
  }
  assert.fail(`in ${PATIENCE_MS} ms this did not come: ${what}`)
}

/** What every leg does. */
const DEEDS: Readonly<Record<string, (one: Peer) => Promise<void>>> = {
  'lists and calls tools': async (one) => {
    const tools = await one.tools()
    assert.ok(tools.includes('test_sum'), tools.join())
    const said = await one.call('test_sum', { a: 40, b: 2 })
    assert.deepEqual(said.content, [{ type: 'text', text: '42' }])
  },
  'hears of progress in order': async (one) => {
    const told: unknown[] = []
    const begun = one.heard.length
    const onprogress = ({ progress }: { readonly progress: number }): void =>
      void told.push(progress)
    const said = await one.call('test_tool_with_progress', {}, { onprogress })
    assert.deepEqual(said.content, [{ type: 'text', text: 'done' }])
    const came = one.heard.slice(begun)
    const end = came.findIndex(({ result }) => result !== undefined)
    const progress = progressIn(came.slice(0, end)).map((step) => step['progress'])
    assert.deepEqual(progress, [0, 50, 100])
    assert.deepEqual(told, progress.slice(0, told.length))
  },
  'hears that a tool failed, and that there is no such tool': async (one) => {
    const failed = await one.call('test_error_handling')
    assert.equal(failed.isError, true)
    assert.match(JSON.stringify(failed.content), /intentionally returns an error/)
    await assert.rejects(one.call('no_such_tool'), { code: -32_602 })
  },
  'is asked in the middle of a call': async (one) => {
    const said = await one.call('test_elicitation', { message: 'who is there?' })
    assert.equal(said.isError ?? false, false, JSON.stringify(said))
    assert.match(JSON.stringify(said.content), new RegExp(USER['username'] ?? ''))
  },
  'reads resources and prompts': async (one) => {
    assert.match(JSON.stringify(await one.read('test://static-text')), /static text resource/)
    assert.match(JSON.stringify(await one.read('test://template/123/data')), /123/)
    await assert.rejects(one.read('test://nothing/of/that/name'))
    const args = { arg1: 'one', arg2: 'two' }
    const told = JSON.stringify(await one.prompt('test_prompt_with_arguments', args))
    assert.match(told, /arg1='one', arg2='two'/)
  },
  'hears that a resource changed': async (one) => {
    const updated: string[] = []
    await one.watch(WATCHED, (uri) => void updated.push(uri))
    await one.call('test_trigger_resource_update')
    await eventually('the update', () => updated.length > 0)
    assert.deepEqual(new Set(updated), new Set([WATCHED]))
  },
  'takes a call back, and the server stops': async (one) => {
    const before = await waits(one)
    const held = new AbortController()
    const waiting = one.call('test_wait', { ms: HELD_MS }, { signal: held.signal })
    const over = assert.rejects(waiting)
    await eventually('the call at the server', async () => (await waits(one)).begun > before.begun)
    held.abort('enough')
    await over
    await eventually('the cancel at the server', async () => {
      const { cancelled } = await waits(one)
      return cancelled > before.cancelled
    })
  },
}

async function waits(one: Peer): Promise<{ readonly begun: number; readonly cancelled: number }> {
  const { content } = await one.call('test_wait', { status: true })
  const [block] = content as readonly { readonly text: string }[]
  return JSON.parse(block?.text ?? '') as { begun: number; cancelled: number }
}

async function leg(t: TestContext, era: 'modern' | 'legacy', front: Front): Promise<void> {
  const one = await peer(era, front)
  try {
    for (const [name, deed] of Object.entries(DEEDS)) await t.test(name, () => deed(one))
  } finally {
    await one.close()
  }
}

for (const transport of ['http', 'stdio'] as const) {
  for (const [eras, server] of Object.entries(SERVERS)) {
    test(`in front of a ${eras} server over ${transport}`, async (t) => {
      const upstream = await fixtureEntry(t, { ...server, transport })
      const wish: Wish = { upstream, tools: FIXTURE_TOOLS }
      const url = await serve(t, wish)
      for (const era of ['modern', 'legacy'] as const) {
        await t.test(`a ${era} client over http`, (leg1) => leg(leg1, era, { kind: 'http', url }))
        const command = stdioCommand(configFile(wish))
        await t.test(`a ${era} client over stdio`, (leg2) =>
          leg(leg2, era, { kind: 'stdio', command }),
        )
      }
    })
  }
}
