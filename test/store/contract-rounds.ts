// What every store must do with calls of several rounds, tasks, sealed tokens and revoked clients.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { Entry } from '../../src/ledger/entry.ts'
import type { Closing, Intent, Store, Ticket } from '../../src/ports.ts'
import type { Opened } from './contract.ts'
import { ANSWER, closing, draft, intent, nowUs, ticketOf } from './scene.ts'

const last = (entries: readonly Entry[]): Entry => {
  const entry = entries.at(-1)
  if (entry === undefined) assert.fail('no entry')
  return entry
}

const waiting = (store: Store, awaits: Closing['awaits'], other: Partial<Closing> = {}): Closing =>
  closing(store, { outcome: 'awaiting', awaits, store: null, ...other })

/** The intent of a later round. */
const round = (
  store: Store,
  key: string | null,
  of: { readonly ticket: Ticket; readonly round: number },
  other: Partial<Intent> = {},
): Intent => {
  const wish = intent(store, key, { continues: of.ticket.operation, round: of.round, ...other })
  return { ...wish, draft: { ...wish.draft, more: { round: of.round } } }
}

/** Registers the tests; `open` gives a new store that is stopped at the end of the test. */
export function contractOfRounds(
  name: string,
  open: (t: { after(work: () => unknown): void }) => Promise<Opened>,
): void {
  const first = async (
    store: Store,
    key: string | null,
    awaits: Closing['awaits'],
    other: Partial<Closing> = {},
  ): Promise<Ticket> => {
    const ticket = ticketOf(await store.open(intent(store, key)))
    await store.close(ticket, waiting(store, awaits, other))
    return ticket
  }

  for (const key of ['key-1', null]) {
    const which = key === null ? 'without a key' : 'with a key'

    test(`${name}: rounds ${which} are one operation, each recorded with its number`, async (t) => {
      const { store, entries } = await open(t)
      const ticket = await first(store, key, 'input')
      assert.equal(last(entries()).outcome, 'awaiting')
      assert.equal(last(entries())['awaits'], 'input')
      const second = ticketOf(await store.open(round(store, key, { ticket, round: 2 })))
      assert.equal(second.operation, ticket.operation)
      assert.equal(last(entries()).kind, 'intent')
      await store.close(second, closing(store))
      const [intent2, outcome2] = entries().slice(-2)
      for (const entry of [intent2, outcome2]) {
        assert.equal(entry?.round, 2)
        assert.equal(entry?.['operation'], ticket.operation)
      }
      assert.equal(outcome2?.outcome, 'committed')
    })

    test(`${name}: of fifty takers of one round ${which} exactly one gets it`, async (t) => {
      const { store, entries } = await open(t)
      const ticket = await first(store, key, 'input')
      const all = await Promise.all(
        Array.from({ length: 50 }, () => store.open(round(store, key, { ticket, round: 2 }))),
      )
      assert.equal(all.filter(({ kind }) => kind === 'ticket').length, 1)
      assert.equal(all.filter(({ kind }) => kind === 'ended').length, 49)
      assert.equal(last(entries()).code, 'state_invalid')
      assert.equal(last(entries()).decision, 'deny')
    })

    test(`${name}: a round ${which} whose answers were certainly not delivered may be taken up again`, async (t) => {
      const { store, entries } = await open(t)
      const ticket = await first(store, key, 'input')
      const wish = () => round(store, key, { ticket, round: 2 })
      await store.close(
        ticketOf(await store.open(wish())),
        closing(store, { outcome: 'unsent', answer: null, store: null }),
      )
      assert.equal(last(entries()).outcome, 'unsent')
      ticketOf(await store.open(wish()))
    })

    test(`${name}: a round ${which} of other arguments, another tool or another client is not to be had`, async (t) => {
      const { store } = await open(t)
      const ticket = await first(store, key, 'input')
      const others: readonly Partial<Intent>[] = [
        { args: store.digest('{"text":"two"}') },
        { tool: 'other' },
        { upstream: 'other' },
        { client: 'other' },
        { key: 'key-2' },
        { round: 3 },
        { round: 1 },
        { continues: 'f'.repeat(32) },
      ]
      for (const other of others) {
        const opened = await store.open(round(store, key, { ticket, round: 2 }, other))
        assert.deepEqual(opened, { kind: 'ended' }, JSON.stringify(other))
      }
      ticketOf(await store.open(round(store, key, { ticket, round: 2 })))
    })

    test(`${name}: a round ${which} after an unknown outcome is not sent again`, async (t) => {
      const { store } = await open(t)
      const ticket = await first(store, key, 'input')
      const second = ticketOf(await store.open(round(store, key, { ticket, round: 2 })))
      await store.close(
        second,
        closing(store, { outcome: 'unknown', code: 'timeout', answer: null, store: null }),
      )
      for (const number of [2, 3]) {
        const opened = await store.open(round(store, key, { ticket, round: number }))
        assert.deepEqual(opened, { kind: 'ended' })
      }
    })

    test(`${name}: a settled task ${which} has its outcome once`, async (t) => {
      const { store, entries } = await open(t)
      const ticket = await first(store, key, 'task')
      await store.settle(ticket.operation, closing(store))
      assert.equal(last(entries()).outcome, 'committed')
      assert.equal(last(entries()).kind, 'outcome')
      assert.equal(last(entries()).result_digest, store.digest(ANSWER).digest)
      const count = entries().length
      await store.settle(ticket.operation, closing(store))
      assert.equal(entries().length, count)
    })
  }

  test(`${name}: a finished key answers its last round again`, async (t) => {
    const { store } = await open(t)
    const ticket = await first(store, 'key-1', 'input')
    const second = ticketOf(await store.open(round(store, 'key-1', { ticket, round: 2 })))
    await store.close(second, closing(store))
    const again = await store.open(round(store, 'key-1', { ticket, round: 2 }))
    assert.equal(again.kind, 'replayed')
    assert.equal((await store.open(intent(store, 'key-1'))).kind, 'replayed')
  })

  test(`${name}: a key whose client was asked begins anew when it is called without the answers`, async (t) => {
    const { store, entries } = await open(t)
    const ticket = await first(store, 'key-1', 'input')
    const anew = ticketOf(await store.open(intent(store, 'key-1')))
    assert.equal(anew.operation, ticket.operation)
    assert.equal(last(entries()).round, 1)
    // The answers to the first question are for a round that is no more.
    const stale = await store.open(round(store, 'key-1', { ticket, round: 2 }))
    assert.deepEqual(stale, { kind: 'ended' })
    const other = store.digest('{"text":"two"}')
    assert.deepEqual(await store.open(intent(store, 'key-1', { args: other })), {
      kind: 'conflict',
    })
  })

  test(`${name}: what a round did before a question does not make its key unknown`, async (t) => {
    const { store } = await open(t)
    await first(store, 'key-1', 'input')
    const anew = ticketOf(await store.open(intent(store, 'key-1')))
    await store.close(anew, closing(store, { outcome: 'unsent', answer: null, store: null }))
    ticketOf(await store.open(intent(store, 'key-1', { args: store.digest('{"text":"two"}') })))
  })

  test(`${name}: a parked call keeps its key busy and goes on in its own process`, async (t) => {
    const { store } = await open(t)
    const ticket = await first(store, 'key-1', 'parked')
    assert.deepEqual(await store.open(intent(store, 'key-1')), { kind: 'busy' })
    const second = ticketOf(await store.open(round(store, 'key-1', { ticket, round: 2 })))
    await store.close(second, closing(store))
    assert.equal((await store.open(intent(store, 'key-1'))).kind, 'replayed')
  })

  test(`${name}: a parked call that came to its end by itself is settled`, async (t) => {
    const { store, entries } = await open(t)
    const ticket = await first(store, 'key-1', 'parked')
    const lost = closing(store, { outcome: 'unknown', code: 'timeout', answer: null, store: null })
    await store.settle(ticket.operation, lost)
    assert.equal(last(entries()).outcome, 'unknown')
    assert.deepEqual(await store.open(intent(store, 'key-1')), { kind: 'unknown' })
    const stale = await store.open(round(store, 'key-1', { ticket, round: 2 }))
    assert.deepEqual(stale, { kind: 'ended' })
  })

  test(`${name}: a key whose server works on a task replays the handle, then the result`, async (t) => {
    const { store } = await open(t)
    const handle = '{"result":{"resultType":"task","taskId":"t1"}}'
    const answer = { answer: store.digest(handle), store: handle }
    const ticket = await first(store, 'key-1', 'task', answer)
    const again = await store.open(intent(store, 'key-1'))
    assert.equal(again.kind, 'replayed')
    assert.equal(
      again.kind === 'replayed' && again.stored.answer?.kind === 'result'
        ? again.stored.answer.value['taskId']
        : '',
      't1',
    )
    assert.equal(again.kind === 'replayed' && again.stored.failed, false)
    await store.settle(ticket.operation, closing(store))
    const done = await store.open(intent(store, 'key-1'))
    assert.equal(done.kind === 'replayed' ? done.stored.digest : '', store.digest(ANSWER).digest)
  })

  test(`${name}: an outcome that contradicts the settled one is late and changes nothing`, async (t) => {
    const { store, entries } = await open(t)
    const ticket = await first(store, 'key-1', 'task')
    await store.settle(ticket.operation, closing(store))
    const other = store.digest('{"other":1}')
    await store.settle(ticket.operation, closing(store, { outcome: 'failed', answer: other }))
    assert.equal(last(entries()).outcome, 'late')
    assert.equal(last(entries())['late_outcome'], 'failed')
    const again = await store.open(intent(store, 'key-1'))
    assert.equal(again.kind === 'replayed' && again.stored.failed, false)
  })

  test(`${name}: rounds of a read are recorded as one operation`, async (t) => {
    const { store, entries } = await open(t)
    const read = { does: 'read', draft: draft({ request_id: 'observe' }) } as const
    const ticket = ticketOf(await store.open(intent(store, null, read)))
    await store.close(ticket, waiting(store, 'input'))
    assert.equal(last(entries()).outcome, 'awaiting')
    assert.equal(last(entries())['operation'], ticket.operation)
    const wish = round(store, null, { ticket, round: 2 }, { does: 'read' })
    const second = ticketOf(await store.open(wish))
    assert.equal(second.operation, ticket.operation)
    await store.close(second, closing(store, { outcome: 'observed', store: null }))
    assert.equal(last(entries()).round, 2)
    assert.equal(last(entries())['operation'], ticket.operation)
  })

  test(`${name}: a token opens for its purpose, unchanged, in its time and in its own ledger`, async (t) => {
    const { store } = await open(t)
    const other = await open(t)
    const until = nowUs() + 1_000_000
    const token = store.seal('state', '{"ação":1}', until)
    assert.match(token, /^[\x21-\x7e]+$/)
    assert.equal(store.unseal('state', token, until), '{"ação":1}')
    assert.equal(store.unseal('state', token, until + 1), null)
    assert.equal(store.unseal('task', token, until), null)
    assert.equal(other.store.unseal('state', token, until), null)
    assert.notEqual(token, store.seal('state', '{"ação":1}', until))
    for (let at = 0; at < token.length; at++) {
      for (const one of ['A', 'B']) {
        const bent = token.slice(0, at) + one + token.slice(at + 1)
        if (bent !== token) assert.equal(store.unseal('state', bent, until), null, bent)
      }
    }
    for (const bad of ['', 'x', `${token}A`, `${token}=`, ` ${token}`, token.slice(1), 'ção']) {
      assert.equal(store.unseal('state', bad, until), null, bad)
    }
  })
}
