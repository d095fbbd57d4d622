// Literals that others build on: a change of any of them is meant, or this test is red.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import type { Call, Method } from '../src/call.ts'
import type { Code } from '../src/decision.ts'
import { EXIT, exitStatus, Fault, type FaultCode } from '../src/fault.ts'
import { object } from '../src/json.ts'
import { FORMAT_VERSION, GENESIS_PREV } from '../src/ledger/entry.ts'
import { DEFAULT_LIMITS } from '../src/policy/limits.ts'
import { refusalOf, unrecorded } from '../src/refusal.ts'

const text = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8')

/** The literals of a union type as its file writes them, sorted. */
function literals(path: string, type: string): string[] {
  const declaration = new RegExp(`export type ${type} =([^\\n]*(?:\\n  \\|[^\\n]*)*)`).exec(
    text(path),
  )
  assert.ok(declaration?.[1] !== undefined, `${path} declares ${type}`)
  return [...declaration[1].matchAll(/'([^']+)'/g)].map(([, literal = '']) => literal).sort()
}

/** How a refused tools/call of `t` is told: as error -32602 or as a result, with which sentence. The field
 *  is `/f`. */
const REFUSALS: Readonly<Record<Code, readonly ['error' | 'result', string]>> = {
  client_unknown: ['error', 'tool denied: t'],
  tool_denied: ['error', 'tool denied: t'],
  tool_unknown: ['error', 'tool denied: t'],
  definition_waits: ['error', 'tool denied: t'],
  definition_changed: ['error', 'tool denied: t'],
  resource_denied: ['error', 'resource denied: t'],
  prompt_denied: ['error', 'prompt denied: t'],
  arguments_denied: ['error', 'arguments denied: t'],
  number_not_exact: ['error', 'arguments denied: t'],
  method_unknown: ['error', 'method not found: t'],
  malformed: ['error', 'the message is malformed; send one JSON-RPC 2.0 object'],
  arguments_invalid: [
    'result',
    'the arguments of t do not fit its schema at /f; correct them and call again',
  ],
  key_missing: ['result', 't needs an idempotency key; send one and call again'],
  key_invalid: [
    'result',
    'the idempotency key of t must be 1 to 200 printable ASCII characters; send another',
  ],
  key_conflict: [
    'result',
    'this idempotency key was used for t with other arguments; use a new one for a new call',
  ],
  key_expired: [
    'result',
    'this idempotency key of t is too old to be known; check the state, then use a new one',
  ],
  busy: ['result', 't is already running under this key; ask again with the same key'],
  outcome_unknown: [
    'result',
    'whether t was executed is not known; check the state before you call it again',
  ],
  upstream_down: ['result', 'the server of t is not available and nothing was sent; try again'],
  timeout: [
    'result',
    't did not answer in time and may have been executed; check the state before you call it again',
  ],
  cancelled: ['result', 't was cancelled'],
  not_bridged: [
    'result',
    't asks for something that cannot be passed on yet; check the state before you call it again',
  ],
  ask_denied: [
    'result',
    't asks the client for something that policy does not allow; check the state before you call it again',
  ],
  capability_missing: [
    'error',
    't asks for something that this client did not declare; declare the capability and call again',
  ],
  state_invalid: [
    'error',
    'the state of t is not valid any more; call it again without requestState and inputResponses',
  ],
  client_revoked: [
    'result',
    'the token of this client is revoked or expired; ask the operator for another',
  ],
  upstream_login: ['result', 'the server of t needs a login; set its header in the configuration'],
  answer_refused: [
    'result',
    't was sent, but its answer could not be admitted; check the state before you call it again',
  ],
  too_many_calls: ['result', 'too many calls at once; wait for one to end and try again'],
  draining: ['result', 'the gateway is stopping and nothing was sent; try again later'],
  not_recorded: ['error', 'nothing was sent, because it could not be recorded; try again later'],
  outcome_not_recorded: [
    'error',
    'it was sent, but its outcome could not be recorded; ask again with the same key, never a new one',
  ],
}

const CODES = Object.keys(REFUSALS).sort() as Code[]
/** The codes that a decision or an attempt may end in; the store's own two are told another way. */
const DECIDED = CODES.filter((code) => !code.endsWith('not_recorded'))

/** For the record only: the agent is not to know why a tool is not there. */
const HIDDEN = new Set<Code>(['tool_unknown', 'definition_waits', 'definition_changed'])
const toldAs = (code: Code): Code => (HIDDEN.has(code) ? 'tool_denied' : code)

const callOf = (method: Method): Call => ({
  method,
  client: { name: 'p', profile: 'p', identity: 'declared', attributes: {} },
  asked: 't',
  target: null,
  args: object({}),
  params: object({}),
  capabilities: object({}),
  retry: null,
  task: null,
  key: null,
  transport: 'stdio',
  trace: null,
  receivedUs: 0,
})

test('the refusal codes are these', () => {
  assert.deepEqual(literals('src/decision.ts', 'Code'), CODES)
})

/** Of a denial; one has a number of its own in the newest revision. */
const rpcOf = (code: Code): number => (code === 'capability_missing' ? -32021 : -32602)

test('each refusal of a tool call is told so, word for word', () => {
  const failure = { rule: 'x', field: '/f', reason: null, message: null }
  for (const code of DECIDED) {
    const refusal = { code: toldAs(code) }
    const reply = refusalOf(callOf('tools/call'), { ...failure, code }, refusal)
    assert.ok(reply.kind === 'refused')
    const [as, sentence] = REFUSALS[code]
    assert.deepEqual([reply.as, reply.sentence, reply.refusal], [as, sentence, refusal], code)
    if (as === 'error') assert.equal(reply.rpc, rpcOf(code), code)
  }
})

test('what is no tool call is always refused as an error: denials with their number, all else -32603', () => {
  for (const method of ['resources/read', 'prompts/get', 'completion/complete'] as const) {
    for (const code of DECIDED) {
      const failure = { code, rule: 'x', field: null, reason: null, message: null }
      const reply = refusalOf(callOf(method), failure, { code: toldAs(code) })
      assert.ok(reply.kind === 'refused')
      assert.equal(reply.as, 'error', code)
      assert.equal(reply.rpc, REFUSALS[code][0] === 'error' ? rpcOf(code) : -32603, code)
    }
  }
})

test('what could not be recorded is an error -32603, before and after sending', () => {
  for (const code of ['not_recorded', 'outcome_not_recorded'] as const) {
    const reply = unrecorded(code)
    assert.ok(reply.kind === 'refused')
    assert.deepEqual([reply.as, reply.rpc, reply.sentence], ['error', -32603, REFUSALS[code][1]])
  }
})

test('the exit statuses are these', () => {
  assert.deepEqual(EXIT, {
    ok: 0,
    finding: 1,
    usage: 2,
    unknownFormat: 3,
    upstream: 69,
    internal: 70,
    state: 73,
  })
})

const FAULTS: Readonly<Record<FaultCode, number>> = {
  usage: 2,
  config_invalid: 2,
  state_refused: 73,
  state_tampered: 1,
  not_recorded: 70,
  outcome_not_recorded: 70,
  sync_failed: 70,
  upstream_failed: 69,
  internal: 70,
}

test('the faults are these, each with its exit status', () => {
  assert.deepEqual(literals('src/fault.ts', 'FaultCode'), Object.keys(FAULTS).sort())
  for (const [code, status] of Object.entries(FAULTS)) {
    assert.equal(exitStatus(code as FaultCode), status, code)
    assert.equal(new Fault(code as FaultCode, 'x').name, 'Fault')
  }
})

test('the exit statuses and faults of the README are the real ones', () => {
  for (const page of ['README.md', 'README.pt-BR.md']) {
    const told = [...text(page).matchAll(/^\| (\d+) \| /gm)].map(([, status]) => Number(status))
    assert.deepEqual(told, Object.values(EXIT), page)
  }
})

test('the words of a record are these', () => {
  const words = (type: string): string => literals('src/ledger/entry.ts', type).join(' ')
  assert.equal(
    words('EntryKind'),
    'ask call client count genesis intent lease malformed outcome pin policy recovery start stop view',
  )
  assert.equal(
    words('Outcome'),
    'answered awaiting committed failed late none not_executed observed pending replay unknown unsent',
  )
  assert.equal(words('Verdict'), 'continue none rolled_back stop')
  assert.equal(FORMAT_VERSION, 1)
  assert.equal(GENESIS_PREV, '0000000000000000000000000000000000000000000000000000000000000000')
})

test('the named limits are these', () => {
  assert.deepEqual(DEFAULT_LIMITS, {
    requestBytes: 4_194_304,
    upstreamBytes: 16_777_216,
    depth: 64,
    keys: 10_000,
    nodes: 200_000,
    stderrLineBytes: 8192,
    calls: 64,
    storedAnswerBytes: 262_144,
    keyDays: 30,
    keyRefusedDays: 30,
    listItems: 10_000,
    listPages: 1000,
  })
})

test('the public names of the library are these', async () => {
  assert.deepEqual(Object.keys(await import('../src/index.ts')).sort(), [
    'EXIT',
    'Fault',
    'createGate',
  ])
  assert.deepEqual(Object.keys(await import('../src/sdk/guard.ts')).sort(), [
    'guard',
    'guardCalls',
    'guardHandlers',
    'guardLists',
  ])
})

test('the package offers these entrances and no other', () => {
  const manifest: {
    readonly exports: object
    readonly bin: object
    readonly engines: object
  } = JSON.parse(text('package.json'))
  assert.deepEqual(manifest.exports, {
    '.': { types: './dist/index.d.ts', default: './dist/index.js' },
    './sdk': { types: './dist/sdk/guard.d.ts', default: './dist/sdk/guard.js' },
    './package.json': './package.json',
  })
  assert.deepEqual(manifest.bin, { eclusa: 'bin/eclusa.cjs' })
  assert.deepEqual(manifest.engines, { node: '>=22.18' })
})
