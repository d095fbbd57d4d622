// `eclusa demo`: runs examples/demo, which plays with real servers and the official client.

import { existsSync } from 'node:fs'

import { EXIT } from '../fault.ts'
import type { Io } from './io.ts'

/** Plays the demo. Exit 0 when everything came out as it must. `--once` is accepted and changes nothing:
 *  the demo always ends by itself. */
export async function demo(args: string[], io: Io): Promise<number> {
  const unknown = args.find((one) => one !== '--once')
  if (unknown !== undefined) {
    io.err(`eclusa: demo does not know ${unknown}; run: eclusa demo`)
    return EXIT.usage
  }
  const play = new URL('../../examples/demo/play.ts', import.meta.url)
  if (!existsSync(play)) {
    io.err(
      'eclusa: the demo is part of a checkout: clone the repository, then run: npm ci && npm start',
    )
    io.err('eclusa: to try it on your own server now, run: eclusa stdio -- COMMAND')
    return EXIT.usage
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- our own file, but not of the package
  const { play: run } = (await import(play.href)) as {
    readonly play: (io: Io) => Promise<number>
  }
  return run(io)
}
