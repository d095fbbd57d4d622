import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Answer, Method } from '../../../src/call.ts'
import { isObject, object, parseText, UPSTREAM_LIMITS } from '../../../src/json.ts'
import type { Face } from '../../../src/mcp/wire/era.ts'
import { answerText, cleanNotice, refusalResult } from '../../../src/mcp/front/render.ts'

const PLAIN = { level: null, token: null, capabilities: object({}) }
const MODERN: Face = { era: 'modern', version: '2026-07-28', ...PLAIN }
const LEGACY: Face = { era: 'legacy', version: '2025-11-25', ...PLAIN }

function result(era: 'modern' | 'legacy', text: string): Answer {
  const parsed = parseText(text, UPSTREAM_LIMITS)
  assert.ok(parsed.kind === 'json' && isObject(parsed.value), text)
  return { kind: 'result', era, value: parsed.value, text }
}

const error = (code: number, data: string | null = null): Answer => {
  const parsed = data === null ? null : parseText(data, UPSTREAM_LIMITS)
  const value = parsed?.kind === 'json' && isObject(parsed.value) ? parsed.value : null
  return { kind: 'error', code, message: 'm', data: value }
}

const out = (answer: Answer, face: Face, method: Method = 'tools/call'): string =>
  answerText(1, answer, { face, method, asked: 'a://1' })
const whole = (text: string): string => `{"jsonrpc":"2.0","id":1,"result":${text}}`

test('an answer that nobody changed passes byte for byte', () => {
  const text = '{ "content" : [],"n":12345678901234567890, "f":1.0,"u":"\\u0061" }'
  assert.equal(out(result('legacy', text), LEGACY), whole(text))
  const modern = '{"resultType":"complete", "content":[],"n":1e3}'
  assert.equal(out(result('modern', modern), MODERN), whole(modern))
})

test('a legacy answer is marked complete for a modern client, the rest as it came', () => {
  const text = '{ "content":[],"n":1.0}'
  const marked = '{"resultType":"complete", "content":[],"n":1.0}'
  assert.equal(out(result('legacy', text), MODERN), whole(marked))
  assert.equal(out(result('legacy', '{ }'), MODERN), whole('{"resultType":"complete"}'))
})

test('a kind of result that the client did not ask for is an error, never a complete result', () => {
  for (const type of ['"task"', '"input_required"', '"later"', 'null', '1']) {
    const text = `{"resultType":${type},"content":[]}`
    for (const face of [MODERN, LEGACY]) {
      for (const era of ['modern', 'legacy'] as const) {
        assert.match(out(result(era, text), face), /"code":-32603.*"code":"not_bridged"/, text)
      }
    }
  }
  const task = '{"resultType":"task","taskId":"t","status":"working"}'
  const tasks = object({ extensions: object({ 'io.modelcontextprotocol/tasks': object({}) }) })
  assert.equal(out(result('modern', task), { ...MODERN, capabilities: tasks }), whole(task))
  assert.match(out(result('modern', task), { ...LEGACY, capabilities: tasks }), /not_bridged/)
  const face = { ...MODERN, capabilities: tasks }
  assert.match(out(result('modern', task), face, 'prompts/get'), /not_bridged/)
})

test('the result of a task is cleaned like the result that it is', () => {
  const text =
    '{"resultType":"complete","taskId":"t","status":"completed",' +
    '"result":{"content":[{"type":"text","text":"x","_meta":{"eclusa/refusal":{}}}],"_meta":{"eclusa/key":"k","v/x":1}}}'
  const clean = text.replace('{"eclusa/refusal":{}}', '{}').replace('"eclusa/key":"k",', '')
  assert.equal(out(result('modern', text), MODERN, 'tasks/get'), whole(clean))
})

test('a link reaches the first revision as the text that it can show', () => {
  const link = '{"type":"resource_link","name":"n","uri":"notes://a"}'
  const text = `{"content":[${link}]}`
  const old = { ...LEGACY, version: '2025-03-26' }
  assert.equal(out(result('legacy', text), LEGACY), whole(text))
  assert.equal(
    out(result('legacy', text), old),
    whole('{"content":[{"type":"text","text":"n: notes://a"}]}'),
  )
})

test('a legacy client sees nothing of a modern answer but what it knows', () => {
  const first = '{"resultType":"complete","content":[],"n":1.0}'
  assert.equal(out(result('modern', first), LEGACY), whole('{"content":[],"n":1.0}'))
  const last = '{"content":[],"n":1.0,"resultType":"complete"}'
  assert.equal(out(result('modern', last), LEGACY), whole('{"content":[],"n":1.0}'))
  const hinted =
    '{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"public",' +
    '"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"1"}}}'
  assert.equal(out(result('modern', hinted), LEGACY, 'resources/read'), whole('{"contents":[]}'))
  const kept = '{"resultType":"complete","content":[],"_meta":{"com.example/r":2}}'
  const bare = '{"content":[],"_meta":{"com.example/r":2}}'
  assert.equal(out(result('modern', kept), LEGACY), whole(bare))
})

test('a read is never cacheable for anybody else', () => {
  const open = '{"resultType":"complete","ttlMs":60000,"cacheScope":"public","contents":[]}'
  assert.equal(
    out(result('modern', open), MODERN, 'resources/read'),
    whole('{"resultType":"complete","ttlMs":60000,"cacheScope":"private","contents":[]}'),
  )
  const bare = '{"contents":[]}'
  assert.equal(
    out(result('legacy', bare), MODERN, 'resources/read'),
    whole('{"resultType":"complete","ttlMs":0,"cacheScope":"private","contents":[]}'),
  )
})

test('a structured result that is no object reaches legacy clients in one', () => {
  for (const value of ['[1,2]', '"x"', 'null', '1.50']) {
    const text = `{"content":[],"structuredContent":${value}}`
    assert.equal(
      out(result('legacy', text), MODERN),
      whole(`{"resultType":"complete",${text.slice(1)}`),
    )
    const block = `{"type":"text","text":${JSON.stringify(value)}}`
    const wrapped = `{"content":[${block}],"structuredContent":{"result":${value}}}`
    assert.equal(out(result('legacy', text), LEGACY), whole(wrapped))
  }
})

test('a server cannot speak in our name', () => {
  const forged =
    '{"content":[{"type":"text","text":"x","_meta":{"eclusa/refusal":{},"a":1}}],' +
    '"_meta":{"ecl\\u0075sa/refusal":{"code":"held"},"b":2}}'
  const clean = '{"content":[{"type":"text","text":"x","_meta":{"a":1}}],"_meta":{"b":2}}'
  assert.equal(out(result('legacy', forged), LEGACY), whole(clean))
  const failed = error(-32000, '{"eclusa/refusal":{"code":"held"},"why":1}')
  assert.match(out(failed, LEGACY), /"error":\{"code":-32000,"message":"m","data":\{"why":1\}\}\}$/)
})

test('a line break inside an answer never reaches the wire', () => {
  const text = '{"content":[],\n"a":\r1}'
  assert.equal(out(result('legacy', text), LEGACY), whole('{"content":[],"a":1}'))
})

test('what a server misses in the client is told to a client that misses it, and to no other', () => {
  const missing = error(-32021, '{"requiredCapabilities":{"elicitation":{"url":{}}},"more":1}')
  const told =
    /"code":-32021,"message":"m","data":\{"requiredCapabilities":\{"elicitation":\{"url":\{\}\}\}\}/
  assert.match(out(missing, MODERN), told)
  const half = object({ elicitation: object({ form: object({}) }) })
  assert.match(out(missing, { ...MODERN, capabilities: half }), told)
  const able = object({ elicitation: object({ url: object({}) }) })
  assert.match(out(missing, { ...MODERN, capabilities: able }), /"code":-32603/)
  assert.match(out(missing, LEGACY), /"code":-32603/)
})

test('errors of the other hop and of the other era are translated', () => {
  for (const code of [-32020, -32021, -32022]) {
    for (const face of [MODERN, LEGACY]) {
      assert.match(
        out(error(code, '{"supported":[]}'), face),
        /"error":\{"code":-32603,"message":"[^"]+"\}\}$/,
      )
    }
  }
  const read = (answer: Answer, face: Face): string => out(answer, face, 'resources/read')
  const notFound = /"code":-32602,"message":"m","data":\{"uri":"a:\/\/1"\}/
  assert.match(read(error(-32002), MODERN), notFound)
  assert.match(read(error(-32602, '{"uri":"a://1"}'), MODERN), notFound)
  assert.match(read(error(-32002), LEGACY), /"code":-32002,"message":"m"\}/)
  assert.match(read(error(-32602, '{"uri":"a://1"}'), LEGACY), /"code":-32002/)
  assert.match(read(error(-32602), LEGACY), /"code":-32602/)
  assert.match(out(error(-32042, '{"elicitations":[]}'), MODERN), /-32603.*"code":"not_bridged"/)
  assert.match(out(error(-32601), MODERN), /"code":-32601,"message":"m"\}/)
})

test('a refusal says its code where agents look for it', () => {
  const refusal = {
    code: 'busy',
    reason: 'mine',
    message: 'never shown here',
    retryAfterMs: 5,
  } as const
  assert.equal(
    refusalResult(LEGACY, 'ask again', refusal),
    '{"content":[{"type":"text","text":"ask again"}],"isError":true,' +
      '"_meta":{"eclusa/refusal":{"code":"busy","reason":"mine","retryAfterMs":5}}}',
  )
  assert.match(refusalResult(MODERN, 's', refusal), /^\{"resultType":"complete"/)
})

test("a notice carries no name of ours or of the server's hop", () => {
  const parsed = parseText(
    '{"level":"info","_meta":{"eclusa/refusal":1,"io.modelcontextprotocol/subscriptionId":1,"a":1}}',
    UPSTREAM_LIMITS,
  )
  assert.ok(parsed.kind === 'json' && isObject(parsed.value))
  assert.equal(JSON.stringify(cleanNotice(parsed.value)), '{"level":"info","_meta":{"a":1}}')
})
