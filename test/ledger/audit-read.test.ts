// `audit show`, `tail` and `disclose` on a real ledger: everything shown, nothing that a terminal obeys.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { disclose, show, tail } from '../../src/cli/audit.ts'
import { call, fill, headOf, open, run, seqOf, sql } from './real.ts'

let root = ''
let state = ''

before(async () => {
  root = mkdtempSync(join(tmpdir(), 'eclusa-audit-'))
  state = join(root, 'state')
  const store = await open(state)
  await fill(store)
  await store.stop()
})
after(() => rmSync(root, { recursive: true }))

test('show gives every member, and the line itself with --json', async () => {
  const seq = seqOf(state, 'tool_denied')
  const denied = String(seq)
  const page = await run(show, denied, '--state', state)
  assert.equal(page.status, 0)
  assert.match(page.out, /^name: rm_rf\\u\{1b\}\[2J\\u\{a\}\{"seq":1\}$/m)
  assert.match(page.out, /^code: tool_denied$/m)
  const raw = await run(show, denied, '--state', state, '--json')
  const lines = readFileSync(join(state, 'audit.jsonl'), 'latin1').split('\n')
  assert.equal(raw.out, lines[seq])
  assert.equal((await run(tail, '--state', state, '-n', 'x')).status, 'usage')
  assert.equal((await run(show, '99999', '--state', state)).status, 'usage')
  assert.equal((await run(show, '01', '--state', state)).status, 'usage')
  assert.equal((await run(show, '--state', state)).status, 'usage')
})

test('tail gives the last records, none left out, nothing that a terminal obeys', async () => {
  const { seq } = headOf(state)
  const all = (await run(tail, '--state', state, '-n', '1000')).out.split('\n')
  assert.equal(all.length, seq + 1)
  for (const [at, line] of all.entries())
    assert.match(line, new RegExp(`^${at}  20\\d\\d-|^${at}  1970-`))
  assert.doesNotMatch(all.join(''), /[\p{C}]/u)
  const two = (await run(tail, '--state', state, '-n', '2')).out.split('\n')
  assert.deepEqual(two, all.slice(-2))
  const raw = (await run(tail, '--state', state, '-n', '1000', '--json')).out
  assert.equal(`${raw}\n`, readFileSync(join(state, 'audit.jsonl'), 'latin1'))
})

test('tail --follow prints what comes', async () => {
  const dir = join(root, 'followed')
  const store = await open(dir)
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const child = spawn(process.execPath, [main, 'audit', 'tail', '-n', '1', '-f', '--state', dir], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    assert.match(String((await lines.next()).value), / {2}start/)
    await store.append(call('came_later', 1))
    assert.match(String((await lines.next()).value), /came_later/)
  } finally {
    child.kill()
    await once(child, 'close')
    await store.stop()
  }
})

test('disclose proves the arguments of a record in any key order and no others', async () => {
  const seq = String(seqOf(state, '"kind":"intent"'))
  const file = join(root, 'args.json')
  writeFileSync(file, '{ "request_id": "note-0001", "text": "a\\u00e7ão" }\n')
  const right = await run(disclose, seq, '--args', file, '--state', state)
  assert.equal(right.status, 0, right.err)
  assert.match(right.out, /holds the arguments of record \d+ \(key of segment 000001\)/)
  const master = readFileSync(join(state, 'keys', 'master'), 'utf8').trim()
  assert.doesNotMatch(right.out + right.err, new RegExp(master))
  writeFileSync(file, '{"request_id":"note-0001","text":"acao"}')
  assert.equal((await run(disclose, seq, '--args', file, '--state', state)).status, 1)
  writeFileSync(file, '{"a":1,"a":2}')
  const bad = await run(disclose, seq, '--args', file, '--state', state)
  assert.equal(bad.status, 'usage')
  assert.match(bad.err, /duplicate_key/)
  writeFileSync(file, '{}')
  assert.equal((await run(disclose, '0', '--args', file, '--state', state)).status, 'usage')
})

test('an altered record is not shown as if it were one', async () => {
  const dir = join(root, 'altered')
  cpSync(state, dir, { recursive: true })
  const seq = seqOf(dir, '"kind":"intent"')
  sql(dir, `UPDATE entries SET line = replace(line, 'write_note', 'write_nota') WHERE seq = ${seq}`)
  assert.equal((await run(show, String(seq), '--state', dir)).status, 'state_tampered')
  sql(dir, `UPDATE entries SET line = 'rubbish' WHERE seq = ${seq}`)
  const all = (await run(tail, '--state', dir, '-n', '1000')).out.split('\n')
  assert.match(all[seq] ?? '', new RegExp(`^${seq} {2}BAD RECORD`))
})

test('a place that cannot be read is told in one line, without a stack', () => {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
  const loop = join(root, 'loop')
  symlinkSync(loop, loop)
  for (const verb of [
    ['audit', 'verify', loop],
    ['audit', 'tail', '--state', loop],
    ['pin', 'list', '--state', loop],
  ]) {
    const made = spawnSync(process.execPath, [main, ...verb], { encoding: 'utf8' })
    const words = made.stderr.split('\n').filter((line) => !line.startsWith('eclusa: state '))
    assert.deepEqual(words.length, 2, made.stderr)
    assert.match(
      made.stderr,
      /eclusa: cannot read .*loop\S* \(ELOOP\); check the path and who may read it\n$/,
    )
    assert.equal(made.status, 73)
  }
})
