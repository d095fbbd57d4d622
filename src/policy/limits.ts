// The one table of named limits, and the units in which a configuration writes sizes and times.

/** Every limit that a configuration may move. Bytes, counts, milliseconds or days, as the name ends.
 *  `calls`: at once. `keyDays`: an idempotency key answers with its stored answer that long and is refused
 *  `keyRefusedDays` more. */
export type Limits = {
  readonly requestBytes: number
  readonly upstreamBytes: number
  readonly depth: number
  readonly keys: number
  readonly nodes: number
  readonly stderrLineBytes: number
  readonly calls: number
  readonly storedAnswerBytes: number
  readonly keyDays: number
  readonly keyRefusedDays: number
  readonly listItems: number
  readonly listPages: number
}

/** Source: design.md 3; the list ceilings are those of `docs/policy.md`. */
export const DEFAULT_LIMITS: Limits = {
  requestBytes: 4 * 1024 * 1024,
  upstreamBytes: 16 * 1024 * 1024,
  depth: 64,
  keys: 10_000,
  nodes: 200_000,
  stderrLineBytes: 8 * 1024,
  calls: 64,
  storedAnswerBytes: 256 * 1024,
  keyDays: 30,
  keyRefusedDays: 30,
  listItems: 10_000,
  listPages: 1_000,
}

/** How each limit is called in a file, its unit, and the range in which it may be moved. */
export const LIMIT_NAMES: Readonly<
  Record<
    string,
    {
      readonly limit: keyof Limits
      readonly unit: 'bytes' | 'count' | 'days'
      readonly most: number
    }
  >
> = {
  request: { limit: 'requestBytes', unit: 'bytes', most: 256 * 1024 * 1024 },
  upstream_message: { limit: 'upstreamBytes', unit: 'bytes', most: 256 * 1024 * 1024 },
  depth: { limit: 'depth', unit: 'count', most: 64 },
  keys: { limit: 'keys', unit: 'count', most: 1_000_000 },
  nodes: { limit: 'nodes', unit: 'count', most: 10_000_000 },
  stderr_line: { limit: 'stderrLineBytes', unit: 'bytes', most: 1024 * 1024 },
  calls_at_once: { limit: 'calls', unit: 'count', most: 10_000 },
  stored_answer: { limit: 'storedAnswerBytes', unit: 'bytes', most: 64 * 1024 * 1024 },
  keys_kept: { limit: 'keyDays', unit: 'days', most: 3_650 },
  keys_refused: { limit: 'keyRefusedDays', unit: 'days', most: 3_650 },
  list_items: { limit: 'listItems', unit: 'count', most: 1_000_000 },
  list_pages: { limit: 'listPages', unit: 'count', most: 100_000 },
}

const SIZES: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  TiB: 1024 ** 4,
}

/** Bytes of `64KiB`, `4MiB`, `512` and the like, or null. */
export function sizeOf(text: string | number): number | null {
  return scaled(String(text), /^([0-9]{1,15})(B|KiB|MiB|GiB|TiB)?$/, SIZES)
}

const TIMES: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Milliseconds of `500ms`, `2s`, `15m`, `24h`, `30d`, or null. */
export const durationOf = (text: string): number | null =>
  scaled(text, /^([0-9]{1,12})(ms|s|m|h|d)$/, TIMES)

function scaled(
  text: string,
  form: RegExp,
  units: Readonly<Record<string, number>>,
): number | null {
  const [, digits, unit = ''] = form.exec(text) ?? []
  const factor = units[unit]
  if (digits === undefined || factor === undefined) return null
  const value = Number(digits) * factor
  return Number.isSafeInteger(value) ? value : null
}
