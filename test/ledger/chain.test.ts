// The chain: both verifiers come to the stated finding on every vector and on random logs.

import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import fc from 'fast-check'

import { fileCheck, parseAnchor, verifier, type Verified } from '../../src/ledger/chain.ts'
import { draft, extras } from './drafts.ts'
import { chain, drafts, fileOf } from './logs.ts'
import { vectors, vectorText, type Vector } from './make-vectors.ts'

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const batch = (...args: readonly string[]): string =>
  execFileSync('python3', [here('batch.py'), ...args], {
    encoding: 'utf8',
    maxBuffer: 256 * 1024 * 1024,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' },
  })

const bytesOf = (one: Vector): Buffer =>
  one.log === undefined ? Buffer.from(one.log_base64 ?? '', 'base64') : Buffer.from(one.log)

function find(bytes: Buffer, one: Vector | null, pieceBytes: number): Verified {
  const anchor = one?.head === undefined ? null : parseAnchor(one.head)
  const check = fileCheck({ anchor, origin: one?.origin ?? null })
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (!check.push(bytes.subarray(at, at + pieceBytes))) break
  }
  return check.end()
}

/** The finding in the words of the vectors. */
function said(found: Verified): Vector['expect'] {
  return found.kind === 'ok'
    ? { ok: found.entries, anchored: found.anchored }
    : { line: found.line, code: found.problem.code }
}

test('the vector files are what this build writes', () => {
  const files = readdirSync(here('vectors')).sort()
  assert.deepEqual(files, vectors.map((one) => `${one.name}.json`).sort())
  for (const one of vectors) {
    assert.equal(readFileSync(here(`vectors/${one.name}.json`), 'utf8'), vectorText(one), one.name)
  }
})

for (const one of vectors) {
  test(`${one.name}: ${one.about}`, () => {
    const bytes = bytesOf(one)
    for (const pieceBytes of [1 << 20, 1_000, 7]) {
      const found = find(bytes, one, pieceBytes)
      assert.deepEqual(said(found), one.expect)
      assert.equal(found.kind === 'unknown_format', one.name.startsWith('unknown'))
    }
  })
}

test('the independent verifier comes to the same finding on every vector', () => {
  const found = new Map<string, readonly unknown[]>()
  for (const line of batch('vectors', here('vectors')).trim().split('\n')) {
    const [name, finding] = JSON.parse(line) as [string, readonly unknown[]]
    found.set(name, finding)
  }
  assert.equal(found.size, vectors.length)
  for (const { name, expect } of vectors) {
    const [good, first, second, anchored] = found.get(name) ?? []
    const words = good === true ? { ok: first, anchored } : { line: first, code: second }
    assert.deepEqual(words, expect, name)
  }
})

test('the ten lines of docs/ledger.md tell good chains from bad ones', () => {
  const page = readFileSync(here('../../docs/ledger.md'), 'utf8')
  const script = /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-ten-'))
  const path = join(folder, 'audit.jsonl')
  let good = 0
  try {
    for (const one of vectors) {
      const code = 'code' in one.expect ? one.expect.code : ''
      // What the page says that ten lines leave out.
      if (code !== '' && !['form', 'seq', 'link', 'hash'].includes(code)) continue
      if (['bad-big-integer', 'bad-deep', 'bad-float', 'bad-member-name'].includes(one.name))
        continue
      // In Python `True == 1`.
      if (one.name === 'bad-seq-true') continue
      writeFileSync(path, bytesOf(one))
      const run = spawnSync('python3', ['-c', script, path], { encoding: 'utf8' })
      assert.equal(run.status === 0, code === '', `${one.name}: ${run.stderr}`)
      if (code !== '') continue
      const last = bytesOf(one).toString().trimEnd().split('\n').at(-1) ?? ''
      const own = /,"sha256":"([0-9a-f]{64})"/.exec(last)?.[1]
      assert.match(run.stdout, new RegExp(`:${own}\n$`))
      good++
    }
    assert.equal(good, vectors.filter(({ expect }) => 'ok' in expect).length)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** Random logs that both verifiers read. */
const LOGS = process.env['ECLUSA_LONG'] === '1' ? 10_000 : 2_500

test(`on ${LOGS} random logs both verifiers find every hash right`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-logs-'))
  try {
    const logs: string[] = []
    const heads: string[] = []
    const arb = fc.array(fc.tuple(draft, extras), { minLength: 1, maxLength: 4 })
    for (const one of fc.sample(arb, LOGS)) {
      const { lines, hashes } = chain(one)
      logs.push(fileOf(lines).toString('latin1'))
      heads.push(hashes.at(-1) ?? '')
      const walk = verifier()
      for (const line of lines) assert.equal(walk.push(line), null)
      assert.equal(walk.head().sha256, heads.at(-1))
    }
    const path = join(folder, 'logs.json')
    writeFileSync(path, JSON.stringify(logs))
    const findings = JSON.parse(batch('logs', path)) as readonly (readonly unknown[])[]
    assert.equal(findings.length, LOGS)
    for (const [at, finding] of findings.entries()) {
      assert.equal(finding[0], true, `${String(finding)} of ${logs[at]}`)
      assert.equal(finding[2], heads[at])
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a log cut at any line is refused with a later head and unanchored without', () => {
  const { lines, hashes } = chain(drafts(20))
  const anchor = { seq: 20, sha256: hashes[20] ?? '' }
  for (let kept = 1; kept < lines.length; kept++) {
    const bytes = fileOf(lines.slice(0, kept))
    const alone = fileCheck({ anchor: null, origin: null })
    alone.push(bytes)
    assert.deepEqual(said(alone.end()), { ok: kept, anchored: null })
    for (const seq of [20, null]) {
      const asked = fileCheck({ anchor: { ...anchor, seq }, origin: null })
      asked.push(bytes)
      assert.deepEqual(said(asked.end()), { line: kept + 1, code: 'head' })
    }
  }
})

test('a bad line leaves the verifier where it was', () => {
  const { lines } = chain(drafts(3))
  const walk = verifier()
  assert.equal(walk.push(lines[0] ?? ''), null)
  assert.equal(walk.push(lines[2] ?? '')?.code, 'seq')
  assert.equal(walk.head().seq, 0)
  assert.equal(walk.push(Buffer.from(lines[1] ?? '')), null)
  assert.equal(walk.last()?.seq, 1)
})

test('a line without end is refused before it fills the memory', () => {
  const check = fileCheck({ anchor: null, origin: null })
  const piece = Buffer.alloc(16 * 1024, 0x78)
  let taken = 0
  while (taken < 100 && check.push(piece)) taken++
  assert.ok(taken <= 5)
  assert.deepEqual(said(check.end()), { line: 1, code: 'bytes' })
})

test('a head is a hash or a place and a hash and nothing else', () => {
  const sha256 = 'ab'.repeat(32)
  assert.deepEqual(parseAnchor(sha256), { seq: null, sha256 })
  assert.deepEqual(parseAnchor(`12:${sha256}`), { seq: 12, sha256 })
  for (const bad of [
    '',
    sha256.slice(1),
    `01:${sha256}`,
    `-1:${sha256}`,
    sha256.toUpperCase(),
    `${sha256} `,
  ]) {
    assert.equal(parseAnchor(bad), null)
  }
})
