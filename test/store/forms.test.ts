// The forms of records between the two threads of the store.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { type Draft, emptyDraft } from '../../src/ledger/entry.ts'
import { formsIn, formsOut } from '../../src/store/forms.ts'
import type { Filling, Request } from '../../src/store/wire.ts'

type Recording = Extract<Request, { readonly kind: 'record' }>

const whole: Draft = {
  ...emptyDraft('call', 1),
  request_id: 'observe',
  method: 'tools/call',
  name: 'read',
  decision: 'allow',
  outcome: 'observed',
  rule: '/profiles/0',
  client: 'reader',
  profile: 'reader',
  identity: 'declared',
  transport: 'stdio',
  args_digest: 'a',
  args_bytes: 2,
  result_digest: 'b',
  result_bytes: 3,
  duration_us: 4,
  policy: 'p',
  facts: { definition: 'd', pin: 'approved' },
  more: { upstream: 'up' },
}

/** Another value for every member that a draft has, whatever members it may get. */
const other = (value: Draft[keyof Draft]): unknown => {
  if (typeof value === 'number') return value + 1
  if (typeof value === 'string') return `${value}x`
  if (Array.isArray(value)) return [{ rule: 'r', field: null }]
  return value === null ? 'some' : { ...value, one: 'more' }
}

function pass(recordings: readonly Recording[]): readonly Request[] {
  const out = formsOut()
  const into = formsIn()
  return recordings.map((recording) => {
    const element: Request | Filling = JSON.parse(out.text(recording))
    return into.request(element)
  })
}

const plain = (request: Request | undefined): unknown => {
  assert.ok(request?.kind === 'record')
  const { id, draft, segment } = request
  return { id, draft, segment }
}

test('every record arrives as it was sent, whichever member differs from the one before', () => {
  const drafts: Draft[] = [whole]
  for (const key of Object.keys(whole)) {
    const value = other(Reflect.get(whole, key))
    drafts.push({ ...whole, [key]: value }, whole)
  }
  for (const facts of [null, { definition: null, pin: 'new' }, { definition: 'd', pin: 'new' }]) {
    drafts.push({ ...whole, facts }, { ...whole, facts }, whole)
  }
  for (const more of [{}, { upstream: 'other' }, { target: 'up' }]) drafts.push({ ...whole, more })
  const sent = drafts.map((draft, id): Recording => ({ id, kind: 'record', draft, segment: 's' }))
  sent.push({ id: 999, kind: 'record', draft: whole, segment: 'another' })
  assert.deepEqual(pass(sent).map(plain), sent.map(plain))
})

test('a record of a known form goes over as less than a third of its text', () => {
  const out = formsOut()
  const first = out.text({ id: 1, kind: 'record', draft: whole, segment: 's' })
  const second = out.text({ id: 2, kind: 'record', draft: { ...whole, ts: 9 }, segment: 's' })
  assert.ok(second.length * 3 < first.length, `${second.length} of ${first.length}`)
})

test('more kinds of records than are kept still arrive as they were sent', () => {
  const sent = Array.from({ length: 500 }, (_, id): Recording => {
    const draft = { ...whole, ts: id, name: `tool-${(id * 7) % 150}` }
    return { id, kind: 'record', draft, segment: 's' }
  })
  assert.deepEqual(pass(sent).map(plain), sent.map(plain))
})
