// A client that is revoked while its request is still on its way in.

import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'

import { META26 } from '../front/desk.ts'
import { eventually, handshake, house, type House, JSON_HEADERS, modernHeaders } from './rig.ts'

/** Sends a request but for its last byte; `rest` sends that one and resolves with the status line. */
function slow(
  t: TestContext,
  { port }: House,
  body: object,
  headers: Readonly<Record<string, string>>,
): { readonly rest: () => Promise<string> } {
  const text = JSON.stringify(body)
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const lines = ['POST /mcp HTTP/1.1', 'Host: localhost', ...head, `Content-Length: ${text.length}`]
  const socket: Socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let came = ''
  socket.on('data', (chunk: Buffer) => void (came += chunk.toString()))
  socket.write(`${lines.join('\r\n')}\r\n\r\n${text.slice(0, -1)}`)
  return {
    async rest() {
      socket.write(text.slice(-1))
      await eventually('it is answered', () => came.includes('\r\n\r\n'))
      return came
    },
  }
}

test('a request whose client is revoked before its body is whole gets nothing', async (t) => {
  const one = await house(t, {
    profile: { allow: ['up/echo'] },
    clients: { ana: 'agent', rui: 'agent' },
  })
  const list = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: { _meta: META26 } }
  const late = [
    slow(t, one, list, modernHeaders('tools/list', {}, one.as('ana'))),
    slow(t, one, handshake('2025-11-25'), { ...JSON_HEADERS, ...one.as('ana') }),
  ]
  assert.equal((await one.modern('tools/list', {}, one.as('ana'))).status, 200)
  one.revoke('ana')
  await eventually('the token is not taken any more', async () => {
    return (await one.modern('tools/list', {}, one.as('ana'))).status === 401
  })
  for (const { rest } of late) {
    const came = await rest()
    assert.match(came, /^HTTP\/1\.1 401 /)
    assert.ok(!came.includes('inputSchema') && !came.includes('Mcp-Session-Id'), came)
  }
  assert.equal((await one.modern('tools/list', {}, one.as('rui'))).status, 200)
})

test('a call of a client that is revoked meanwhile is refused, not left to wait', async (t) => {
  const one = await house(t, {
    profile: { allow: ['up/hang'] },
    clients: { ana: 'agent' },
  })
  const call = one.modern('tools/call', { name: 'hang', arguments: {} }, one.as('ana')).then(
    ({ status }) => status,
    () => 'cut',
  )
  await eventually('it is sent', () => one.audit().some(({ kind }) => kind === 'intent'))
  one.revoke('ana')
  const came = await call
  assert.ok(came === 401 || came === 'cut', String(came))
})
