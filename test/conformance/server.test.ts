// The official conformance suite against `eclusa serve`, in front of one fixture by four ways.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

import { parse } from 'yaml'

import { FIXTURE_TOOLS, type Fixture, fixtureEntry, serve } from './gateway.ts'
import { conformance, required, type Run } from './suite.ts'

const LONG = process.env['ECLUSA_LONG'] === '1'
const LEGS: readonly Fixture[] = [
  { eras: 'modern', transport: 'http' },
  { eras: 'modern', transport: 'stdio' },
  { eras: 'legacy', transport: 'http' },
  { eras: 'legacy', transport: 'stdio' },
]

/** How many scenarios of each revision are required; more may run. Source: requirements of the suite, and its
 *  own lists for revisions that have none. */
const REQUIRED: Readonly<Record<string, number>> = {
  '2026-07-28': 37,
  '2025-11-25': 30,
  '2025-06-18': 27,
  '2025-03-26': 1,
}

type Baseline = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>
const BASELINE = parse(readFileSync(join(import.meta.dirname, 'baseline.yaml'), 'utf8')) as Baseline

/** Missed checks as `scenario/check`, with the suite's words. */
const missed = (run: Run): ReadonlyMap<string, string> =>
  new Map(
    [...run].flatMap(([scenario, shown]) =>
      [...shown.missed].map(([id, why]) => [`${scenario}/${id}`, why] as const),
    ),
  )

const META = 'io.modelcontextprotocol/'

/** The suite waits 600 ms for a question of a legacy server, which has a process or session of its own for each
 *  client that can be asked: what has to start has started when it begins. */
async function warm(url: string): Promise<void> {
  const full = { elicitation: {}, sampling: {}, roots: { listChanged: true } }
  for (const capabilities of [{}, { elicitation: {} }, full]) {
    for (const method of ['tools/list', 'tools/call']) {
      const meta = {
        [`${META}protocolVersion`]: '2026-07-28',
        [`${META}clientCapabilities`]: capabilities,
      }
      const name = method === 'tools/call' ? { name: 'test_simple_text' } : {}
      const reply = await fetch(url, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': '2026-07-28',
          'Mcp-Method': method,
          ...(method === 'tools/call' ? { 'Mcp-Name': 'test_simple_text' } : {}),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...name, _meta: meta } }),
      })
      assert.equal(reply.status, 200, await reply.text())
    }
  }
}

/** A scenario whose waits are short by the suite's own clock: on a busy machine it gets a second look. */
const TIMED = 'server-stateless'

async function whole(url: string, revision: string): Promise<Run> {
  const against = ['server', '--url', url, '--spec-version', revision]
  const run = await conformance([...against, '--suite', 'all'])
  if ((run.get(TIMED)?.missed.size ?? 0) === 0) return run
  return new Map([...run, ...(await conformance([...against, '--scenario', TIMED]))])
}

function judge(run: Run, expected: Readonly<Record<string, string>>, revision: string): void {
  for (const scenario of required(revision, 'server')) {
    assert.ok(run.has(scenario), `${scenario} did not run at ${revision}`)
  }
  assert.ok(run.size >= (REQUIRED[revision] ?? 0), `only ${run.size} scenarios at ${revision}`)
  const bad = missed(run)
  const news = [...bad].filter(([name]) => expected[name] === undefined)
  assert.deepEqual(news, [], `checks failed at ${revision}`)
  const stale = Object.keys(expected).filter((name) => !bad.has(name))
  assert.deepEqual(stale, [], `these pass at ${revision}; take them out of baseline.yaml`)
}

for (const leg of LEGS) {
  const name = `${leg.eras} ${leg.transport}`
  test(`the conformance suite passes in front of a server by ${name}`, async (t) => {
    const url = await serve(t, {
      upstream: await fixtureEntry(t, leg),
      tools: FIXTURE_TOOLS,
    })
    await warm(url)
    for (const revision of Object.keys(REQUIRED)) {
      await t.test(revision, async () => {
        const run = await whole(url, revision)
        judge(run, BASELINE[name]?.[revision] ?? {}, revision)
      })
    }
    await t.test('tasks', { skip: !LONG || leg.eras === 'legacy' }, async () => {
      const args = ['--requirements', '2026-07-28']
      const run = await conformance(['server', '--url', url, ...args])
      assert.equal([...run.keys()].filter((one) => one.startsWith('tasks-')).length, 10)
      judge(run, {}, '2026-07-28')
    })
  })
}

test('the fixture itself passes the suite, without a gateway', { skip: !LONG }, async (t) => {
  const { url } = await fixtureEntry(t, { eras: 'both', transport: 'http' })
  const against = ['server', '--url', String(url)]
  judge(await conformance([...against, '--requirements', '2026-07-28']), {}, '2026-07-28')
  judge(await conformance([...against, '--requirements', '2025-11-25']), {}, '2025-11-25')
})
