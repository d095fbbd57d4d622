// The tools of the fixture that ask the client: written once, the SDK asks in the manner of either era.

import {
  acceptedContent,
  CLIENT_CAPABILITIES_META_KEY,
  type CallToolResult,
  createRequestStateCodec,
  type ClientCapabilities,
  type ElicitRequestFormParams,
  inputRequired,
  type InputRequests,
  type InputRequiredResult,
  type JsonSchemaType,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server'

import { said } from './fixture-stage.ts'

type Schema = ElicitRequestFormParams['requestedSchema']

/** One tool that asks. */
export type AskingTool = {
  readonly name: string
  readonly schema: JsonSchemaType
  readonly run: (
    args: Record<string, unknown>,
    ctx: ServerContext,
  ) => Promise<CallToolResult | InputRequiredResult>
}

const NONE: JsonSchemaType = { type: 'object', properties: {} }

/** Seals the state of rounds, so that a client cannot write one. */
export const states: RequestStateCodec<{ readonly round: number }> = createRequestStateCodec({
  key: 'a key of the fixture, thirty-two bytes',
})

const form = (message: string, requestedSchema: Schema): InputRequests[string] =>
  inputRequired.elicit({ message, requestedSchema })

const strings = (...names: readonly string[]): Schema => ({
  type: 'object',
  properties: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  required: [...names],
})

const sample = (text: string, maxTokens: number): InputRequests[string] =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text } }],
    maxTokens,
  })

const responded = (ctx: ServerContext, key: string): Record<string, unknown> | undefined => {
  const response = ctx.mcpReq.inputResponses?.[key]
  return typeof response === 'object' && response !== null
    ? (response as Record<string, unknown>)
    : undefined
}

/** Asks one thing without a state and says what came. */
const once = (
  name: string,
  key: string,
  ask: (args: Record<string, unknown>) => InputRequests[string],
  words: (response: Record<string, unknown>) => string,
): AskingTool => ({
  name,
  schema: NONE,
  run: async (args, ctx) => {
    const response = responded(ctx, key)
    if (response === undefined) return inputRequired({ inputRequests: { [key]: ask(args) } })
    return said(words(response))
  },
})

const told = (response: Record<string, unknown>): string =>
  `Elicitation completed: action=${String(response['action'])}, content=${JSON.stringify(response['content'] ?? {})}`

const LEGACY: readonly AskingTool[] = [
  {
    ...once(
      'test_sampling',
      'sample',
      ({ prompt }) => sample(String(prompt), 100),
      (response) => `LLM response: ${JSON.stringify(response['content'])}`,
    ),
    schema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
  },
  {
    ...once(
      'test_elicitation',
      'user',
      ({ message }) =>
        form(String(message), {
          type: 'object',
          properties: {
            username: { type: 'string', description: "User's response" },
            email: { type: 'string', description: "User's email address" },
          },
          required: ['username', 'email'],
        }),
      (response) => `User response: ${JSON.stringify(response)}`,
    ),
    schema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
  },
  once(
    'test_elicitation_sep1034_defaults',
    'defaults',
    () =>
      form('Please check what is filled in', {
        type: 'object',
        properties: {
          name: { type: 'string', default: 'John Doe' },
          age: { type: 'integer', default: 30 },
          score: { type: 'number', default: 95.5 },
          status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', default: true },
        },
        required: [],
      }),
    told,
  ),
  once('test_elicitation_sep1330_enums', 'choices', () => form('Please choose', ENUMS), told),
]

const options = (word: string): { const: string; title: string }[] =>
  ['First', 'Second', 'Third'].map((title, at) => ({
    const: `value${at + 1}`,
    title: `${title} ${word}`,
  }))

const ENUMS: Schema = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: options('Option') },
    legacyEnum: {
      type: 'string',
      enum: ['opt1', 'opt2', 'opt3'],
      enumNames: ['Option One', 'Option Two', 'Option Three'],
    },
    untitledMulti: {
      type: 'array',
      items: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    },
    titledMulti: { type: 'array', items: { anyOf: options('Choice') } },
  },
  required: [],
}

const NAME = strings('name')
const CONFIRM: Schema = {
  type: 'object',
  properties: { ok: { type: 'boolean' } },
  required: ['ok'],
}

/** What every tool of `input_required` but the last few asks for first. */
export const whatName = (): InputRequests[string] => form('What is your name?', NAME)

const BASIC: readonly AskingTool[] = [
  once('test_input_required_result_elicitation', 'user_name', whatName, (response) => {
    const { name } = (response['content'] ?? {}) as { readonly name?: string }
    return `Hello, ${name ?? 'nobody'}!`
  }),
  once(
    'test_input_required_result_sampling',
    'capital_question',
    () => sample('What is the capital of France?', 100),
    (response) => JSON.stringify(response['content']),
  ),
  once(
    'test_input_required_result_list_roots',
    'client_roots',
    () => inputRequired.listRoots(),
    (response) => `roots: ${JSON.stringify(response['roots'])}`,
  ),
  once('test_streaming_elicitation', 'user_name', whatName, (response) => JSON.stringify(response)),
]

/** Asks one thing with a sealed state. */
const sealed = (name: string, words: string): AskingTool => ({
  name,
  schema: NONE,
  run: async (_args, ctx) => {
    const state = ctx.mcpReq.requestState<{ readonly round: number }>()
    if (state === undefined || responded(ctx, 'confirm') === undefined) {
      return inputRequired({
        inputRequests: { confirm: form('Please confirm', CONFIRM) },
        requestState: await states.mint({ round: 1 }),
      })
    }
    return said(words)
  },
})

const MULTIPLE: AskingTool = {
  name: 'test_input_required_result_multiple_inputs',
  schema: NONE,
  run: async (_args, ctx) => {
    const keys = ['user_name', 'greeting', 'client_roots']
    if (keys.some((key) => responded(ctx, key) === undefined)) {
      return inputRequired({
        inputRequests: {
          user_name: whatName(),
          greeting: sample('Generate a greeting', 50),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await states.mint({ round: 1 }),
      })
    }
    return said(`all three: ${JSON.stringify(ctx.mcpReq.inputResponses)}`)
  },
}

const ROUNDS: AskingTool = {
  name: 'test_input_required_result_multi_round',
  schema: NONE,
  run: async (_args, ctx) => {
    const round = ctx.mcpReq.requestState<{ readonly round: number }>()?.round ?? 0
    if (round === 0 || (round === 1 && responded(ctx, 'step1') === undefined)) {
      return inputRequired({
        inputRequests: { step1: form('Step 1: What is your name?', NAME) },
        requestState: await states.mint({ round: 1 }),
      })
    }
    if (round === 1 || responded(ctx, 'step2') === undefined) {
      return inputRequired({
        inputRequests: { step2: form('Step 2: What is your favorite color?', strings('color')) },
        requestState: await states.mint({ round: 2 }),
      })
    }
    return said('both steps are done')
  },
}

type Declared = { readonly [CLIENT_CAPABILITIES_META_KEY]?: ClientCapabilities }

const ABLE: AskingTool = {
  name: 'test_input_required_result_capabilities',
  schema: NONE,
  run: async (_args, ctx) => {
    if (Object.keys(ctx.mcpReq.inputResponses ?? {}).length > 0) return said('thank you')
    const { envelope } = ctx.mcpReq
    const able: ClientCapabilities =
      envelope === undefined
        ? { sampling: {} }
        : ((envelope as Declared)[CLIENT_CAPABILITIES_META_KEY] ?? {})
    return inputRequired({
      inputRequests: {
        ...(able.elicitation === undefined ? {} : { user_name: whatName() }),
        ...(able.sampling === undefined ? {} : { greeting: sample('Generate a greeting', 50) }),
      },
    })
  },
}

/** Asks for a sample whether or not the client can give one. A legacy server may do that; a modern one is
 *  stopped by the SDK, with the error that the protocol has for it. */
const MISSING: AskingTool = {
  name: 'test_missing_capability',
  schema: NONE,
  run: async (_args, ctx) => {
    if (ctx.mcpReq.envelope !== undefined) {
      if (responded(ctx, 'word') !== undefined) return said('sampled')
      return inputRequired({ inputRequests: { word: sample('Say yes', 10) } })
    }
    // Not requestSampling: that speaks on the session's own stream, where nothing names the call.
    const message = { role: 'user' as const, content: { type: 'text' as const, text: 'Say yes' } }
    const params = { messages: [message], maxTokens: 10 }
    await ctx.mcpReq.send({ method: 'sampling/createMessage', params })
    return said('sampled')
  },
}

/** Tools that ask. */
export const ASKING: readonly AskingTool[] = [
  ...LEGACY,
  ...BASIC,
  sealed('test_input_required_result_request_state', 'state-ok'),
  sealed('test_input_required_result_tampered_state', 'the state was good'),
  MULTIPLE,
  ROUNDS,
  ABLE,
  MISSING,
]

/** The text of the prompt that asks first, or null when the client has to be asked. */
export const contextOf = (ctx: ServerContext): string | null =>
  acceptedContent<{ context: string }>(ctx.mcpReq.inputResponses, 'user_context')?.context ?? null

/** What the prompt that asks first asks. */
export const askContext = (): InputRequiredResult =>
  inputRequired({
    inputRequests: {
      user_context: form('What context should the prompt use?', strings('context')),
    },
  })
