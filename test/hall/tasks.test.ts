// Tasks through the hall: a handle of the client's own, decided and recorded at each step, ended in the ledger.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { taskOf } from '../../src/gateway.ts'
import type { Reply } from '../../src/refusal.ts'
import { ALL, code, hall, plain, TASKS, told } from './rig.ts'

const WISH = { args: { id: 'raw-task-id', request_id: 'key-1' }, capabilities: TASKS }

/** The value of an answered result. */
function value(reply: Reply): Record<string, unknown> {
  if (reply.kind !== 'answered' || reply.answer.kind !== 'result')
    assert.fail(JSON.stringify(reply))
  return plain(reply.answer.value) as Record<string, unknown>
}

test('a task bears a name of its own, waits in the ledger, and ends with its result', async (t) => {
  const { call, entries, doors, client } = await hall(t, 'modern', {
    flags: ['--serve', 'tools,tasks'],
  })
  const made = value(await call('begin', WISH))
  assert.equal(made['resultType'], 'task')
  const id = String(made['taskId'])
  assert.ok(!id.includes('raw-task-id') && id.length > 40)
  assert.equal(entries().at(-1)?.outcome, 'awaiting')
  assert.equal(entries().at(-1)?.['awaits'], 'task')

  const again = await call('begin', WISH)
  assert.ok(again.kind === 'answered' && again.replayed)
  assert.equal(taskOf(String(value(again)['taskId']), client('p'), doors)?.task.id, 'raw-task-id')

  const from = entries().length
  const got = value(await call('', { method: 'tasks/get', task: id, capabilities: TASKS }))
  assert.equal(got['taskId'], id)
  assert.match(JSON.stringify(got['result']), /result of raw-task-id/)
  assert.deepEqual(told(entries(), from), ['call observed 1', 'outcome committed 1'])
  const [, settled] = entries().slice(from)
  assert.equal(settled?.name, 'begin')
  const operation = entries().find(({ kind }) => kind === 'intent')?.['operation']
  assert.equal(settled?.['operation'], operation)
  assert.equal(entries()[from]?.['task_operation'], operation)

  const done = await call('begin', WISH)
  assert.ok(done.kind === 'answered' && done.replayed)
  assert.match(JSON.stringify(value(done)), /result of raw-task-id/)
  const count = entries().length
  await call('', { method: 'tasks/get', task: id, capabilities: TASKS })
  assert.equal(entries().length, count + 1, 'a second look settles nothing')
})

test('a task that its server has forgotten is not told to work on, and never sent again', async (t) => {
  const { call, entries } = await hall(t, 'modern', { flags: ['--serve', 'tools,tasks'] })
  const wish = { ...WISH, args: { ...WISH.args, told: { forgotten: true } } }
  const id = String(value(await call('begin', wish))['taskId'])
  const from = entries().length
  const got = await call('', { method: 'tasks/get', task: id, capabilities: TASKS })
  assert.equal(got.kind === 'answered' && got.answer.kind, 'error')
  assert.deepEqual(told(entries(), from), ['call failed 1', 'outcome unknown outcome_unknown 1'])
  assert.equal(code(await call('begin', wish)), 'outcome_unknown')
})

test('the name of a task is in no record', async (t) => {
  const { call, entries } = await hall(t, 'modern', { flags: ['--serve', 'tools,tasks'] })
  const id = String(value(await call('begin', WISH))['taskId'])
  await call('', { method: 'tasks/get', task: id, capabilities: TASKS })
  await call('', { method: 'tasks/get', task: 'x'.repeat(40), capabilities: TASKS })
  const log = JSON.stringify(entries())
  assert.ok(!log.includes(id.slice(0, 60)) && !log.includes('xxxxxxxx'))
  assert.ok(!log.includes('raw-task-id'))
})

test('answering and cancelling a task are sends of their own', async (t) => {
  const { call, entries } = await hall(t, 'modern', { flags: ['--serve', 'tools,tasks'] })
  const id = String(value(await call('begin', WISH))['taskId'])
  const from = entries().length
  const task = { task: id, capabilities: { ...ALL, ...TASKS } }
  const responses = { who: { action: 'accept', content: { name: 'ana' } } }
  await call('', { method: 'tasks/update', ...task, responses })
  await call('', { method: 'tasks/cancel', ...task })
  assert.deepEqual(told(entries(), from), [
    'ask tasks/update answered 1',
    'intent pending 1',
    'outcome answered 1',
    'intent pending 1',
    'outcome answered 1',
  ])
  assert.ok(!JSON.stringify(entries()).includes('ana'))
})

test("another client's task, a made-up one and one of a tool that is not allowed any more are refused in the same words", async (t) => {
  const { call, client, policy, entries } = await hall(t, 'modern', {
    flags: ['--serve', 'tools,tasks'],
  })
  const id = String(value(await call('begin', WISH))['taskId'])
  const get = (task: string, profile: string): Promise<Reply> =>
    call('', { method: 'tasks/get', task, capabilities: TASKS, client: client(profile) })
  const replies = [await get(id, 'q'), await get(`${id}A`, 'p'), await get('made-up', 'p')]
  await policy('{ elicitation: true }', '[s/begin]')
  replies.push(await get(id, 'p'))
  for (const reply of replies) {
    assert.equal(code(reply), 'tool_denied')
    assert.ok(reply.kind === 'refused')
    assert.deepEqual([reply.as, reply.rpc, reply.sentence], ['error', -32602, 'unknown task'])
  }
  assert.equal(entries().at(-1)?.decision, 'deny')
})

test('a task that is answered with more than a server may ask is refused, in one record', async (t) => {
  const { call, entries } = await hall(t, 'modern', { flags: ['--serve', 'tools,tasks'] })
  const id = String(value(await call('begin', WISH))['taskId'])
  const from = entries().length
  const task = { task: id, capabilities: { ...ALL, ...TASKS } }
  const many = Array.from({ length: 65 }, (_, at) => [`k${at}`, { action: 'decline' }])
  const reply = await call('', {
    method: 'tasks/update',
    ...task,
    responses: Object.fromEntries(many),
  })
  assert.equal(code(reply), 'state_invalid')
  assert.equal(entries().length, from + 1)
})

test('a task is answered only with what may be asked of its client', async (t) => {
  const { call, entries } = await hall(t, 'modern', {
    granted: '{ elicitation: false, sampling: false, roots: [/proj] }',
    flags: ['--serve', 'tools,tasks'],
  })
  const id = String(value(await call('begin', WISH))['taskId'])
  const from = entries().length
  const task = { task: id, capabilities: { ...ALL, ...TASKS } }
  const responses = {
    who: { action: 'accept', content: { name: 'ana' } },
    model: { role: 'assistant', content: { type: 'text', text: 'x' }, model: 'm' },
    where: { roots: [{ uri: 'file:///proj/a' }, { uri: 'file:///etc' }] },
  }
  await call('', { method: 'tasks/update', ...task, responses })
  const asked = entries()
    .slice(from)
    .filter(({ kind }) => kind === 'ask')
  assert.equal(asked.length, 1)
})
