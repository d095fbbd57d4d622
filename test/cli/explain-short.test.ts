// `eclusa explain` without a file: each command it prints is run by a shell, and the call passes after it.

import assert from 'node:assert/strict'
import { existsSync, rmSync } from 'node:fs'
import { test } from 'node:test'

import {
  denied,
  explained,
  menu,
  ONE,
  passed,
  quote,
  SERVER,
  shell,
  tool,
} from './explain-shell.ts'

test('short form: the command with the missing tool in it lets the call pass', async (t) => {
  const sh = shell(t)
  // Odd names, an odd argument, a reference, and a value that no record has.
  const names = ["it's", 'get_x', '-delete']
  const server = [
    'exec',
    process.execPath,
    SERVER,
    '--menu',
    menu(...names),
    'a b',
    '${HOME}',
    "c'd",
    'x\\y',
  ]
  const line = (flags: string): string =>
    `eclusa stdio ${flags} --env SECRET=hush -- ${['env', ...server.slice(1)].map(quote).join(' ')}`
  for (const [name, flags] of [
    ["it's", `--read nothing --write 'it'\\''s'`],
    ['get_x', '--read nothing,get_x'],
    ['-delete', '--read nothing --write=-delete'],
  ] as const) {
    denied(await sh.call(line('--read nothing'), 'tools/call', tool(name)))
    const { out, commands } = explained(sh, sh.short)
    const command = ONE(commands)
    assert.ok(command.includes(` ${flags} --env SECRET -- `), command)
    assert.match(out, /values of SECRET are not recorded/)
    assert.doesNotMatch(out, /hush/)
    assert.equal(passed(await sh.call(command, 'tools/call', tool(name), { SECRET: 'hush' })), true)
    if (name === '-delete') assert.match(out, /destroys/)
  }
})

test('short form in another state directory: the command names it', async (t) => {
  const sh = shell(t)
  const state = sh.file('a state')
  const line = `eclusa stdio --read a -- ${[process.execPath, SERVER, '--menu', menu('a', 'b')].map(quote).join(' ')}`
  denied(await sh.call(line, 'tools/call', tool('b'), { ECLUSA_STATE: state }))
  const command = ONE(explained(sh, state, { flags: `--state ${quote(state)}` }).commands)
  assert.ok(
    command.startsWith(`ECLUSA_STATE='${state}' eclusa stdio --read a --write b -- `),
    command,
  )
  assert.equal(passed(await sh.call(`env ${command}`, 'tools/call', tool('b'))), true)
  const kinds = sh.run(`eclusa audit tail --json --state ${quote(state)}`).out
  assert.match(kinds, /"name":"b".*"outcome":"committed"/)
})

test('short form: a profile that does not exist, a resource, a tool that no server has', async (t) => {
  const sh = shell(t)
  const server = [process.execPath, SERVER, '--menu', menu('a')].map(quote).join(' ')
  denied(await sh.call(`eclusa stdio --read a --profile x -- ${server}`, 'tools/call', tool('a')))
  const stranger = ONE(explained(sh, sh.short).commands)
  assert.equal(stranger, `eclusa stdio --read a -- ${server.replaceAll(/'([\w./-]+)'/g, '$1')}`)
  assert.equal(passed(await sh.call(stranger, 'tools/call', tool('a'))), true)

  denied(
    await sh.call(`eclusa stdio --read a -- ${server}`, 'resources/read', { uri: 'notes://a' }),
  )
  const draft = ONE(explained(sh, sh.short).commands)
  assert.match(draft, /^eclusa init -- /)
  assert.equal(sh.run(draft).status, 0)
  assert.ok(existsSync(sh.file('eclusa.yaml')))
  rmSync(sh.file('eclusa.yaml'))

  denied(await sh.call(`eclusa stdio --read a,none -- ${server}`, 'tools/call', tool('none')))
  const look = ONE(explained(sh, sh.short).commands)
  assert.match(sh.run(look).err, /1 tools, none allowed yet/)

  denied(
    await sh.call(look.replace('stdio', 'stdio --read a'), 'tools/call', tool('n'.repeat(200))),
  )
  const cut = explained(sh, sh.short)
  assert.match(cut.out, /longer than a record keeps: no command can be given/)
  assert.deepEqual(cut.commands, [])
})
