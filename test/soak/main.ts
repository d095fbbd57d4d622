// `npm run soak`: the long form, its figures on stdout, exit status 1 when one of them is not as promised.

import { parseArgs } from 'node:util'

import { type Figures, soak } from './soak.ts'
import { problems } from './verdict.ts'

const MIB = 1024 * 1024

// Of eight servers each dies after every 4,800 calls of its own: one in 5,000 calls in a full run.
const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '200000' },
    clients: { type: 'string', default: '50' },
    servers: { type: 'string', default: '8' },
    'crash-every': { type: 'string', default: '4800' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    node: { type: 'string', multiple: true, default: [] },
    samples: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)
process.stderr.write(`seed ${seed}\n`)
const figures = await soak({
  calls: Number(values.calls),
  clients: Number(values.clients),
  servers: Number(values.servers),
  crashEvery: Number(values['crash-every']),
  nodeFlags: values.node,
  seed,
})
process.stdout.write(`${JSON.stringify({ seed, ...short(figures) }, null, 1)}\n`)
const found = problems(figures, { slope: true })
for (const line of found) process.stdout.write(`${line}\n`)
process.exitCode = found.length === 0 ? 0 : 1

function short({ account, samples, errors, verdict, ...rest }: Figures): object {
  const rss = samples.map((one) => Math.round(one.rss / MIB))
  const open = samples.map((one) => one.descriptors)
  return {
    ...account,
    wrong: account.wrong.length,
    ...rest,
    slopeMiB: rest.slope / MIB,
    aliveMiB: rest.alive.map((bytes) => bytes / MIB),
    rssMiB: values.samples ? rss : rss.filter((_, at) => at % 20 === 0).concat(rss.slice(-1)),
    descriptors: [Math.min(...open), Math.max(...open)],
    errorBytes: errors.length,
    verdict: verdict.split('\n').slice(0, 2),
  }
}
