import assert from 'node:assert/strict'
import { test } from 'node:test'

import { isObject, type JsonObject, parseText, REQUEST_LIMITS } from '../../../src/json.ts'
import {
  atLeast,
  type Faced,
  negotiated,
  readFace,
  type Session,
} from '../../../src/mcp/wire/era.ts'

const META = 'io.modelcontextprotocol/'
function admitted(value: unknown): JsonObject {
  const parsed = parseText(JSON.stringify(value), REQUEST_LIMITS)
  assert.ok(parsed.kind === 'json' && isObject(parsed.value))
  return parsed.value
}

const SESSION: Session = { version: '2025-06-18', level: null, capabilities: admitted({}) }
const NONE = { capabilities: admitted({}) }

const face = (meta: unknown, session: Session | null = null): Faced =>
  readFace(admitted({ _meta: meta }), session)

const envelope = (more: object = {}): object => ({
  [`${META}protocolVersion`]: '2026-07-28',
  [`${META}clientCapabilities`]: {},
  ...more,
})

function refused(faced: Faced): readonly [number, string] {
  assert.equal(faced.kind, 'refused')
  return faced.kind === 'refused' ? [faced.rpc, faced.message] : [0, '']
}

test('a request is modern by its own envelope, in a legacy session too', () => {
  const expected = { era: 'modern', version: '2026-07-28', level: null, token: null, ...NONE }
  assert.deepEqual(face(envelope()), { kind: 'face', face: expected })
  assert.deepEqual(face(envelope(), SESSION), { kind: 'face', face: expected })
})

test("a request without an envelope speaks the session's revision, and needs a session", () => {
  const expected = { era: 'legacy', version: '2025-06-18', level: null, token: 't', ...NONE }
  assert.deepEqual(face({ progressToken: 't' }, SESSION), { kind: 'face', face: expected })
  for (const params of [null, admitted({}), admitted({ _meta: {} })]) {
    const [rpc, message] = refused(readFace(params, null))
    assert.equal(rpc, -32602)
    assert.match(message, /io\.modelcontextprotocol\/protocolVersion/)
  }
})

test('what is missing or wrong in an envelope is named', () => {
  const none = envelope({ [`${META}clientCapabilities`]: undefined })
  assert.match(refused(face(none))[1], /lacks io\.modelcontextprotocol\/clientCapabilities/)
  assert.equal(refused(face(envelope({ [`${META}protocolVersion`]: 20260728 })))[0], -32602)
  assert.match(refused(face(envelope({ [`${META}logLevel`]: 'loud' })))[1], /logLevel/)
  assert.match(refused(face(envelope({ [`${META}clientInfo`]: { name: 'x' } })))[1], /clientInfo/)
  assert.match(refused(face(envelope({ progressToken: 1.5 })))[1], /progressToken/)
  assert.match(refused(face(envelope({ progressToken: 'p'.repeat(257) })))[1], /progressToken/)
  assert.equal(refused(readFace(admitted({ _meta: 'x' }), SESSION))[0], -32602)
})

test('an unknown revision is refused with those that are spoken', () => {
  for (const version of ['2025-11-25', '2099-01-01', '']) {
    const faced = face(envelope({ [`${META}protocolVersion`]: version }))
    assert.ok(faced.kind === 'refused')
    assert.equal(faced.rpc, -32022)
    assert.equal(
      JSON.stringify(faced.data),
      `{"supported":["2026-07-28"],"requested":"${version}"}`,
    )
  }
})

test('the handshake never agrees on a revision without one', () => {
  for (const version of ['2025-11-25', '2025-06-18', '2025-03-26']) {
    assert.equal(negotiated(version), version)
  }
  for (const version of ['2026-07-28', '2024-11-05', '', 'x']) {
    assert.equal(negotiated(version), '2025-11-25')
  }
})

test('log levels are ordered and unknown ones never pass', () => {
  assert.ok(atLeast('warning', 'warning') && atLeast('emergency', 'debug'))
  assert.ok(!atLeast('info', 'warning') && !atLeast('loud', 'debug') && !atLeast(5, 'debug'))
})
