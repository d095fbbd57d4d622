// The version of this package, as its package.json says.

import { readFileSync } from 'node:fs'

/** For instance `0.1.0`. */
export function version(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own file, shipped with this one
  return (JSON.parse(text) as { readonly version: string }).version
}
