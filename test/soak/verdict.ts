// What of a soak's figures is not as promised.

import { type Figures, faultsIn } from './soak.ts'

/** Bytes of memory that 10,000 calls may add after the warm-up. */
const MAX_SLOPE = 1024 * 1024
/** Bytes that may be alive at the end beyond those alive after a tenth of the calls: caches that fill, code
 *  that is compiled. What a leak of 300 bytes a call leaves in a full run is seven times as much. */
const MAX_ALIVE = 8 * 1024 * 1024
/** Descriptors by which two counts may differ: one child's pipes, a file just being written. */
const SLACK = 4
/** The same while clients come and go: connections that were cut and are not gone yet. */
const CHURN = 25
/** Characters of stderr that one crash may cost, and those of a start and an end. */
const SAID_A_CRASH = 2_000
const SAID_ELSE = 8_000
const MAX_SHOWN = 20

/** One line for each promise that was not kept. Without `slope` neither memory nor descriptors are judged while
 *  it runs: in a short run it is the warm-up, and clients that come and go, that are seen. */
export function problems(
  figures: Figures,
  { slope }: { readonly slope: boolean },
): readonly string[] {
  const { account, samples, errors } = figures
  const half = samples.slice(Math.floor(samples.length / 5))
  const open = half.map((one) => one.descriptors)
  const early = Math.max(...open.slice(0, Math.ceil(open.length / 2)))
  const late = Math.max(...open.slice(Math.ceil(open.length / 2)))
  return [
    ...account.wrong.slice(0, MAX_SHOWN),
    ...(account.wrong.length > MAX_SHOWN ? [`and ${account.wrong.length} in all`] : []),
    ...(account.crashes > 0 ? [] : ['no server crashed']),
    ...(account.answered > 0 ? [] : ['nothing was answered']),
    ...(figures.exit === 0 ? [] : [`the gateway ended with ${figures.exit}`]),
    ...(figures.verified ? [] : [`the ledger does not verify: ${figures.verdict}`]),
    ...(figures.orphans === 0 ? [] : [`${figures.orphans} servers outlived the gateway`]),
    ...(!slope || late <= early + CHURN ? [] : [`descriptors grew from ${early} to ${late}`]),
    ...(figures.after <= figures.before + SLACK
      ? []
      : [`${figures.before} descriptors before all clients, ${figures.after} after`]),
    ...(figures.alive[1] - figures.alive[0] <= MAX_ALIVE
      ? []
      : [`what is alive grew from ${figures.alive.join(' to ')} bytes`]),
    ...faultsIn(errors).slice(0, MAX_SHOWN),
    ...(errors.length <= SAID_ELSE + SAID_A_CRASH * account.crashes
      ? []
      : [`${errors.length} characters on stderr`]),
    ...(!slope || figures.slope <= MAX_SLOPE
      ? []
      : [`memory grows by ${Math.round(figures.slope / 1024)} KiB in 10,000 calls`]),
  ]
}
