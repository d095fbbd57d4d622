// `audit verify` on a real ledger: what it finds, what it says, and with which exit status.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'

import { verify } from '../../src/cli/audit.ts'
import { CHAINED } from '../../src/ledger/state.ts'
import { addClientIn } from '../../src/store/reader.ts'
import { fill, headOf, open, query, run, seqOf, sql } from './real.ts'

let root = ''
let state = ''

before(async () => {
  root = mkdtempSync(join(tmpdir(), 'eclusa-audit-'))
  state = join(root, 'state')
  const store = await open(state)
  await fill(store)
  await store.stop()
  const client = { profile: 'writer', person: false, attributes: {}, digest: 'a'.repeat(64) }
  addClientIn(state, { ...client, name: 'ana', limit: null, expiresUs: null })
})
after(() => rmSync(root, { recursive: true }))

/** A copy of the ledger, changed by `change`, and what `audit verify` makes of it. */
async function changed(
  change: (dir: string) => void,
  ...args: string[]
): Promise<Awaited<ReturnType<typeof run>>> {
  const dir = mkdtempSync(join(root, 'copy-'))
  cpSync(state, dir, { recursive: true })
  change(dir)
  const found = await run(verify, dir, ...args)
  rmSync(dir, { recursive: true })
  return found
}

test('a ledger that nobody touched verifies and says what that does not prove', async () => {
  const { status, out, err } = await run(verify, state)
  assert.equal(status, 0, out)
  assert.match(err, new RegExp(state))
  assert.match(out, /unanchored tail/)
  assert.match(
    out,
    /tables: clients 1, definitions 1, operations 4, pins 2, policy 1: as the log says/,
  )
  assert.match(out, /mirror: audit\.jsonl is the log byte for byte/)
  assert.equal(out.match(/^not proved: /gm)?.length, 3)
})

test('the head and the origin that verify prints vouch for the log afterwards', async () => {
  const { out } = await run(verify, state)
  const head = /^head: (.*)$/m.exec(out)?.[1] ?? ''
  const origin = /^origin: (.*)$/m.exec(out)?.[1] ?? ''
  const again = await run(verify, state, '--head', head, '--origin', origin)
  assert.equal(again.status, 0)
  assert.match(
    again.out,
    new RegExp(`the head given is record ${headOf(state).seq}; 0 records after it`),
  )
  assert.doesNotMatch(again.out, /unanchored tail/)
  assert.equal((await run(verify, state, '--origin', 'f'.repeat(32))).status, 1)
  assert.equal((await run(verify, state, '--head', 'f'.repeat(64))).status, 1)
  assert.equal((await run(verify, state, '--head', `0:${headOf(state).sha256}`)).status, 1)
})

test('--json is one object that says the same', async () => {
  const { out } = await run(verify, state, '--json')
  const found = JSON.parse(out) as Record<string, unknown>
  assert.equal(found['ok'], true)
  assert.deepEqual(found['mirror'], { kind: 'same' })
  const short = await changed((dir) => truncateSync(join(dir, 'audit.jsonl'), 10), '--json')
  assert.equal((JSON.parse(short.out) as Record<string, unknown>)['ok'], true)
  const bad = await changed((dir) => sql(dir, "UPDATE pins SET hash = 'x'"), '--json')
  assert.equal(bad.status, 1)
  assert.equal((JSON.parse(bad.out) as Record<string, unknown>)['ok'], false)
})

test('the mirror verifies as a file with nothing beside it', async () => {
  const file = join(state, 'audit.jsonl')
  const { status, out } = await run(verify, file, '--head', headOf(state).sha256)
  assert.equal(status, 0)
  assert.doesNotMatch(out, /tables|mirror:/)
  const cut = join(root, 'cut.jsonl')
  const lines = readFileSync(file, 'latin1').split('\n')
  writeFileSync(cut, `${lines.slice(0, -2).join('\n')}\n`)
  assert.equal((await run(verify, cut)).status, 0)
  assert.match((await run(verify, cut)).out, /unanchored tail/)
  assert.equal((await run(verify, cut, '--head', headOf(state).sha256)).status, 1)
})

test('every edit of any column of a chained row is found, and so is a row more or less', async () => {
  let edits = 0
  for (const [table, key] of Object.entries(CHAINED)) {
    const rows = query(state, `SELECT * FROM ${table}`)
    assert.ok(rows.length > 0, table)
    for (const row of rows) {
      const at = `${key} = '${String(row[key])}'`
      for (const [column, value] of Object.entries(row)) {
        const other =
          typeof value === 'number'
            ? `${value + 1}`
            : value === null
              ? "'1'"
              : `'${value as string}x'`
        const { status, out } = await changed((dir) => {
          sql(dir, `UPDATE ${table} SET ${column} = ${other} WHERE ${at}`)
        })
        assert.equal(status, 1, `${table}.${column}: ${out}`)
        assert.match(out, new RegExp(`(CHANGED|MISSING): ${table} row`))
        edits++
      }
      const gone = await changed((dir) => sql(dir, `DELETE FROM ${table} WHERE ${at}`))
      assert.equal(gone.status, 1)
      assert.match(gone.out, new RegExp(`MISSING: ${table} row`))
    }
    const more = await changed((dir) => {
      const columns = Object.keys(rows[0] ?? {})
      const fresh = [key, 'key', ...(table === 'clients' ? ['digest'] : [])]
      const values = columns.map((name) => (fresh.includes(name) ? "'new'" : name))
      sql(dir, `INSERT INTO ${table} SELECT ${values.join(', ')} FROM ${table} LIMIT 1`)
    })
    assert.equal(more.status, 1)
    assert.match(more.out, new RegExp(`EXTRA: ${table} row new has no record`))
  }
  assert.ok(edits > 40, String(edits))
})

test('a number that no program here could have written is a changed row, not a crash', async () => {
  const found = await changed((dir) => sql(dir, 'UPDATE pins SET since_us = 9223372036854775807'))
  assert.equal(found.status, 1)
  assert.match(found.out, /CHANGED: pins row/)
})

test('an edit, a removal and a cut of entries are found in the database', async () => {
  const at = seqOf(state, '"kind":"intent"')
  const edited = await changed((dir) =>
    sql(
      dir,
      `UPDATE entries SET line = replace(line, 'write_note', 'write_nota') WHERE seq = ${at}`,
    ),
  )
  assert.equal(edited.status, 1)
  assert.match(edited.out, new RegExp(`chain: BROKEN: line ${at + 1}: .*\\(hash\\)`))
  const gone = await changed((dir) => sql(dir, `DELETE FROM entries WHERE seq = ${at}`))
  assert.equal(gone.status, 1)
  assert.match(gone.out, new RegExp(`chain: BROKEN: line ${at + 1}: .*\\(seq\\)`))
  const { seq, sha256: head } = headOf(state)
  const cut = await changed(
    (dir) => sql(dir, `DELETE FROM entries WHERE seq = ${seq}`),
    '--head',
    head,
  )
  assert.equal(cut.status, 1)
  assert.match(cut.out, /\(head\)/)
})

test('a tail that is cut off in the ledger but not in the mirror is found without a head', async () => {
  const { seq } = headOf(state)
  const found = await changed((dir) => sql(dir, `DELETE FROM entries WHERE seq = ${seq}`))
  assert.equal(found.status, 1)
  assert.match(found.out, new RegExp(`mirror: AHEAD: audit.jsonl line ${seq + 1}`))
})

test('a mirror that is behind or torn is no tampering, one that differs is, and one that is gone is told', async () => {
  const mirror = (dir: string): string => join(dir, 'audit.jsonl')
  const bytes = readFileSync(mirror(state))
  const behind = await changed((dir) => truncateSync(mirror(dir), bytes.length - 100))
  assert.equal(behind.status, 0)
  assert.match(behind.out, /audit\.jsonl is 1 record behind/)
  const flipped = await changed((dir) => {
    const copy = Buffer.from(bytes)
    copy[500] = (copy[500] ?? 0) ^ 1
    writeFileSync(mirror(dir), copy)
  })
  assert.equal(flipped.status, 1)
  assert.match(flipped.out, /DIFFERS: audit\.jsonl line 1 /)
  const more = await changed((dir) => appendFileSync(mirror(dir), 'x'))
  assert.equal(more.status, 1)
  assert.match(more.out, /AHEAD/)
  const gone = await changed((dir) => rmSync(mirror(dir)))
  assert.equal(gone.status, 1)
  assert.match(gone.out, /ABSENT/)
})

test('a record of a later build ends with a status of its own', async () => {
  const one = JSON.parse(
    readFileSync(fileURLToPath(new URL('vectors/unknown-kind.json', import.meta.url)), 'utf8'),
  ) as { readonly log: string }
  const file = join(root, 'later.jsonl')
  writeFileSync(file, one.log)
  const { status, out } = await run(verify, file)
  assert.equal(status, 3)
  assert.match(out, /UNKNOWN FORMAT, use a newer eclusa: line 4/)
})

test('a ledger verifies while another process is writing rows and records to it', async () => {
  const dir = join(root, 'busy')
  const first = await open(dir)
  await fill(first)
  await first.stop()
  const script = fileURLToPath(new URL('busy.ts', import.meta.url))
  const child = spawn(process.execPath, [script, dir], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    await once(child.stdout, 'data')
    const begun = headOf(dir).seq
    for (let round = 0; round < 20 || headOf(dir).seq < begun + 500; round++) {
      const { status, out } = await run(verify, dir)
      assert.equal(status, 0, out)
    }
  } finally {
    child.stdin.end()
    await once(child, 'close')
  }
  assert.equal(child.exitCode, 0)
  assert.equal((await run(verify, dir)).status, 0)
})

test('the independent verifier agrees on the mirror of a real ledger', () => {
  const script = fileURLToPath(new URL('verify.py', import.meta.url))
  const { seq, sha256: head } = headOf(state)
  const args = [script, join(state, 'audit.jsonl'), `${seq}:${head}`]
  const found = spawnSync('python3', args, { encoding: 'utf8' })
  assert.equal(found.status, 0, found.stdout)
  assert.match(
    found.stdout,
    new RegExp(`^${seq + 1} records, head ${seq}:${head}, anchored at ${seq}`),
  )
})
test('what is not there, or is no head, is told with the next step', async () => {
  assert.equal((await run(verify, join(root, 'nowhere'))).status, 'usage')
  assert.equal((await run(verify, root)).status, 'state_refused')
  assert.equal((await run(verify, state, '--head', 'abc')).status, 'usage')
  assert.equal((await run(verify, state, '--origin', 'abc')).status, 'usage')
})
