// Servers that others wrote answer through Eclusa as they answer directly, call by call.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'

import {
  configFile,
  type Ender,
  program,
  serve,
  stdioCommand,
  type Wish,
} from '../conformance/gateway.ts'
import { folder } from '../folder.ts'
import { COMPILED } from '../servers/compiled.ts'
import { asker, type Brought, type Deed, type Place } from './asker.ts'
import { type Subject, SUBJECTS } from './deeds.ts'

type Json = Record<string, unknown>

async function session(place: Place, deeds: readonly Deed[]): Promise<readonly Brought[]> {
  const one = await asker(place)
  try {
    const all: Brought[] = []
    for (const deed of deeds) all.push(await one.ask(deed))
    return all
  } finally {
    await one.close()
  }
}

/** Members that belong to a hop, and what docs/protocol.md says is not passed. */
const HOP = new Set(['resultType', 'ttlMs', 'cacheScope', 'io.modelcontextprotocol/serverInfo'])

function plain({ result, error }: Brought): Json {
  if (error !== undefined) return { error }
  const kept = Object.entries(result ?? {}).filter(([key]) => !HOP.has(key))
  const { tools, _meta, ...rest } = Object.fromEntries(kept)
  const meta = Object.entries((_meta ?? {}) as Json).filter(([key]) => !HOP.has(key))
  return {
    ...rest,
    ...(meta.length === 0 ? {} : { _meta: Object.fromEntries(meta) }),
    ...(tools === undefined ? {} : { tools: (tools as readonly Json[]).map(shownTool) }),
  }
}

/** The tasks of 2025-11-25 are not offered. */
const shownTool = (tool: Json): Json =>
  Object.fromEntries(Object.entries(tool).filter(([key]) => key !== 'execution'))

/** Times that a server puts into a text. */
const timeless = (value: Json): Json =>
  JSON.parse(JSON.stringify(value).replace(/\b\d{1,2}:\d\d:\d\d( [AP]M)?/g, 'TIME')) as Json

function compare(subject: Subject, dir: string, all: Record<string, readonly Brought[]>): void {
  const { direct = [], ...others } = all
  for (const [at, deed] of subject.deeds(dir).entries()) {
    const expected = direct[at]
    assert.ok(expected !== undefined)
    for (const [way, brought] of Object.entries(others)) {
      const actual = brought[at]
      assert.ok(actual !== undefined)
      const what = `${JSON.stringify(deed).slice(0, 200)} by ${way}`
      assert.deepEqual(actual.progress, expected.progress, what)
      assert.deepEqual(timeless(plain(actual)), timeless(plain(expected)), what)
    }
  }
}

/** Starts a server that listens on the port that it is given. */
async function listening(t: Ender, command: readonly string[], pattern: RegExp): Promise<string> {
  const port = await freePort()
  const [, ...args] = command
  const { url } = await program(t, args, { pattern, env: { PORT: String(port) } })
  return `http://127.0.0.1:${url}/mcp`
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

const toolNames = (brought: Brought | undefined): readonly string[] =>
  ((brought?.result?.['tools'] ?? []) as readonly { readonly name: string }[]).map(
    ({ name }) => name,
  )

for (const subject of SUBJECTS) {
  test(`${subject.name} answers through Eclusa as it does directly`, async (t) => {
    const root = folder('eclusa-differential-')
    const dir = join(root, 'world')
    const [command, env] = [subject.command(dir), subject.env(dir)]
    const deeds = subject.deeds(dir)
    const by = async (place: Place): Promise<readonly Brought[]> => {
      subject.fresh(dir)
      return session(place, deeds)
    }
    const far = subject.listens === undefined ? null : await listening(t, command, subject.listens)
    const direct = await by(
      far === null ? { kind: 'program', command, env } : { kind: 'http', url: far, era: 'legacy' },
    )
    const tools = toolNames(direct[0])
    assert.ok(tools.length > 0, 'it lists no tools')
    const upstream = far === null ? { command, env: { ...COMPILED, ...env } } : { url: far }
    const wish: Wish = { upstream, tools, resources: subject.resources }
    subject.fresh(dir)
    const url = await serve(t, wish)
    const all = {
      direct,
      'stdio, legacy': await by({
        kind: 'program',
        command: stdioCommand(configFile(wish)),
        env: {},
      }),
      'http, legacy': await by({ kind: 'http', url, era: 'legacy' }),
      'http, modern': await by({ kind: 'http', url, era: 'modern' }),
    }
    compare(subject, dir, all)
  })
}
