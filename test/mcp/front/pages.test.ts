// Long lists in pages.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Doors } from '../../../src/gateway.ts'
import { object } from '../../../src/json.ts'
import { type Heard, open } from './desk.ts'
import { house } from '../http/rig.ts'

const PER_PAGE = 1000
const TOTAL = 2050
/** The server's list, made long: the first item under many URIs. */
const long = (doors: Doors): Doors => ({
  ...doors,
  upstreams: {
    ...doors.upstreams,
    async list(upstream, kind) {
      const listed = await doors.upstreams.list(upstream, kind)
      const [first] = listed.items
      if (kind !== 'resources' || first === undefined) return listed
      const items = Array.from({ length: TOTAL }, (_, n) => {
        const uri = `notes://${n}`
        return { ...first, name: uri, value: object({ ...first.value, uri }) }
      })
      return { ...listed, items }
    },
  },
})
const profile = { resources: ['notes://*'], prompts: ['*'] }
const setup = { profile, coat: long }
const uris = ({ result }: Heard): readonly string[] =>
  (result?.['resources'] as { uri: string }[]).map(({ uri }) => uri)

for (const era of ['modern', 'legacy'] as const) {
  test(`a ${era} client reads a long list page by page, each item once and in one order`, async (t) => {
    const desk = await open(t, setup)
    if (era === 'legacy') await desk.greet()
    const seen: string[] = []
    const pages: number[] = []
    let cursor: unknown
    for (;;) {
      const page = await desk[era]('resources/list', cursor === undefined ? {} : { cursor })
      seen.push(...uris(page))
      pages.push(uris(page).length)
      if (era === 'modern') assert.equal(page.result?.['cacheScope'], 'private')
      const next = page.result?.['nextCursor']
      if (next === undefined) break
      cursor = next
    }
    assert.deepEqual(pages, [PER_PAGE, PER_PAGE, TOTAL - 2 * PER_PAGE])
    assert.deepEqual(
      seen,
      Array.from({ length: TOTAL }, (_, n) => `notes://${n}`),
    )

    // The last cursor was good. It is good again, but for no other list, and no other text is one.
    assert.equal(uris(await desk[era]('resources/list', { cursor })).length, 50)
    assert.equal((await desk[era]('prompts/list', { cursor })).error?.code, -32602)
    for (const odd of ['', 'x', `${String(cursor)}x`, String(cursor).slice(0, -2), 1, null]) {
      assert.equal(
        (await desk[era]('resources/list', { cursor: odd })).error?.code,
        -32602,
        `${odd}`,
      )
    }
  })
}

test('a cursor is not good for a view that has changed meanwhile', async (t) => {
  let isWide = true
  const desk = await open(t, {
    ...setup,
    coat(given) {
      const doors = long(given)
      const set = doors.policy()
      const agent = set.profiles.get('agent')
      assert.ok(agent !== undefined)
      const less = { ...set, profiles: new Map([['agent', { ...agent, resources: [] }]]) }
      return { ...doors, policy: () => (isWide ? set : less) }
    },
  })
  const cursor = (await desk.modern('resources/list')).result?.['nextCursor']
  isWide = false
  const refused = await desk.modern('resources/list', { cursor })
  assert.equal(refused.error?.code, -32602)
  assert.match(refused.error?.message ?? '', /the list changed/)
})

test('a cursor is good for the client that was given it and for no other', async (t) => {
  const clients = { ana: 'agent', bob: 'agent' }
  const { modern, as } = await house(t, { ...setup, clients })
  const { message } = await modern('resources/list', {}, as('ana'))
  const cursor = message?.result?.['nextCursor']
  assert.equal(typeof cursor, 'string')
  const own = await modern('resources/list', { cursor }, as('ana'))
  assert.equal(own.message !== null && uris(own.message).length, PER_PAGE)
  const other = await modern('resources/list', { cursor }, as('bob'))
  assert.equal(other.message?.error?.code, -32602)
})

test('a cursor tells its client nothing and is good for no other ledger', async (t) => {
  const mine = await open(t, setup)
  const cursor = (await mine.modern('resources/list')).result?.['nextCursor']
  assert.equal(typeof cursor, 'string')
  assert.doesNotMatch(
    Buffer.from(String(cursor), 'base64url').toString('latin1'),
    /agent|resources/,
  )
  const other = await open(t, setup)
  assert.equal((await other.modern('resources/list', { cursor })).error?.code, -32602)
})
