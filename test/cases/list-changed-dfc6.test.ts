// After a change the filter and the call gate apply to the new list, and storms are debounced.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { type Gate, startGate } from './harness.ts'
import { type Era, eventually, type Front, request, SIDES, textOf } from './wire.ts'

const STORM = { times: 500, ms: 2_000 }
const LISTS = 5
const NOTICES = 5
const definition = (name: string): object => ({ name, inputSchema: { type: 'object' } })
const allow = ['change', 'old', 'drop_table', 'newcomer'].map((name) => `up/${name}`)

const listsAsked = (gate: Gate): number =>
  gate.trace().filter(({ method }) => method === 'tools/list').length
const notices = (gate: Gate): number =>
  gate.notifications('notifications/tools/list_changed').length

async function names(gate: Gate): Promise<readonly string[]> {
  const listed = await gate.request('tools/list')
  return listed.result?.tools?.map(({ name }) => name) ?? []
}

/** A client that hears of changes: a modern one asks for it. */
async function listening(t: TestContext, front: Front, era: Era): Promise<Gate> {
  const gate = await startGate(t, { front, era, allow })
  if (era === 'legacy') return gate
  const notifications = { toolsListChanged: true }
  await gate.post(request(era, 'stream', 'subscriptions/listen', { notifications }))
  await eventually('the acknowledgement', () =>
    gate.notifications('notifications/subscriptions/acknowledged').at(0),
  )
  return gate
}

// They mostly wait, so they wait together.
describe('at once', { concurrency: 4 }, () => {
  for (const [front, era] of SIDES) {
    test(`${front} ${era}: decisions follow the new list, and a storm costs few refreshes`, async (t) => {
      const gate = await listening(t, front, era)
      assert.deepEqual(await names(gate), ['change'])
      await gate.call('change', { tools: ['old', 'drop_table', 'other'].map(definition), hide: [] })
      await eventually('the first change', () => notices(gate) > 0)
      assert.equal(textOf(await gate.call('old')), 'old')
      assert.deepEqual((await names(gate)).toSorted(), ['change', 'drop_table', 'old'])

      const before = { lists: listsAsked(gate), notices: notices(gate), atMs: Date.now() }
      const next = ['DROP_table2', 'newcomer', 'other'].map(definition)
      await gate.call('change', { tools: next, hide: [], ...STORM })
      const gone = ['old', 'drop_table']
      for (const name of [...gone, 'DROP_table2', 'other', 'DROP_TABLE']) {
        const denied = await gate.call(name)
        // A removed tool is never run: denied by the fresh list, or refused by the server that lost it.
        assert.ok(denied.error !== undefined || denied.result?.isError === true, name)
        if (!gone.includes(name)) assert.equal(denied.error?.message, `tool denied: ${name}`)
      }
      await sleep(STORM.ms + 700)
      const asked = listsAsked(gate) - before.lists
      // On a slow machine the storm lasts longer; at no time is it more than one list in 700 ms.
      const most = Math.max(LISTS, 1 + (Date.now() - before.atMs) / 700)
      assert.ok(asked <= most, `${asked} lists were asked for`)
      assert.deepEqual((await names(gate)).toSorted(), ['change', 'newcomer'])
      for (const name of gone)
        assert.equal((await gate.call(name)).error?.message, `tool denied: ${name}`)
      assert.equal(textOf(await gate.call('newcomer')), 'newcomer')

      const told = notices(gate) - before.notices
      assert.ok(told <= Math.max(NOTICES, most), `${told} notices`)
      assert.ok(told >= 1, 'the client never heard of the change')
    })

    test(`${front} ${era}: a change of hidden tools only is told to nobody`, async (t) => {
      const gate = await listening(t, front, era)
      const shown = await names(gate)
      await gate.call('change', { tools: ['secret', 'other'].map(definition), hide: ['pid'] })
      await sleep(1_500)
      assert.equal(notices(gate), 0)
      assert.deepEqual(await names(gate), shown)
      await sleep(600)
      assert.equal(notices(gate), 0)
      const [hidden, unknown] = [await gate.call('secret'), await gate.call('never_was')]
      assert.equal(
        hidden.error?.message.replace('secret', '?'),
        unknown.error?.message.replace('never_was', '?'),
      )
      assert.equal(hidden.error?.code, unknown.error?.code)
    })
  }
})
