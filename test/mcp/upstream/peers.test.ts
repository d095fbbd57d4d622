import assert from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { call, config, dataOf, start, textOf, until } from './rig.ts'

const OFFICIAL = [process.execPath, join(import.meta.dirname, '../../servers/official.ts')]
const FILES = join(
  import.meta.dirname,
  '../../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js',
)

for (const era of ['modern', 'legacy'] as const) {
  test(`a server on the official SDK is greeted, listed, called and heard in the ${era} era`, async (t) => {
    const rig = start(t, [config('s', { command: OFFICIAL, era })])
    let heard = 0
    rig.onChange((_upstream, kind) => {
      if (kind === 'tools') heard++
    })
    const hello = await rig.hello('s')
    await until(() => heard > 0)
    assert.equal(hello?.era, era)
    assert.equal(hello.info?.['name'], 'official')
    const { items, complete } = await rig.list('s', 'tools')
    assert.ok(complete)
    assert.deepEqual(items.map((item) => item.name).sort(), ['add', 'sum'])
    assert.deepEqual(dataOf(await call(rig, 'sum', { a: 1, b: 2 })), { sum: 3 })
    heard = 0
    assert.equal(textOf(await call(rig, 'add', { name: 'late' })), 'added')
    await until(() => heard > 0)
    assert.equal(typeof (await rig.definition('s', 'late')), 'object')
    assert.equal(textOf(await call(rig, 'late')), 'late')
    assert.deepEqual(rig.said, [])
  })
}

test('the probe finds the modern era of a server on the official SDK', async (t) => {
  const rig = start(t, [config('s', { command: OFFICIAL })])
  assert.equal((await rig.hello('s'))?.era, 'modern')
})

test('the official file server works unchanged', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-'))
  writeFileSync(join(folder, 'a.txt'), 'content of a')
  const rig = start(t, [config('s', { command: [process.execPath, FILES, folder] })])
  const { items } = await rig.list('s', 'tools')
  assert.ok(items.some((item) => item.name === 'read_text_file'))
  const made = await call(rig, 'read_text_file', { path: join(folder, 'a.txt') }, { does: 'read' })
  assert.equal(textOf(made), 'content of a')
})
