// Case, white space, control and invisible characters never make a name match or escape a rule.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { startGate } from './harness.ts'
import { assertDenied, callsOf, nameIn, plainTool, ran, received, serving } from './menu.ts'
import { SIDES, textOf } from './wire.ts'

const TRICKS = [
  'WIPE',
  'wIPE',
  ' wipe',
  'wipe ',
  'wipe\t',
  'wipe\u0000',
  'wi\u200bpe',
  'wipe\u202e',
  '\ufeffwipe',
  'w\u0131pe',
  '\uff57ipe',
  'wi\u0301pe',
  'up__wipe ',
  'up/wipe',
  'up__get_a',
  'get_a\nwipe',
  'get_a,wipe',
  'get_a ',
  'get_a\u0000',
  'Get_a',
  'get_\u0430',
  '*',
  'up/*',
  'constructor',
  '__proto__',
]
const up = serving({
  tools: ['get_a', 'wipe', 'Wipe', 'other'].map((name) => plainTool(name, `ran ${name}`)),
})

const MODES = {
  'allow list': { allow: ['up/get_a', 'up/Wipe'] },
  // Exact names are pinned on first use; what only the pattern reaches waits for a person.
  'deny list': { allow: ['up/get_a', 'up/Wipe', 'up/*'], deny: ['up/wipe'] },
} as const

for (const [front, era] of SIDES) {
  for (const [mode, profile] of Object.entries(MODES)) {
    test(`${front} ${era}, ${mode}: only exactly listed names reach the server`, async (t) => {
      const gate = await startGate(t, { front, era, upstreams: { up }, profile })
      const listed = await gate.request('tools/list')
      assert.deepEqual(
        listed.result?.tools?.map(({ name }) => name),
        ['get_a', 'Wipe'],
      )
      for (const name of [...TRICKS, 'wipe', 'other']) {
        assertDenied(await gate.call(name), name)
        const records = callsOf(gate, name)
        assert.equal(records.length, 1, JSON.stringify(name))
        assert.equal(records[0]?.outcome, 'not_executed')
      }
      assert.deepEqual(ran(gate), [])
      // Two tools that differ in case only keep their own rules.
      assert.equal(textOf(await gate.call('Wipe')), 'ran Wipe')
      assert.equal(textOf(await gate.call('get_a')), 'ran get_a')
      assert.deepEqual(ran(gate), ['Wipe', 'get_a'])
      assert.ok(received(gate).every((line) => !line.includes('"wipe"')))
    })
  }

  test(`${front} ${era}: the log keeps each name as it came, on one plain line`, async (t) => {
    const gate = await startGate(t, { front, era, upstreams: { up }, allow: ['up/get_a'] })
    const forged = 'x\n{"seq":1,"kind":"call"}\r\n\u2028\u0085\u001b[2Jy'
    for (const name of [...TRICKS, forged]) await gate.call(name)
    const names = gate
      .audit()
      .filter(({ method }) => method === 'tools/call')
      .map(nameIn)
    assert.deepEqual(names, [...TRICKS, forged])
    const log = readFileSync(join(gate.folder, 'state/audit.jsonl'))
    assert.equal(log.toString('utf8').split('\n').length - 1, gate.audit().length)
    assert.ok(log.every((byte) => byte === 10 || (byte >= 0x20 && byte <= 0x7e)))
  })
}
