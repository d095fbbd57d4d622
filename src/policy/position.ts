// Where things stand in a configuration text, and what is wrong with it there.

/** 1-based, in UTF-16 units. */
export type Position = { readonly line: number; readonly column: number }

/** One fault of a text. `path` is a JSON Pointer into the document, '' for the whole; `message` ends with
 *  the next step where there is one. A `warning` does not stop the program. */
export type ConfigFault = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly path: string
  readonly level: 'error' | 'warning'
  readonly message: string
}

/** A text and the name under which faults speak of it. */
export type Source = { readonly file: string; readonly text: string }

/** What `${NAME}` and `${file:/abs}` stand for; undefined = unset, or a file that may not be read. The
 *  door that implements it does the I/O and the check of modes. */
export type Lookup = {
  env(name: string): string | undefined
  file(path: string): string | undefined
}

/** A place in one of the texts of a policy. */
export type Place = { readonly file: string } & Position

/** `file:line:column: level: message (path)`: one line a fault, as compilers write them. */
export const faultLine = (fault: ConfigFault): string => {
  const where = `${fault.file}:${fault.line}:${fault.column}`
  return `${where}: ${fault.level}: ${fault.message}${fault.path === '' ? '' : ` (${fault.path})`}`
}

/** One more segment of a JSON Pointer (RFC 6901). */
export const pointer = (path: string, segment: string | number): string =>
  `${path}/${String(segment).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** The segments of a JSON Pointer, unescaped; '' has none. Null when the text is no pointer. */
export function segmentsOf(path: string): readonly string[] | null {
  if (path === '') return []
  if (!path.startsWith('/') || /~(?![01])/.test(path)) return null
  return path
    .slice(1)
    .split('/')
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'))
}
