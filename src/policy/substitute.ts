// Puts `${NAME}`, `${NAME:-default}` and `${file:/abs}` in place in the string values of a document.

import { isObject, type Json } from '../json.ts'
import type { Read } from './document.ts'
import { type ConfigFault, type Lookup, pointer } from './position.ts'
import { bare, items } from './value.ts'

/** `$${` stands for a plain `${`. */
const REFERENCE = /\$?\$\{([^}]*)\}/g
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s
/** Parts of a document that decide calls: what they take from outside is not in the recorded policy text. */
const DECIDES = /^\/(profiles|tools|must_deny|messages)\//

/** The value with every reference replaced, and a fault for each that stands for nothing. A reference in
 *  a part that decides is a warning: its value is not in the recorded text. */
export function substitute(
  document: Read,
  lookup: Lookup,
): { readonly value: Json; readonly faults: readonly ConfigFault[] } {
  const faults: ConfigFault[] = []
  const report = (path: string, level: ConfigFault['level'], message: string): void => {
    faults.push({ file: document.file, ...document.at(path), path, level, message })
  }
  const text = (value: string, path: string): string =>
    value.replaceAll(REFERENCE, (whole: string, inner: string) => {
      if (whole.startsWith('$$')) return whole.slice(1)
      if (DECIDES.test(path)) {
        report(
          path,
          'warning',
          `\${${inner}} is not part of the recorded policy: a decision that reads it can be decided again only where it has the same value`,
        )
      }
      const found = resolve(inner, lookup)
      if (typeof found === 'string') return found
      report(path, 'error', found.problem)
      return ''
    })
  const walk = (value: Json, path: string): Json => {
    if (typeof value === 'string') return value.includes('${') ? text(value, path) : value
    if (Array.isArray(value)) return items(value).map((item, at) => walk(item, pointer(path, at)))
    if (!isObject(value)) return value
    const made = bare()
    for (const key of Object.keys(value)) made[key] = walk(value[key] ?? null, pointer(path, key))
    return made
  }
  return { value: walk(document.value, ''), faults }
}

function resolve(inner: string, lookup: Lookup): string | { readonly problem: string } {
  if (inner.startsWith('file:')) {
    const path = inner.slice('file:'.length)
    if (!path.startsWith('/')) return { problem: `\${${inner}}: the path must be absolute` }
    const text = lookup.file(path)
    if (text !== undefined) return text
    return { problem: `${path} cannot be read; it must be a file of mode 0600 of this user` }
  }
  const [, name, fallback] = NAME.exec(inner) ?? []
  if (name === undefined) {
    return {
      problem: `\${${inner}} is no reference; write \${NAME}, \${NAME:-default} or \${file:/abs}`,
    }
  }
  const value = lookup.env(name)
  if (value !== undefined && (value !== '' || fallback === undefined)) return value
  if (fallback !== undefined) return fallback
  return { problem: `${name} is not set; set it, or write \${${name}:-default}` }
}
