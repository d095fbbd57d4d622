// Two servers' tools that would give one exposed name are kept apart or withheld, never routed by chance.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { says, startGate } from './harness.ts'
import { assertDenied, plainTool, ran, serving } from './menu.ts'
import { SIDES, refusalCode, textOf } from './wire.ts'

const ACME = {
  tools: ['_status', 'x__y', 'status', '_x__y'].map((name) => plainTool(name, `acme ${name}`)),
}
const acme = serving(ACME)
const other = (...names: readonly string[]) =>
  serving({ tools: names.map((name) => plainTool(name, `other ${name}`)) })

for (const [front, era] of SIDES) {
  test(`${front} ${era}: server names that make the border ambiguous are refused at the start`, async (t) => {
    for (const name of ['acme_', 'acme__x', 'Acme', '']) {
      const upstreams = { acme, [name]: other('status', 'y') }
      const gate = await startGate(t, { front, era, upstreams, allow: ['*'], handshake: false })
      assert.equal((await gate.exit).code, 2, name)
      await says(gate, /eclusa\.yaml:\d+:\d+: .*upstream/i)
    }
  })

  test(`${front} ${era}: every listed name leads to its own server, in both orders of start`, async (t) => {
    const pair = { acme, 'acme-x': other('y', '_status', 'x__y') }
    // Later in the file and later to connect.
    const reversed = { 'acme-x': pair['acme-x'], acme: serving(ACME, '--start-delay', '300') }
    const seen: string[][] = []
    for (const upstreams of [pair, reversed]) {
      const allow = [
        ...['_status', 'x__y', 'status', '_x__y'].map((name) => `acme/${name}`),
        ...['y', '_status', 'x__y'].map((name) => `acme-x/${name}`),
      ]
      const gate = await startGate(t, { front, era, upstreams, allow })
      const listed = await gate.request('tools/list')
      const names = listed.result?.tools?.map(({ name }) => name) ?? []
      seen.push(names.toSorted())
      for (const name of names) {
        const at = name.indexOf('__')
        const owner = name.slice(0, at) === 'acme' ? 'acme' : 'other'
        assert.equal(textOf(await gate.call(name)), `${owner} ${name.slice(at + 2)}`)
      }
      for (const name of ['acme', 'acme__', '__status', 'acme_x__y', 'status', 'ACME__status']) {
        assert.equal(refusalCode(await gate.call(name)), 'tool_denied', name)
      }
      assert.deepEqual(ran(gate, 'acme').length + ran(gate, 'acme-x').length, names.length)
    }
    assert.equal(seen[0]?.length, 7)
    assert.deepEqual(seen[0], seen[1])
  })

  test(`${front} ${era}: a tool that is named as another one's cut name costs both`, async (t) => {
    const long = `n${'o'.repeat(80)}`
    const probe = { acme: other(long, 'short'), beta: other('y') }
    const first = await startGate(t, {
      front,
      era,
      upstreams: probe,
      allow: ['acme/*', `acme/${long}`],
    })
    const cut = (await first.request('tools/list')).result?.tools?.find(({ name }) =>
      name.startsWith('acme__n'),
    )?.name
    assert.equal(cut?.length, 64)
    assert.equal(textOf(await first.call(cut ?? '')), `other ${long}`)

    const forged = (cut ?? '').slice('acme__'.length)
    for (const names of [
      [long, forged, 'short'],
      [forged, 'short', long],
    ]) {
      const allow = names.map((name) => `acme/${name}`)
      const upstreams = { acme: other(...names), beta: other('y') }
      const gate = await startGate(t, { front, era, upstreams, allow })
      const listed = await gate.request('tools/list')
      assert.deepEqual(
        listed.result?.tools?.map(({ name }) => name),
        ['acme__short'],
      )
      await says(gate, /share the name acme__n/)
      assertDenied(await gate.call(cut ?? ''), cut ?? '')
      assert.deepEqual(ran(gate, 'acme'), [])
    }
  })
}
