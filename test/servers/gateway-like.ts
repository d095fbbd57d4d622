// A process that keeps one server, for the tests of how it ends: exit | hang | starve, then the command.

import { closeSync, openSync } from 'node:fs'

import { call, config, dataOf } from '../mcp/upstream/rig.ts'
import { startUpstreams } from '../../src/mcp/upstream/upstreams.ts'

const [mode = '', ...command] = process.argv.slice(2)

function keep(): ReturnType<typeof startUpstreams> {
  return startUpstreams([config('s', { command })], {
    limits: {
      upstreamBytes: 1_000_000,
      depth: 64,
      keys: 1000,
      nodes: 100_000,
      stderrLineBytes: 8192,
      listItems: 1000,
      listPages: 10,
    },
    client: { name: 'eclusa', version: '0.0.0' },
    say: () => {},
    environment: process.env,
    principals: 'one',
  })
}

async function starve(): Promise<void> {
  const held: number[] = []
  try {
    for (;;) held.push(openSync('/dev/null', 'r'))
  } catch {
    // None is left.
  }
  const rig = keep()
  const made = await call(rig, 'echo', { text: 'x' })
  for (const fd of held) closeSync(fd)
  const why = rig.explain('s') ?? ''
  console.log(made.kind, 'code' in made ? made.code : '')
  console.log('its words:', why.replace(/^.*: /, ''))
  for (;;) {
    const next = await call(rig, 'echo', { text: 'x' })
    if (next.kind !== 'answered') continue
    console.log('answered')
    break
  }
  await rig.stop()
}

if (mode === 'starve') await starve()
else {
  const rig = keep()
  console.log(String(dataOf(await call(rig, 'pid'))['pid']))
  if (mode === 'exit') process.exit(70)
}
