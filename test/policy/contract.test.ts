// Schemas of contracts, and where a server's own schema is asked.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { contractCheck } from '../../src/policy/arguments.ts'
import { codes, faultsOf, jsonObject, judged, told } from './ground.ts'

test("a contract's schema is closed to keywords that are not known, and faults have their place", async () => {
  const lines = await faultsOf(`version: 2
upstreams: { notes: { command: [x] } }
tools:
  notes/t:
    effect: read
    args:
      type: objekt
      required: [a]
      properties:
        a: { minLenght: 1 }
        b: { pattern: "(?=x)" }
        c: { path_under: ../x }
        d: { host_in: [Example.com] }
        e: { $ref: "https://x.test/s" }
profiles: { p: { allow: [notes/t] } }
`)
  assert.deepEqual(
    lines.filter((line) => line.includes('error')).map((line) => line.split(': ').slice(0, 1)[0]),
    ['e.yaml:7:13', 'e.yaml:10:25', 'e.yaml:11:23', 'e.yaml:12:26', 'e.yaml:13:23', 'e.yaml:14:20'],
    lines.join('\n'),
  )
})

test('path_under and host_in refuse values of other kinds than strings', async () => {
  const contract = 'args: { required: [p], properties: { p: { path_under: /srv/pub } } }'
  for (const args of ['{"p":["/etc/passwd"]}', '{"p":{"x":1}}', '{"p":null}', '{"p":1}', '{}']) {
    assert.equal(codes(await judged({ contract }, args)), 'arguments_denied', args)
  }
  assert.equal(codes(await judged({ contract }, '{"p":"/srv/pub/x"}')), 'allow')
})

test('a property that is constrained but not required is warned of', async () => {
  const lines = await faultsOf(`version: 2
upstreams: { notes: { command: [x] } }
tools: { notes/purge: { effect: read, args: { properties: { scope: { const: test } } } } }
profiles: { p: { allow: [notes/purge] } }
`)
  assert.match(lines[0] ?? '', /^e\.yaml:3:61: warning: `scope` is constrained but not required/)
})

test('a contract reads the server only where it has args or rules', async () => {
  const schema = '{"type":"object","properties":{"a":{"type":"string"}}}'
  assert.equal(codes(await judged({ schema }, '{"a":1,"b":2}')), 'allow')
  const rules = '{ tool: notes/t, require: "true" }'
  assert.deepEqual(told(await judged({ schema, rules }, '{"a":"x","b":2}')), [
    'arguments_invalid inputSchema /*',
  ])
  assert.deepEqual(told(await judged({ schema, contract: 'args: {}' }, '{"a":1}')), [
    'arguments_invalid inputSchema /a',
  ])
})

test('contracts have checks and faults of their own', () => {
  assert.ok('run' in contractCheck(jsonObject('{"type":"object"}')))
  assert.ok(
    !('run' in contractCheck(jsonObject('{"$schema":"http://json-schema.org/draft-07/schema#"}'))),
  )
})
