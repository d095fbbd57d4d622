// What every store must do, whatever it stands on. A store's own test file runs it.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import type { Store } from '../../src/ports.ts'
import { ANSWER, closing, draft, intent, nowUs, random, ticketOf } from './scene.ts'

/** A store with nothing in it, and its whole record so far, checked. */
export type Opened = { readonly store: Store; readonly entries: () => readonly Entry[] }

const DAY_US = 24 * 3600 * 1_000_000
const definition = (hash: string) => ({ name: 'write_note', value: { name: 'write_note' }, hash })
const last = (entries: readonly Entry[]): Entry => {
  const entry = entries.at(-1)
  if (entry === undefined) assert.fail('no entry')
  return entry
}

/** Registers the tests; `open` gives a new store that is stopped at the end of the test. */
export function contract(
  name: string,
  open: (t: { after(work: () => unknown): void }) => Promise<Opened>,
): void {
  test(`${name}: an appended record is in the ledger when the promise resolves`, async (t) => {
    const { store, entries } = await open(t)
    await store.append(draft({ name: 'rm_rf' }))
    const entry = last(entries())
    assert.equal(entry.name, 'rm_rf')
    assert.equal(entry.outcome, 'not_executed')
  })

  test(`${name}: records appended at once keep their order`, async (t) => {
    const { store, entries } = await open(t)
    await Promise.all(Array.from({ length: 300 }, (_, n) => store.append(draft({ name: `n${n}` }))))
    const names = entries().flatMap((entry) => (entry.kind === 'call' ? [entry.name] : []))
    assert.deepEqual(
      names,
      Array.from({ length: 300 }, (_, n) => `n${n}`),
    )
  })

  test(`${name}: a record that cannot be written fails alone`, async (t) => {
    const { store, entries } = await open(t)
    const wrong = store.append(draft({ duration_us: 0.5 }))
    const right = store.append(draft({ name: 'after' }))
    await assert.rejects(wrong, { code: 'not_recorded' })
    await right
    assert.equal(last(entries()).name, 'after')
    assert.equal(store.health(), true)
  })

  test(`${name}: a digest names the key of the open segment`, async (t) => {
    const { store, entries } = await open(t)
    const digest = store.digest('{"ação":1}')
    assert.equal(digest.bytes, 12)
    assert.notEqual(digest.digest, store.digest('{}').digest)
    await store.append(draft({ args_digest: digest.digest, args_bytes: digest.bytes }))
    assert.equal(last(entries()).segment, digest.segment)
  })

  test(`${name}: a mutation has its intent before its ticket and its outcome before close resolves`, async (t) => {
    const { store, entries } = await open(t)
    const wish = intent(store, 'key-1')
    const ticket = ticketOf(await store.open(wish))
    assert.equal(ticket.operation, wish.operation)
    assert.equal(last(entries()).kind, 'intent')
    assert.equal(last(entries()).outcome, 'pending')
    assert.equal(last(entries()).request_id, 'key-1')
    await store.close(ticket, closing(store))
    assert.equal(last(entries()).kind, 'outcome')
    assert.equal(last(entries()).outcome, 'committed')
    assert.equal(last(entries()).result_digest, store.digest(ANSWER).digest)
  })

  test(`${name}: a read is minted a ticket without a record and has one at close`, async (t) => {
    const { store, entries } = await open(t)
    const before = entries().length
    const wish = intent(store, null, { does: 'read', draft: draft({ request_id: 'observe' }) })
    const ticket = ticketOf(await store.open(wish))
    assert.equal(entries().length, before)
    await store.close(ticket, closing(store, { outcome: 'observed', store: null }))
    assert.equal(entries().length, before + 1)
    assert.equal(last(entries()).kind, 'call')
    assert.equal(last(entries()).outcome, 'observed')
  })

  test(`${name}: a finished key is replayed with its answer, digit for digit`, async (t) => {
    const { store, entries } = await open(t)
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), closing(store))
    const again = await store.open(intent(store, 'key-1'))
    assert.equal(again.kind, 'replayed')
    if (again.kind !== 'replayed') return
    assert.equal(again.stored.failed, false)
    assert.equal(
      again.stored.answer?.kind === 'result' ? again.stored.answer.text : '',
      '{"content":[],"big":12345678901234567890}',
    )
    assert.equal(last(entries()).outcome, 'replay')
    assert.equal(last(entries()).result_digest, store.digest(ANSWER).digest)
  })

  test(`${name}: an answer above the limit is not kept, its digest and size are`, async (t) => {
    const { store } = await open(t)
    const long = `{"result":{"text":"${'x'.repeat(300_000)}"}}`
    const ticket = ticketOf(await store.open(intent(store, 'key-1')))
    await store.close(ticket, closing(store, { store: long, answer: store.digest(long) }))
    const again = await store.open(intent(store, 'key-1'))
    assert.deepEqual(again, {
      kind: 'replayed',
      stored: {
        answer: null,
        digest: store.digest(long).digest,
        bytes: long.length,
        failed: false,
      },
    })
  })

  test(`${name}: a key in flight is busy, and other arguments under it are a conflict`, async (t) => {
    const { store, entries } = await open(t)
    const ticket = ticketOf(await store.open(intent(store, 'key-1')))
    const other = store.digest('{"text":"two"}')
    assert.deepEqual(await store.open(intent(store, 'key-1')), { kind: 'busy' })
    assert.equal(last(entries()).code, 'busy')
    assert.equal(last(entries()).outcome, 'not_executed')
    assert.deepEqual(await store.open(intent(store, 'key-1', { args: other })), {
      kind: 'conflict',
    })
    assert.equal(last(entries()).code, 'key_conflict')
    await store.close(ticket, closing(store))
    assert.deepEqual(await store.open(intent(store, 'key-1', { args: other })), {
      kind: 'conflict',
    })
  })

  test(`${name}: the same key of another client, upstream or tool is another key`, async (t) => {
    const { store } = await open(t)
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), closing(store))
    for (const other of [{ client: 'b' }, { upstream: 'b' }, { tool: 'b' }]) {
      const opened = await store.open(intent(store, 'key-1', other))
      assert.equal(opened.kind, 'ticket', JSON.stringify(other))
    }
  })

  test(`${name}: of fifty claims of one key at once exactly one gets the ticket`, async (t) => {
    const { store } = await open(t)
    const all = await Promise.all(
      Array.from({ length: 50 }, () => store.open(intent(store, 'key-1'))),
    )
    assert.equal(all.filter(({ kind }) => kind === 'ticket').length, 1)
    assert.equal(all.filter(({ kind }) => kind === 'busy').length, 49)
  })

  test(`${name}: what was certainly not executed frees the key`, async (t) => {
    const { store, entries } = await open(t)
    const unsent = closing(store, {
      outcome: 'unsent',
      code: 'upstream_down',
      answer: null,
      store: null,
    })
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), unsent)
    const other = store.digest('{"text":"two"}')
    const second = await store.open(intent(store, 'key-1', { args: other }))
    ticketOf(second)
    assert.equal(entries().filter(({ kind }) => kind === 'intent').length, 2)
  })

  const lost = (store: Store) =>
    closing(store, { outcome: 'unknown', code: 'timeout', answer: null, store: null })

  test(`${name}: after an unknown outcome the key is not sent again`, async (t) => {
    const { store, entries } = await open(t)
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), lost(store))
    assert.deepEqual(await store.open(intent(store, 'key-1')), { kind: 'unknown' })
    assert.equal(last(entries()).code, 'outcome_unknown')
  })

  test(`${name}: after an unknown outcome an honoured key is sent again, and stays unknown when that send did nothing`, async (t) => {
    const { store } = await open(t)
    const wish = { honoured: true }
    await store.close(ticketOf(await store.open(intent(store, 'key-1', wish))), lost(store))
    const second = ticketOf(await store.open(intent(store, 'key-1', wish)))
    await store.close(second, closing(store, { outcome: 'unsent', answer: null, store: null }))
    assert.deepEqual(await store.open(intent(store, 'key-1')), { kind: 'unknown' })
    ticketOf(await store.open(intent(store, 'key-1', wish)))
  })

  test(`${name}: a failed answer is final for its key unless the server honours the key`, async (t) => {
    const { store } = await open(t)
    const failed = closing(store, { outcome: 'failed' })
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), failed)
    const again = await store.open(intent(store, 'key-1'))
    assert.equal(again.kind === 'replayed' && again.stored.failed, true)
    ticketOf(await store.open(intent(store, 'key-1', { honoured: true })))
  })

  test(`${name}: a second close is late and settles an unknown outcome, once`, async (t) => {
    const { store, entries } = await open(t)
    const ticket = ticketOf(await store.open(intent(store, 'key-1')))
    await store.close(ticket, lost(store))
    await store.close(ticket, closing(store))
    assert.equal(last(entries()).outcome, 'late')
    assert.equal(last(entries())['late_outcome'], 'committed')
    assert.equal((await store.open(intent(store, 'key-1'))).kind, 'replayed')
    await store.close(ticket, closing(store, { outcome: 'failed' }))
    const again = await store.open(intent(store, 'key-1'))
    assert.equal(again.kind === 'replayed' && again.stored.failed, false)
  })

  test(`${name}: a late answer of an earlier send does not end the later one`, async (t) => {
    const { store, entries } = await open(t)
    const wish = { honoured: true }
    const first = ticketOf(await store.open(intent(store, 'key-1', wish)))
    await store.close(first, lost(store))
    ticketOf(await store.open(intent(store, 'key-1', wish)))
    await store.close(first, closing(store))
    assert.equal(last(entries()).outcome, 'late')
    assert.deepEqual(await store.open(intent(store, 'key-1', wish)), { kind: 'busy' })
  })

  test(`${name}: a finished key is refused after its days, and free after the days of refusal`, async (t) => {
    const { store, entries } = await open(t)
    await store.close(ticketOf(await store.open(intent(store, 'key-1'))), closing(store))
    const at = (days: number) => {
      const wish = intent(store, 'key-1')
      return { ...wish, draft: { ...wish.draft, ts: nowUs() + days * DAY_US } }
    }
    assert.equal((await store.open(at(29))).kind, 'replayed')
    assert.equal((await store.open(at(31))).kind, 'expired')
    assert.equal(last(entries()).code, 'key_expired')
    assert.equal((await store.open(at(61))).kind, 'ticket')
  })

  test(`${name}: keyless mutations do not stand in each other's way`, async (t) => {
    const { store } = await open(t)
    const first = ticketOf(await store.open(intent(store, null)))
    const second = ticketOf(await store.open(intent(store, null)))
    await store.close(first, closing(store, { outcome: 'answered', store: null }))
    await store.close(second, closing(store, { outcome: 'answered', store: null }))
  })

  test(`${name}: a ticket of another store closes nothing`, async (t) => {
    const { store } = await open(t)
    const other = await open(t)
    const ticket = ticketOf(await other.store.open(intent(other.store, 'key-1')))
    await assert.rejects(store.close(ticket, closing(store)), { code: 'outcome_not_recorded' })
  })

  test(`${name}: a new pin is used, the same again is no record, another hash waits beside it`, async (t) => {
    const { store, entries } = await open(t)
    const tool = 'notes/write_note'
    await store.pin([{ tool, definition: definition('h1'), state: 'approved' }], 'writer')
    assert.deepEqual(store.pins().get(tool), { tool, hash: 'h1', waiting: null })
    assert.equal(last(entries()).kind, 'pin')
    const count = entries().length
    await store.pin([{ tool, definition: definition('h1'), state: 'approved' }], 'writer')
    assert.equal(entries().length, count)
    await store.pin([{ tool, definition: definition('h2'), state: 'approved' }], 'writer')
    assert.deepEqual(store.pins().get(tool), { tool, hash: 'h1', waiting: 'h2' })
    await store.pin([{ tool: 'notes/b', definition: definition('h3'), state: 'waits' }], null)
    assert.deepEqual(store.pins().get('notes/b'), { tool: 'notes/b', hash: null, waiting: 'h3' })
  })

  test(`${name}: a call that stands on a definition that is not approved is withheld and recorded`, async (t) => {
    const { store, entries } = await open(t)
    const tool = 'notes/write_note'
    await store.pin([{ tool, definition: definition('h1'), state: 'approved' }], 'writer')
    for (const does of ['write', 'read'] as const) {
      assert.deepEqual(await store.open(intent(store, null, { pin: 'h2', does })), {
        kind: 'withheld',
      })
      assert.equal(last(entries()).code, 'definition_changed')
      ticketOf(await store.open(intent(store, null, { pin: 'h1', does })))
    }
  })

  test(`${name}: what is known of a key is recalled with its approved definition, without a claim`, async (t) => {
    const { store, entries } = await open(t)
    const wish = { ...intent(store, 'key-1', { pin: 'h1' }), nowUs: nowUs(), key: 'key-1' }
    await store.pin(
      [{ tool: 'notes/write_note', definition: definition('h1'), state: 'approved' }],
      'writer',
    )
    assert.equal(await store.recall(wish), null, 'a key that nobody used')
    const ticket = ticketOf(await store.open(wish))
    const count = entries().length
    assert.equal((await store.recall(wish))?.hash, 'h1', 'in flight')
    await store.close(ticket, closing(store, { outcome: 'unsent', store: null }))
    assert.equal(await store.recall(wish), null, 'certainly not executed')
    const second = ticketOf(await store.open(intent(store, 'key-1', { pin: 'h1' })))
    await store.close(second, closing(store, { outcome: 'unknown', store: null }))
    assert.equal((await store.recall(wish))?.hash, 'h1', 'not known')
    assert.equal(await store.recall({ ...wish, honoured: true }), null, 'would be sent again')
    await store.close(second, closing(store))
    const recalled = await store.recall({ ...wish, honoured: true })
    assert.equal(JSON.stringify(recalled?.value), '{"name":"write_note"}', 'done')
    const other = { ...wish, args: store.digest('{"other":1}') }
    assert.equal((await store.recall(other))?.hash, 'h1', 'a conflict')
    for (const elsewhere of [{ client: 'x' }, { upstream: 'x' }, { tool: 'x' }, { key: 'x' }])
      assert.equal(await store.recall({ ...wish, ...elsewhere }), null)
    assert.equal(await store.recall({ ...wish, nowUs: nowUs() + 61 * DAY_US }), null, 'long ago')
    assert.equal(entries().length, count + 4)
    await store.stop()
    await assert.rejects(store.recall(wish), { code: 'not_recorded' })
  })

  test(`${name}: after stop nothing is recorded any more and every call says so`, async (t) => {
    const { store, entries } = await open(t)
    await Promise.all([store.append(draft({ name: 'queued' })), store.stop()])
    const kinds = entries().map(({ kind }) => kind)
    assert.equal(kinds.at(-1), 'stop')
    assert.ok(entries().some(({ name: one }) => one === 'queued'))
    await assert.rejects(store.append(draft()), { code: 'not_recorded' })
    await assert.rejects(store.open(intent(store, random())), { code: 'not_recorded' })
  })
}
