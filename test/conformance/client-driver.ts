// The client under test of the suite: Eclusa between the suite's server and an SDK client that does what each
// scenario wants done. `client-driver.ts URL`.

import { Client, type ClientOptions } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'

import { configFile, stdioCommand } from './gateway.ts'

const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? ''
const version = process.env['MCP_CONFORMANCE_PROTOCOL_VERSION'] ?? ''
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: Args }[]
}
const url = process.argv.at(-1) ?? ''

type Args = Record<string, unknown>

const INVALID = [
  'empty_header',
  'object_header',
  'array_header',
  'null_header',
  'number_header',
  'duplicate_same_case',
  'duplicate_diff_case',
  'space_in_name',
  'colon_in_name',
  'non_ascii_name',
  'control_char_name',
].map((name) => `invalid_${name}`)

const TOOLS = [
  'add_numbers',
  'json_schema_2020_12_tool',
  'json_schema_echo',
  'lookup_user',
  'my-hyphenated-tool',
  'test_client_elicitation_defaults',
  'test_custom_headers',
  'test_custom_headers_null',
  'test_headers',
  'test_mrtr_echo_state',
  'test_mrtr_no_result_type',
  'test_mrtr_no_state',
  'test_mrtr_unrelated',
  'test_reconnection',
  'valid_tool',
  ...INVALID,
]

const file = configFile({
  upstream: { url },
  tools: TOOLS,
  resources: ['file:///path/*', 'https://example.com/*'],
})

const options: ClientOptions = {
  capabilities: { elicitation: { form: { applyDefaults: true } }, sampling: {}, roots: {} },
  versionNegotiation: { mode: version >= '2026' ? 'auto' : 'legacy' },
}
const client = new Client({ name: 'conformance-driver', version: '1.0.0' }, options)
const call = (name: string, args: Args = {}): Promise<unknown> =>
  client.callTool({ name, arguments: args })

client.setRequestHandler('elicitation/create', async () => {
  // Between the rounds of another call, as somebody who does two things at once.
  if (scenario === 'sep-2322-client-request-state') {
    await call('test_mrtr_unrelated')
    return { action: 'accept', content: { confirmed: true } }
  }
  return { action: 'accept', content: {} }
})

/** What each scenario wants done; the others want a connection and the list of tools. */
const DOES: Readonly<Record<string, () => Promise<unknown>>> = {
  tools_call: () => call('add_numbers', { a: 5, b: 3 }),
  'elicitation-sep1034-client-defaults': () => call('test_client_elicitation_defaults'),
  'sse-retry': () => call('test_reconnection'),
  'sep-2322-client-request-state': async () => {
    await call('test_mrtr_echo_state')
    await call('test_mrtr_no_state')
    await call('test_mrtr_no_result_type')
  },
  'http-standard-headers': async () => {
    await call('test_headers')
    await call('my-hyphenated-tool')
    const { resources } = await client.listResources()
    for (const { uri } of resources) await client.readResource({ uri })
    const { prompts } = await client.listPrompts()
    for (const { name } of prompts) await client.getPrompt({ name })
  },
  'http-custom-headers': async () => {
    for (const { name, arguments: args } of context.toolCalls ?? []) await call(name, args)
  },
  'http-invalid-tool-headers': async () => {
    await call('valid_tool', { region: 'eu' })
    // What is not listed is not to be called; whoever tries is refused before the server hears of it.
    for (const name of INVALID) await call(name, { value: 'x' }).catch(() => null)
  },
  'json-schema-ref-no-deref': () => client.listTools(),
  'json-schema-2020-12-preservation': async () => {
    const { tools } = await client.listTools()
    const focal = tools.find(({ name }) => name === 'json_schema_2020_12_tool')
    await call('json_schema_echo', { schema: focal?.inputSchema })
  },
}

const [command = '', ...args] = stdioCommand(file)
const transport = new StdioClientTransport({ command, args, stderr: 'inherit' })
try {
  await client.connect(transport)
  await client.listTools()
  await DOES[scenario]?.()
} finally {
  await client.close()
}
