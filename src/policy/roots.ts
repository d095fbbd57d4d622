// Which of a client's roots a profile lets a server know of: compared whole, never widened.

import { isUnder, pathProblem } from './normal.ts'
import { type Entry, uriProblem } from './pattern.ts'

/** One allowed root. path: an absolute path in normal form, for `file:` URIs without a host; uri: a URI as it
 *  is written. Neither ends in a slash, but for the path `/`. */
export type Root = { readonly kind: 'path' | 'uri'; readonly text: string }

const URI_FORM = /^[a-z][a-z0-9+.-]*:/

/** The root of an entry of `client.roots`, or why it is none. */
export function rootOf({ source }: Pick<Entry, 'source'>): Root | { readonly problem: string } {
  if (URI_FORM.test(source)) {
    const problem = uriProblem(source)
    if (problem !== null) return { problem: `the URI ${problem}` }
    if (/[?#*]/.test(source)) return { problem: 'a root has no query, fragment or pattern' }
    return { kind: 'uri', text: source.replace(/(?<=[^/:])\/$/, '') }
  }
  if (!source.startsWith('/')) return { problem: 'expected a URI, or a path that begins with `/`' }
  const text = source.length > 1 && source.endsWith('/') ? source.slice(0, -1) : source
  const problem = pathProblem(text)
  return problem === null ? { kind: 'path', text } : { problem: `the path ${problem}` }
}

/** True when `uri` is one of these roots or under one. Percent-encoding is undone once for a path, and refused
 *  where it would hide a separator or a dot segment; a URI is compared as it is. */
export function isRootAllowed(uri: string, roots: readonly Root[]): boolean {
  // A query or fragment is no part of a folder's name, and servers differ in what they make of it.
  if (uriProblem(uri) !== null || /[?#]/.test(uri)) return false
  const path = pathOf(uri)
  return roots.some(({ kind, text }) =>
    kind === 'path'
      ? path !== null && isUnder(path, [text])
      : uri === text || uri.startsWith(text.endsWith('/') ? text : `${text}/`),
  )
}

const FILE = 'file://'

/** The path of a `file:` URI without a host, without the slash at its end; null for any other URI. */
function pathOf(uri: string): string | null {
  if (!uri.startsWith(`${FILE}/`)) return null
  const encoded = uri.slice(FILE.length)
  try {
    const path = decodeURIComponent(encoded)
    return path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
  } catch {
    // No UTF-8 behind the escapes: nobody can say which folder it names.
    return null
  }
}
