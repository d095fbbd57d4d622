// A fault in every write, sync, rename, cut and unlink of one start, append, open, close and stop: nothing
// acknowledged is lost, the log verifies, and what was answered was true.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import { openSqlite } from '../../src/store/sqlite.ts'
import { draft, optionsFor, scratch, verified } from './scene.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'
const STRACE = '/usr/bin/strace'
const skip = existsSync(STRACE) ? false : 'needs strace (Debian: apt-get install strace)'

const SCRIPT = 'append first;open key-1 text;close key-1;append second;stop'
const CALLS = ['fsync', 'fdatasync', 'rename', 'link', 'unlink', 'ftruncate', 'pwrite64']
const FAULTS = ['error=EIO', 'error=ENOSPC', 'signal=KILL'] as const

// Whatever is compiled is kept once before anything is counted: a start that finds it all writes nothing more.
before(() => {
  const state = mkdtempSync(join(tmpdir(), 'eclusa-warm-'))
  const env = { ...process.env, ECLUSA_SCRIPT: SCRIPT }
  spawnSync(process.execPath, [join(import.meta.dirname, 'child.ts'), join(state, 'state')], {
    env,
  })
  rmSync(state, { recursive: true })
})

type Run = {
  readonly lines: readonly string[]
  readonly status: number | null
  readonly log: string
}

/** One process under strace; `write` is watched on the mirror alone, elsewhere it is Node's own. */
async function traced(
  t: { after(work: () => void): void },
  call: string,
  inject: string,
): Promise<Run & { readonly dir: string }> {
  const outside = scratch(t)
  const dir = join(outside, 'state')
  const log = join(outside, 'log')
  const only = call === 'write' ? ['-P', join(dir, 'audit.jsonl')] : []
  // Faster, but with it strace 6.1 does not deliver signals.
  const fast = inject.startsWith('signal') ? [] : ['--seccomp-bpf']
  const args = [
    '-f',
    '-y',
    ...fast,
    '-qq',
    '-o',
    log,
    ...only,
    '-e',
    `trace=${call},fsync,fdatasync`,
  ]
  const what = inject === '' ? [] : ['-e', `inject=${call}:${inject}`]
  const child = spawn(
    STRACE,
    [...args, ...what, process.execPath, join(import.meta.dirname, 'child.ts'), dir],
    {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { ...process.env, ECLUSA_SCRIPT: SCRIPT },
    },
  )
  let out = ''
  child.stdout.on('data', (chunk: Buffer) => (out += chunk.toString()))
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve))
  return { dir, lines: out.split('\n'), status, log: readFileSync(log, 'utf8') }
}

const count = (log: string, call: string): number =>
  log.split('\n').filter((line) => line.includes(` ${call}(`)).length

/** What was printed must be in the log; and what was refused was not done before it was refused. */
function checkAnswers(entries: readonly Entry[], lines: readonly string[], where: string): void {
  const has = (found: (entry: Entry) => boolean): boolean => entries.some(found)
  const said = (line: string): boolean => lines.includes(line)
  if (said('appended first'))
    assert.ok(
      has(({ name }) => name === 'first'),
      `first: ${where}`,
    )
  if (said('appended second'))
    assert.ok(
      has(({ name }) => name === 'second'),
      `second: ${where}`,
    )
  if (said('opened key-1 ticket'))
    assert.ok(
      has(({ kind }) => kind === 'intent'),
      `intent: ${where}`,
    )
  if (said('closed key-1'))
    assert.ok(
      has(({ outcome }) => outcome === 'committed'),
      `outcome: ${where}`,
    )
  const outcomes = entries.filter(({ kind }) => kind === 'outcome').map(({ outcome }) => outcome)
  const intents = entries.filter(({ kind }) => kind === 'intent').length
  assert.equal(outcomes.length, intents, `every intent has one outcome: ${where}`)
  if (said('opened key-1 ticket') && !said('closed key-1') && outcomes[0] !== 'committed') {
    assert.equal(outcomes[0], 'unknown', where)
  }
}

async function injected(
  t: { after(work: () => void): void },
  call: string,
  fault: string,
  n: number,
): Promise<boolean> {
  const where = `${call} ${n} ${fault}`
  const { dir, lines, status, log } = await traced(t, call, `${fault}:when=${n}`)
  // The number of writes differs a little from run to run: the last ones may not come.
  const hit = fault === 'signal=KILL' ? !lines.includes('stopped') : log.includes('INJECTED')
  // SQLite ignores a failed sync of a directory; the names that matter are synced by the store itself.
  const name = /sync\(\d+<[^>]*\/([^>/]+)>\) .*\(INJECTED\)/.exec(log)?.[1]
  if (hit && call.includes('sync') && fault !== 'signal=KILL' && name !== 'state') {
    const [earlier = '', later = ''] = log.split('(INJECTED)')
    const syncs = count(later, 'fsync') + count(later, 'fdatasync')
    // Before there is a write-ahead log SQLite itself rolls back the empty database, and the next start
    // makes everything anew.
    if (earlier.includes('ledger.db-wal')) assert.equal(syncs, 0, `a sync after it: ${where}`)
    assert.equal(status, 70, `${where}: ${lines.join(' | ')}`)
    assert.ok(
      lines.some((line) => /^(?:fatal|refused) sync_failed/.test(line)),
      where,
    )
  }
  const store = await openSqlite(optionsFor(dir))
  await store.stop()
  checkAnswers(verified(dir), lines, where)
  return hit
}

test('nothing is acknowledged while a write of the log is not synced', { skip }, async (t) => {
  const outside = scratch(t)
  const log = join(outside, 'log')
  const args = ['-f', '-y', '-qq', '-o', log, '-e', 'trace=pwrite64,fsync,fdatasync,write']
  const child = [process.execPath, join(import.meta.dirname, 'child.ts'), join(outside, 'state')]
  const run = spawnSync(STRACE, [...args, ...child], {
    encoding: 'utf8',
    env: { ...process.env, ECLUSA_SCRIPT: SCRIPT },
  })
  assert.equal(run.status, 0, run.stderr)
  const syncing = new Set<string>()
  let unsynced = 0
  const acknowledged: string[] = []
  for (const line of readFileSync(log, 'utf8').split('\n')) {
    const [thread = ''] = line.split(' ', 1)
    const ofLog = line.includes('ledger.db-wal>')
    if (ofLog && line.includes(' pwrite64(')) unsynced++
    if (ofLog && /sync\(/.test(line)) syncing.add(thread)
    // A call that another thread interrupts in the trace ends on a line of its own.
    if (/sync(?:\(| resumed>).* = 0$/.test(line) && syncing.delete(thread)) unsynced = 0
    const told = / write\(1<[^>]*>, "(appended|opened|closed)/.exec(line)?.[1]
    if (told === undefined) continue
    assert.equal(unsynced, 0, `${told} after writes that no sync followed`)
    acknowledged.push(told)
  }
  assert.deepEqual(acknowledged, ['appended', 'opened', 'closed', 'appended'])
})

test(
  'a fault in any write, sync, rename, cut or unlink loses nothing that was acknowledged',
  { skip },
  async (t) => {
    const work: (() => Promise<boolean>)[] = []
    for (const call of CALLS) {
      const total = count((await traced(t, call, '')).log, call)
      for (let at = 0; at < total * FAULTS.length; at++) {
        const fault = FAULTS[at % FAULTS.length] ?? ''
        const n = 1 + Math.floor(at / FAULTS.length)
        // The short form takes each sync once and some of the others, the fault changing from one to the next.
        const every = call === 'fsync' ? 4 : call === 'pwrite64' ? 19 : 7
        if (LONG || at % every === 0) work.push(() => injected(t, call, fault, n))
      }
    }
    const planned = work.length
    let hits = 0
    const lane = async (): Promise<void> => {
      for (let one = work.pop(); one !== undefined; one = work.pop()) {
        if (await one()) hits++
      }
    }
    await Promise.all([lane(), lane()])
    t.diagnostic(`${hits} faults of ${planned} planned`)
    assert.ok(hits > 30 && hits > 0.9 * planned, `${hits} of ${planned}`)
  },
)

test(
  'a mirror that cannot be written, from any moment on, costs no acknowledged record',
  { skip },
  async (t) => {
    // strace counts every write of the thread, Node's own too, but spares all files but the mirror.
    const most = LONG ? 40 : 12
    const seen = new Set<string>()
    for (let n = 1; n <= most; n += LONG ? 1 : 4) {
      for (const fault of ['error=EIO', 'error=ENOSPC']) {
        const where = `write ${n}+ ${fault}`
        const { dir, lines, log } = await traced(t, 'write', `${fault}:when=${n}+`)
        if (!log.includes('INJECTED')) continue
        seen.add(fault)
        const store = await openSqlite(optionsFor(dir))
        await store.stop()
        checkAnswers(verified(dir), lines, where)
      }
    }
    assert.equal(seen.size, 2)
  },
)

test('a write that the kernel cuts short is noticed by its count', async (t) => {
  const dir = scratch(t)
  const store = await openSqlite(optionsFor(dir))
  await Promise.all(Array.from({ length: 400 }, (_, n) => store.append(draft({ name: `n${n}` }))))
  await store.stop()
  truncateSync(join(dir, 'audit.jsonl'), 0)
  // No file may grow beyond 100 blocks: the first write of the missing lines is cut short, without error.
  const limited = `trap '' XFSZ; ulimit -f 100; exec "$0" "$@"`
  const child = join(import.meta.dirname, 'child.ts')
  const { stdout, status } = spawnSync('sh', ['-c', limited, process.execPath, child, dir], {
    encoding: 'utf8',
    env: { ...process.env, ECLUSA_SCRIPT: 'append after' },
  })
  assert.match(stdout, /^refused state_refused .*\(EFBIG\)/)
  assert.equal(status, 73)
  const again = await openSqlite(optionsFor(dir))
  await again.stop()
  verified(dir)
})
