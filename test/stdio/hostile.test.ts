// No size, shape or chunking of the input, from either side, ends the program or grows its memory.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'

import { type Gate, startGate } from '../cases/harness.ts'
import { peakRss, rss } from '../cases/proc.ts'
import { ERAS, type Era, eventually, refusalCode, request, textOf } from '../cases/wire.ts'

const MB = 1_000_000
const LINE = 700 * MB
/** What a hostile peer may cost beyond an idle gateway. */
const MEMORY = 200 * MB
const TEXT = 'aé中😀 "\\ \u2028'

/** Runs `attack` on a gateway that has served one call, and holds its memory to the bound. */
async function attacked(
  t: TestContext,
  era: Era,
  attack: (gate: Gate) => Promise<void>,
): Promise<void> {
  const read = { effect: 'read' }
  const gate = await startGate(t, { era, tools: { 'up/echo': read, 'up/split': read } })
  await gate.call('echo', { text: 'idle' })
  const idle = rss(gate.pid)
  await attack(gate)
  assert.equal(textOf(await gate.call('echo', { text: 'alive' })), 'alive')
  const grown = peakRss(gate.pid) - idle
  t.diagnostic(`memory above idle: ${(grown / MB).toFixed(0)} MB`)
  assert.ok(grown < MEMORY, `${grown} bytes above idle`)
  gate.audit()
  assert.deepEqual(await gate.stop(), { code: 0, signal: null })
}

/** Writes `bytes` bytes of one character, as fast as they are taken. */
async function stream(gate: Gate, bytes: number): Promise<void> {
  const { stdin } = gate.child
  assert.ok(stdin !== null)
  const chunk = Buffer.alloc(1_024 * 1_024, 'x')
  for (let left = bytes; left > 0; left -= chunk.length) {
    if (!stdin.write(chunk.subarray(0, Math.min(left, chunk.length)))) await once(stdin, 'drain')
  }
}

const echo = (era: Era, id: string | number, text: string): string =>
  JSON.stringify(request(era, id, 'tools/call', { name: 'echo', arguments: { text } }))

test('a client line of 700 MB is one error and costs no memory', (t) =>
  attacked(t, 'modern', async (gate) => {
    const [head = '', tail = ''] = echo('modern', 'huge', '@').split('@')
    await gate.write(head)
    await stream(gate, LINE)
    await gate.write(`${tail}\n`)
    const refused = await gate.answer(null, 60_000)
    assert.equal(refused.error?.code, -32600)
    await gate.record('the line', ({ kind }) => kind === 'malformed')
  }))

test('an upstream line of 700 MB is one refused answer and costs no memory', (t) =>
  attacked(t, 'legacy', async (gate) => {
    const refused = await gate.call('torrent', { bytes: LINE }, { withinMs: 90_000 })
    assert.equal(refusalCode(refused), 'answer_refused')
    await gate.record(
      'its outcome',
      ({ kind, outcome, name }) =>
        kind === 'outcome' && outcome === 'unknown' && name === 'torrent',
    )
    assert.equal(gate.starts().length, 1)
  }))

for (const to of ['noise', 'words']) {
  test(`an upstream line of 700 MB that is ${to} costs no memory and no call`, (t) =>
    attacked(t, 'modern', async (gate) => {
      const passed = await gate.call('torrent', { bytes: LINE, to }, { withinMs: 90_000 })
      assert.equal(textOf(passed), 'done')
      assert.equal(gate.starts().length, 1)
      assert.ok(gate.errors().length < MB, `${gate.errors().length} bytes on stderr`)
    }))
}

for (const era of ERAS) {
  test(`${era}: 1,000 client messages in one chunk are answered one by one`, (t) =>
    attacked(t, era, async (gate) => {
      const plain = era === 'legacy' ? 'ping' : 'server/discover'
      const lines = Array.from({ length: 1_000 }, (_, n) =>
        n % 2 === 0 ? JSON.stringify(request(era, n, plain)) : echo(era, n, `text ${n}`),
      )
      await gate.write(`${lines.join('\n')}\n`)
      for (const n of lines.keys()) {
        const answer = await gate.answer(n)
        if (n % 2 === 0) assert.ok(answer.result !== undefined)
        else if (refusalCode(answer) !== 'too_many_calls') assert.equal(textOf(answer), `text ${n}`)
      }
    }))

  test(`${era}: 1,000 upstream messages in one chunk complete what they answer`, (t) =>
    attacked(t, era, async (gate) => {
      const type = era === 'modern' ? '"resultType":"complete",' : ''
      const right = `{"jsonrpc":"2.0","id":$ID,"result":{${type}"content":[{"type":"text","text":"right"}]}}`
      const lines = Array.from({ length: 999 }, (_, n) =>
        n % 2 === 0
          ? `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${n}}}`
          : `{"jsonrpc":"2.0","id":${1_000_000 + n},"result":{}}`,
      )
      assert.equal(textOf(await gate.call('line', { text: [...lines, right].join('\n') })), 'right')
      const held = Array.from({ length: 60 }, (_, n) =>
        gate.call('together', { count: 60, text: `${n}` }),
      )
      assert.deepEqual(
        (await Promise.all(held)).map(textOf),
        held.map((_, n) => `${n}`),
      )
    }))

  test(`${era}: bytes that come one at a time are lines all the same`, (t) =>
    attacked(t, era, async (gate) => {
      const bytes = Buffer.from(
        `\r\n${echo(era, 'one', TEXT)}\r\n\n{"half":\n${echo(era, 'two', TEXT)}\n`,
      )
      for (const byte of bytes) {
        await gate.write(Buffer.of(byte))
        await turn()
      }
      for (const id of ['one', 'two']) assert.equal(textOf(await gate.answer(id)), TEXT)
      assert.equal((await gate.answer(null)).error?.code, -32700)
      assert.equal(textOf(await gate.call('split', { text: TEXT, at: -1 })), TEXT)
    }))

  test(`${era}: a line may be cut anywhere, also inside a character`, (t) =>
    attacked(t, era, async (gate) => {
      const length = Buffer.from(echo(era, 100, TEXT)).length
      for (let at = 1; at <= length; at++) {
        const line = Buffer.from(`${echo(era, 99 + at, TEXT)}\n`)
        await gate.write(line.subarray(0, at))
        await turn()
        await gate.write(line.subarray(at))
        // Below the number of calls that may be in flight at once.
        if (at % 50 === 0) await gate.answer(99 + at)
      }
      for (let at = 1; at <= length; at++) {
        assert.equal(textOf(await gate.answer(99 + at)), TEXT)
      }
      for (let at = 1; at < 110; at += 1) {
        assert.equal(textOf(await gate.call('split', { text: TEXT, at })), TEXT)
      }
    }))

  test(`${era}: garbage between messages is refused line by line`, (t) =>
    attacked(t, era, async (gate) => {
      const garbage = garbageLines()
      const pieces: Buffer[] = []
      for (const [n, bytes] of garbage.entries()) {
        pieces.push(bytes, Buffer.from(`\n${echo(era, `g${n}`, TEXT)}\n`))
        // Below the number of calls that may be in flight at once.
        if (n % 20 === 19) {
          await gate.write(Buffer.concat(pieces.splice(0)))
          for (let k = n - 19; k <= n; k++) assert.equal(textOf(await gate.answer(`g${k}`)), TEXT)
        }
      }
      const refused = await eventually('an error for each', () => {
        const found = gate.messages().filter(({ id }) => id === null)
        return found.length >= garbage.length && found
      })
      assert.equal(refused.length, garbage.length)
      for (const { error } of refused) assert.ok([-32700, -32600].includes(error?.code ?? 0))
      assert.equal(gate.audit().filter(({ kind }) => kind === 'malformed').length, garbage.length)

      const base64 = Buffer.concat(garbage.flatMap((one) => [one, Buffer.of(10)])).toString(
        'base64',
      )
      assert.equal(textOf(await gate.call('bytes', { base64, text: TEXT })), TEXT)
      assert.equal(gate.starts().length, 1)
    }))
}

/** 60 lines that are no messages: chance bytes, and texts that almost are JSON. */
function garbageLines(): readonly Buffer[] {
  const texts = [
    '\0',
    '{',
    '}',
    '[',
    '[]',
    '[[]]',
    '""',
    '1',
    'null',
    'NaN',
    '{"a":1,}',
    "{'a':1}",
    '{"jsonrpc":"2.0"}',
    '\ufeff{}',
    '{"jsonrpc":"2.0","id":[],"method":"ping"}',
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"__proto__":{"id":1}}',
    '{"a":1,"a":1}',
    'Content-Length: 20',
    '['.repeat(100_000),
  ]
  const chance = Array.from({ length: 60 - texts.length }, (_, n) =>
    Buffer.concat([Buffer.of(0xff), randomBytes(1 + n * 50)]).map((byte) =>
      byte === 10 || byte === 13 ? 11 : byte,
    ),
  )
  return [...texts.map((text) => Buffer.from(text)), ...chance.map((one) => Buffer.from(one))]
}
