// A fault in any write, sync, rename, link and unlink of one write_note: what was answered was true, the log
// verifies, and the same call again leaves exactly one note.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { verifier } from '../../src/ledger/chain.ts'
import {
  COMPILED,
  type Message,
  MODERN,
  newPlace,
  onMessages,
  type Place,
  ROOT,
  start,
} from './peer.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'
const STRACE = '/usr/bin/strace'
const skip = existsSync(STRACE) ? false : 'needs strace (Debian: apt-get install strace)'

const CALLS = ['fsync', 'fdatasync', 'link', 'rename', 'unlink', 'pwrite64', 'write'] as const
const FAULTS = ['error=EIO', 'error=ENOSPC', 'signal=KILL'] as const
const NOTE = { request_id: 'req-fault-0001', text: 'once' }

type Run = { readonly answer: Message | null; readonly log: string }

/** One start of the server under strace, one write_note, and its end. `inject` empty: only counted. */
async function traced(place: Place, call: string, inject: string): Promise<Run> {
  const log = join(place.dir, 'strace.log')
  const what = inject === '' ? [] : ['-e', `inject=${call}:${inject}`]
  // Faster, but with it strace 6.1 does not deliver signals.
  const fast = inject.startsWith('signal') ? [] : ['--seccomp-bpf']
  const child = spawn(
    STRACE,
    [
      ...['-f', '-y', '-qq', ...fast, '-o', log, '-e', `trace=${call}`, ...what],
      ...[process.execPath, '--no-warnings', join(ROOT, 'examples/gated-fs/server.ts')],
    ],
    {
      cwd: place.dir,
      // Whatever is compiled was kept by the start that made the place: nothing more of it is written.
      env: { ...process.env, NODE_COMPILE_CACHE: COMPILED, LEDGER_DIR: place.ledger },
      stdio: ['pipe', 'pipe', 'ignore'],
    },
  )
  let answer: Message | null = null
  onMessages(child.stdout, (message) => {
    answer = message
    child.stdin.end()
  })
  child.stdin.on('error', () => undefined)
  const params = { name: 'write_note', arguments: NOTE, _meta: MODERN }
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })}\n`)
  await new Promise((resolve) => child.once('close', resolve))
  return { answer, log: readFileSync(log, 'utf8') }
}

const notesIn = ({ ledger }: Place): readonly string[] =>
  readdirSync(join(ledger, 'notes'))
    .filter((name) => name.endsWith('.json'))
    .map((name) => readFileSync(join(ledger, 'notes', name), 'utf8'))
    .filter((text) => text.includes(NOTE.request_id))

function verified({ ledger }: Place): readonly Record<string, unknown>[] {
  const walk = verifier()
  const lines = readFileSync(join(ledger, 'audit.jsonl'), 'utf8').trimEnd().split('\n')
  for (const [at, line] of lines.entries()) assert.equal(walk.push(line), null, `line ${at + 1}`)
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** A ledger that is there already, so that only the start, the call and the end are met by the fault. */
async function prepared(): Promise<Place> {
  const place = newPlace()
  const peer = start('inside', place)
  await peer.call('read_ledger', {})
  await peer.end()
  return place
}

const isGood = (answer: Message | null): boolean =>
  answer?.result !== undefined && answer.result.isError !== true

/** True when the fault was met. */
async function injected(call: string, fault: string, n: number): Promise<boolean> {
  const where = `${call} ${n} ${fault}`
  const place = await prepared()
  const { answer, log } = await traced(place, call, `${fault}:when=${n}`)
  const before = notesIn(place)
  const good = isGood(answer)
  if (good) assert.equal(before.length, 1, `an answered note is missing: ${where}`)
  const refusal = answer?.error?.data?.['eclusa/refusal']?.code
  if (refusal === 'not_recorded') assert.equal(before.length, 0, `it was sent: ${where}`)

  const again = start('inside', place)
  const repeated = await again.call('write_note', NOTE)
  await again.end()
  assert.ok(isGood(repeated), `${where}: ${JSON.stringify(repeated)}`)
  assert.equal(notesIn(place).length, 1, where)
  const outcomes = verified(place)
    .filter(({ request_id: key }) => key === NOTE.request_id)
    .map(({ outcome }) => outcome)
  assert.equal(outcomes[0] === 'pending' || outcomes[0] === 'not_executed', true, where)
  if (good) assert.ok(outcomes.includes('committed'), `an acknowledged record is missing: ${where}`)
  return fault === 'signal=KILL' ? answer === null : log.includes('INJECTED')
}

test(
  'a fault anywhere in one write_note costs no truth, no record and no second note',
  { skip },
  async (t) => {
    const work: (() => Promise<boolean>)[] = []
    for (const call of CALLS) {
      const { log } = await traced(await prepared(), call, '')
      const total = log.split('\n').filter((line) => line.includes(`${call}(`)).length
      const every = LONG ? 1 : call === 'write' ? 29 : call === 'pwrite64' ? 11 : 2
      for (let at = 0; at < total * FAULTS.length; at += every) {
        const fault = FAULTS[at % FAULTS.length] ?? ''
        const n = 1 + Math.floor(at / FAULTS.length)
        work.push(() => injected(call, fault, n))
      }
    }
    const planned = work.length
    let met = 0
    const lane = async (): Promise<void> => {
      for (let one = work.pop(); one !== undefined; one = work.pop()) if (await one()) met++
    }
    await Promise.all([lane(), lane()])
    t.diagnostic(`${met} faults met of ${planned} planned`)
    assert.ok(met > planned / 3, `${met} of ${planned}`)
  },
)
