// Random kills of both ways: no note twice, no effect without an intent, and a log that always verifies.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

import { verifier } from '../../src/ledger/chain.ts'
import { auditDir, newPlace, type Peer, type Place, start, until, type Way } from './peer.ts'

/** Kills in all, in four lanes with a ledger each, so that they wait together; three are of the server with its
 *  gate inside. A kill costs 0.4 s of a core. */
const TOTAL = Number(
  process.env['ECLUSA_KILLS'] ?? (process.env['ECLUSA_LONG'] === '1' ? 2_000 : 300),
)
const LANES: readonly Way[] = ['behind', 'inside', 'inside', 'inside']
const KILLS = Math.ceil(TOTAL / LANES.length)
const TIMEOUT_MS = 60_000 + TOTAL * 5_000
/** One process in four dies while it starts; the others after some answers and up to so long. */
const MAX_START_MS = 600
const MAX_ANSWERS = 30
const MAX_MORE_MS = 20
const IN_FLIGHT = 4
const SEED = Number(process.env['ECLUSA_SEED'] ?? Date.now() % 1_000_000)

type Entry = Readonly<Record<string, unknown>>

type Note = { readonly request_id: string; readonly text: string }

/** What the agent was told: the text acknowledged under each request_id. */
type Acknowledged = Map<string, string>

/** A small generator, so that a run can be repeated from its seed. */
function dice(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}

/** Writes notes without end, new ids and earlier ones, until the process is gone. */
async function write(peer: Peer, next: () => string, told: Acknowledged): Promise<void> {
  for (;;) {
    const request_id = next()
    const text = `text of ${request_id}`
    const answer = await peer.call('write_note', { request_id, text }).catch(() => null)
    if (answer === null) return
    if (answer.error !== undefined) continue
    // An earlier send may still be open in the ledger when its process has only just died.
    const code: unknown = answer.result?.['_meta']?.['eclusa/refusal']?.code
    if (code === 'busy') continue
    assert.equal(code, undefined, JSON.stringify(answer))
    assert.notEqual(answer.result?.isError, true, JSON.stringify(answer))
    told.set(request_id, text)
  }
}

function verify(way: Way, place: Place): readonly Entry[] {
  const path = join(auditDir(way, place), 'audit.jsonl')
  const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  const chain = verifier()
  for (const line of lines) assert.equal(chain.push(line), null, line)
  return lines.map((line) => JSON.parse(line) as Entry)
}

async function lane(t: TestContext, way: Way, seed: number): Promise<void> {
  t.diagnostic(`seed ${seed}`)
  const roll = dice(seed)
  const place = newPlace()
  const told: Acknowledged = new Map()
  let ids = 0
  const next = (): string => {
    const id = roll() < 0.3 && ids > 0 ? Math.floor(roll() * ids) : ids++
    return `req-${String(id).padStart(8, '0')}`
  }
  for (let kill = 0; kill < KILLS; kill++) {
    const peer = start(way, place)
    const writers = Array.from({ length: IN_FLIGHT }, () => write(peer, next, told))
    const early = roll() < 0.25
    const answers = Math.floor(roll() * MAX_ANSWERS)
    if (!early) await until('some answers', () => peer.heard.length > answers)
    await sleep(roll() * (early ? MAX_START_MS : MAX_MORE_MS))
    await peer.kill()
    await Promise.all(writers)
  }
  const last = start(way, place)
  await last.call('read_ledger', {})
  assert.equal(await last.end(), 0, last.stderr())

  const entries = verify(way, place)
  t.diagnostic(`${told.size} acknowledged, ${entries.length} records`)
  assert.ok(told.size > 0, 'some notes were written at all')
  check(place, entries, told)
}

describe('at once', { concurrency: LANES.length }, () => {
  for (const [at, way] of LANES.entries()) {
    test(`${way}: ${KILLS} random kills, lane ${at}`, { timeout: TIMEOUT_MS }, (t) =>
      lane(t, way, SEED + at),
    )
  }
})

function check(place: Place, entries: readonly Entry[], told: Acknowledged): void {
  const dir = join(place.ledger, 'notes')
  const intents = new Set(
    entries.filter((one) => one['kind'] === 'intent').map((one) => one['request_id']),
  )
  const stored = new Map<string, string>()
  for (const name of readdirSync(dir)) {
    assert.match(name, /^[0-9a-f]{64}\.json$/, 'no temporary is left')
    const note = JSON.parse(readFileSync(join(dir, name), 'utf8')) as Note
    assert.equal(name, `${createHash('sha256').update(note.request_id).digest('hex')}.json`)
    assert.equal(note.text, `text of ${note.request_id}`)
    stored.set(note.request_id, note.text)
    assert.ok(intents.has(note.request_id), `${note.request_id} has no intent`)
  }
  for (const [id, text] of told) assert.equal(stored.get(id), text, `${id} was acknowledged`)
  const committed = entries
    .filter((one) => one['kind'] === 'outcome' && one['outcome'] === 'committed')
    .map((one) => one['request_id'])
  assert.equal(new Set(committed).size, committed.length, 'no key is committed twice')
}
