// `eclusa serve` as an operator runs it: start, tokens, signals and exit statuses of the real program.

import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { roomy } from '../pace.ts'
import { folder } from '../folder.ts'
import { META26, SERVER } from '../mcp/front/desk.ts'
import { COMPILED } from '../servers/compiled.ts'
import { eventually, modernHeaders, reading } from '../mcp/http/rig.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
const LISTENS = /serving (http:\/\/127\.0\.0\.1:\d+)\/mcp/

type Served = {
  readonly child: ChildProcess
  readonly dir: string
  readonly file: string
  readonly url: string
  readonly err: () => string
  readonly ended: Promise<readonly unknown[]>
}

function configured(more: object): { readonly dir: string; readonly file: string } {
  const dir = folder('eclusa-serve-')
  const file = join(dir, 'eclusa.json')
  const config = {
    version: 2,
    upstreams: { up: { command: [process.execPath, SERVER], env: COMPILED } },
    profiles: { agent: { allow: ['up/echo', 'up/after', 'up/hang'] } },
    ...more,
  }
  writeFileSync(file, JSON.stringify(config))
  return { dir, file }
}

const env = (): NodeJS.ProcessEnv => ({
  PATH: process.env['PATH'],
  ...COMPILED,
})

const started = (file: string, ...args: readonly string[]): ChildProcess =>
  spawn(process.execPath, [MAIN, 'serve', '--config', file, ...args], {
    env: env(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })

async function served(t: TestContext, more: object): Promise<Served> {
  const { dir, file } = configured(more)
  const child = started(file, '--port', '0')
  const ended = once(child, 'exit')
  t.after(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
    await ended
  })
  let err = ''
  let out = ''
  child.stderr?.on('data', (chunk: Buffer) => void (err += chunk.toString()))
  child.stdout?.on('data', (chunk: Buffer) => void (out += chunk.toString()))
  await eventually('it listens', () => {
    assert.equal(child.exitCode, null, err)
    return LISTENS.test(err)
  })
  assert.equal(out, '')
  return { child, dir, file, url: LISTENS.exec(err)?.[1] ?? '', err: () => err, ended }
}

const ask = (
  url: string,
  method: string,
  params: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> =>
  fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { ...modernHeaders(method, params), ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: META26 } }),
  })

const cli = (...args: readonly string[]): string =>
  execFileSync(process.execPath, [MAIN, ...args], { env: env(), stdio: ['ignore', 'pipe', 'pipe'] })
    .toString()
    .trim()

test('a client that was added is served, until it is revoked; the token is nowhere', async (t) => {
  const one = await served(t, {})
  await eventually('it says how to add one', () =>
    one.err().includes('no client is known yet; run: eclusa client add'),
  )
  const state = join(one.dir, '.eclusa')
  assert.equal((await ask(one.url, 'tools/list')).status, 401)
  const token = cli('client', 'add', 'ana', '--profile', 'agent', '--state', state)
  const mine = { Authorization: `Bearer ${token}` }
  await eventually(
    'it is known',
    async () => (await ask(one.url, 'tools/list', {}, mine)).status === 200,
  )
  const said = await ask(one.url, 'tools/call', { name: 'echo', arguments: { text: 'olá' } }, mine)
  assert.match(await said.text(), /olá/)
  const listen = await reading(`${one.url}/mcp`, {
    method: 'POST',
    headers: { ...modernHeaders('subscriptions/listen'), ...mine },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 2,
      method: 'subscriptions/listen',
      params: { notifications: { toolsListChanged: true }, _meta: META26 },
    }),
  })
  await listen.until((events) => events.length > 0)
  const from = performance.now()
  cli('client', 'revoke', 'ana', '--state', state)
  await listen.ended
  assert.equal((await ask(one.url, 'tools/list', {}, mine)).status, 401)
  assert.ok(performance.now() - from < roomy(5_000))
  const audit = readFileSync(join(state, 'audit.jsonl'), 'utf8')
  assert.match(audit, /"client":"ana"[^\n]*"transport":"http"/)
  assert.doesNotMatch(audit + one.err(), new RegExp(token))
})

test('SIGTERM refuses new work, lets a call finish, and ends with 0', async (t) => {
  const one = await served(t, { anonymous: 'agent', drain: '60s' })
  await eventually('it warns', () =>
    one.err().includes('whoever reaches this address is served as profile agent'),
  )
  const call = ask(one.url, 'tools/call', {
    name: 'after',
    arguments: { ms: 6_000, label: 'late' },
  })
  const audit = join(one.dir, '.eclusa/audit.jsonl')
  await eventually('the call is in the ledger', () =>
    readFileSync(audit, 'utf8').includes('"intent"'),
  )
  one.child.kill('SIGTERM')
  await eventually('it says so', () => one.err().includes('stopping'))
  assert.equal((await ask(one.url, 'tools/list')).status, 503)
  assert.match(await (await call).text(), /late/)
  assert.deepEqual(await one.ended, [0, null])
  const last = readFileSync(audit, 'utf8').trim().split('\n').at(-1) ?? ''
  assert.match(last, /"kind":"stop"/)
})

test('a second signal ends the wait, and what was in flight is in the ledger as not known', async (t) => {
  const one = await served(t, { anonymous: 'agent', drain: '60s' })
  const call = ask(one.url, 'tools/call', { name: 'hang', arguments: {} }).then(
    ({ status }) => status,
    () => 'cut',
  )
  const audit = join(one.dir, '.eclusa/audit.jsonl')
  await eventually('the call is in the ledger', () =>
    readFileSync(audit, 'utf8').includes('"intent"'),
  )
  one.child.kill('SIGTERM')
  await eventually('it says so', () => one.err().includes('stopping'))
  one.child.kill('SIGTERM')
  assert.deepEqual(await one.ended, [0, null])
  // A clean end without an answer would have the client wait for one.
  assert.equal(await call, 'cut')
  assert.match(readFileSync(audit, 'utf8'), /"outcome":"unknown"/)
})

async function exits(file: string, ...args: readonly string[]): Promise<readonly [number, string]> {
  const child = started(file, ...args)
  let err = ''
  child.stderr?.on('data', (chunk: Buffer) => void (err += chunk.toString()))
  const [status] = (await once(child, 'close')) as [number]
  return [status, err]
}

test('an address that is in use, or cannot be had, is exit 2 and a sentence', async (t) => {
  const other = createServer()
  other.listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as AddressInfo
  const { file } = configured({ anonymous: 'agent' })
  const [status, err] = await exits(file, '--port', String(port))
  assert.equal(status, 2)
  assert.match(err, new RegExp(`cannot listen on 127.0.0.1:${port} \\(it is in use\\)`))
  assert.equal((await exits(file, '--port', 'x'))[0], 2)
})

test('whoever sends no token is never taken for a client that bears the name of the profile', async (t) => {
  const one = await served(t, {
    anonymous: 'agent',
    upstreams: { up: { command: [process.execPath, SERVER, '--era', 'legacy'] } },
    tools: { 'up/mutate': { effect: 'write', key: { at: '/request_id' } } },
    profiles: { agent: { allow: ['up/mutate', 'up/pid'] } },
  })
  const state = join(one.dir, '.eclusa')
  const token = cli('client', 'add', 'agent', '--profile', 'agent', '--state', state)
  const mine = { Authorization: `Bearer ${token}` }
  await eventually(
    'it is known',
    async () => (await ask(one.url, 'tools/list', {}, mine)).status === 200,
  )
  const write = { name: 'mutate', arguments: { request_id: 'key-00000001', text: 'x' } }
  const pid = { name: 'pid', arguments: {} }
  const told: string[] = []
  for (const headers of [mine, {}]) {
    await (await ask(one.url, 'tools/call', write, headers)).text()
    told.push(
      /"pid":\d+/.exec(await (await ask(one.url, 'tools/call', pid, headers)).text())?.[0] ?? '',
    )
  }
  assert.ok(told[0] !== '' && told[1] !== '' && told[0] !== told[1], told.join())
  const audit = readFileSync(join(state, 'audit.jsonl'), 'utf8')
  assert.doesNotMatch(audit, /"outcome":"replay"/)
})

test('a profile that asks for a token cannot be anonymous', async () => {
  const { file } = configured({
    anonymous: 'agent',
    profiles: { agent: { allow: ['up/echo'], token: 'required' } },
  })
  const [status, err] = await exits(file, '--port', '0')
  assert.equal(status, 2)
  assert.match(err, /anonymous: agent asks for a token/)
})

test('without a file there is nothing to serve', async () => {
  const child = spawn(process.execPath, [MAIN, 'serve'], { stdio: 'ignore', env: env() })
  assert.deepEqual(await once(child, 'exit'), [2, null])
})
