// Secrets in arguments, in what a server prints and in its environment stay out of logs and audit.

import assert from 'node:assert/strict'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { type Gate, says, startGate, stateFiles } from './harness.ts'
import { callsOf } from './menu.ts'
import { type Bag, SIDES, refusalCode, request } from './wire.ts'

const ARGS: Bag = {
  user: { PassWord: 'CANARY1' },
  headers: [{ Authorization: 'Bearer CANARY2' }],
  q: 'password=CANARY3',
  n: { token: 123_456_789 },
  text: 'CANARY7',
}
const CANARIES = /CANARY|123456789/
const SERVER_SECRET = 'CANARY5-of-the-server'

function assertClean(gate: Gate): void {
  assert.doesNotMatch(gate.errors(), CANARIES)
  for (const file of stateFiles(gate.folder)) {
    assert.doesNotMatch(readFileSync(file, 'latin1'), CANARIES, file)
  }
}

for (const [front, era] of SIDES) {
  test(`${front} ${era}: no argument, allowed, refused or malformed, is in any file or line`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      tools: {
        'up/slow': { effect: 'write', args: { properties: { text: { enum: ['x'] } } } },
        'up/after': { effect: 'read', args: { properties: { user: { type: 'string' } } } },
        'up/argv': { effect: 'write', key: { at: '/q' } },
      },
      profile: { rules: [{ tool: 'up/cwd', require: 'args.text == "x"' }] },
    })
    assert.equal((await gate.call('echo', ARGS)).result?.isError, undefined)
    for (const name of ['slow', 'after', 'cwd', 'nothing', 'wipe']) {
      assert.notEqual(refusalCode(await gate.call(name, ARGS)), undefined, name)
    }
    // Names and values that no schema knows are the agent's own text too.
    await gate.call('after', { CANARY8: 1, user: { CANARY9: 'x' } })
    const params = { name: 'greet', arguments: { name: 'CANARY10' } }
    assert.equal((await gate.request('prompts/get', params)).error, undefined)
    const ref = { type: 'ref/prompt', name: 'greet' }
    const argument = { name: 'name', value: 'CANARY11' }
    await gate.request('completion/complete', { ref, argument })
    const line = JSON.stringify(request(era, 1, 'tools/call', { name: 'echo', arguments: ARGS }))
    await gate.write(`${line.slice(0, -1)},"CANARY12":1}\n`)
    await gate.write(`${line.replace('"q"', '"text":"CANARY13","q"')}\n`)
    await gate.write(`${line.slice(0, -2)}\n`)
    await gate.record('the last', () => {
      return gate.audit().filter(({ kind }) => kind === 'malformed').length === 3
    })
    await gate.stop()
    assertClean(gate)
  })

  test(`${front} ${era}: a digest cannot be guessed from a short secret, and an id ties its records together`, async (t) => {
    const digests: (string | null | undefined)[] = []
    for (let n = 0; n < 2; n++) {
      const gate = await startGate(t, { front, era })
      for (const text of ['1234', '1234', '1235']) await gate.call('echo', { text })
      const records = callsOf(gate, 'echo')
      digests.push(...records.map(({ args_digest: digest }) => digest))
      const ids = records.map((one) => one['operation'])
      assert.equal(new Set(ids).size, 3)
      assert.ok(ids.every((id) => /^[0-9a-f]{32}$/.test(String(id))))
    }
    // Within one ledger equal arguments are equal; in another one the same secret has another digest.
    assert.equal(digests[0], digests[1])
    assert.equal(new Set(digests).size, 4)
  })

  test(`${front} ${era}: what a server prints of its own secrets is masked, and its errors are not recorded`, async (t) => {
    const gate = await startGate(t, {
      front,
      era,
      env: { UP_TOKEN: SERVER_SECRET },
      upstreams: { up: { more: { env: { TOKEN: '${UP_TOKEN}' } } } },
    })
    await gate.call('stderr', { text: `my token is ${SERVER_SECRET}, said twice ${SERVER_SECRET}` })
    await gate.call('stderr', { text: 'a plain word' })
    const error = { code: -32_000, message: `login with ${SERVER_SECRET} failed` }
    await gate.call('refuse', error)
    await gate.call('fail', { message: error.message })
    await gate.call('crash', { when: 'before' })
    await gate.stop()
    await says(gate, /my token is \$TOKEN, said twice \$TOKEN/)
    await says(gate, /a plain word/)
    assertClean(gate)
  })

  test(`${front} ${era}: the state directory and all that is in it belong to one user only`, async (t) => {
    const gate = await startGate(t, { front, era })
    await gate.call('echo', { text: 'x' })
    assert.equal(statSync(join(gate.folder, 'state')).mode & 0o777, 0o700)
    for (const file of stateFiles(gate.folder)) {
      assert.equal(statSync(file).mode & 0o777, 0o600, file)
    }
    assert.ok(stateFiles(gate.folder).some((file) => file.endsWith('audit.jsonl')))
  })
}

test('a secret in the error of a server is redacted before the client reads it', { todo: 'part 3' })
test('http legacy: session ids are never logged, and a failing look-up does not show them', async (t) => {
  const gate = await startGate(t, { front: 'http', era: 'legacy' })
  await gate.call('echo', { text: 'x' })
  const id = gate.http.session() ?? assert.fail('there is no session')
  const body = JSON.stringify(request('legacy', 9, 'tools/list'))
  const asked = `CANARY-${id.slice(7)}`
  for (const headers of [{ 'mcp-session-id': asked }, { 'mcp-session-id': [id, id] }]) {
    const answer = await gate.http.exchange({ body, headers })
    assert.equal(answer.status, 404)
    assert.ok(!answer.text.includes(id) && !answer.text.includes(asked))
  }
  assert.equal((await gate.http.exchange({ verb: 'DELETE' })).status, 204)
  assert.equal((await gate.http.exchange({ body })).status, 404)
  await gate.stop()
  assertClean(gate)
  assert.ok(!gate.errors().includes(id))
  for (const file of stateFiles(gate.folder))
    assert.ok(!readFileSync(file, 'latin1').includes(id), file)
})
