// A process that writes notes under new keys into the ledger named by its argument until stdin ends.

import { open, write } from './real.ts'

const [, , dir = ''] = process.argv
const store = await open(dir)
const going = { on: true }
process.stdin.on('end', () => (going.on = false)).resume()
process.stdout.write('ready\n')
await Promise.all(
  Array.from({ length: 8 }, async (_, lane) => {
    for (let at = 0; going.on; at++) await write(store, `busy-${lane}-${at}`, 'committed')
  }),
)
await store.stop()
