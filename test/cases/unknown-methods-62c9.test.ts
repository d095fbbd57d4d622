// Unknown methods, nameless calls and other spellings of a method never pass the gate.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import { type Gate, startGate } from './harness.ts'
import { received } from './menu.ts'
import {
  type Bag,
  ERAS,
  FRONTS,
  SIDES,
  type Id,
  META26,
  type Message,
  refusalCode,
  request,
} from './wire.ts'

/** Methods with which the gateway itself looks at a server. */
const OWN = new Set([
  'server/discover',
  'initialize',
  'notifications/initialized',
  'subscriptions/listen',
  'tools/list',
])

const strangers = (gate: Gate): readonly string[] =>
  received(gate).filter((line) => !OWN.has(String((JSON.parse(line) as Message).method)))

/** Sends one request and gives its answer and the records that it caused. */
async function recorded(
  gate: Gate,
  message: Bag,
): Promise<{ readonly answer: Message; readonly entries: readonly Entry[] }> {
  const before = gate.audit().length
  await gate.post(message)
  const answer = await gate.answer(message['id'] as Id)
  return { answer, entries: gate.audit().slice(before) }
}

const NAMELESS: readonly unknown[] = [undefined, null, 5, '', ['wipe'], { a: 1 }, true]
const SPELLINGS = [
  'Tools/Call',
  'tools/call ',
  ' tools/call',
  'tools//call',
  'tools/call\u0000',
  'tools/call\n',
  'tools\u200b/call',
  'TOOLS/LIST',
  'vendor/exec',
  'sampling/createMessage',
  'elicitation/create',
  'roots/list',
  'tasks/list',
  'constructor',
  '__proto__',
  '',
]

for (const [front, era] of SIDES) {
  test(`${front} ${era}: calls without a usable name are refused, recorded and not sent`, async (t) => {
    const gate = await startGate(t, { front, era })
    await gate.request('tools/list')
    let id = 0
    for (const name of NAMELESS) {
      const params = { name, tool: 'echo', arguments: { text: 'x' } }
      const { answer, entries } = await recorded(gate, request(era, ++id, 'tools/call', params))
      assert.equal(answer.error?.code, -32602, JSON.stringify(name))
      assert.equal(refusalCode(answer), 'malformed', JSON.stringify(name))
      assert.deepEqual(
        entries.map((one) => [one.kind, one.decision, one.outcome, one.method]),
        [['malformed', 'deny', 'not_executed', 'tools/call']],
        JSON.stringify(name),
      )
    }
    for (const params of [null, [], [{ name: 'echo' }], 'echo', 5]) {
      const message = { jsonrpc: '2.0', id: ++id, method: 'tools/call', params }
      const { answer, entries } = await recorded(gate, message)
      assert.equal(answer.error?.code, -32602, JSON.stringify(params))
      assert.equal(entries.length, 1, JSON.stringify(params))
    }
    const absent = { jsonrpc: '2.0', id: ++id, method: 'tools/call' }
    assert.equal((await recorded(gate, absent)).answer.error?.code, -32602)
    assert.deepEqual(strangers(gate), [])
  })

  test(`${front} ${era}: methods that are not served, or spelled otherwise, are refused and recorded`, async (t) => {
    const gate = await startGate(t, { front, era })
    await gate.request('tools/list')
    let id = 0
    const params = { name: 'echo', arguments: { text: 'x' } }
    for (const method of SPELLINGS) {
      const { answer, entries } = await recorded(gate, request(era, ++id, method, params))
      // What no header can hold contradicts every header.
      const isMute = front === 'http' && era === 'modern' && !/^[!-~]*$/.test(method)
      assert.equal(answer.error?.code, isMute ? -32020 : -32601, JSON.stringify(method))
      const code = isMute ? 'malformed' : 'method_unknown'
      assert.equal(refusalCode(answer), code, JSON.stringify(method))
      assert.deepEqual(
        entries.map((one) => [one.decision, one.outcome, one.code]),
        [['deny', 'not_executed', code]],
        JSON.stringify(method),
      )
      if (front === 'stdio') continue
      const status = era === 'legacy' ? 200 : isMute ? 400 : 404
      assert.equal(gate.http.exchanges.at(-1)?.status, status, JSON.stringify(method))
    }
    for (const method of [null, 5, ['tools/call'], { a: 1 }]) {
      const message = { ...request(era, ++id, 'x', params), method }
      const { answer, entries } = await recorded(gate, message)
      assert.equal(answer.error?.code, -32600, JSON.stringify(method))
      assert.equal(entries[0]?.kind, 'malformed')
    }
    assert.deepEqual(strangers(gate), [])
  })

  test(`${front} ${era}: another version of JSON-RPC is refused`, async (t) => {
    const gate = await startGate(t, { front, era })
    let id = 0
    for (const jsonrpc of ['1.0', undefined, 2, '2.0 ', null]) {
      const params = { name: 'echo', arguments: { text: 'x' } }
      const message = { ...request(era, ++id, 'tools/call', params), jsonrpc }
      const { answer, entries } = await recorded(gate, message)
      assert.equal(answer.error?.code, -32600, JSON.stringify(jsonrpc))
      assert.equal(entries.length, 1)
    }
    assert.deepEqual(strangers(gate), [])
  })

  if (front === 'stdio')
    test(`${era}: a client without any policy is denied everything`, async (t) => {
      const gate = await startGate(t, { era, profile: { token: 'required' } })
      assert.deepEqual((await gate.request('tools/list')).result?.tools, [])
      for (const name of ['echo', 'nothing']) {
        const answer = await gate.call(name, { text: 'x' })
        assert.deepEqual(
          [answer.error?.code, answer.error?.message, refusalCode(answer)],
          [-32602, `tool denied: ${name}`, 'client_unknown'],
        )
      }
      for (const [method, params] of [
        ['resources/read', { uri: 'notes://a' }],
        ['prompts/get', { name: 'greet', arguments: { name: 'x' } }],
      ] as const) {
        assert.equal((await gate.request(method, params)).error?.code, -32602, method)
      }
      const denied = gate.audit().filter(({ code }) => code === 'client_unknown')
      assert.equal(denied.length, 4)
      assert.deepEqual(strangers(gate), [])
    })
}

for (const front of FRONTS) {
  test(`${front} modern: a request whose envelope names another version is not served`, async (t) => {
    const gate = await startGate(t, { front, era: 'modern' })
    for (const version of ['2099-01-01', '', 5, null]) {
      const meta = { ...META26, 'io.modelcontextprotocol/protocolVersion': version }
      const answer = await gate.call('echo', { text: 'x' }, { meta })
      assert.notEqual(answer.error, undefined, JSON.stringify(version))
    }
    assert.deepEqual(strangers(gate), [])
  })
}

for (const era of ERAS) {
  test(`http ${era}: whoever sends no token is told so, whatever is asked, and nothing is recorded singly`, async (t) => {
    const config = { anonymous: undefined }
    const gate = await startGate(t, { front: 'http', era, config, handshake: false })
    const before = gate.audit().length
    for (const method of ['tools/call', 'tools/list', 'initialize', 'vendor/exec']) {
      const body = JSON.stringify(request(era, 1, method, { name: 'echo', arguments: {} }))
      const { status, headers } = await gate.http.exchange({ body })
      assert.deepEqual([status, headers['www-authenticate']], [401, 'Bearer'], method)
    }
    assert.ok(
      gate
        .audit()
        .slice(before)
        .every(({ kind }) => kind === 'count'),
    )
    assert.deepEqual(strangers(gate), [])
  })
}
