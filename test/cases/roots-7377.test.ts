// Roots that a server learns are those that policy names, as they were written, and odd ones do no harm.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { answering } from './people.ts'
import { type Bag, type Era, ERAS, FRONTS, type Message, textOf, type Wire } from './wire.ts'

const root = (uri: unknown): Bag => ({ uri, name: 'n' })
const GOOD = [
  'file:///proj',
  'file:///proj/%C3%A4%20b',
  'file:///proj/ä b',
  'file:///proj/100%25/x',
]
const ODD: readonly unknown[] = [
  'file:///',
  'file:///proj/../etc',
  'file:///proj/%2e%2e/etc',
  'file:///project',
  'http://x',
  'file://host/proj',
  'FILE:///proj',
  '/proj',
  '',
]
/** With one of these the whole answer is none, as docs/protocol.md says. */
const NONE: readonly unknown[] = [null, 5, ['file:///proj'], undefined]
/** More than any client has. */
const MANY = 5_000
const MAX_ROOTS = 1_000

/** The roots that a server of this era gets when it asks. */
async function learned(wire: Wire, servers: Era): Promise<readonly Bag[]> {
  const wanted = { method: 'roots/list', params: {} }
  const answer =
    servers === 'legacy'
      ? await wire.call('asks', { requests: [wanted] })
      : await wire.call('inquire', { requests: { one: wanted }, state: 's' })
  const { answers, responses } = answer.result?.structuredContent ?? {}
  const [first] = (answers ?? []) as readonly Message[]
  const result = (first?.result ?? (responses as Bag | undefined)?.['one']) as Bag
  assert.ok(Array.isArray(result['roots']), JSON.stringify(answer).slice(0, 400))
  return result['roots'] as Bag[]
}

for (const front of FRONTS) {
  for (const servers of ERAS) {
    test(`${front}, ${servers} server: only roots under the configured one pass, byte for byte, and new ones are new`, async (t) => {
      const gate = await startGate(t, {
        front,
        era: 'legacy',
        servers,
        capabilities: { roots: { listChanged: true } },
        profile: { client: { roots: ['/proj'] } },
      })
      let roots: readonly Bag[] = [...ODD.map(root), ...GOOD.map(root)]
      answering(gate, () => ({ result: { roots } }))
      const uris = async (): Promise<readonly unknown[]> =>
        (await learned(gate, servers)).map(({ uri }) => uri)
      assert.deepEqual(await uris(), GOOD)

      roots = [root('file:///proj/new'), root('file:///etc')]
      await gate.post({ jsonrpc: '2.0', method: 'notifications/roots/list_changed' })
      assert.deepEqual(await uris(), ['file:///proj/new'])

      roots = Array.from({ length: MANY }, (_, n) => root(`file:///proj/${n}`))
      const kept = await uris()
      assert.ok(kept.length > 0 && kept.length <= MAX_ROOTS, `${kept.length} roots`)
      assert.equal(kept[0], 'file:///proj/0')

      for (const uri of NONE) {
        roots = [root('file:///proj'), root(uri)]
        await assert.rejects(uris(), JSON.stringify(uri))
      }
      assert.equal(textOf(await gate.call('echo', { text: 'here' })), 'here')
    })
  }

  test(`${front}: without roots in the profile a server is not told that there are any`, async (t) => {
    const gate = await startGate(t, {
      front,
      era: 'legacy',
      servers: 'legacy',
      capabilities: { roots: {} },
    })
    const asked = answering(gate, () => ({ result: { roots: [root('file:///proj')] } }))
    const seen = (await gate.call('capabilities')).result?.structuredContent
    assert.equal((seen?.['initialized'] as Bag)['roots'], undefined)
    const answer = await gate.call('asks', { requests: [{ method: 'roots/list', params: {} }] })
    assert.ok(!JSON.stringify(answer).includes('file:///proj'))
    assert.deepEqual(asked, [])
  })
}
