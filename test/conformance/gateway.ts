// `eclusa serve` and fixture servers as real processes, for tests that only look from outside.

import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { TestContext } from 'node:test'

import { folder } from '../folder.ts'
import { COMPILED } from '../servers/compiled.ts'

/** A way of ending what a test began. */
export type Ender = Pick<TestContext, 'after'>

/** How the gateway reaches a server: what stands under a name of `upstreams:`. */
export type UpstreamEntry = Readonly<Record<string, unknown>>

/** A fixture as an upstream: its eras and how it is reached. */
export type Fixture = {
  readonly eras: 'modern' | 'legacy' | 'both'
  readonly transport: 'http' | 'stdio'
  /** The program; the fixture on the official SDK 2 when absent. */
  readonly program?: string
}

const ROOT = resolve(import.meta.dirname, '../..')
const MAIN = join(ROOT, 'src/cli/main.ts')
const FIXTURE = join(ROOT, 'test/servers/fixture.ts')
const START_MS = 60_000

/** Starts a program that says its URL, or a part of it, as the group of a pattern; it ends with the test. */
export async function program(
  t: Ender,
  args: readonly string[],
  options: { readonly pattern: RegExp; readonly env?: Readonly<Record<string, string>> },
): Promise<{ readonly url: string; readonly child: ChildProcess; readonly said: () => string }> {
  const child = spawn(process.execPath, [...args], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: process.env['HOME'] ?? '',
      ...COMPILED,
      ...options.env,
    },
  })
  const gone = new Promise<void>((end) => child.once('close', () => end()))
  t.after(async () => {
    child.kill('SIGTERM')
    await Promise.race([gone, sleep(8000).then(() => child.kill('SIGKILL'))])
    await gone
  })
  let text = ''
  const url = await new Promise<string>((found, failed) => {
    const timer = setTimeout(() => failed(new Error(`no URL was said:\n${text}`)), START_MS)
    const hear = (part: Buffer): void => {
      text = (text + part.toString()).slice(-50_000)
      const match = options.pattern.exec(text)
      if (match?.[1] === undefined) return
      clearTimeout(timer)
      found(match[1])
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.once('exit', (code) => {
      clearTimeout(timer)
      failed(new Error(`ended with ${String(code)}:\n${text}`))
    })
  })
  return { url, child, said: () => text }
}

const sleep = (ms: number): Promise<void> =>
  new Promise((end) => {
    setTimeout(end, ms).unref()
  })

/** The entry of a fixture under `upstreams:`, started where it is one that listens. */
export async function fixtureEntry(t: Ender, fixture: Fixture): Promise<UpstreamEntry> {
  const file = fixture.program ?? FIXTURE
  const eras = fixture.program === undefined ? ['--eras', fixture.eras] : []
  if (fixture.transport === 'stdio') {
    return { command: [process.execPath, file, ...eras], env: COMPILED }
  }
  const { url } = await program(t, [file, '--http', ...eras], { pattern: /^(http:\S+)\n/ })
  return { url }
}

/** What the fixture offers, by exact name, so that no definition waits for approval. */
export const FIXTURE_TOOLS: readonly string[] = [
  'test_simple_text',
  'test_image_content',
  'test_audio_content',
  'test_embedded_resource',
  'test_multiple_content_types',
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_error_handling',
  'json_schema_2020_12_tool',
  'test_header_tool',
  'test_reconnection',
  'test_missing_capability',
  'test_logging_tool',
  'test_trigger_tool_change',
  'test_trigger_prompt_change',
  'test_trigger_resource_update',
  'test_changing_tool',
  'test_wait',
  'test_sum',
  'test_sampling',
  'test_elicitation',
  'test_elicitation_sep1034_defaults',
  'test_elicitation_sep1330_enums',
  'test_streaming_elicitation',
  'test_input_required_result_elicitation',
  'test_input_required_result_sampling',
  'test_input_required_result_list_roots',
  'test_input_required_result_request_state',
  'test_input_required_result_tampered_state',
  'test_input_required_result_multiple_inputs',
  'test_input_required_result_multi_round',
  'test_input_required_result_capabilities',
  'greet',
  'slow_compute',
  'failing_job',
  'protocol_error_job',
  'confirm_delete',
  'multi_input',
  'test_tool_with_task',
]

/** What a configuration for a test says of its one upstream. */
export type Wish = {
  readonly upstream: UpstreamEntry
  readonly tools: readonly string[]
  readonly resources?: readonly string[]
}

/** Writes the configuration of a gateway that allows all of this. */
export function configFile(wish: Wish): string {
  const dir = folder('eclusa-suite-')
  const config = {
    version: 2,
    listen: '127.0.0.1:0',
    anonymous: 'agent',
    upstreams: { up: wish.upstream },
    profiles: {
      agent: {
        allow: wish.tools.map((name) => `up/${name}`),
        resources: wish.resources ?? ['test://*'],
        prompts: ['*'],
        client: { elicitation: true, sampling: true, roots: true },
        result: 'full',
      },
    },
  }
  const file = join(dir, 'eclusa.yaml')
  writeFileSync(file, JSON.stringify(config))
  return file
}

/** Starts `eclusa serve`; resolves with the URL of its endpoint. */
export async function serve(t: Ender, wish: Wish): Promise<string> {
  const file = configFile(wish)
  const args = [MAIN, 'serve', '--config', file]
  const { url } = await program(t, args, { pattern: /serving (http:\S+?)[;,]/ })
  return url
}

/** The command of `eclusa stdio` with this configuration. */
export const stdioCommand = (file: string): readonly string[] => [
  process.execPath,
  MAIN,
  'stdio',
  '--config',
  file,
]
