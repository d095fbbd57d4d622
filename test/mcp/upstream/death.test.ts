// Why a server does not run: also one that says nothing is explained by what it was not given.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { discover } from '../../../src/cli/discover.ts'
import { LONG } from '../../cases/harness.ts'
import { config, start, until } from './rig.ts'

const SILENT = ['sleep', '600']
const NETWORK = { HTTPS_PROXY: 'http://proxy.example:3128', NODE_EXTRA_CA_CERTS: '/ca.pem' }
const environment = { PATH: process.env['PATH'], ...NETWORK, OTHER_THING: 'x', NO_PROXY: 'x' }

test('a server that answers nothing is explained by the ways to the network that it was not given', async (t) => {
  const rig = start(t, [config('s', { command: SILENT, probeMs: 100 })], { environment })
  await until(() => rig.explain('s') !== null)
  assert.equal(
    rig.explain('s'),
    'it does not answer initialize; it was not given HTTPS_PROXY, NODE_EXTRA_CA_CERTS: ' +
      'add pass_env: [HTTPS_PROXY, NODE_EXTRA_CA_CERTS], or --env with each name',
  )
  assert.doesNotMatch(rig.said.join('\n'), /proxy\.example|OTHER_THING/)
})

test('whoever waits for a server that answers nothing hears why as soon as that is known', async (t) => {
  const rig = start(t, [config('s', { command: SILENT, probeMs: 100 })], { environment })
  assert.equal(await rig.hello('s'), null)
  assert.match(rig.explain('s') ?? '', /HTTPS_PROXY/)
})

test('a server that was given its ways to the network, or that answers, is not told of them', async (t) => {
  const passEnv = ['HTTPS_PROXY', 'NODE_EXTRA_CA_CERTS']
  const given = config('s', { command: SILENT, probeMs: 100, passEnv })
  const ends = config('e', { command: ['false'] })
  const rig = start(t, [given, ends], { environment })
  await until(() => rig.explain('s') !== null && rig.explain('e') !== null)
  assert.equal(rig.explain('s'), 'it does not answer initialize')
  assert.equal(rig.explain('e'), 'it ended with status 1')
})

test(
  'the short form tells why a command that answers nothing lists no tools',
  { skip: !LONG && 'takes half a minute' },
  async () => {
    const said: string[] = []
    const io = { out: assert.fail, err: (line: string) => void said.push(line), env: environment }
    await assert.rejects(discover(SILENT, [], { ...io, cwd: process.cwd() }), /HTTPS_PROXY/)
  },
)
