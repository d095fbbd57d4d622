// The published shape of a configuration file: `eclusa.schema.json` is this value, and a test keeps it so.

/** The part of JSON Schema 2020-12 in which the shape is written, and which `shape.ts` reads. */
export type Shape = {
  readonly $schema?: string
  readonly $id?: string
  readonly title?: string
  readonly description?: string
  readonly $ref?: string
  readonly $defs?: Readonly<Record<string, Shape>>
  readonly type?: ShapeType
  readonly const?: string | number | boolean
  readonly enum?: readonly string[]
  readonly properties?: Readonly<Record<string, Shape>>
  readonly required?: readonly string[]
  readonly additionalProperties?: false | Shape
  readonly propertyNames?: Shape
  readonly minProperties?: number
  readonly items?: Shape
  readonly minItems?: number
  readonly maxItems?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly pattern?: string
  readonly oneOf?: readonly Shape[]
}
/** The types of JSON Schema. */
export type ShapeType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean' | 'null'

const ref = (name: string): Shape => ({ $ref: `#/$defs/${name}` })
const list = (items: Shape, maxItems = 1_000): Shape => ({ type: 'array', items, maxItems })
const map = (names: Shape, additionalProperties: Shape): Shape => ({
  type: 'object',
  propertyNames: names,
  additionalProperties,
})
const record = (
  properties: Readonly<Record<string, Shape>>,
  required?: readonly string[],
): Shape => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...(required === undefined ? {} : { required }),
})
const ANY: Shape = {}
const TEXT: Shape = { type: 'string', maxLength: 4_096 }
const BOOLEAN: Shape = { type: 'boolean' }
const OPEN: Shape = { type: 'object' }

const UPSTREAM: Shape = record({
  command: { type: 'array', items: TEXT, minItems: 1, maxItems: 256 },
  url: TEXT,
  headers: map(TEXT, TEXT),
  env: map(ref('variable'), TEXT),
  pass_env: list(ref('variable')),
  cwd: TEXT,
  allow_redirects: BOOLEAN,
  allow_private: BOOLEAN,
  era: { enum: ['auto', 'modern', 'legacy'] },
  share: BOOLEAN,
  probe: ref('duration'),
  call: ref('duration'),
  call_max: ref('duration'),
  list: ref('duration'),
})

const TOOL: Shape = record({
  effect: { enum: ['read', 'write', 'destructive'] },
  key: record({ at: ref('pointer'), honoured: BOOLEAN }),
  args: { ...OPEN, description: 'JSON Schema 2020-12, with path_under and host_in' },
  fields: list(TEXT),
  verify: OPEN,
  undo: OPEN,
  lookup: OPEN,
})

const RULE: Shape = record(
  {
    tool: ref('pattern'),
    when: ref('cel'),
    require: ref('cel'),
    code: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,64}$' },
    message: { type: 'string', minLength: 1, maxLength: 500 },
  },
  ['tool', 'require'],
)

const PROFILE: Shape = record({
  extends: ref('profileName'),
  allow: list(ref('pattern')),
  deny: list(ref('pattern')),
  rules: list(RULE),
  set: map(ref('tool'), { ...map({ type: 'string', minLength: 1 }, ANY), minProperties: 1 }),
  approve: map(ref('tool'), { oneOf: [{ const: 'none' }, OPEN] }),
  approves: list(ref('pattern')),
  resources: list({ type: 'string', minLength: 1, maxLength: 2_048 }),
  prompts: list(ref('pattern')),
  client: record({
    elicitation: BOOLEAN,
    sampling: BOOLEAN,
    roots: { oneOf: [BOOLEAN, list(TEXT)] },
  }),
  token: { enum: ['required', 'optional'] },
  result: { enum: ['full', 'spec', 'fields'] },
  limits: OPEN,
  envelope: ANY,
})

/** The shape of a configuration of version 2, and of a policy of version 2 in a file of its own. */
export const CONFIG_SHAPE: Shape = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: 'https://eclusa.dev/eclusa.schema.json',
  title: 'Eclusa configuration, version 2',
  ...record(
    {
      $schema: TEXT,
      version: { const: 2 },
      policy: { type: 'string', minLength: 1, maxLength: 4_096 },
      upstreams: map(ref('upstreamName'), UPSTREAM),
      tools: map(ref('tool'), TOOL),
      profiles: { ...map(ref('profileName'), PROFILE), minProperties: 1 },
      must_deny: list(
        record(
          {
            profile: ref('profileName'),
            tool: ref('tool'),
            args: OPEN,
            attributes: map(TEXT, TEXT),
          },
          ['profile', 'tool'],
        ),
      ),
      messages: map(
        { type: 'string', pattern: '^[a-z_]{1,40}$' },
        {
          oneOf: [
            { type: 'string', minLength: 1, maxLength: 500 },
            record({
              code: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,64}$' },
              message: { type: 'string', minLength: 1, maxLength: 500 },
            }),
          ],
        },
      ),
      pins: { enum: ['first_use', 'strict'] },
      state: record({ dir: { type: 'string', minLength: 1 }, create: BOOLEAN }),
      audit: record({ min_free: ref('size') }),
      limits: map(
        { type: 'string' },
        { oneOf: [{ type: 'integer', minimum: 1 }, { type: 'string' }] },
      ),
      drain: ref('duration'),
      durability: { enum: ['full', 'relaxed'] },
      anonymous: ref('profileName'),
      endpoints: {
        ...map(ref('path'), record({ profiles: { ...list(ref('profileName')), minItems: 1 } })),
        minProperties: 1,
        description: 'profiles by path',
      },
      public_url: TEXT,
      listen: {
        oneOf: [
          { type: 'integer', minimum: 0, maximum: 65_535 },
          { type: 'string', maxLength: 300 },
        ],
        description: 'HOST:PORT, or a port of 127.0.0.1',
      },
      allowed_hosts: list(ref('host')),
      allowed_origins: list(TEXT),
      keepalive: ref('duration'),
      session_idle: ref('duration'),
    },
    ['version'],
  ),
  $defs: {
    upstreamName: { type: 'string', pattern: '^[a-z0-9-]{1,20}$' },
    profileName: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$' },
    path: {
      type: 'string',
      pattern: '^(/[A-Za-z0-9._~-]{1,64}){1,8}$',
      description: 'a path such as /team-a/mcp',
    },
    host: {
      type: 'string',
      pattern: '^(\\[[0-9A-Fa-f:.]{2,45}\\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?$',
      description: 'a host, with or without a port',
    },
    variable: { type: 'string', pattern: '^[A-Za-z_][A-Za-z0-9_]{0,127}$' },
    tool: {
      type: 'string',
      pattern: '^[a-z0-9-]{1,20}/[^*]+$',
      maxLength: 300,
      description: 'upstream/tool',
    },
    pattern: {
      type: 'string',
      pattern: '^(\\*|[a-z0-9-]{1,20}/(\\*|[^*]+))$',
      maxLength: 300,
      description: 'upstream/tool, upstream/* or *',
    },
    pointer: { type: 'string', pattern: '^(/([^~/]|~[01])*)+$', maxLength: 500 },
    duration: { type: 'string', pattern: '^[0-9]{1,12}(ms|s|m|h|d)$' },
    size: {
      oneOf: [
        { type: 'integer', minimum: 0 },
        { type: 'string', pattern: '^[0-9]{1,15}(B|KiB|MiB|GiB|TiB)?$' },
      ],
    },
    cel: { type: 'string', minLength: 1, maxLength: 4_000 },
  },
}

const LENGTH: Shape = { type: 'integer', minimum: 0 }

/** The shape of a policy of version 1. */
export const VERSION_1_SHAPE: Shape = record(
  {
    version: { const: 1 },
    allow: list({ type: 'string', minLength: 1, maxLength: 300 }),
    deny: list({ type: 'string', minLength: 1, maxLength: 300 }),
    arg_rules: map(
      { type: 'string', minLength: 1 },
      map({ type: 'string' }, record({ min_len: LENGTH, max_len: LENGTH })),
    ),
  },
  ['version'],
)
