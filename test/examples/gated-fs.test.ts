// gated-fs both ways: the gate inside the server, and the naked server behind the gateway.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

import {
  auditDir,
  GATED,
  type Message,
  newPlace,
  type Peer,
  type Place,
  ROOT,
  start,
  until,
  type Way,
} from './peer.ts'

type Record_ = Readonly<Record<string, unknown>>

const records = (way: Way, place: Place): Record_[] =>
  readFileSync(join(auditDir(way, place), 'audit.jsonl'), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record_)

const about = (name: string, all: readonly Record_[]): Record_[] =>
  all.filter((record) => record['name'] === name)

const notes = (place: Place): string[] => {
  const dir = join(place.ledger, 'notes')
  return existsSync(dir) ? readdirSync(dir).filter((name) => name.endsWith('.json')) : []
}

const toolNames = ({ result }: Message): string[] =>
  (result?.tools ?? []).map((tool) => tool.name).toSorted()

/** Existence, size, mtime_ns and hash. */
function stateOf(path: string): unknown {
  if (!existsSync(path)) return 'missing'
  const { size, mtimeNs } = lstatSync(path, { bigint: true })
  return [size, mtimeNs, createHash('sha256').update(readFileSync(path)).digest('hex')]
}

function target(place: Place): string {
  const path = join(place.ledger, 'scratch', 'precious')
  mkdirSync(join(place.ledger, 'scratch'), { recursive: true })
  writeFileSync(path, 'still here')
  return path
}

test('naked, rm_rf removes the file: what the gates prevent does happen without them', async () => {
  const place = newPlace()
  const peer = start('naked', place)
  await peer.call('read_ledger', {})
  const path = target(place)
  await peer.call('rm_rf', { path })
  assert.equal(existsSync(path), false)
  await peer.end()
})

for (const way of GATED) {
  test(`${way}: the first line may be a modern tools/call, and every result is complete`, async () => {
    const place = newPlace()
    const peer = start(way, place)
    const note = { request_id: 'req-0001', text: 'gate aplicado' }
    const written = await peer.call('write_note', note)
    assert.equal(written.result?.resultType, 'complete')
    assert.deepEqual(written.result?.structuredContent, {
      request_id: 'req-0001',
      status: 'committed',
    })
    const listed = await peer.ask('tools/list')
    assert.deepEqual(toolNames(listed), ['read_ledger', 'write_note'])
    assert.equal(listed.result?.resultType, 'complete')
    const annotations = Object.fromEntries(
      (listed.result?.tools ?? []).map((tool) => [tool.name, tool.annotations]),
    )
    assert.deepEqual(annotations, {
      write_note: { idempotentHint: true, destructiveHint: false, readOnlyHint: false },
      read_ledger: { idempotentHint: true, destructiveHint: false, readOnlyHint: true },
    })
    const found = await peer.ask('server/discover')
    assert.equal(found.result?.resultType, 'complete')
    const read = await peer.call('read_ledger', {})
    assert.deepEqual(read.result?.structuredContent, { notes: [note] })
    assert.equal(read.result?.resultType, 'complete')
    assert.equal(await peer.end(), 0)
  })

  test(`${way}: rm_rf is refused with -32602, recorded, and the file is as it was`, async () => {
    const place = newPlace()
    const peer = start(way, place)
    await peer.ask('tools/list')
    const path = target(place)
    const before = stateOf(path)
    for (const args of [{ path }, { path: 7 }, {}]) {
      const { error } = await peer.call('rm_rf', args)
      assert.equal(error?.code, -32602)
      assert.equal(error?.message, 'tool denied: rm_rf')
      assert.equal(error?.data?.['eclusa/refusal']?.code, 'tool_denied')
    }
    assert.deepEqual(stateOf(path), before)
    const told = about('rm_rf', records(way, place))
    assert.equal(told.length, 3)
    for (const record of told) {
      assert.equal(record['decision'], 'deny')
      assert.equal(record['outcome'], 'not_executed')
      assert.equal(record['method'], 'tools/call')
    }
    await peer.end()
  })

  test(`${way}: after initialize at 2025-11-25 the same, without modern fields`, async () => {
    const place = newPlace()
    const peer = start(way, place)
    const hello = await peer.handshake('2025-11-25')
    assert.equal(hello.result?.protocolVersion, '2025-11-25')
    const listed = await peer.ask('tools/list', {}, 'legacy')
    assert.deepEqual(toolNames(listed), ['read_ledger', 'write_note'])
    const ask = (name: string, args: object): Promise<Message> =>
      peer.ask('tools/call', { name, arguments: args }, 'legacy')
    const note = { request_id: 'req-0001', text: 'gate aplicado' }
    const written = await ask('write_note', note)
    assert.equal(written.result?.structuredContent?.status, 'committed')
    const denied = await ask('rm_rf', { path: '/x' })
    assert.equal(denied.error?.code, -32602)
    assert.equal(denied.error?.message, 'tool denied: rm_rf')
    for (const { result } of [hello, listed, written]) {
      for (const key of ['resultType', 'ttlMs', 'cacheScope'])
        assert.equal(result?.[key], undefined)
    }
    await peer.end()
  })

  test(`${way}: the policy's rules, the replay and the conflict have one code each`, async () => {
    const place = newPlace()
    const peer = start(way, place)
    const note = { request_id: 'req-00000001', text: 'a' }
    await peer.call('write_note', note)
    const again = await peer.call('write_note', note)
    assert.notEqual(again.result?.isError, true)
    const other = await peer.call('write_note', { ...note, text: 'b' })
    assert.equal(other.result?.isError, true)
    assert.equal(other.result?.['_meta']?.['eclusa/refusal']?.code, 'key_conflict')
    const wrong = [
      { request_id: 'short', text: 'x' },
      { request_id: 'req-00000002', text: 'x'.repeat(2001) },
      { request_id: 'req-00000002' },
      { request_id: 12345678, text: 'x' },
    ]
    for (const args of wrong) {
      const { error } = await peer.call('write_note', args)
      assert.equal(error?.message, 'arguments denied: write_note', JSON.stringify(args))
      assert.equal(error?.code, -32602)
    }
    // 2,000 code points, 4,000 UTF-16 units: lengths count what people count.
    const long = await peer.call('write_note', {
      request_id: 'req-00000003',
      text: '😀'.repeat(2000),
    })
    assert.equal(long.error, undefined)
    assert.equal(notes(place).length, 2)
    assert.deepEqual(
      about('write_note', records(way, place)).map(({ kind, decision, outcome, code }) =>
        [kind, decision, outcome, code].join(' '),
      ),
      [
        'intent allow pending ',
        'outcome allow committed ',
        'call allow replay ',
        'call deny not_executed key_conflict',
        ...wrong.map(() => 'call deny not_executed arguments_denied'),
        'intent allow pending ',
        'outcome allow committed ',
      ],
    )
    await peer.end()
  })

  test(`${way}: killed at the marker, started again and repeated: one note, no isError`, async () => {
    const place = newPlace()
    const marker = join(place.dir, 'before-commit')
    const note = { request_id: 'req-crash-0001', text: 'uma vez' }
    const first = start(way, place, { CRASH_MARKER: marker })
    const lost = first.call('write_note', note).catch(() => 'lost')
    await until('the marker', () => existsSync(marker))
    await first.kill()
    assert.equal(await lost, 'lost')
    assert.equal(notes(place).length, 0)

    const second = start(way, place)
    const { result } = await second.call('write_note', note)
    assert.equal(result?.resultType, 'complete')
    assert.notEqual(result?.isError, true)
    assert.equal(await second.end(), 0)
    assert.equal(notes(place).length, 1)
    const outcomes = about('write_note', records(way, place)).map(({ outcome }) => outcome)
    assert.equal(outcomes.at(-1), 'committed')
    assert.ok(outcomes.includes('unknown'), 'the lost one is recorded as unknown')
  })

  test(`${way}: the end of stdin and SIGTERM end it in order, also within the crash window`, async () => {
    const place = newPlace()
    const marker = join(place.dir, 'before-commit')
    const first = start(way, place, { CRASH_MARKER: marker })
    const lost = first
      .call('write_note', { request_id: 'req-00000001', text: 'x' })
      .catch(() => 'lost')
    await until('the marker', () => existsSync(marker))
    assert.equal(await first.end(), 0)
    await lost
    const second = start(way, place)
    await second.call('read_ledger', {})
    second.child.kill('SIGTERM')
    await until('the end', () => second.child.exitCode !== null || second.child.signalCode !== null)
    assert.deepEqual([second.child.exitCode, second.child.signalCode], [0, null])
    const kinds = records(way, place).map(({ kind }) => kind)
    assert.equal(kinds.filter((kind) => kind === 'start').length, 2)
    assert.equal(kinds.filter((kind) => kind === 'stop').length, 2)
    const check = promisify(execFile)
    const main = join(ROOT, 'src', 'cli', 'main.ts')
    const dir = auditDir(way, place)
    const { stdout } = await check(process.execPath, [
      '--no-warnings',
      main,
      'audit',
      'verify',
      dir,
    ])
    assert.match(stdout, /unanchored tail/)
  })

  test(`${way}: POLICY_PATH names another policy`, async () => {
    const place = newPlace()
    const policy = join(place.dir, 'strict.json')
    writeFileSync(policy, JSON.stringify({ version: 1, allow: ['read_ledger'] }))
    const peer = start(way, place, { POLICY_PATH: policy })
    assert.deepEqual(toolNames(await peer.ask('tools/list')), ['read_ledger'])
    const { error } = await peer.call('write_note', { request_id: 'req-00000001', text: 'a' })
    assert.equal(error?.message, 'tool denied: write_note')
    await peer.end()
  })

  test(`${way}: of two processes with one request_id exactly one wins, 200 times`, async () => {
    const place = newPlace()
    const peers: readonly Peer[] = [start(way, place), start(way, place)]
    await Promise.all(peers.map((peer) => peer.call('read_ledger', {})))
    for (let round = 0; round < 200; round++) {
      const request_id = `req-race-${String(round).padStart(4, '0')}`
      const answers = await Promise.all(
        peers.map((peer, at) => peer.call('write_note', { request_id, text: `by ${at}` })),
      )
      const won = answers.map(({ result }) => result !== undefined && result.isError !== true)
      assert.equal(won.filter(Boolean).length, 1, `round ${round}: ${JSON.stringify(answers)}`)
      const name = `${createHash('sha256').update(request_id).digest('hex')}.json`
      const stored = readFileSync(join(place.ledger, 'notes', name), 'utf8')
      assert.equal(stored, JSON.stringify({ request_id, text: `by ${won.indexOf(true)}` }))
    }
    assert.equal(notes(place).length, 200)
    await Promise.all(peers.map((peer) => peer.end()))
  })
}

test('the walk goes through both ways in both eras and finds no deviation', async () => {
  const walk = join(ROOT, 'examples', 'gated-fs', 'walk.ts')
  const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', walk])
  assert.match(stdout, /gate inside, 2026-07-28\n/)
  assert.match(stdout, /gate in front, 2025-11-25\n/)
})
