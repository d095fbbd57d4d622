// What the tests of `eclusa explain` share: a shell with the program on its path, and a server with any menu.

import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

import { openReader } from '../../src/store/reader.ts'
import { COMPILED } from '../servers/compiled.ts'
import { type Bag, type Message, request } from '../cases/wire.ts'

const MAIN = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url))
/** A server that takes its tools from the flag `--menu`. */
export const SERVER: string = fileURLToPath(new URL('../servers/scripted.ts', import.meta.url))

export type Ran = { readonly status: number | null; readonly out: string; readonly err: string }
/** A folder with a program `eclusa` on its path, and a home of its own. */
export type Shell = {
  readonly folder: string
  /** The state directory of the short form, and that beside a file. */
  readonly short: string
  readonly beside: string
  readonly env: Readonly<Record<string, string>>
  readonly file: (name: string, text?: string) => string
  readonly run: (line: string, more?: Bag) => Ran
  /** Runs a command that serves, and calls one tool or sends another request. */
  readonly call: (line: string, method: string, params: Bag, more?: Bag) => Promise<Message>
}

/** A shell in a folder of its own. */
export function shell(t: TestContext): Shell {
  const folder = mkdtempSync(join(tmpdir(), 'eclusa-explain-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const program = join(bin, 'eclusa')
  writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`)
  chmodSync(program, 0o700)
  mkdirSync(join(folder, 'work'))
  const cwd = join(folder, 'work')
  const env = {
    PATH: `${bin}:${process.env['PATH']}`,
    HOME: folder,
    ...COMPILED,
  }
  return {
    folder: cwd,
    short: join(folder, '.local/state/eclusa'),
    beside: join(cwd, '.eclusa'),
    env,
    file(name, text) {
      if (text !== undefined) writeFileSync(join(cwd, name), text)
      return join(cwd, name)
    },
    run(line, more = {}) {
      const ran = spawnSync('/bin/sh', ['-c', line], {
        cwd,
        env: { ...env, ...more },
        encoding: 'utf8',
        input: '',
      })
      return { status: ran.status, out: ran.stdout, err: ran.stderr }
    },
    async call(line, method, params, more = {}) {
      const child = spawn('/bin/sh', ['-c', `exec ${line}`], {
        cwd,
        env: { ...env, ...more },
        stdio: ['pipe', 'pipe', 'pipe'],
      })
      let words = ''
      child.stderr.setEncoding('utf8').on('data', (text: string) => (words += text))
      const ended = new Promise((resolve) => child.once('close', resolve))
      child.stdin.write(`${JSON.stringify(request('modern', 1, method, params))}\n`)
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      const { value } = (await lines.next()) as { value: string | undefined }
      child.stdin.end()
      await ended
      assert.ok(value !== undefined, `${line} gave no answer: ${words}`)
      return JSON.parse(value) as Message
    },
  }
}

/** The params of a call. */
export const tool = (name: string, args: Bag = {}): Bag => ({ name, arguments: args })
/** True for an answer of the server. */
export const passed = (answer: Message): boolean =>
  answer.result !== undefined && answer.result.isError !== true
/** The answer is a denial. */
export const denied = (answer: Message): void =>
  assert.match(String(answer.error?.message), /denied/, JSON.stringify(answer))

/** What explain says of the last denial in `dir`; the program finds it by itself or by `flags`. */
export function explained(
  sh: Shell,
  dir: string,
  { flags = '', env = {} }: { readonly flags?: string; readonly env?: Bag } = {},
): { readonly seq: number; readonly out: string; readonly commands: readonly string[] } {
  const reader = openReader(dir)
  const lines = [...reader.entries(0)]
  reader.close()
  const seq = lines.findLastIndex((line) => line.includes('"decision":"deny"'))
  assert.ok(seq > 0, 'there is a denial')
  const { status, out, err } = sh.run(`eclusa explain ${seq} ${flags}`, env)
  assert.equal(status, 0, err)
  const commands = out.split('\n').filter((line) => /^ {2}(?:ECLUSA_STATE=.+ )?eclusa /.test(line))
  return { seq, out, commands: commands.map((line) => line.trim()) }
}

/** The only one of a list. */
export function ONE<T>(items: readonly T[]): T {
  const [item, ...others] = items
  assert.ok(item !== undefined && others.length === 0, JSON.stringify(items))
  return item
}

/** Tools of these names that do nothing, and one resource. */
export const menu = (...names: readonly string[]): string =>
  JSON.stringify({
    tools: names.map((name) => ({
      definition: { name, inputSchema: { type: 'object', additionalProperties: true } },
      result: { content: [{ type: 'text', text: 'done' }] },
    })),
    resources: [{ definition: { uri: 'notes://a', name: 'a' } }],
    reads: { 'notes://a': { contents: [{ uri: 'notes://a', text: 'a' }] } },
  })

/** For a POSIX shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`
