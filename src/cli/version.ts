// The version of this package, as its package.json says.

import { readFileSync } from 'node:fs'

/** For instance `0.1.0`. */
export function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}
