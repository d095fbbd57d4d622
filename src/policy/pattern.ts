// Names and patterns: tools and prompts by exact name, `up/*` or `*`; resources by URI or prefix.

/** One entry of a list of a policy. `source` is its text; `path` its JSON Pointer. */
export type Entry = { readonly source: string; readonly path: string }

/** Entries made ready to be matched against names of the form `upstream/name`. */
export type NameList = {
  readonly exact: ReadonlyMap<string, Entry>
  /** By upstream: entries `up/*`. */
  readonly whole: ReadonlyMap<string, Entry>
  readonly any: Entry | null
}

/** A list of entries; the first of equal ones is the one that is told. With `literal`, a `*` is a name
 *  like any other (version 1 knows no patterns). */
export function nameList(entries: readonly Entry[], literal: boolean): NameList {
  const exact = new Map<string, Entry>()
  const whole = new Map<string, Entry>()
  let any: Entry | null = null
  for (const entry of entries) {
    const upstream = entry.source.endsWith('/*') ? entry.source.slice(0, -2) : null
    if (!literal && entry.source === '*') any ??= entry
    else if (!literal && upstream !== null) put(whole, upstream, entry)
    else put(exact, entry.source, entry)
  }
  return { exact, whole, any }
}

function put(map: Map<string, Entry>, key: string, entry: Entry): void {
  if (!map.has(key)) map.set(key, entry)
}

/** How a name is listed: by itself, by a pattern, or not (null). */
export type Listing = { readonly entry: Entry; readonly by: 'name' | 'pattern' }

/** Exact names win over patterns, `up/*` over `*`. Names are compared as they are: no case, no trimming. */
export function listed(list: NameList, name: string): Listing | null {
  const exact = list.exact.get(name)
  if (exact !== undefined) return { entry: exact, by: 'name' }
  const pattern = list.whole.get(name.slice(0, Math.max(name.indexOf('/'), 0))) ?? list.any
  return pattern === null ? null : { entry: pattern, by: 'pattern' }
}

/** True when one pattern of a rule speaks of this name. */
export const patternMatches = (pattern: string, name: string): boolean =>
  pattern === '*' ||
  pattern === name ||
  (pattern.endsWith('/*') && name.startsWith(pattern.slice(0, -1)))

/** Times that percent-encoding is undone in search of dot segments. */
const MAX_DECODINGS = 3

/** Why a URI is refused before any pattern is looked at, or null: dot segments and separators, plain or
 *  percent-encoded, would name another resource than the one that was compared. */
export function uriProblem(uri: string): string | null {
  let text = uri
  for (let round = 0; round <= MAX_DECODINGS; round++) {
    if (/[\\\p{C}\p{Zl}\p{Zp}]/u.test(text)) return 'has a backslash or a control character'
    if (round > 0 && slashes(text) !== slashes(uri)) return 'has an encoded separator'
    if (/(?:^|[/:])\.{1,2}(?:[/?#]|$)/.test(text)) return 'has a dot segment'
    const next = text.replaceAll(
      /%([2][0-9A-Fa-f]|[57][CcEe]|[01][0-9A-Fa-f])/g,
      (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)),
    )
    if (next === text) return null
    text = next
  }
  return 'is encoded too often'
}

const slashes = (text: string): number => text.split('/').length

/** The entry that lists this URI, or null. An entry is a URI, or a prefix that ends in a slash and `*`. */
export function uriListed(entries: readonly Entry[], uri: string): Entry | null {
  if (uriProblem(uri) !== null) return null
  return (
    entries.find(({ source }) =>
      source.endsWith('/*') ? uri.startsWith(source.slice(0, -1)) : source === uri,
    ) ?? null
  )
}
