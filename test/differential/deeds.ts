// What is asked of each server that others wrote, and how it is started.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

import type { Deed } from './asker.ts'

type Json = Record<string, unknown>

/** A server of the comparison. `fresh` makes the folder as it is before the first deed. `listens`: it is reached
 *  over HTTP, and this matches what it says when it can be. */
export type Subject = {
  readonly name: string
  readonly command: (dir: string) => readonly string[]
  readonly env: (dir: string) => Record<string, string>
  readonly fresh: (dir: string) => void
  readonly deeds: (dir: string) => readonly Deed[]
  readonly resources: readonly string[]
  readonly listens?: RegExp
}

const MODULES = resolve(import.meta.dirname, '../../node_modules')
const node = (path: string, ...args: readonly string[]): readonly string[] => [
  process.execPath,
  join(MODULES, path),
  ...args,
]

const call = (name: string, args: Json = {}): Deed => ({
  method: 'tools/call',
  params: { name, arguments: args },
})
const LIST: Deed = { method: 'tools/list' }

const nothing = (dir: string): void => {
  rmSync(dir, { recursive: true, force: true })
  mkdirSync(dir, { recursive: true })
}

const STATIC = 'demo://resource/static/document'

const everything: Subject = {
  name: 'server-everything',
  command: () => node('@modelcontextprotocol/server-everything/dist/index.js'),
  env: () => ({}),
  fresh: nothing,
  resources: ['demo://resource/*'],
  deeds: () => [
    LIST,
    call('echo', { message: 'olá, 世界 \u{1f512}' }),
    call('echo', { message: 'x'.repeat(100_000) }),
    call('echo', {}),
    call('get-sum', { a: 40, b: 2.5 }),
    call('get-sum', { a: 'forty', b: 2 }),
    call('get-annotated-message', { messageType: 'error', includeImage: true }),
    call('get-annotated-message', { messageType: 'debug' }),
    call('get-tiny-image'),
    call('get-resource-links', { count: 3 }),
    call('get-resource-reference', { resourceType: 'Text', resourceId: 2 }),
    call('get-structured-content', { location: 'Chicago' }),
    call('gzip-file-as-resource', {
      name: 'note.gz',
      data: 'data:text/plain,hello%20there',
      outputType: 'resource',
    }),
    call('trigger-long-running-operation', { duration: 0.3, steps: 3 }),
    call('trigger-elicitation-request'),
    call('trigger-sampling-request', { prompt: 'say something', maxTokens: 10 }),
    { method: 'prompts/list' },
    { method: 'prompts/get', params: { name: 'simple-prompt' } },
    { method: 'prompts/get', params: { name: 'args-prompt', arguments: { city: 'Porto' } } },
    { method: 'prompts/get', params: { name: 'args-prompt', arguments: {} } },
    {
      method: 'prompts/get',
      params: { name: 'resource-prompt', arguments: { resourceType: 'Text', resourceId: '1' } },
    },
    {
      method: 'completion/complete',
      params: {
        ref: { type: 'ref/prompt', name: 'completable-prompt' },
        argument: { name: 'department', value: 'S' },
      },
    },
    {
      method: 'completion/complete',
      params: {
        ref: { type: 'ref/resource', uri: 'demo://resource/dynamic/text/{resourceId}' },
        argument: { name: 'resourceId', value: '1' },
      },
    },
    { method: 'resources/list' },
    { method: 'resources/templates/list' },
    { method: 'resources/read', params: { uri: `${STATIC}/features.md` } },
    { method: 'resources/read', params: { uri: 'demo://resource/dynamic/text/7' } },
    { method: 'resources/read', params: { uri: 'demo://resource/dynamic/text/nonsense' } },
  ],
}

const everythingOverHttp: Subject = {
  ...everything,
  name: 'server-everything over HTTP',
  command: () => node('@modelcontextprotocol/server-everything/dist/index.js', 'streamableHttp'),
  listens: /listening on port (\d+)/,
}

const filesystem: Subject = {
  name: 'server-filesystem',
  command: (dir) => node('@modelcontextprotocol/server-filesystem/dist/index.js', dir),
  env: () => ({}),
  fresh: (dir) => {
    nothing(dir)
    mkdirSync(join(dir, 'notes'))
    writeFileSync(join(dir, 'notes/a.txt'), 'one\ntwo\nthree\n')
    writeFileSync(join(dir, 'picture.png'), Buffer.from('89504e470d0a1a0a', 'hex'))
  },
  resources: [],
  deeds: (dir) => [
    LIST,
    call('list_allowed_directories'),
    call('read_text_file', { path: join(dir, 'notes/a.txt') }),
    call('read_text_file', { path: join(dir, 'notes/a.txt'), head: 1 }),
    call('read_text_file', { path: join(dir, 'notes/none.txt') }),
    call('read_text_file', { path: '/etc/passwd' }),
    call('read_media_file', { path: join(dir, 'picture.png') }),
    call('write_file', { path: join(dir, 'notes/b.txt'), content: 'línea\r\n\u{1f511}\n' }),
    call('edit_file', {
      path: join(dir, 'notes/a.txt'),
      edits: [{ oldText: 'two', newText: 'deux' }],
      dryRun: true,
    }),
    call('edit_file', {
      path: join(dir, 'notes/a.txt'),
      edits: [{ oldText: 'two', newText: 'deux' }],
    }),
    call('edit_file', {
      path: join(dir, 'notes/a.txt'),
      edits: [{ oldText: 'absent', newText: 'x' }],
    }),
    call('create_directory', { path: join(dir, 'more/deep') }),
    call('move_file', {
      source: join(dir, 'notes/b.txt'),
      destination: join(dir, 'more/deep/b.txt'),
    }),
    call('read_multiple_files', {
      paths: [join(dir, 'more/deep/b.txt'), join(dir, 'notes/gone.txt')],
    }),
    call('list_directory', { path: dir }),
    call('list_directory_with_sizes', { path: dir, sortBy: 'size' }),
    call('directory_tree', { path: dir }),
    call('search_files', { path: dir, pattern: '**/*.txt' }),
    call('read_text_file', {}),
  ],
}

const memory: Subject = {
  name: 'server-memory',
  command: () => node('@modelcontextprotocol/server-memory/dist/index.js'),
  env: (dir) => ({ MEMORY_FILE_PATH: join(dir, 'memory.jsonl') }),
  fresh: nothing,
  resources: ['memory://knowledge-graph'],
  deeds: () => [
    LIST,
    call('read_graph'),
    call('create_entities', {
      entities: [
        { name: 'Ana', entityType: 'person', observations: ['reads'] },
        { name: 'Rui', entityType: 'person', observations: [] },
      ],
    }),
    call('create_relations', { relations: [{ from: 'Ana', to: 'Rui', relationType: 'knows' }] }),
    call('add_observations', { observations: [{ entityName: 'Ana', contents: ['writes'] }] }),
    call('add_observations', { observations: [{ entityName: 'Nobody', contents: ['x'] }] }),
    call('search_nodes', { query: 'ana' }),
    call('open_nodes', { names: ['Rui', 'Nobody'] }),
    call('delete_observations', {
      deletions: [{ entityName: 'Ana', observations: ['reads'] }],
    }),
    call('delete_relations', { relations: [{ from: 'Ana', to: 'Rui', relationType: 'knows' }] }),
    call('delete_entities', { entityNames: ['Rui'] }),
    call('read_graph'),
    { method: 'resources/list' },
    { method: 'resources/read', params: { uri: 'memory://knowledge-graph' } },
  ],
}

const playwright: Subject = {
  name: '@playwright/mcp',
  command: () => node('@playwright/mcp/cli.js', '--headless', '--isolated'),
  env: () => ({}),
  fresh: nothing,
  resources: [],
  deeds: () => [LIST],
}

/** The servers that are compared. */
export const SUBJECTS: readonly Subject[] = [
  everything,
  everythingOverHttp,
  filesystem,
  memory,
  playwright,
]
