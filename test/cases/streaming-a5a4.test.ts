// Events are passed on when they arrive, not when the stream ends.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer } from '../servers/http-scripted.ts'
import { startFar } from './far.ts'
import { LONG } from './harness.ts'
import { eventually, WAYS, textOf } from './wire.ts'

/** The second of the case, or a tenth. */
const SECOND = LONG ? 1000 : 100

for (const [front, era, servers] of WAYS) {
  test(`${front}, ${era} client, ${servers} server: each progress is seen before the next is sent`, async (t) => {
    let seen = 0
    const behind: number[] = []
    const server = await httpServer(t, {
      era: servers,
      script({ seen: { body }, event, finish }) {
        if (body['method'] !== 'tools/call') return false
        const { progressToken } = (body['params'] as { _meta: { progressToken: unknown } })._meta
        let at = 0
        const step = (): void => {
          behind.push(at - seen)
          if (at === 3)
            return finish({ resultType: 'complete', content: [{ type: 'text', text: 'end' }] })
          at++
          event({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken, progress: at },
          })
          setTimeout(step, SECOND)
        }
        step()
        return true
      },
    })
    const gate = await startFar(t, { up: server.url }, { front, era })
    const running = gate.request('tools/call', {
      name: 'echo',
      arguments: {},
      _meta: { progressToken: 'p' },
    })
    const progress = (): readonly unknown[] =>
      gate.notifications('notifications/progress').map(({ params }) => params?.['progress'])
    for (const count of [1, 2, 3]) {
      await eventually(`progress ${count}`, () => progress().length >= count)
      seen = count
    }
    assert.equal(textOf(await running), 'end')
    assert.deepEqual(progress(), [1, 2, 3])
    // Before each step the client had all that was sent.
    assert.deepEqual(behind, [0, 0, 0, 0])
  })
}
