// A clock before the ledger, through the program: exit 73, the command in its words, and the start after it.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'

import { request } from '../cases/wire.ts'
import { menu, quote, SERVER, shell } from './explain-shell.ts'

const AHEAD = '--import data:text/javascript,const%20n=Date.now;Date.now=()=>n()+7200000'

test('a session two hours ahead is killed: the next is refused until the printed command was run', async (t) => {
  const sh = shell(t)
  const server = [process.execPath, SERVER, '--menu', menu('a')].map(quote).join(' ')
  const line = `eclusa stdio --read a -- ${server}`
  const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
    cwd: sh.folder,
    env: { ...sh.env, NODE_OPTIONS: AHEAD },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const ended = new Promise((resolve) => child.once('close', resolve))
  const refused = request('modern', 1, 'tools/call', { name: 'b', arguments: {} })
  child.stdin.write(`${JSON.stringify(refused)}\n`)
  for await (const text of child.stdout.setEncoding('utf8')) {
    assert.match(String(text), /tool denied/)
    break
  }
  child.kill('SIGKILL')
  await ended

  for (let again = 0; again < 2; again++) {
    const ran = sh.run(line)
    assert.equal(ran.status, 73, ran.err)
    assert.equal(ran.out, '')
    const [, command = ''] = /run: (eclusa clock accept --state \S+)$/m.exec(ran.err) ?? []
    assert.equal(command, `eclusa clock accept --state ${sh.short}`)
    // What only reads goes on.
    if (again === 0) assert.equal(sh.run(`eclusa audit verify ${sh.short}`).status, 0)
    else assert.equal(sh.run(command).status, 0)
  }
  const after = sh.run(line)
  assert.equal(after.status, 0, after.err)
  const tail = sh.run('eclusa audit tail --json -n 50').out
  assert.match(tail, /"found":"clock_behind".*"ledger_ts":\d+/)
  assert.equal(sh.run(`eclusa audit verify ${sh.short}`).status, 0)
})
