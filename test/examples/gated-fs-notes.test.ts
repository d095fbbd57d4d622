// The notes themselves, with no gate: one note a request_id, whoever races and whoever dies.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { newPlace, type Peer, type Place, start, until } from './peer.ts'

const files = (place: Place): string[] => readdirSync(join(place.ledger, 'notes'))
const notes = (place: Place): string[] => files(place).filter((name) => name.endsWith('.json'))

test('a note is written once, repeated as a replay, and another text is a failure', async () => {
  const place = newPlace()
  const peer = start('naked', place)
  const note = { request_id: 'req-00000001', text: 'maçã' }
  const first = await peer.call('write_note', note)
  const again = await peer.call('write_note', note)
  const other = await peer.call('write_note', { ...note, text: 'pera' })
  assert.deepEqual(first.result?.structuredContent, {
    request_id: note.request_id,
    status: 'committed',
  })
  assert.equal(again.result?.structuredContent?.status, 'replay')
  assert.equal(other.result?.isError, true)
  assert.equal(other.result?.content?.[0]?.text, 'request_id já usado com outro conteúdo')
  const read = await peer.call('read_ledger', {})
  assert.deepEqual(read.result?.structuredContent, { notes: [note] })
  assert.equal(await peer.end(), 0)
  assert.deepEqual(files(place), notes(place))
  assert.equal(notes(place).length, 1)
})

test('killed between sync and publication, the note is not there; repeated, it is there once', async () => {
  const place = newPlace()
  const marker = join(place.dir, 'marker')
  const note = { request_id: 'req-crash-0001', text: 'uma vez' }
  const first = start('naked', place, { CRASH_MARKER: marker })
  const lost = first.call('write_note', note).catch(() => 'lost')
  await until('the marker', () => existsSync(marker))
  assert.equal(notes(place).length, 0)
  assert.equal(files(place).length, 1)
  await first.kill()
  assert.equal(await lost, 'lost')

  const second = start('naked', place)
  const answer = await second.call('write_note', note)
  assert.equal(answer.result?.isError, undefined)
  await second.end()
  assert.deepEqual(files(place), notes(place), 'the orphan of the dead process is gone')
  assert.equal(notes(place).length, 1)
})

test('the end of stdin ends a server that sleeps in its crash window', async () => {
  const place = newPlace()
  const marker = join(place.dir, 'marker')
  const peer = start('naked', place, { CRASH_MARKER: marker })
  const lost = peer
    .call('write_note', { request_id: 'req-00000001', text: 'x' })
    .catch(() => 'lost')
  await until('the marker', () => existsSync(marker))
  assert.equal(await peer.end(), 0)
  assert.equal(await lost, 'lost')
})

test('the temporary of a process that lives is left alone', async () => {
  const place = newPlace()
  const first = start('naked', place)
  await first.call('write_note', { request_id: 'req-00000001', text: 'x' })
  const key = 'a'.repeat(64)
  const living = join(place.ledger, 'notes', `.${key}.${first.child.pid}-00000000.1.tmp`)
  const dead = join(place.ledger, 'notes', `.${key}.999999999-00000000.1.tmp`)
  for (const path of [living, dead]) writeFileSync(path, '')
  const second = start('naked', place)
  await second.call('read_ledger', {})
  assert.equal(existsSync(living), true)
  assert.equal(existsSync(dead), false)
  await Promise.all([first.end(), second.end()])
})

test('of two processes that write one request_id at once, exactly one wins, 200 times', async () => {
  const place = newPlace()
  const peers: readonly Peer[] = [start('naked', place), start('naked', place)]
  await Promise.all(peers.map((peer) => peer.call('read_ledger', {})))
  for (let round = 0; round < 200; round++) {
    const request_id = `req-race-${String(round).padStart(4, '0')}`
    const answers = await Promise.all(
      peers.map((peer, at) => peer.call('write_note', { request_id, text: `by ${at}` })),
    )
    const won = answers.map((answer) => answer.result?.isError !== true)
    assert.equal(won.filter(Boolean).length, 1, `round ${round}: ${JSON.stringify(answers)}`)
    const winner = won.indexOf(true)
    const stored = notes(place)
      .map((name) => readFileSync(join(place.ledger, 'notes', name), 'utf8'))
      .filter((text) => text.includes(request_id))
    assert.deepEqual(stored, [JSON.stringify({ request_id, text: `by ${winner}` })])
  }
  await Promise.all(peers.map((peer) => peer.end()))
})
