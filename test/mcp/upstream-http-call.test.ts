import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer } from '../servers/http-scripted.ts'
import { reach } from './upstream-http-rig.ts'
import { call, textOf } from './upstream-rig.ts'

for (const era of ['modern', 'legacy', 'dual'] as const) {
  test(`a ${era} server over HTTP is found out and called`, async (t) => {
    const server = await httpServer(t, { era })
    const rig = reach(t, server.url)
    const hello = await rig.hello('s')
    assert.equal(hello?.era, era === 'legacy' ? 'legacy' : 'modern')
    assert.equal(hello.info?.['name'], 'http-scripted')
    assert.equal((await rig.list('s', 'tools')).items.length, 3)
    assert.equal(textOf(await call(rig, 'echo', { text: 'x' })), 'x')
    assert.equal(textOf(await call(rig, 'echo', { text: 'y' }, { does: 'read' })), 'y')
    assert.equal(server.of('server/discover').length, 1)
    assert.equal(server.of('initialize').length, era === 'legacy' ? 1 : 0)
    assert.deepEqual(rig.said, [])
  })
}
