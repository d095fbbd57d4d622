// Nobody can change one byte or line of a log: 200 records, every change, both verifiers.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { fileCheck, type Anchor, type Head } from '../../src/ledger/chain.ts'
import { GENESIS_PREV } from '../../src/ledger/entry.ts'
import { chain, drafts, fileOf } from './logs.ts'

const { lines, hashes } = chain(drafts(199))
const anchor: Anchor = { seq: 199, sha256: hashes[199] ?? '' }
const wholes = lines.map((line) => Buffer.from(`${line}\n`, 'latin1'))
/** The independent verifier takes every byte in the long form and a thirteenth of them in the short one. */
const STEP = process.env['ECLUSA_LONG'] === '1' ? 1 : 13

const before = (at: number): Head => ({ seq: at - 1, sha256: hashes[at - 1] ?? GENESIS_PREV })

/** Checks the log in which these pieces stand for everything from line `at` on, and expects that line
 *  to be named. The lines before it are untouched and good, so the walk begins behind them. */
function refused(what: string, at: number, pieces: Iterable<Buffer>): void {
  const check = fileCheck({ anchor, origin: null, from: before(at) })
  for (const piece of pieces) if (!check.push(piece)) break
  const found = check.end()
  if (found.kind !== 'broken' || found.line !== at + 1) {
    assert.fail(`${what} at line ${at + 1}: ${JSON.stringify(found)}`)
  }
}

test('the untouched log is good under its head', () => {
  const check = fileCheck({ anchor, origin: null })
  check.push(fileOf(lines))
  assert.equal(check.end().kind, 'ok')
})

test('every flip of a byte, three values each, is refused at its line', () => {
  let count = 0
  for (const [at, whole] of wholes.entries()) {
    const rest = wholes.slice(at + 1)
    for (let offset = 0; offset < whole.length; offset++) {
      for (const flip of [0x01, 0x20, 0x80]) {
        const mutant = Buffer.from(whole)
        mutant[offset] = (mutant[offset] ?? 0) ^ flip
        refused(`byte ${offset} ^ ${flip}`, at, [mutant, ...rest])
        count++
      }
    }
  }
  assert.equal(count, fileOf(lines).length * 3)
})

test('every deletion and every insertion of a byte is refused at its line', () => {
  for (const [at, whole] of wholes.entries()) {
    const rest = wholes.slice(at + 1)
    for (let offset = 0; offset < whole.length; offset++) {
      const [head, byte, tail] = [
        whole.subarray(0, offset),
        whole[offset] ?? 0,
        whole.subarray(offset),
      ]
      refused(`without byte ${offset}`, at, [Buffer.concat([head, tail.subarray(1)]), ...rest])
      // A line feed doubled leaves this line whole and makes an empty one after it.
      refused(`twice byte ${offset}`, byte === 0x0a ? at + 1 : at, [
        Buffer.concat([head, Buffer.of(byte), tail]),
        ...rest,
      ])
      refused(`space at ${offset}`, at, [Buffer.concat([head, Buffer.of(0x20), tail]), ...rest])
    }
  }
  const end = fileCheck({ anchor, origin: null, from: before(200) })
  end.push(Buffer.from(' '))
  assert.equal(end.end().kind, 'broken')
})

test('every drop, duplicate and swap of lines is refused at the first line that moved', () => {
  for (let at = 0; at < wholes.length; at++) {
    refused('dropped', at, wholes.slice(at + 1))
    refused('duplicate', at + 1, wholes.slice(at))
    for (let other = at + 1; other < wholes.length; other++) {
      const swapped = wholes.with(at, wholes[other] ?? EMPTY).with(other, wholes[at] ?? EMPTY)
      refused(`swapped with ${other + 1}`, at, swapped.slice(at))
    }
  }
})

const EMPTY = Buffer.alloc(0)

test('the independent verifier refuses them at the same lines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-mutants-'))
  try {
    const path = join(folder, 'audit.jsonl')
    writeFileSync(path, fileOf(lines))
    const script = fileURLToPath(new URL('batch.py', import.meta.url))
    const args = [script, 'mutants', path, `199:${anchor.sha256}`, String(STEP)]
    const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
    const { stdout } = await promisify(execFile)('python3', args, { env })
    const [count, wrong] = JSON.parse(stdout) as [number, readonly unknown[]]
    assert.deepEqual(wrong, [])
    assert.ok(count > (fileOf(lines).length / STEP) * 5)
  } finally {
    rmSync(folder, { recursive: true })
  }
})
