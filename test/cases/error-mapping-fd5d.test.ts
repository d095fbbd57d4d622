// An error of a server never becomes a success, whatever the form of its answer.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { httpServer, type Turn } from '../servers/http-scripted.ts'
import { startFar } from './far.ts'
import { startGate } from './harness.ts'
import { ran } from './menu.ts'
import { eventually, type Message, refusalCode, textOf, WAYS } from './wire.ts'

const DATA = { why: ['a', 1] }
const PAGE = '<html><b>CANARY-page</b></html>'
type Act = (turn: Turn) => void

const TOLD: Readonly<Record<string, Act>> = {
  json: (turn) => turn.error(200, -32602, 'wrong argument', DATA),
  'json with 400': (turn) => turn.error(400, -32602, 'wrong argument', DATA),
  stream(turn) {
    const { id } = turn.seen.body
    const error = { code: -32602, message: 'wrong argument', data: DATA }
    turn.event({ jsonrpc: '2.0', id, error })
    turn.reply.end()
  },
}

const FAULTY: Readonly<Record<string, Act>> = {
  'no result': (turn) => turn.json(200, { jsonrpc: '2.0', id: turn.seen.body['id'] }),
  'a null result': (turn) =>
    turn.json(200, { jsonrpc: '2.0', id: turn.seen.body['id'], result: null }),
  'result and error': (turn) =>
    turn.json(200, {
      jsonrpc: '2.0',
      id: turn.seen.body['id'],
      result: { content: [] },
      error: { code: -1, message: 'x' },
    }),
  'an error without a code': (turn) =>
    turn.json(200, { jsonrpc: '2.0', id: turn.seen.body['id'], error: { message: 'x' } }),
  'an answer to another id': (turn) =>
    turn.json(200, { jsonrpc: '2.0', id: 'other', result: { content: [] } }),
  '500 with a page': ({ reply }) =>
    void reply.writeHead(500, { 'content-type': 'text/html' }).end(PAGE),
  '200 with a page': ({ reply }) =>
    void reply.writeHead(200, { 'content-type': 'text/html' }).end(PAGE),
  '204': ({ reply }) => void reply.writeHead(204).end(),
  'an empty 200': ({ reply }) =>
    void reply.writeHead(200, { 'content-type': 'application/json' }).end(),
  'half a text': ({ reply }) =>
    void reply.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0",'),
  'an empty stream': ({ reply }) =>
    void reply.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
}

/** Whether it says in any way that the call did not succeed. */
const isFailure = ({ error, result }: Message): boolean =>
  error !== undefined || result?.isError === true

for (const [front, era, servers] of WAYS) {
  test(`${front}, ${era} client, ${servers} server over HTTP: errors stay errors, and no page passes`, async (t) => {
    let act: Act = (turn) => turn.result({})
    const server = await httpServer(t, {
      era: servers,
      script(turn) {
        if (turn.seen.body['method'] !== 'tools/call') return false
        act(turn)
        return true
      },
    })
    const gate = await startFar(t, { up: server.url }, { front, era })
    for (const [name, told] of Object.entries(TOLD)) {
      act = told
      const { error, result } = await gate.call('put', {})
      assert.equal(result, undefined, name)
      assert.deepEqual(
        [error?.code, error?.message, error?.data],
        [-32602, 'wrong argument', DATA],
        name,
      )
    }
    for (const [name, faulty] of Object.entries(FAULTY)) {
      act = faulty
      const before = server.of('tools/call').length
      const answer = await gate.call('put', {})
      assert.ok(isFailure(answer), `${name}: ${JSON.stringify(answer)}`)
      assert.match(
        refusalCode(answer) ?? '',
        /^(answer_refused|outcome_unknown|upstream_\w+)$/,
        name,
      )
      assert.match(textOf(answer), /\b(put|up)\b/, name)
      assert.ok(!JSON.stringify(answer).includes('CANARY'), name)
      assert.equal(server.of('tools/call').length, before + 1, `${name}: it was sent again`)
    }
    const count = Object.keys(TOLD).length + Object.keys(FAULTY).length
    const outcomes = await eventually('all outcomes', () => {
      const all = gate.audit().filter(({ kind, name }) => kind === 'outcome' && name === 'put')
      return all.length >= count && all
    })
    assert.equal(outcomes.length, count)
    for (const { outcome } of outcomes) assert.match(outcome, /^(failed|unknown)$/)
    act = (turn) =>
      turn.result({ resultType: 'complete', content: [{ type: 'text', text: 'well' }] })
    assert.equal(textOf(await gate.call('put', {})), 'well')
  })

  test(`${front}, ${era} client, ${servers} server over stdio: codes, words and data arrive as they were`, async (t) => {
    const gate = await startGate(t, { front, era, servers })
    for (const [code, data] of [
      [-32602, DATA],
      [-32000, null],
      [-32603, undefined],
      [7, 'x'],
    ] as const) {
      const { error, result } = await gate.call('refuse', { code, message: 'no', data })
      assert.equal(result, undefined)
      assert.deepEqual([error?.code, error?.message], [code, 'no'])
      // Data that are null say as much as none.
      assert.deepEqual(error?.data ?? null, data ?? null)
    }
    const failed = await gate.call('fail', { message: 'the disk is full' })
    assert.equal(failed.result?.isError, true)
    assert.equal(textOf(failed), 'the disk is full')
    // What the server does not have is its own error, not an empty list.
    const lost = await gate.request('resources/read', { uri: 'notes://a' })
    assert.equal(lost.error, undefined)
    for (const method of ['tools/nothing', 'resources/nothing']) {
      assert.equal((await gate.request(method)).error?.code, -32601)
    }
    assert.equal(ran(gate).length, 5)
    const outcomes = gate.audit().filter(({ kind }) => kind === 'outcome')
    assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(['failed']))
  })
}
